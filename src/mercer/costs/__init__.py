"""What the ways to a result take, in seconds of one core, by shapes alone: the constants were
measured once and are shipped, so that a choice depends on shapes and settings and on nothing else.

Only ratios matter: a core of twice the speed makes the same choices.
"""

from __future__ import annotations

from collections.abc import Mapping

PRODUCT = 1.5e-11  # of a multiplication and an addition within matrix products, in float64
LAPACK, LAPACK_CUBE = 1.8e-8, 1.5e-11  # of n^2 and n^3: a whole matrix made tridiagonal
LAPACK_EACH = 3.3e-7  # of n k: eigenvectors of that
STEPS, STEPS_EACH = 30, 2.4  # of Lanczos, on average over many spectra: for k components
STEP, STEP_VALUE, STEP_BASIS = (
    2.4e-5,
    8e-11,
    1e-10,
)  # of a step, of n^2 in it, of n r^2 in r of them
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


def eigenvectors(n: int, k: int) -> dict[str, float]:
    """Of k leading eigenvectors of a matrix of n rows that is there: of the whole of it, or from
    products with one vector at a time.

    >>> [quickest(eigenvectors(n, 12)) for n in (100, 300, 700, 3000)]
    ['exact', 'iterative', 'iterative', 'iterative']
    """
    steps = STEPS + STEPS_EACH * k
    return {
        "exact": LAPACK * n**2 + LAPACK_CUBE * n**3 + LAPACK_EACH * n * k,
        "iterative": steps * (STEP + STEP_VALUE * n**2) + STEP_BASIS * n * steps**2,
    }


def steps_worth(n: int, k: int) -> int:
    """The steps of Lanczos after which the whole matrix would have taken no longer.

    >>> steps_worth(200, 10) < steps_worth(200, 40) < steps_worth(2000, 40)
    True
    """
    each, square = STEP + STEP_VALUE * n**2, STEP_BASIS * n
    whole = eigenvectors(n, k)["exact"]
    return int(((each**2 + 4 * square * whole) ** 0.5 - each) / (2 * square))


def eigenvectors_by_blocks(n: int, block: int) -> float:
    """Of the same from products with so many vectors at a time.

    >>> eigenvectors_by_blocks(1000, 12) < eigenvectors_by_blocks(1000, 24)
    True
    """
    basis = KRYLOV_BLOCKS * block
    return ORTHOGONAL * n * basis**2 + PRODUCT * n**2 * basis
