"""KernelRidge: exactly at the rows, over landmarks, or over features by moments that stream and merge."""
from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import methods
from mercer.estimators.base import bytes_of
from mercer.estimators.folds import Folds
from mercer.estimators.ridge_dual import DualRidge
from mercer.estimators.settings import positive, whole
from mercer.estimators.streams import HEAD
from mercer.inputs import Array, Matrix
from mercer.learners import ridge
from mercer.learners.passes import NONE, Passes, Sums
from mercer.stats import Moments

GRID = np.logspace(-6, 6, 25)
VIAS = ("auto", "exact", "iterative", "features", "landmarks")


def _streams(self: Any) -> bool:
    """Whether a model of these settings can be one over features, whose statistics add."""
    return self.lift is not None or (self.via not in ("exact", "iterative") and not self._pairwise)


class KernelRidge(MultiOutputMixin, RegressorMixin, DualRidge):
    """argmin sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2 over functions f of a kernel, or f(x) = phi(x)'c over its features.

    Parameters
    ----------
    kernel : a kernel, a name as in scikit-learn ("rbf", "linear", "poly", "laplacian"), "precomputed" (X is then the Gram
        matrix), or None: a Gaussian scaled to the data.
    alpha : the penalty, or one an output.
    via : "exact": (K + alpha / w) dual = y - b, by Cholesky or by conjugate gradients; "iterative": by conjugate gradients;
        "features" or a value of `mercer.methods` (`Fourier(1000)`, `Exact()`): one pass of moments over features;
        "landmarks", `Landmarks(5000)`: f a sum over landmarks, by moments (up to 2,048 of them) or passes (Falkon).
        "auto" is exact where half of K in float32 fits `memory_limit` (22,000 rows by default) and no folds are asked for,
        else features; a first `partial_fit` means features.
    lift : a feature map, instead of a kernel.
    fit_intercept : whether to fit b, which is not penalised.
    cv : a number of folds, fixed by a hash of each row, or a splitter as KFold, or its (training, test) positions: alpha is
        then the best of `alphas` by the squared error of all folds together, and `cv_scores` tells the R^2 of every fold for
        any other penalties (over features: without another pass). "loo" chooses by left-out rows in closed form.
    alphas : the penalties to choose from with `cv`; by default 25 from 1e-6 to 1e6 times alpha.
    bandwidths : factors of the kernel's bandwidths to choose from together with alpha, with cv="loo" and via="exact".
    tol, max_iter : of conjugate gradients: the residual |b - A x| / |b| to reach, and the products at most.
    memory_limit : as bytes or "4GB", by default 1 GB: of D x D statistics (beyond it conjugate gradients take several passes),
        of preconditioner and kept part of K.

    Attributes: `intercept_`, `alpha_`, `kernel_`, `plan_`; over features `coef_`, `lift_`, `moments_`; else `dual_coef_` and
    `X_fit_` with f(x) = sum_i dual_coef_i k(x, X_fit_i), `residual_`.

    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> m = KernelRidge(alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(m.predict(X) - np.sin(X[:, 0])).max() < 0.01), m.plan_.way
    (True, 'cholesky')
    """

    def __init__(
        self, kernel: Any = None, alpha: Any = 1.0, via: Any = "auto", *, lift: Any = None, fit_intercept: bool = True,
        cv: Any = None, alphas: Any = None, bandwidths: Any = None, tol: float = 1e-6, max_iter: int = 1000,
        memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.alphas = alphas
        self.bandwidths = bandwidths
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
        """Fit by the way that `via` and the shapes ask for; `plan_` says which."""
        X, Y, w = self._checked(X, y, sample_weight, reset=True)
        self._check_choices()
        for name in ("moments_", "coef_", "dual_coef_", "X_fit_", "lift_", "loo_scores_"):
            self.__dict__.pop(name, None)
        self._folds, self._n_outputs = Folds(1) if self.cv == "loo" else Folds.of_rows(self.cv, X, Y), Y.shape[1]
        self._rows, self.alpha_ = (X, Y, w), _penalty(self.alpha, Y.shape[1])
        way, why = self._way(len(Y))
        return self._fit_features(X, Y, w) if way == "features" else self._fit_dual(X, Y, w, way, why)

    def _check_choices(self) -> None:
        if not isinstance(self.via, methods.Method) and self.via not in VIAS:
            raise ValueError(f"via must be one of {', '.join(VIAS)}, or a value of mercer.methods, got {self.via!r}.")
        if self.lift is not None and self.kernel is not None:
            raise ValueError("give a kernel or a lift, not both.")
        if self.lift is not None and self.via in ("exact", "iterative"):
            raise ValueError(f"via={self.via!r} is over all rows of a kernel; give a kernel instead of a lift, or via='features'.")

    def _fit_features(self, X: Matrix, Y: Array, w: Array | None) -> Self:
        """Fit the map, then the moments of [phi, y] in one pass."""
        if self._pairwise:
            raise ValueError("a Gram matrix has no features; use via='exact' or 'iterative' with kernel='precomputed'.")
        if self.bandwidths is not None:
            raise ValueError("bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them.")
        self._fit_lift(X, w)
        if self._square_bytes() > bytes_of(self.memory_limit):
            return self._fit_by_passes(X, Y, w)
        self.moments_ = self._moments(X, Y, w, self._origin(X, Y))
        why = f"{self.n_features_lifted_:,} features: their D x D moments fit, and one pass is enough for every penalty"
        self.plan_ = self._features_plan(len(Y), "features", why, 1)
        return self._solve()

    @available_if(_streams)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in a batch; the first one fixes the map. A batch that is refused leaves the model as it was.

        A model that "auto" fitted exactly becomes one over features, whose first batch are the rows of its `fit`.
        """
        folds, first = Folds.by_hash(self.cv), not hasattr(self, "moments_")
        if first and hasattr(self, "intercept_") and not (self._is_dual and self._rows):
            raise ValueError("the model has no statistics that batches could add to; refit with via='features' (and more memory_limit).")
        self._check_choices()
        X, Y, w = self._checked(X, y, sample_weight, reset=not hasattr(self, "intercept_"))
        _penalty(self.alpha, Y.shape[1])
        if hasattr(self, "intercept_") and Y.shape[1] != self._n_outputs:
            raise ValueError(f"y has {Y.shape[1]} outputs, but the model was begun with {self._n_outputs}; give as many.")
        if not first and self._folds.given is not None:
            raise ValueError("folds given by position do not serve a stream; fit with cv as a number of folds.")
        if first:
            self._begin(folds, *(self._rows if self._is_dual and self._rows else (X, Y, w)))
        new = self._moments(X, Y, w, self.moments_[0].shift)
        self.moments_ = [a + b for a, b in zip(self.moments_, new, strict=True)]
        why = f"a stream: {self.n_features_lifted_:,} features of a map that its first batch fixed"
        self.plan_ = self._features_plan(self._total().count, "features", why, 1)
        self._rows = None
        return self._solve()

    def _begin(self, folds: Folds, X: Matrix, Y: Array, w: Array | None) -> None:
        """The map of the first rows, and the moments of those that an exact model was fitted on."""
        self._folds, self._n_outputs = folds, Y.shape[1]
        self._fit_lift(X, w, stream=True)
        self._check_square()
        shift = self._origin(X, Y)
        self.moments_ = self._moments(X, Y, w, shift) if self._is_dual else [Moments.zero(shift) for _ in range(folds.k)]
        for name in ("dual_coef_", "X_fit_"):
            self.__dict__.pop(name, None)

    @available_if(_streams)
    def merge(self, other: KernelRidge) -> Self:
        """Take in the rows that another model of the same map has seen."""
        self._check_mergeable(other)
        self.moments_ = [a + b for a, b in zip(self.moments_, other.moments_, strict=True)]
        self._rows = None
        return self._solve()

    @available_if(_streams)
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again, to rounding of the largest sums ever held (`rounding_` bounds it).

        Rows that were never taken in are refused where what would be left cannot be the sums of any rows.
        """
        self._check_statistics()
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

    def _check_statistics(self) -> None:
        check_is_fitted(self, "intercept_")
        if not hasattr(self, "moments_"):
            raise ValueError("only a model over features has statistics that add and subtract; fit with via='features'.")
        if self.cv == "loo":
            raise ValueError("cv='loo' needs the rows of one fit, which statistics do not keep; give cv as a number of folds.")

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
        if self.cv == "loo":
            self._choose_by_loo()
        elif self.cv is not None:
            grid = self._grid()
            self.alpha_ = self._best_alpha(grid, self._fold_errors(grid), total.count)
        s = ridge.solve(total, self.n_features_lifted_, self.alpha_, intercept=self.fit_intercept)
        self.rounding_ = total.rounding
        return self._keep(s.coef, s.intercept)

    def _keep(self, coef: Array, intercept: Array) -> Self:
        self.n_iter_ = self.plan_.passes or 1
        self.coef_, self.intercept_ = (coef[:, 0], float(intercept[0])) if self._flat else (coef, intercept)
        return self

    # choosing alpha
    def _best_alpha(self, grid: Array, found: ridge.FoldErrors, n: int) -> float:
        if found.used < 2:
            raise ValueError(f"fewer than two folds have rows (n_samples = {n}); give cv=None, or more rows that differ.")
        return float(grid[int(np.argmax(found.pooled()))])

    def _choose_by_loo(self) -> None:
        (X, Y, w), grid, D = self._at_hand(), self._grid(), self.n_features_lifted_
        errors = ridge.loo_errors(self._total(), D, self._lifted(X), Y, w, grid, intercept=self.fit_intercept)
        spread = np.average(np.square(Y - np.average(Y, axis=0, weights=w)), axis=0, weights=w)
        self.loo_scores_ = 1 - (errors / np.where(spread > 0, spread, 1)).mean(axis=1)
        self.alpha_ = float(grid[int(np.argmax(self.loo_scores_))])

    def _grid(self) -> Array:
        return _penalties((float(np.max(self.alpha)) or 1.0) * GRID if self.alphas is None else self.alphas)

    def cv_scores(self, alphas: Any = None) -> Array:
        """R^2 on each fold of the model of the others, (len(alphas), cv), for any penalties, from the statistics alone.

        A model fitted by passes has none, and passes again over the rows of its `fit`.
        """
        check_is_fitted(self, "intercept_")
        if self._folds.k < 2:
            raise ValueError("cv_scores needs folds, which are fixed before the pass; give cv=5 and fit again.")
        return self._fold_errors(self._grid() if alphas is None else _penalties(alphas)).scores()

    def _fold_errors(self, grid: Array) -> ridge.FoldErrors:
        if hasattr(self, "moments_"):
            return ridge.fold_errors(self.moments_, self.n_features_lifted_, grid, intercept=self.fit_intercept)
        if self._rows is None:
            raise ValueError("cv_scores of a model without statistics needs its rows again; fit once more.")
        if self._is_dual:
            return self._dual_errors(*self._rows, grid, self._way(len(self._rows[1]))[0])
        p, _ = self._passes(*self._rows)
        return self._errors_by_passes(p, p.sums(), grid)

    def _check_mergeable(self, other: Any) -> None:
        self._check_statistics()
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
        """f(x) + intercept."""
        check_is_fitted(self, "intercept_")
        X = self._check_X(X, reset=False)
        if self._is_dual:
            return self._expansion(X, self.dual_coef_, self.intercept_)
        return self._linear(X, self.coef_, self.intercept_)

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
