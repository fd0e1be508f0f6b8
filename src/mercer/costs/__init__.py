"""What the ways to a result take, in seconds of one core, by shapes alone: the constants were
measured once and are shipped, so that a choice depends on shapes and settings and on nothing else.

Only ratios matter: a core of twice the speed makes the same choices.
"""

from __future__ import annotations

from collections.abc import Mapping

PRODUCT = 1.5e-11  # of a multiplication and an addition within matrix products, in float64
TRIDIAGONAL = 1.2e-10  # of n^3: leading eigenvectors by LAPACK, half of whose work is no product
ORTHOGONAL = 2.0e-9  # of n r^2: a basis of r vectors, grown by blocks and looked at between
KERNEL_VALUE = 2.0e-9  # of a kernel value beside the product of its rows
KRYLOV_BLOCKS = 8  # that a space of leading eigenvectors is taken to grow to
MAX_CHOLESKY_ROWS = 3000  # rows up to which a Cholesky factor is quicker than conjugate gradients


def quickest(ways: Mapping[str, float]) -> str:
    """The way that takes least; the first of those that take the same.

    >>> quickest({"whole": 2.0, "products": 1.0})
    'products'
    """
    return min(ways, key=ways.__getitem__)


def gram(n: int, width: int) -> float:
    """Of a symmetric kernel matrix of n rows of so many columns.

    >>> gram(2000, 10) < gram(2000, 1000) < gram(4000, 1000)
    True
    """
    return n * n / 2 * (KERNEL_VALUE + PRODUCT * width)


def eigenvectors(n: int, block: int) -> dict[str, float]:
    """Of the leading eigenvectors of a matrix of n rows that is there: of the whole of it, or from
    products with `block` vectors at a time.

    >>> [quickest(eigenvectors(n, 12)) for n in (100, 300, 700, 3000)]
    ['exact', 'exact', 'iterative', 'iterative']
    """
    basis = KRYLOV_BLOCKS * block
    return {
        "exact": TRIDIAGONAL * n**3,
        "iterative": ORTHOGONAL * n * basis**2 + PRODUCT * n**2 * basis,
    }
