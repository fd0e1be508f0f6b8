"""Whether the kernel matrix of sparse rows is computed from them as they are, or from dense ones."""

from __future__ import annotations

AS_THEY_ARE, AS_DENSE = "as they are", "as dense rows"
PRODUCT = 7.5e-10  # of a multiplication of two entries, in a triangle of products
ENTRY = 1.5e-8  # of an entry, made ready, and in its share of the products that certify
DENSE_PRODUCT = 5.5e-12  # of a multiplication of two rows, in float32
DENSE_ENTRY = 2e-9  # of a number of dense rows: made, moved, squared


def gram(rows: int, width: int, entries: int, products: float) -> dict[str, float]:
    """Seconds of all but the exponentials of a kernel matrix: of so many entries that are not zero,
    and multiplications of two of them between all pairs of rows.

    >>> from mercer.costs import quickest
    >>> [quickest(gram(500, 1000, e, e**2 / 1000)) for e in (10_000, 100_000)]
    ['as they are', 'as dense rows']
    """
    numbers = float(rows) * width
    return {
        AS_THEY_ARE: ENTRY * entries + PRODUCT * products / 2,
        AS_DENSE: ENTRY * entries + numbers * (DENSE_ENTRY + DENSE_PRODUCT * rows),
    }
