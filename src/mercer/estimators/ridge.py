"""KernelRidge over features: one pass over the rows, moments that merge, and any penalty asked of them afterwards."""
from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimators.base import bytes_of
from mercer.estimators.folds import Folds
from mercer.estimators.intervals import LeaveOneOut
from mercer.estimators.settings import positive, whole
from mercer.estimators.streams import HEAD
from mercer.inputs import Array, Matrix
from mercer.learners import ridge
from mercer.learners.passes import NONE, Passes, Sums
from mercer.stats import Moments

GRID = np.logspace(-6, 6, 25)


class KernelRidge(MultiOutputMixin, RegressorMixin, LeaveOneOut):
    """argmin sum_i w_i (y_i - phi(x_i)'c - b)^2 + alpha |c|^2, over the features of a kernel.

    Parameters
    ----------
    kernel : a kernel, a name as in scikit-learn ("rbf", "linear", "poly", "laplacian"), or None: a Gaussian scaled to the data.
    alpha : the penalty, or one an output.
    via : "auto" or "features", "landmarks", or a value of `mercer.methods` (`Fourier(1000)`, `Landmarks(500)`, `Exact()`).
    lift : a feature map, instead of a kernel.
    fit_intercept : whether to fit b, which is not penalised.
    cv : a number of folds, fixed by a hash of each row, or a splitter as KFold, or its (training, test) positions: alpha is
        then the best of `alphas` by the squared error of all folds together, and `cv_scores` tells the R^2 of every fold
        for any other penalties without another pass.
    alphas : the penalties to choose from with `cv`; by default 25 from 1e-6 to 1e6 times alpha.
    tol, max_iter : of conjugate gradients: the residual |b - A x| / |b| to reach, and the passes at most.
    memory_limit : of the D x D statistics, as bytes or "4GB"; beyond it conjugate gradients take several passes.

    Attributes: `coef_`, `intercept_`, `alpha_`, `lift_`, `kernel_`, `plan_`, `moments_`.

    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> m = KernelRidge(alpha=1e-3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(m.predict(X) - np.sin(X[:, 0])).max() < 0.01)
    True
    """

    def __init__(
        self, kernel: Any = None, alpha: Any = 1.0, via: Any = "auto", *, lift: Any = None, fit_intercept: bool = True,
        cv: Any = None, alphas: Any = None, tol: float = 1e-6, max_iter: int = 500, memory_limit: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.alphas = alphas
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state

    coef_: Array
    intercept_: Any
    moments_: list[Moments]
    _rows: tuple[Matrix, Array, Array | None] | None = None
    _folds: Folds

    # fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map, then the moments of [phi, y] in one pass."""
        X, Y, w = self._checked(X, y, sample_weight, reset=True)
        self._folds, self._n_outputs = Folds.of_rows(self.cv, X, Y), Y.shape[1]
        self._fit_lift(X, w)
        self._rows = (X, Y, w)
        self.__dict__.pop("moments_", None)
        if self._square_bytes() > bytes_of(self.memory_limit):
            return self._fit_by_passes(X, Y, w)
        self.moments_ = self._moments(X, Y, w, self._origin(X, Y))
        why = f"{self.n_features_lifted_:,} features: their D x D moments fit, and one pass is enough for every penalty"
        self.plan_ = self._features_plan(len(Y), "features", why, 1)
        return self._solve()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in a batch; the first one fixes the map. A batch that is refused leaves the model as it was."""
        if hasattr(self, "coef_") and not hasattr(self, "moments_"):
            raise ValueError("the model was fitted by several passes, which leave no statistics to add to; raise memory_limit and refit.")
        folds, first = Folds.by_hash(self.cv), not hasattr(self, "moments_")
        X, Y, w = self._checked(X, y, sample_weight, reset=first)
        _penalty(self.alpha, Y.shape[1])
        if not first and self._folds.given is not None:
            raise ValueError("folds given by position do not serve a stream; fit with cv as a number of folds.")
        if not first and Y.shape[1] != self._n_outputs:
            raise ValueError(f"y has {Y.shape[1]} outputs, but the model was begun with {self._n_outputs}; give as many.")
        if first:
            self._folds, self._n_outputs = folds, Y.shape[1]
            self._fit_lift(X, w, stream=True)
            self._check_square()
        new = self._moments(X, Y, w, self._origin(X, Y) if first else self.moments_[0].shift)
        self.moments_ = new if first else [a + b for a, b in zip(self.moments_, new, strict=True)]
        why = f"a stream: {self.n_features_lifted_:,} features of a map that its first batch fixed"
        self.plan_ = self._features_plan(self._total().count, "features", why, 1)
        self._rows = None
        return self._solve()

    def merge(self, other: KernelRidge) -> Self:
        """Take in the rows that another model of the same map has seen."""
        self._check_mergeable(other)
        self.moments_ = [a + b for a, b in zip(self.moments_, other.moments_, strict=True)]
        self._rows = None
        return self._solve()

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again, to rounding of the largest sums ever held (`rounding_` bounds it).

        Rows that were never taken in are refused where what would be left cannot be the sums of any rows.
        """
        check_is_fitted(self, "moments_")
        if self._folds.given is not None:
            raise ValueError("folds were given by position, so the fold of a row is not known; give cv as a number of folds.")
        X, Y, w = self._checked(X, y, sample_weight, reset=False)
        gone = self._moments(X, Y, w, self.moments_[0].shift)
        left = [a - b for a, b in zip(self.moments_, gone, strict=True)]
        if any(m.count < 0 for m in left) or sum(m.count for m in left) < 1:
            raise ValueError(f"cannot forget {len(Y)} rows of {self._total().count}; give rows that were seen, not all.")
        if not all(m.possible for m in left):
            raise ValueError("these rows were not all taken in (sums without them are of no rows at all); forget rows that were seen.")
        self.moments_, self._rows = left, None
        return self._solve()

    def _square_bytes(self) -> float:
        return 8.0 * self.n_features_lifted_**2 * self._folds.k

    def _check_square(self) -> None:
        if self._square_bytes() > bytes_of(self.memory_limit):
            raise ValueError("a stream needs D x D statistics, which exceed memory_limit; raise it, or use fewer features.")

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Matrix, Array, Array | None]:
        sparse = "csr" if self._takes_sparse() else False
        X, y = validate_data(
            self, X, y, reset=reset, dtype=[np.float64, np.float32], accept_sparse=sparse, order="C", multi_output=True, y_numeric=True,
        )
        if reset:
            self._flat = y.ndim == 1
        return X, np.asarray(y.reshape(len(y), -1), np.float64), self._weights(sample_weight, X)

    def _origin(self, X: Matrix, Y: Array) -> Array:
        """What moments are about: the mean of the first rows."""
        return np.concatenate([self._shift(X), Y[:HEAD].mean(0)])

    def _moments(self, X: Matrix, Y: Array, w: Array | None, shift: Array) -> list[Moments]:
        return self._gather_folds(X, shift, Y, w, self._folds.of(X), self._folds.k)

    def _solve(self) -> Self:
        total, self.alpha_ = self._total(), _penalty(self.alpha, self._n_outputs)
        if self.cv is not None:
            grid = self._grid()
            self.alpha_ = self._best_alpha(grid, self._fold_errors(grid), total.count)
        s = ridge.solve(total, self.n_features_lifted_, self.alpha_, intercept=self.fit_intercept)
        self.rounding_ = total.rounding
        return self._keep(s.coef, s.intercept)

    def _keep(self, coef: Array, intercept: Array) -> Self:
        self.n_iter_ = self.plan_.passes
        self.coef_, self.intercept_ = (coef[:, 0], float(intercept[0])) if self._flat else (coef, intercept)
        return self

    # choosing alpha
    def _best_alpha(self, grid: Array, found: ridge.FoldErrors, n: int) -> float:
        if found.used < 2:
            raise ValueError(f"fewer than two folds have rows (n_samples = {n}); give cv=None, or more rows that differ.")
        return float(grid[int(np.argmax(found.pooled()))])

    def _grid(self) -> Array:
        return _penalties((float(np.max(self.alpha)) or 1.0) * GRID if self.alphas is None else self.alphas)

    def cv_scores(self, alphas: Any = None) -> Array:
        """R^2 on each fold of the model of the others, (len(alphas), cv), for any penalties, from the statistics alone.

        A model fitted by passes has none, and passes again over the rows of its `fit`.
        """
        check_is_fitted(self, "coef_")
        if self._folds.k < 2:
            raise ValueError("cv_scores needs folds, which are fixed before the pass; give cv=5 and fit again.")
        return self._fold_errors(self._grid() if alphas is None else _penalties(alphas)).scores()

    def _fold_errors(self, grid: Array) -> ridge.FoldErrors:
        if hasattr(self, "moments_"):
            return ridge.fold_errors(self.moments_, self.n_features_lifted_, grid, intercept=self.fit_intercept)
        if self._rows is None:
            raise ValueError("cv_scores of a model fitted by passes needs its rows again; fit once more.")
        p, _ = self._passes(*self._rows)
        return self._errors_by_passes(p, p.sums(), grid)

    def _check_mergeable(self, other: Any) -> None:
        check_is_fitted(self, "coef_")
        self._check_same_map(other)
        if self._folds.given is not None or other._folds.given is not None:
            raise ValueError("folds given by position do not merge; give cv as a number of folds.")
        if len(self.moments_) != len(other.moments_) or self._n_outputs != other._n_outputs:
            raise ValueError("the models differ in cv or in the number of outputs; fit both with the same.")

    # D too large for D x D
    def _fit_by_passes(self, X: Matrix, Y: Array, w: Array | None) -> Self:
        self.alpha_, (p, origin) = _penalty(self.alpha, Y.shape[1]), self._passes(X, Y, w)
        sums = p.sums()
        if self.cv is not None:
            grid = self._grid()
            self.alpha_ = self._best_alpha(grid, self._errors_by_passes(p, sums, grid), len(Y))
        alphas = np.broadcast_to(self.alpha_, (1, Y.shape[1]))
        s, passes, self.residual_ = p.solve(sums, np.array([NONE]), alphas, positive(self.tol, "tol"), self._steps)
        if self.residual_ > self.tol:
            text = f"conjugate gradients stopped at a residual of {self.residual_:.1e}; raise max_iter, tol or alpha."
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        why = (
            f"{self.n_features_lifted_:,} features: D x D moments exceed the memory limit, so conjugate gradients pass over the rows "
            f"(residual {self.residual_:.1e})"
        )
        self.plan_ = self._features_plan(len(Y), "conjugate gradients", why, passes + 1)
        return self._keep(s.coef, s.intercept + origin)

    @property
    def _steps(self) -> int:
        return whole(self.max_iter, "max_iter")

    def _passes(self, X: Matrix, Y: Array, w: Array | None) -> tuple[Passes, Array]:
        """The problem about the means of the first rows, and what was taken off y."""
        origin = Y[:HEAD].mean(0) * self.fit_intercept
        u, fold = np.ones(len(Y)) if w is None else w, self._folds.of(X).astype(np.intp)
        p = Passes(lambda: self._lifted(X), Y - origin, u, fold, self._folds.k, self._shift(X), self.fit_intercept)
        return p, origin

    def _errors_by_passes(self, p: Passes, sums: Sums, grid: Array) -> ridge.FoldErrors:
        width = int(max(1, bytes_of(self.memory_limit) // (64 * self.n_features_lifted_ * self._n_outputs)))
        return p.errors(sums, grid, positive(self.tol, "tol"), self._steps, width)

    # asking
    def predict(self, X: Any) -> Array:
        """phi(x)'coef + intercept."""
        check_is_fitted(self, "coef_")
        return self._linear(self._check_X(X, reset=False), self.coef_, self.intercept_)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_rows": None}  # the training rows do not travel with the model


def _penalties(alphas: Any) -> Array:
    grid = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    if not len(grid) or not (np.isfinite(grid) & (grid >= 0)).all():
        raise ValueError(f"alphas must be numbers >= 0, got {alphas!r}.")
    return grid


def _penalty(alpha: Any, outputs: int) -> Array:
    a = np.asarray(alpha, dtype=np.float64)
    if a.ndim > 1 or (a.ndim and len(a) != outputs) or not (np.isfinite(a) & (a >= 0)).all():
        raise ValueError(f"alpha must be a number >= 0, or one for each of {outputs} outputs, got {alpha!r}.")
    return a
