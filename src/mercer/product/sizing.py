"""How large the last fit may be: seconds measured in the search, carried over to more rows and features."""
from __future__ import annotations

from dataclasses import dataclass

from mercer.product import ledger
from mercer.product.finalists import Finalist
from mercer.product.fitting import MOST_FEATURES, SQUARES, STREAM
from mercer.product.search import Problem

FITS = {True: 8.0, False: 6.0}  # that cross-validation of a classifier took, of two classes or more: three penalties, then the folds
LEAST_ROWS = 5_000
LANDMARKS = 2048  # beyond them ridge regression has no features of its own


@dataclass(frozen=True)
class Size:
    """Features and rows of the last fit."""

    features: int
    rows: int


def ridge_work(n: float, D: float, solves: float) -> float:
    """Multiplications of the moments of n rows and of so many factorisations."""
    return n * D * D + solves * D**3 / 3 * 2  # float64 counts twice


def seconds(here: Problem, f: Finalist, n: int, D: int) -> float:
    """What a fit of n rows with D features should take, by what cross-validation on `here` took."""
    took, rows = max(f.seconds, 1e-3), len(here.rows)
    if f.kind == "machine":
        return took / 2  # of some folds of all rows
    if here.numeric:
        return took * ridge_work(n, D, 12) / ridge_work(rows, f.size, 55)
    return took / FITS[here.n_classes == 2] * (n / (0.75 * rows)) * (D / max(f.size, 1))


def size(here: Problem, f: Finalist, n: int, left: float, memory: float) -> Size:
    """As many features as time and memory allow, up to four times those of the search; fewer rows only where even that is too slow."""
    if f.kind in ("constant", "machine"):
        return Size(f.size, n)
    if f.kind in ("linear", "explicit"):
        return _rows(here, f, n, f.size, left, memory)
    most = min(MOST_FEATURES, 4 * f.size, ledger.features(memory, SQUARES))
    options = [D for D in (4 * f.size, 2 * f.size) if most >= D and (f.kind != "landmarks" or (n >= 4 * D and D <= LANDMARKS))]
    fitting = [D for D in options if seconds(here, f, n, D) <= left]
    return _rows(here, f, n, fitting[0] if fitting else f.size, left, memory)


def _rows(here: Problem, f: Finalist, n: int, D: int, left: float, memory: float) -> Size:
    asked = seconds(here, f, n, D)
    rows = n if asked <= max(left, 1.0) else max(min(n, LEAST_ROWS), int(n * max(left, 1.0) / asked))
    return Size(D, min(rows, held(here, f, memory)))


def held(here: Problem, f: Finalist, memory: float) -> int:
    """The most rows that memory holds: of classifiers the scores for every class, some times over; and what maps learn from."""
    if here.numeric or f.kind == "constant":
        return 1 << 62
    learned = STREAM if f.kind in ("explicit", "landmarks") else 1 << 62
    return min(learned, max(1000, int(memory / 3 / (64 * here.n_classes))))
