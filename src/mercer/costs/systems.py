"""How (K + diag(ridge)) x = b is solved with K formed: seconds, where factors have two threads and
steps of conjugate gradients one, as memory limits them (measured at 300 to 6,500 rows)."""

from __future__ import annotations

STEPS, NARROW, WIDE = "conjugate gradients", "float32 factor", "float64 factor"

# Of fewer rows a factor in float64 takes as long as what spares it; of more, tiles in float32 that
# are kept, and residuals by tiles anew, are quicker: the later the wider rows are.
MIN_FORMED, MAX_FORMED, MAX_FORMED_WIDE = 256, 3_000, 5_000
MORE_WHERE_MILD = 1_500  # rows more, where steps and float32 serve
WIDE_ROWS = 48
START = {NARROW: 3e-4, WIDE: 1e-4}
FACTOR = {NARROW: 2.0e-12, WIDE: 3.9e-12}  # of n^3
MENDED = 5e-10  # of n^2: solutions by a triangle, until residuals are as small as they can be
STEP, PIVOT = 3e-5, 2e-10  # of one step, and in it of n and a pivot
ENTRY = 7.5e-11  # in it of n^2 and a column
PICKED, ELIMINATED = 3e-9, 5e-11  # of n and a pivot, and of n and two pivots
FEW_STEPS = 12  # that are hoped for


def formed_rows(width: int, *, mild: bool = False) -> range:
    """The numbers of rows of so many columns for which K is formed.

    >>> 3000 in formed_rows(5), 4000 in formed_rows(5), 4000 in formed_rows(100)
    (True, False, True)
    >>> 4000 in formed_rows(5, mild=True), 6000 in formed_rows(100, mild=True)
    (True, True)
    """
    most = MAX_FORMED_WIDE if width >= WIDE_ROWS else MAX_FORMED
    return range(MIN_FORMED, 1 + most + mild * MORE_WHERE_MILD)


def rank(n: int) -> int:
    """Pivots of the preconditioner of n rows, whose work is a small share of a factor's.

    >>> rank(600), rank(3000)
    (25, 125)
    """
    return max(1, n // 24)


def step(n: int, columns: float) -> float:
    """Of one step for so many columns."""
    return STEP + columns * n * (ENTRY * n + PIVOT * rank(n))


def factors(n: int, *, mild: bool = True) -> dict[str, float]:
    """Of factors and solutions by them; in float64 alone where the equations are not mild:
    float32 then has too few digits.

    >>> from mercer.costs import quickest
    >>> [quickest(factors(n)) for n in (300, 1000)]
    ['float64 factor', 'float32 factor']
    """
    ways = (NARROW, WIDE) if mild else (WIDE,)
    return {way: START[way] + n * n * (FACTOR[way] * n + MENDED) for way in ways}


def ways(n: int, columns: float, *, mild: bool) -> dict[str, float]:
    """Of all ways.

    >>> from mercer.costs import quickest
    >>> [quickest(ways(n, 1, mild=True)) for n in (300, 700, 3000)]
    ['float64 factor', 'conjugate gradients', 'conjugate gradients']
    >>> quickest(ways(3000, 1, mild=False)), quickest(ways(3000, 100, mild=True))
    ('float64 factor', 'float32 factor')
    """
    if not mild:
        return factors(n, mild=False)
    ready = n * rank(n) * (PICKED + ELIMINATED * rank(n))
    return {STEPS: ready + FEW_STEPS * step(n, columns), **factors(n)}
