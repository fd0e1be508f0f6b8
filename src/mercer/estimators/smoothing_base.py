"""What NadarayaWatson and SoftNeighborsClassifier share: rows kept, a bandwidth chosen, votes, and a word on far queries."""
from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_random_state

from mercer.estimators.rows import OverFittedRows, shown
from mercer.inputs import Array, Table
from mercer.invariants import Floats, Ints, Is
from mercer.kernels import Kernel
from mercer.kernels.base import positive, whole
from mercer.kernels.stretch import bandwidths, scaled
from mercer.learners.smoothing import HELD, Smoother
from mercer.learners.voters import COLUMNS, Given, Points
from mercer.ops.tiles import ROWS
from mercer.plan import Plan
from mercer.stats import row_hashes

SCALES = 2.0 ** np.arange(-7, 2.5, 0.5)
LOO_PAIRS, LOO_ROWS = 10**8, 1000  # with more pairs, bandwidths are tried on some of the rows; on so many at least
COPIED = 64 << 20  # bytes of rows up to which a model keeps a copy of its own


class FarAwayWarning(UserWarning):
    """Some queries are so far from all training points that every kernel value underflows, or is zero."""


class Smoothing(OverFittedRows):
    """What the two share: fitting keeps the rows and may choose a bandwidth; every answer is one sweep over tiles."""

    bandwidth: Any
    scales: Any
    random_state: Any
    smoother_: Smoother
    _train: Table

    must = dict(
        smoother_=Is("Smoother"), _train=Is("Table"), _groups=Ints("n", below="n"), scales_=Floats("s"),
        loo_errors_=Floats("s", finite=False),
    )  # fmt: skip

    def _settings(self) -> tuple[str, Array]:
        """Which way to a bandwidth, and the scales to choose from."""
        if not (isinstance(self.bandwidth, str) and self.bandwidth in ("auto", "loo", "fixed")):
            raise ValueError(f"bandwidth must be 'auto', 'loo' or 'fixed', got {shown(self.bandwidth)!r}.")
        scales = SCALES if self.scales is None else np.unique([positive(shown(s), "scales") for s in _listed(self.scales)])
        if not len(scales):
            raise ValueError("scales is empty; give one factor or more, or None for the usual ones.")
        return self.bandwidth, scales

    def _fit(self, rows: Table, Y: Array, weight: Array | None) -> Self:
        how, scales = self._settings()
        kernel = self._resolved(rows, weight)
        choose = how == "loo" or (how == "auto" and not isinstance(self.kernel, Kernel) and bool(bandwidths(kernel)))
        if choose and not bandwidths(kernel):
            raise ValueError(f"bandwidth='loo' needs a kernel with a bandwidth, got {kernel!r}; use bandwidth='fixed'.")
        for name in ("_groups", "scales_", "loo_errors_"):  # of another fit
            self.__dict__.pop(name, None)
        rows = _own(rows)
        self._train, self.kernel_ = rows, kernel
        self.smoother_ = Smoother(Given(len(rows)) if self._pairwise else Points(kernel, rows), Y, weight)
        self.plan_ = self._planned(rows, len(scales) if choose else 0)
        if choose:
            self._choose(rows, scales)
        return self

    def _choose(self, rows: Table, scales: Array) -> None:
        """The scale of all bandwidths with the least squared error of the rows left out, all scales in one sweep."""
        kernels, s = [scaled(self.kernel_, c) for c in scales], self.smoother_
        errors = s.errors(rows, kernels, self._loo_rows(len(rows)), self._grouped())
        self.scales_, self.loo_errors_ = scales.copy(), errors
        best = int(np.flatnonzero(errors <= errors.min() * (1 + 1e-9))[-1])  # of equals the smoothest
        self.kernel_ = kernels[best].clone()
        self.smoother_ = Smoother(Points(self.kernel_, rows), s.Y, s.weight)

    def _loo_rows(self, n: int) -> Array:
        some, most = np.flatnonzero(self.smoother_.w), max(LOO_ROWS, LOO_PAIRS // n)
        return some if len(some) <= most else np.sort(check_random_state(self.random_state).choice(some, most, replace=False))

    def _grouped(self) -> Array:
        """Equal rows have equal numbers: a point is left out with its copies, so that a weight of 2 is two rows."""
        if not hasattr(self, "_groups"):
            data = self._train.data
            plain = self._pairwise or self._train.items
            self._groups = np.arange(len(self._train)) if plain else np.unique(row_hashes(data), return_inverse=True)[1]
        return self._groups

    def _planned(self, rows: Table, scales: int) -> Plan:
        n, q = len(rows), self.smoother_.Y.shape[1]
        tile = 8.0 * ROWS * COLUMNS * 4 + (HELD if scales else 0)
        settings = {"rows": n, "outputs": q, "bandwidth": "by leave-one-out" if scales else "as given"}
        if scales:
            settings |= {"scales": scales, "rows left out": len(self._loo_rows(n))}
        why = f"every answer is one sweep over {n:,} training points in tiles, whatever the number of queries"
        return Plan("tiles", why, settings, tile + 8.0 * n * (2 * q + 1 + self.n_features_in_), None, 1 if scales else 0)

    # asking
    def _smooth(self, X: Any) -> tuple[Array, Any]:
        check_is_fitted(self, "smoother_")
        rows = self._checked_rows(X, reset=False)
        out, far, none = self.smoother_.smooth(rows)
        if far.any():
            warnings.warn(_told(far, none), FarAwayWarning, stacklevel=3)
        return out, rows.dtype

    def far(self, X: Any) -> Array:
        """Which rows are so far from all training points that every kernel value underflows or is zero, (n,) of bool.

        They are answered by their largest votes relative to each other, which is by the nearest points. Those whose distances are
        one floating-point number, as all are from 10^16 times their spread away, share the vote. Where every vote is exactly zero,
        so that none is nearest, all training points vote equally.
        """
        check_is_fitted(self, "smoother_")
        return self.smoother_.far(self._checked_rows(X, reset=False))

    def votes(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """The k training points with the largest shares p_i(x) = w_i k(x, x_i) / sum_j w_j k(x, x_j), and the shares, (n, k) each.

        Over all training points they add up to 1, for queries far away too: there the nearest have them all.
        """
        check_is_fitted(self, "smoother_")
        rows = self._checked_rows(X, reset=False)
        index, shares = self.smoother_.votes(rows.astype(np.float64), min(whole(shown(k), "k", least=1), len(self._train)))
        return index, shares.astype(rows.dtype)

    def _left_out(self) -> Array:
        """Every training row's answer without it and its copies, (n, q)."""
        check_is_fitted(self, "smoother_")
        s, groups = self.smoother_, self._grouped()
        return s.targets(s.sums(self._train, (groups, groups)))


def _listed(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        return list(values.ravel().tolist())
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]


def _own(rows: Table) -> Table:
    """A copy of rows that are not many: what the caller does to his own then changes nothing."""
    if rows.items or (rows.data.data if rows.sparse else rows.data).nbytes > COPIED:
        return rows
    return Table(rows.data.copy(), rows.columns)


def _told(far: Array, none: Array) -> str:
    """What became of queries that are far, in a sentence or two."""
    lines, n = [], len(far)
    if (far & ~none).any():
        lines.append(
            f"{(far & ~none).sum()} of {n} queries are so far from the training points that every kernel value underflows; "
            "they are answered by the nearest points (see far(X))."
        )
    if none.any():
        lines.append(f"{none.sum()} of {n} queries have only votes of zero; they are answered by all training points equally.")
    return " ".join(lines)
