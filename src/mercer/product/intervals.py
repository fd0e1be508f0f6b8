"""Split conformal intervals: residuals of rows that nothing was fitted or chosen on tell how wide an interval must be."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Number, Whole
from mercer.models.intervals import conformal_quantile
from mercer.product.rows import Rows, hashes
from mercer.product.targets import Log
from mercer.store import register

COVERAGE = 0.9
KEPT = 4_096  # residuals that a model carries


@register("automl.Margin")
@dataclass(frozen=True, eq=False)
class Margin:
    """f - width to f + width; with `shift` not None, factors of exp(width) on f + shift instead.

    `scores` are the residuals that it rests on, in order (of very many, some), from which it answers for other coverages, and
    `low` is what no target is below.
    """

    width: float
    coverage: float = COVERAGE
    shift: float | None = None
    scores: Array | None = None
    n: int = 0  # residuals there were
    low: float = -np.inf

    must = dict(
        width=Number(0, finite=False), coverage=Number(0), shift=Number() | None, scores=Floats(None, finite=False) | None, n=Whole(),
        low=Number(finite=False),
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.scores is not None and self.scores.shape != _ranks(self.n).shape:
            raise ValueError(f"Margin needs as many scores as {self.n:,} residuals leave, got an array of shape {self.scores.shape}.")

    def __call__(self, f: Array, wider: Array | float = 1.0) -> tuple[Array, Array]:
        """Lower and upper ends about f; `wider` is a factor on the width of each."""
        width = self.width * wider
        if self.shift is None:
            return np.maximum(f - width, self.low), f + width
        base = np.maximum(f + self.shift, 0)
        with np.errstate(over="ignore", invalid="ignore"):  # 0 times a factor that overflows is 0, unless the width is infinite
            top = np.where(np.isinf(width), np.inf, np.where(base > 0, base * np.exp(width), 0.0))
        return np.maximum(base * np.exp(-width) - self.shift, self.low), top - self.shift

    def at(self, coverage: float) -> Margin:
        """The margin for another coverage; where residuals were left out, the next larger that was kept."""
        if not (isinstance(coverage, int | float) and 0 < coverage < 1):
            raise ValueError(f"coverage must be a share between 0 and 1, got {coverage!r}.")
        if coverage == self.coverage or self.scores is None:
            return self
        rank = math.ceil((self.n + 1) * coverage - 1e-9)
        kept = np.searchsorted(_ranks(self.n), rank)
        width = float(self.scores[kept]) if rank <= self.n else np.inf
        return replace(self, width=width, coverage=coverage)


def _ranks(n: int) -> Array:
    """Of n residuals, the ranks (from 1) of those that are kept: all of few, of many evenly spread ones and the largest."""
    if n <= KEPT:
        return np.arange(1, n + 1)
    return np.unique(np.concatenate([np.linspace(1, n, KEPT // 2).round().astype(np.int64), np.arange(n - KEPT // 2 + 1, n + 1)]))


def margin(y: Array, f: Array, target: Any = None, coverage: float = COVERAGE, low: float = -np.inf) -> Margin:
    """The margin that these rows ask for: the ceil((n + 1) coverage)-th smallest residual.

    >>> found = margin(np.arange(19.0), np.zeros(19))
    >>> found.width, found.at(0.5).width
    (17.0, 9.0)
    """
    shift = target.shift if isinstance(target, Log) else None
    found = np.sort(_residuals(y, f, shift))
    return Margin(float(conformal_quantile(found, coverage)), coverage, shift, found[_ranks(len(found)) - 1], len(found), low)


def _residuals(y: Array, f: Array, shift: float | None) -> Array:
    """Absolute differences, of a logarithm those of logarithms; of the holdout, which may have targets without a logarithm."""
    if shift is None:
        return np.abs(y - f)
    tiny, base = np.finfo(float).tiny, y + shift
    return np.where(base > 0, np.abs(np.log(np.maximum(base, tiny) / np.maximum(f + shift, tiny))), np.inf)


def measured(
    rows: Rows, f: Array, target: Any = None, coverage: float = COVERAGE, seed: int = 0, low: float = -np.inf, wider: Array | float = 1.0,
) -> float:  # fmt: skip
    """The share covered where each half of the rows is judged by the margin of the other, widened and cut off as predictions are;
    groups stay whole.
    """
    factor = np.broadcast_to(wider, f.shape)
    key = rows.number if rows.unit is None else rows.unit
    half = hashes(key, seed + 7) % np.uint64(2) == 0
    covered = np.zeros(len(rows), bool)
    for other in (half, ~half):
        if other.any():
            bottom, top = margin(rows.y[other], f[other], target, coverage, low)(f[~other], factor[~other])
            covered[~other] = (bottom <= rows.y[~other]) & (rows.y[~other] <= top)
    return float(covered.mean())


def told(rows: Rows, f: Array, found: Margin, target: Any, seed: int = 0, wider: Array | float = 1.0) -> dict[str, Any]:
    """The interval as evidence."""
    low, high = found(f, wider)
    return {
        "coverage_asked": found.coverage,
        "coverage_measured": measured(rows, f, target, found.coverage, seed, found.low, wider),
        "median_width": float(np.median(high - low)) if np.isfinite(found.width) else None,
        "guarantee": guarantee(rows, found.coverage),
    }


def guarantee(rows: Rows, coverage: float) -> str:
    """What may be relied on, and what may not."""
    share = f"at least {100 * coverage:g} % of new rows from the same source"
    sure = f"{share} are covered on average (split conformal on the holdout's residuals)"
    if rows.time is not None:
        return f"{sure}, as long as the future is like the last rows"
    return f"{sure}; rows of one group are alike, so for new groups this is approximate" if rows.unit is not None else sure
