"""Split conformal intervals: residuals of rows that nothing was fitted or chosen on tell how wide an interval must be."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.estimators.intervals import conformal_quantile
from mercer.inputs import Array
from mercer.product.rows import Rows, hashes
from mercer.product.targets import Log

COVERAGE = 0.9


@dataclass(frozen=True)
class Margin:
    """f - width to f + width; with `shift` not None, factors of exp(width) on f + shift instead."""

    width: float
    coverage: float = COVERAGE
    shift: float | None = None

    def __call__(self, f: Array) -> tuple[Array, Array]:
        if self.shift is None:
            return f - self.width, f + self.width
        base = np.maximum(f + self.shift, 0)
        return base * np.exp(-self.width) - self.shift, base * np.exp(self.width) - self.shift


def margin(y: Array, f: Array, target: Any = None, coverage: float = COVERAGE) -> Margin:
    """The margin that these rows ask for: the ceil((n + 1) coverage)-th smallest residual.

    >>> margin(np.arange(19.0), np.zeros(19)).width
    17.0
    """
    if not isinstance(target, Log):
        return Margin(float(conformal_quantile(np.abs(y - f), coverage)), coverage)
    tiny, base = np.finfo(float).tiny, y + target.shift  # of the holdout, which may have targets without a logarithm
    ratio = np.where(base > 0, np.abs(np.log(np.maximum(base, tiny) / np.maximum(f + target.shift, tiny))), np.inf)
    return Margin(float(conformal_quantile(ratio, coverage)), coverage, target.shift)


def measured(rows: Rows, f: Array, target: Any = None, coverage: float = COVERAGE, seed: int = 0) -> float:
    """The share covered where each half of the rows is judged by the margin of the other; groups stay whole."""
    key = rows.number if rows.unit is None else rows.unit
    half = hashes(key, seed + 7) % np.uint64(2) == 0
    covered = np.zeros(len(rows), bool)
    for other in (half, ~half):
        if other.any():
            low, high = margin(rows.y[other], f[other], target, coverage)(f[~other])
            covered[~other] = (low <= rows.y[~other]) & (rows.y[~other] <= high)
    return float(covered.mean())


def told(rows: Rows, f: Array, found: Margin, target: Any, seed: int = 0) -> dict[str, Any]:
    """The interval as evidence."""
    low, high = found(f)
    return {
        "coverage_asked": found.coverage,
        "coverage_measured": measured(rows, f, target, found.coverage, seed),
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
