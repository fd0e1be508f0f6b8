"""KernelRidge: exactly at the rows, over landmarks, or over features by moments that stream and merge."""
from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer import methods
from mercer.estimators.base import all_or_nothing, bytes_of
from mercer.estimators.folds import Folds
from mercer.estimators.left_out import Rows
from mercer.estimators.ridge_dual import Found
from mercer.estimators.ridge_passes import PassesRidge
from mercer.estimators.settings import grid, penalty, positive, whole
from mercer.estimators.streams import HEAD
from mercer.inputs import Array, Matrix, validate_data
from mercer.learners import dual_folds, ridge
from mercer.stats import Moments

GRID = np.logspace(-6, 6, 25)
LARGE = 64 << 20  # bytes of rows that are kept as they are, not copied: leave them so while you ask for left-out rows
VIAS = ("auto", "exact", "iterative", "features", "landmarks")
LEARNT = ("moments_", "X_fit_", "lift_", "loo_scores_", "residual_", "n_features_lifted_", "plan_", "n_iter_", "_found", "_rows", "_idle")


def _streams(self: Any) -> bool:
    """Whether a model of these settings can be one over features, whose statistics add."""
    return self.lift is not None or (self.via not in ("exact", "iterative") and not self._pairwise)


class KernelRidge(MultiOutputMixin, RegressorMixin, PassesRidge):
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

    moments_: list[Moments]
    _found: Found | None = None
    _rows: Rows | None = None
    _idle: tuple[Array, Matrix] | None = None
    _folds: Folds
    _kept: Array | None = None  # columns of Gram matrices to come that belong to rows of positive weight

    # fitting
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit by the way that `via` and the shapes ask for; `plan_` says which."""
        self._check_choices()
        X, Y, w = self._checked(X, y, sample_weight, reset=True)
        self._check_gram(X)
        self._penalty(Y.shape[1])
        for name in LEARNT:
            self.__dict__.pop(name, None)
        X, Y, w = self._rows = self._counted(X, Y, w)
        way, why = self._way(len(Y))
        return self._fit_features(X, Y, w) if way == "features" else self._fit_dual(X, Y, w, way, why)

    def _counted(self, X: Matrix, Y: Array, w: Array | None) -> Rows:
        """The rows of positive weight, with their folds; the others wait aside. Copies, but for rows of more than 64 MB."""
        folds, self._n_outputs = Folds.of_rows(self.cv, X, Y), Y.shape[1]
        on = np.arange(len(Y)) if w is None else np.flatnonzero(w)
        if not len(on):
            raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
        self._folds, self._kept = folds.among(on), on if self._pairwise and len(on) < len(Y) else None
        if len(on) < len(Y):
            idle = np.isin(np.arange(len(Y)), on, invert=True)
            self._idle = idle, self._some(X, np.flatnonzero(idle), on)
        large = len(on) == len(Y) and not sp.issparse(X) and X.nbytes > LARGE
        return X if large else self._some(X, on, on), Y[on], None if w is None else w[on]

    def _check_choices(self) -> None:
        if not isinstance(self.via, methods.Method) and self.via not in VIAS:
            raise ValueError(f"via must be one of {', '.join(VIAS)}, or a value of mercer.methods, got {self.via!r}.")
        if self.lift is not None and self.kernel is not None:
            raise ValueError("give a kernel or a lift, not both.")
        if self.lift is not None and self.via not in ("auto", "features"):
            raise ValueError(f"a lift has its features already, so via={self.via!r} says nothing; give a kernel instead of a lift.")
        positive(self.tol, "tol")
        whole(self.max_iter, "max_iter")
        bytes_of(self.memory_limit)

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
        self._plan_moments("their D x D moments fit, and one pass is enough for every penalty")
        self._answer()
        return self

    def _plan_moments(self, why: str) -> None:
        n, D = sum(m.count for m in self.moments_), self.n_features_lifted_
        self.plan_ = self._features_plan(n, "features", f"{D:,} features: {why}", 1, self._square_bytes())
        self.n_iter_ = 1

    @available_if(_streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in a batch; the first one fixes the map. A batch that is refused leaves the model as it was.

        A model that "auto" fitted exactly becomes one over features, whose first batch are the rows of its `fit`.
        """
        self._check_choices()
        folds, begun, first = Folds.by_hash(self.cv), hasattr(self, "plan_"), not hasattr(self, "moments_")
        if first and begun and not (self._is_dual and self._rows):
            raise ValueError("the model has no statistics that batches could add to; refit with via='features' (and more memory_limit).")
        X, Y, w = self._checked(X, y, sample_weight, reset=not begun)
        self._penalty(Y.shape[1])
        self._check_outputs(Y, begun)
        if not first and (self._folds.given is not None or self._folds.k != folds.k):
            raise ValueError("the folds of a stream are fixed by its first batch, as a number; fit anew to change cv.")
        if first:
            self._begin(folds, *(self._rows if self._is_dual and self._rows else (X, Y, w)))
        return self._with_moments(self._moments(X, Y, w, self.moments_[0].shift), "of a stream, over a map that its first batch fixed")

    def _begin(self, folds: Folds, X: Matrix, Y: Array, w: Array | None) -> None:
        """The map of the first rows, and the moments of those that an exact model was fitted on."""
        self._folds, self._n_outputs = folds, Y.shape[1]
        self._fit_lift(X, w, stream=True)
        if self._square_bytes() > bytes_of(self.memory_limit):
            raise ValueError("a stream needs D x D statistics, which exceed memory_limit; raise it, or use fewer features.")
        shift = self._origin(X, Y)
        self.moments_ = self._moments(X, Y, w, shift) if self._is_dual else [Moments.zero(shift) for _ in range(folds.k)]
        for name in ("X_fit_", "residual_", "loo_scores_"):
            self.__dict__.pop(name, None)

    def _with_moments(self, new: list[Moments], why: str) -> Self:
        """The model of more rows; what it says is computed when asked for."""
        self.moments_ = [a + b for a, b in zip(self.moments_, new, strict=True)]
        self._plan_moments(why)
        self._found = self._rows = self._idle = None
        return self

    @available_if(_streams)
    @all_or_nothing
    def merge(self, other: KernelRidge) -> Self:
        """Take in the rows that another model of the same map has seen."""
        self._check_mergeable(other)
        self._penalty(self._n_outputs)
        return self._with_moments(other.moments_, "of two models over the same map")

    @available_if(_streams)
    @all_or_nothing
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again, to rounding of the largest sums ever held (`rounding_` bounds it).

        Rows that were never taken in are refused where what would be left cannot be the sums of any rows.
        """
        self._check_statistics()
        if self._folds.given is not None:
            raise ValueError("folds were given by position, so the fold of a row is not known; give cv as a number of folds.")
        X, Y, w = self._checked(X, y, sample_weight, reset=False)
        self._check_outputs(Y, True)
        gone = self._moments(X, Y, w, self.moments_[0].shift)
        left = [a - b for a, b in zip(self.moments_, gone, strict=True)]
        most = sum(m.n for m in self.moments_)
        if any(m.count < 0 for m in left) or sum(m.count for m in left) < 1 or sum(m.n for m in left) <= 1e-12 * most:
            raise ValueError(f"cannot forget {len(Y)} rows of {self._total().count}; give rows that were seen, not all that count.")
        if not all(m.possible for m in left):
            raise ValueError("these rows were not all taken in (sums without them are of no rows at all); forget rows that were seen.")
        self.moments_ = left
        return self._with_moments([Moments.zero(m.shift) for m in left], "of a model that forgot some rows")

    def _check_outputs(self, Y: Array, begun: bool) -> None:
        if begun and Y.shape[1] != self._n_outputs:
            raise ValueError(f"y has {Y.shape[1]} outputs, but the model was begun with {self._n_outputs}; give as many.")

    def _check_statistics(self) -> None:
        check_is_fitted(self, "plan_")
        if not hasattr(self, "moments_"):
            raise ValueError("only a model over features has statistics that add and subtract; fit with via='features'.")
        if self.cv == "loo":
            raise ValueError("cv='loo' needs the rows of one fit, which statistics do not keep; give cv as a number of folds.")

    def _check_mergeable(self, other: Any) -> None:
        self._check_statistics()
        self._check_same_map(other)
        if self._folds.given is not None or other._folds.given is not None:
            raise ValueError("folds given by position do not merge; give cv as a number of folds.")
        if len(self.moments_) != len(other.moments_) or self._n_outputs != other._n_outputs:
            raise ValueError("the models differ in cv or in the number of outputs; fit both with the same.")

    def _square_bytes(self) -> float:
        """Of the folds' moments, those without each, and the workspace of a solve."""
        return 8.0 * self.n_features_lifted_**2 * (2 * self._folds.k + 4)

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

    # what the statistics say
    def _answer(self) -> Found:
        """The model, computed when first asked for."""
        check_is_fitted(self, "plan_")
        if self._found is None:
            self._found = self._solve()
        return self._found

    def _solve(self) -> Found:
        total = self._total()
        alpha: Any = self._penalty(self._n_outputs)
        if self.cv == "loo":
            alpha = self._choose_by_loo(total)
        elif self.cv is not None:
            alpha = self._best_alpha(self._fold_errors(self._grid()), total.count)
        s = ridge.solve(total, self.n_features_lifted_, alpha, intercept=self.fit_intercept)
        return Found(alpha, s.coef, s.intercept)

    @property
    def alpha_(self) -> Any:
        """The penalty given, or chosen."""
        return self._answer().alpha

    @property
    def intercept_(self) -> Any:
        b = self._answer().intercept
        return float(b[0]) if self._flat else b

    @property
    def coef_(self) -> Array:
        """(D,) or (D, q); AttributeError for models over rows."""
        if self._is_dual:
            raise AttributeError("coef_ is there for models over features; this one has dual_coef_.")
        coef = self._answer().coef
        return coef[:, 0] if self._flat else coef

    @property
    def rounding_(self) -> float:
        """How far an entry of the moments may be off."""
        return self._total().rounding

    # choosing alpha
    def _penalty(self, outputs: int) -> Array:
        return penalty(self.alpha, outputs)

    def _grid(self) -> Array:
        return grid((float(np.max(self.alpha)) or 1.0) * GRID if self.alphas is None else self.alphas, "alphas")

    def _best_alpha(self, found: ridge.FoldErrors, n: int) -> float:
        if found.used < 2:
            raise ValueError(f"fewer than two folds have rows (n_samples = {n}); give cv=None, or more rows that differ.")
        return float(self._grid()[int(np.argmax(found.pooled()))])

    def _best_by_loo(self, scores: Array, n: int) -> float:
        if not np.isfinite(scores).any():
            raise ValueError(f"leave-one-out tells nothing of these penalties (n_samples = {n}); give more rows, or larger alphas.")
        return float(self._grid()[int(np.nanargmax(scores))])

    def _choose_by_loo(self, total: Moments) -> float:
        (X, Y, w), D = self._at_hand(), self.n_features_lifted_
        if self._by_inverse:
            errors = dual_folds.loo_errors(self._inverses(), Y, self._ones_or(w), self._grid())
        else:
            errors = ridge.loo_errors(total, D, self._lifted(X), Y, w, self._grid(), intercept=self.fit_intercept)
        self.loo_scores_ = self._as_scores(errors, Y, w)
        return self._best_by_loo(self.loo_scores_, len(Y))

    def _as_scores(self, errors: Array, Y: Array, w: Array | None) -> Array:
        """R^2 (a,) from mean squared errors (a, q)."""
        variance = ridge.spread(Y, w) / (len(Y) if w is None else w.sum())
        return np.asarray(1 - (errors / np.where(variance > 0, variance, 1)).mean(axis=1))

    def cv_scores(self, alphas: Any = None) -> Array:
        """R^2 on each fold of the model of the others, (len(alphas), cv), for any penalties; nan where y does not vary.

        Over features it comes from the statistics alone. A model without statistics goes over the rows of its `fit` again.
        """
        check_is_fitted(self, "plan_")
        if self._folds.k < 2:
            raise ValueError("cv_scores needs folds, which are fixed before the pass; give cv=5 and fit again.")
        return self._fold_errors(self._grid() if alphas is None else grid(alphas, "alphas")).scores()

    def _fold_errors(self, alphas: Array) -> ridge.FoldErrors:
        if hasattr(self, "moments_"):
            return ridge.fold_errors(self.moments_, self.n_features_lifted_, alphas, intercept=self.fit_intercept)
        if self._rows is None:
            raise ValueError("cv_scores of a model without statistics needs its rows again; fit once more.")
        if self._is_dual:
            return self._dual_errors(*self._rows, alphas, self._way(len(self._rows[1]))[0])
        p, _ = self._passes(*self._rows, self._folds)
        return self._errors_by_passes(p, p.sums(), alphas)

    # asking
    def predict(self, X: Any) -> Array:
        """f(x) + intercept."""
        check_is_fitted(self, "plan_")
        return self._answer_at(self._asked_rows(X))

    def _asked_rows(self, X: Any) -> Matrix:
        X = self._check_X(X, reset=False)
        return X if self._kept is None else X[:, self._kept]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_rows": None, "_idle": None}  # the training rows do not travel with the model
