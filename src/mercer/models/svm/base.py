"""What exact SVMs share: rows as a source of kernel values, support vectors, scores, a plan, and fewer support vectors."""
from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, check_is_fitted, column_or_1d

from mercer.estimators.base import bytes_of
from mercer.estimators.rows import OverRows
from mercer.inputs import Array, Table
from mercer.invariants import Counts, Floats, Ints, Samples
from mercer.lifts.base import seed_of
from mercer.models.settings import whole
from mercer.models.svm.compression import Compression, project
from mercer.models.svm.problem import Duals, relative
from mercer.models.svm.solver import held
from mercer.operators.products import dense_enough, times
from mercer.operators.tiled import LARGEST, AboutRows, GivenRows, KernelRows, certain
from mercer.plan import Plan

EPS = float(np.finfo(np.float32).eps)


class SupportVectors(OverRows):
    """A model sum_j coef_j k(x, z_j) + intercept over support vectors z_j, some of the rows it was fitted on."""

    memory_limit: Any
    max_iter: int
    tol: float
    support_: Array
    support_vectors_: Any
    dual_coef_: Array
    intercept_: Array
    n_iter_: int
    _remedies = "lower C", "centre and scale the columns of X, or lower C"  # where rounds ran out, and where rounding is what is left

    must = dict(
        support_=Ints("m", below=1 << 48, distinct=True), dual_coef_=Floats("r", "m"), intercept_=Floats(None), n_support_=Counts(None),
        support_vectors_=Samples("m", "n_features_in_") | Ints("m", below="n_features_in_"), offset_=Floats(None),
    )  # fmt: skip

    def _laws(self) -> str | None:
        said, there = (int(self.n_support_.sum()), len(self.support_)) if hasattr(self, "support_") else (0, 0)
        return None if said == there else f"counts {said} support vectors of {there}"

    def _checked_pair(self, X: Any, y: Any, *, reset: bool, **options: Any) -> tuple[Table, Array]:
        """Rows and their targets, which are checked beside items as well."""
        rows, y = super()._checked_pair(X, y, reset=reset, **options)
        if not rows.items:
            return rows, y
        y = column_or_1d(np.asarray(y, np.float64) if options.get("y_numeric") else y)
        assert_all_finite(y, input_name="y")
        return rows, y

    def _row_weights(self, sample_weight: Any, rows: Table) -> Array:
        """Weights as they are: the bounds of the duals."""
        X = np.empty((len(rows), 1)) if rows.items else rows.data
        return np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))

    def _square(self, rows: Table) -> None:
        if self._pairwise and len(rows) != rows.width:
            raise ValueError(f"X must be a square kernel matrix with kernel='precomputed', got shape {rows.data.shape}.")

    def _only(self, rows: Table, keep: Array) -> Table:
        """Some rows; of a given kernel matrix also only those columns."""
        if keep.all():
            return rows
        return Table(rows.data[keep][:, keep]) if self._pairwise else rows[keep]

    def _source(self, rows: Table, largest: float, tol: float, ridge: float = 0.0, *, balanced: bool = False) -> KernelRows:
        """Kernel values in float32, unless the rounding of a sum over all rows, times the largest dual, would show at tol.

        Where the duals sum to zero (`balanced`), about a point.
        """
        rows = rows if self._pairwise else dense_enough(rows, bytes_of(self.memory_limit))
        source, narrow = self._values(rows), rows.dtype == np.float32
        source = source.balanced() if balanced else source
        shows = EPS * largest * len(rows) ** 0.5 * float(np.abs(source.diag).max()) > (tol if narrow else 0.1 * tol)
        shows = shows or ridge > LARGEST
        if shows and narrow and not isinstance(source, AboutRows):
            source = self._values(rows.astype(np.float64))
            source = source.balanced() if balanced else source
        return source.stored(np.float64 if shows else np.float32)

    def _values(self, rows: Table) -> KernelRows:
        if not self._pairwise:
            return KernelRows(self.kernel_, rows)
        if not certain(rows.data, bool(getattr(self, "fit_intercept", True))):
            text = "X is a kernel matrix with negative eigenvalues: the duals are a stationary point, and gap_ bounds nothing"
            warnings.warn(f"{text}; give a positive semidefinite one.", UserWarning, stacklevel=5)
        return GivenRows(rows.data)

    def _keep_support(self, rows: Table, kept: Array, coef: Array, order: Array) -> None:
        """The rows whose coefficients (k, n) are not zero, in this order; `kept` says which rows of X they are."""
        self.__dict__.pop("compression_", None)  # of a copy that is fitted again
        support = order[(coef != 0).any(0)[order]]
        self.support_, self.dual_coef_ = kept[support], np.ascontiguousarray(coef[:, support])
        self.support_vectors_ = self.support_ if self._pairwise else rows[support].data

    def _raw(self, X: Any) -> Array:
        """Scores (n, k) of new rows, without the intercept."""
        check_is_fitted(self, "dual_coef_")
        rows = self._checked_rows(X, reset=False)
        return self._of_table(rows if self._pairwise else dense_enough(rows, bytes_of(self.memory_limit)))

    def _of_table(self, rows: Table) -> Array:
        return times(self.kernel_, rows, self.support_vectors_, self.dual_coef_.T, balanced=self._balanced)

    @property
    def _balanced(self) -> bool:
        """Whether the coefficients of every score sum to zero because there is an intercept: those of fewer vectors need not."""
        coef = self._functions()
        return bool(np.any(self.intercept_) and (np.abs(coef.sum(1)) <= 1e-9 * np.abs(coef).sum(1)).all())

    def _settle(self, found: Sequence[Duals], source: KernelRows, why: str) -> None:
        """What the duals took, as attributes, and a warning where they were not done."""
        self.n_iter_ = max(m.rounds for m in found)
        self.objective_ = -sum(m.objective for m in found)
        size = sum(max(abs(m.objective), m.least) for m in found)
        self.gap_ = relative(sum(m.gap for m in found), size)
        settings = {
            "rows": source.n, "support_vectors": len(self.support_), "problems": len(found), "rounds": sum(m.rounds for m in found),
            "steps": sum(m.steps for m in found), "kernel_values": source.dtype.name, "gap": self.gap_,
            "rounding": relative(sum(m.rounding for m in found), size),
            "ended_by": ", ".join(sorted({m.ended or "max_iter" for m in found})),
        }  # fmt: skip
        made = float(sum(m.made * len(m.b) for m in found))
        most, item, limit = max(len(m.b) for m in found), source.dtype.itemsize, bytes_of(self.memory_limit)
        flops = made * 2.0 * max(1, source.X.width)
        self.plan_ = Plan("exact dual", why, settings, bytes=held(most, made, len(found), limit, item), flops=flops)
        self._warn_open(found)

    def _warn_open(self, found: Sequence[Duals]) -> None:
        """Where rounds ran out, or where slopes are as flat as rounding lets them be and the gap is not closed."""
        if not all(m.converged for m in found):
            text = f"stopped after {self.n_iter_} rounds (max_iter={self.max_iter}) at a relative gap of {self.gap_:.1e}"
            warnings.warn(f"{type(self).__name__} {text}; raise max_iter or tol, or {self._remedies[0]}.", ConvergenceWarning, stacklevel=5)
        elif max(m.open for m in found) > self.tol:
            gap = max(m.relative for m in found)
            text = f"ended at a relative gap of {gap:.1e}, above tol={self.tol:.1e}: its slopes are flat up to rounding"
            warnings.warn(f"{type(self).__name__} {text}; {self._remedies[1]}.", ConvergenceWarning, stacklevel=5)

    def compress(self, budget: int, X: Any = None, random_state: Any = 0) -> Self:
        """The same model over at most `budget` of its support vectors; what that costs is in `compression_`.

        The function is projected, in the RKHS of its kernel, onto the span of vectors chosen by randomly pivoted Cholesky. The
        cost is measured on rows X, or else on the support vectors themselves.
        """
        self._compressible()
        vectors, coef = Table(self.support_vectors_), self._functions()
        rows = Table(self.support_vectors_) if X is None else self._checked_rows(X, reset=False)
        before, small = self._of_table(rows), copy.copy(self)
        keep, new, error = project(self.kernel_, vectors, coef, whole(budget, "budget"), seed_of(random_state))
        small.support_, small.support_vectors_, small.dual_coef_ = self.support_[keep], vectors[keep].data, new
        small._recount(keep)
        after = small._of_table(rows)
        rms, changed = float(np.sqrt(np.mean(np.square(after - before)))), self._changed(before, after)
        small.compression_ = Compression(len(vectors), len(keep), error, rms, changed)
        return small

    def _compressible(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "dual_coef_"):
            raise ValueError("compress needs support vectors, and a model over features has none; fit with via='exact'.")
        if self._pairwise:
            raise ValueError("compress needs a kernel; a model of kernel='precomputed' does not have the values between its vectors.")
        if not len(self.support_):
            raise ValueError("compress needs support vectors, and this model, a constant, has none; use it as it is.")

    def _functions(self) -> Array:
        """Coefficients of every score over all vectors, (k, m)."""
        return self.dual_coef_

    def _recount(self, keep: Array) -> None:
        self.n_support_ = np.array([len(keep)], np.int32)

    def _changed(self, before: Array, after: Array) -> float:
        """The share of signs of scores that changed."""
        return float(np.mean((before + self.intercept_ > 0) != (after + self.intercept_ > 0)))
