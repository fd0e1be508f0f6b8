"""Whether random bases are formed, or rows are taken through the reflections that they are products
of, which is less work where rows are fewer than columns."""

from __future__ import annotations

from mercer.costs import PRODUCT

FORMED, PRODUCTS = "formed", "products"
LEVEL = 1.6  # times a product's seconds: reflections are applied 32 at a time
SPREAD = 6e-9  # of a number that is made of a basis: a Fourier transform, an order, a norm


def turned(rows: int, width: int, m: int) -> dict[str, float]:
    """Seconds of the angles of rows of so many columns with m frequencies in random bases.

    >>> from mercer.costs import quickest
    >>> [quickest(turned(n, 600, 900)) for n in (100, 3000)]
    ['products', 'formed']
    """
    blocks, each = max(1, m // width), min(width, m)
    whole = width * each**2 - each**3 / 3
    through = 2 * rows * (width * each - each**2 / 2)
    return {
        FORMED: blocks * LEVEL * PRODUCT * whole + m * width * (SPREAD + PRODUCT * rows),
        PRODUCTS: blocks * LEVEL * PRODUCT * through + m * rows * SPREAD,
    }
