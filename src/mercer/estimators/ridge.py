"""KernelRidge over features: one pass over the rows, moments that merge, and any penalty asked of them afterwards."""
from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimators.base import OverFeatures, bytes_of
from mercer.estimators.intervals import JACKKNIFE, SPLIT, Interval, conformal_quantile, jackknife_plus
from mercer.inputs import Array, Matrix
from mercer.learners import ridge
from mercer.ops.philox import Stream, permutation
from mercer.stats import Moments, row_hashes

GRID = np.logspace(-6, 6, 25)
CALIBRATION = 5  # a fifth of the rows calibrates a split conformal interval


class KernelRidge(MultiOutputMixin, RegressorMixin, OverFeatures):
    """argmin sum_i w_i (y_i - phi(x_i)'c - b)^2 + alpha |c|^2, over the features of a kernel.

    Parameters
    ----------
    kernel : a kernel, a name as in scikit-learn ("rbf", "linear", "poly", "laplacian"), or None: a Gaussian scaled to the data.
    alpha : the penalty, or one an output.
    via : "auto" or "features", "landmarks", or a value of `mercer.methods` (`Fourier(1000)`, `Landmarks(500)`, `Exact()`).
    lift : a feature map, instead of a kernel.
    fit_intercept : whether to fit b, which is not penalised.
    cv : a number of folds, fixed by a hash of each row, or (training, test) positions: alpha is then the best of `alphas` by
        the mean R^2, and `cv_scores` tells it for any other penalties without another pass.
    alphas : the penalties to choose from with `cv`; by default 25 from 1e-6 to 1e6 times alpha.
    memory_limit : of the D x D statistics, as bytes or "4GB"; beyond it conjugate gradients take several passes.

    Attributes: `coef_`, `intercept_`, `alpha_`, `lift_`, `kernel_`, `plan_`, `moments_`.

    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> m = KernelRidge(alpha=1e-3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(m.predict(X) - np.sin(X[:, 0])).max() < 0.01)
    True
    """

    def __init__(
        self, kernel: Any = None, alpha: Any = 1.0, via: Any = "auto", *, lift: Any = None, fit_intercept: bool = True,
        cv: Any = None, alphas: Any = None, memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.alphas = alphas
        self.memory_limit = memory_limit
        self.random_state = random_state

    coef_: Array
    intercept_: Any
    moments_: list[Moments]
    _rows: tuple[Matrix, Array, Array | None] | None = None
    _given: Array | None = None  # folds by position

    # fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map, then the moments of [phi, y] in one pass."""
        X, Y, w = self._checked(X, y, sample_weight, reset=True)
        self._fit_lift(X, w)
        self._rows = (X, Y, w)
        self.__dict__.pop("moments_", None)
        self._given = None if self.cv is None or isinstance(self.cv, int | np.integer) else given_folds(self.cv, len(Y))
        if self._square_bytes() > bytes_of(self.memory_limit):
            return self._fit_by_passes(X, Y, w)
        self._start(X, Y)
        self._accumulate(X, Y, w)
        why = f"{self.n_features_lifted_:,} features: their D x D moments fit, and one pass is enough for every penalty"
        self.plan_ = self._features_plan(len(Y), "features", why, 1)
        return self._solve()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in a batch; the first one fixes the map. A batch that is refused leaves the model as it was."""
        if hasattr(self, "coef_") and not hasattr(self, "moments_"):
            raise ValueError("the model was fitted by several passes, which leave no statistics to add to; raise memory_limit and refit.")
        first = not hasattr(self, "moments_")
        X, Y, w = self._checked(X, y, sample_weight, reset=first)
        if self._given is not None or not (self.cv is None or isinstance(self.cv, int | np.integer)):
            raise ValueError("folds given by position do not serve a stream; give cv as a number of folds.")
        _penalty(self.alpha, Y.shape[1])
        if first:
            self._fit_lift(X, w, stream=True)
            self._check_square()
            self._start(X, Y)
        elif Y.shape[1] != self._n_outputs:
            raise ValueError(f"y has {Y.shape[1]} outputs, but the model was begun with {self._n_outputs}; give as many.")
        self._rows = None
        new = [Moments.zero(m.shift) for m in self.moments_]
        self._accumulate(X, Y, w, new)
        if not all(np.isfinite(m.S).all() for m in new):
            if first:
                del self.moments_
            raise ValueError("the features of X or y are too large to square; scale them first.")
        self.moments_ = [a + b for a, b in zip(self.moments_, new, strict=True)]
        why = f"a stream: {self.n_features_lifted_:,} features of a map that its first batch fixed"
        self.plan_ = self._features_plan(self._total().count, "features", why, 1)
        return self._solve()

    def merge(self, other: KernelRidge) -> Self:
        """Take in the rows that another model of the same map has seen."""
        self._check_mergeable(other)
        self.moments_ = [a + b for a, b in zip(self.moments_, other.moments_, strict=True)]
        self._rows = None
        return self._solve()

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again, to rounding of the largest sums ever held (`rounding_` bounds it)."""
        check_is_fitted(self, "moments_")
        if self._given is not None:
            raise ValueError("folds were given by position, so the fold of a row is not known; give cv as a number of folds.")
        X, Y, w = self._checked(X, y, sample_weight, reset=False)
        gone = [Moments.zero(m.shift) for m in self.moments_]
        self._accumulate(X, Y, w, gone)
        left = [a - b for a, b in zip(self.moments_, gone, strict=True)]
        if any(m.count < 0 for m in left) or sum(m.count for m in left) < 1:
            raise ValueError(f"cannot forget {len(Y)} rows of {sum(m.count for m in self.moments_)}; give rows that were seen, not all.")
        self.moments_, self._rows = left, None
        return self._solve()

    def _square_bytes(self) -> float:
        return 8.0 * self.n_features_lifted_**2 * self._n_folds

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

    def _start(self, X: Matrix, Y: Array) -> None:
        """Empty moments about the mean of the first rows."""
        F = self._dense(self.lift_.transform(X[:1024]))
        shift = np.concatenate([F.mean(0, dtype=np.float64), Y[:1024].mean(0)])
        self._n_outputs = Y.shape[1]
        self.moments_ = [Moments.zero(shift) for _ in range(self._n_folds)]

    def _accumulate(self, X: Matrix, Y: Array, w: Array | None, into: list[Moments] | None = None) -> None:
        moments = self.moments_ if into is None else into
        for rows, F in self._lifted(X):
            Z = np.concatenate([F, Y[rows].astype(F.dtype)], axis=1)
            fold = self._fold_of(X[rows], rows)
            for j, m in enumerate(moments):
                here = slice(None) if len(moments) == 1 else fold == j
                m.add(Z[here], None if w is None else w[rows][here])

    def _fold_of(self, X: Matrix, rows: slice) -> Array:
        """The fold of every row, fixed before any pass: by hash, so that equal rows are never on both sides."""
        return row_hashes(X) % np.uint64(self._n_folds) if self._given is None else self._given[rows]

    @property
    def _n_folds(self) -> int:
        return _folds(self.cv) if self._given is None else int(self._given.max()) + 1

    def _solve(self) -> Self:
        total = self._total()
        D = self.n_features_lifted_
        self.alpha_ = self._best_alpha() if self.cv is not None else _penalty(self.alpha, self._n_outputs)
        s = ridge.solve(total, D, self.alpha_, intercept=self.fit_intercept)
        self.rounding_ = total.rounding
        return self._keep(s.coef, s.intercept)

    def _keep(self, coef: Array, intercept: Array) -> Self:
        self.coef_, self.intercept_ = (coef[:, 0], float(intercept[0])) if self._flat else (coef, intercept)
        return self

    def _total(self) -> Moments:
        return sum(self.moments_[1:], self.moments_[0])

    def _best_alpha(self) -> float:
        grid = self._grid()
        scores = self.cv_scores(grid)
        used = np.isfinite(scores).all(axis=0)
        if used.sum() < 2:
            raise ValueError(f"fewer than two folds have rows (n_samples = {self._total().count}); give cv=None, or more rows that differ.")
        return float(grid[int(np.argmax(scores[:, used].mean(axis=1)))])

    def _grid(self) -> Array:
        return _penalties((float(np.max(self.alpha)) or 1.0) * GRID if self.alphas is None else self.alphas)

    def cv_scores(self, alphas: Any = None) -> Array:
        """R^2 on each fold of the model of the others, (len(alphas), cv), for any penalties, from the statistics alone."""
        check_is_fitted(self, "moments_")
        if len(self.moments_) < 2:
            raise ValueError("cv_scores needs folds, which are fixed before the pass; give cv=5 and fit again.")
        grid = self._grid() if alphas is None else _penalties(alphas)
        return ridge.fold_scores(self.moments_, self.n_features_lifted_, grid, intercept=self.fit_intercept)

    def _check_mergeable(self, other: Any) -> None:
        check_is_fitted(self, "moments_")
        if not isinstance(other, KernelRidge) or not hasattr(other, "moments_"):
            raise ValueError("merge takes another KernelRidge that was fitted in one pass.")
        if self._fingerprint() != other._fingerprint():
            raise ValueError(
                "the models have different feature maps, whose statistics do not add; fit both with the same kernel, via and random_state."
            )
        if self._given is not None or other._given is not None:
            raise ValueError("folds given by position do not merge; give cv as a number of folds.")
        if len(self.moments_) != len(other.moments_) or self._n_outputs != other._n_outputs:
            raise ValueError("the models differ in cv or in the number of outputs; fit both with the same.")

    # D too large for D x D
    def _fit_by_passes(self, X: Matrix, Y: Array, w: Array | None) -> Self:
        if self.cv is not None:
            raise ValueError("cv needs D x D statistics for every fold, which exceed memory_limit; raise it, or use fewer features.")
        self._n_outputs, self.alpha_ = Y.shape[1], _penalty(self.alpha, Y.shape[1])
        u = np.ones(len(Y)) if w is None else w
        mean_F, mean_y, square = self._first_pass(X, Y, u)
        alpha = np.broadcast_to(self.alpha_, (Y.shape[1],))

        def product(P: Array) -> Array:
            return self._pass(X, u, mean_F, lambda F, rows: F @ P) + alpha * P

        b = self._pass(X, u, mean_F, lambda F, rows: Y[rows] - mean_y)
        coef, steps, residual = ridge.conjugate_gradients(product, b, square + alpha.min() + 1e-300)
        self.residual_ = residual
        if residual > 1e-6:
            warnings.warn(f"conjugate gradients stopped at a residual of {residual:.1e}; raise alpha.", ConvergenceWarning, stacklevel=3)
        D = self.n_features_lifted_
        why = f"{D:,} features: D x D moments exceed the memory limit, so conjugate gradients pass over the rows (residual {residual:.1e})"
        self.plan_ = self._features_plan(len(Y), "conjugate gradients", why, steps + 2)
        return self._keep(coef, mean_y - mean_F @ coef)

    def _first_pass(self, X: Matrix, Y: Array, u: Array) -> tuple[Array, Array, Array]:
        """Weighted means, and the diagonal of the centred moments."""
        D, total = self.n_features_lifted_, u.sum()
        s, q = np.zeros(D), np.zeros(D)
        for rows, F in self._lifted(X):
            s += u[rows] @ F
            q += u[rows] @ np.square(F)
        mean = s / total if self.fit_intercept else np.zeros(D)
        mean_y = u @ Y / total if self.fit_intercept else np.zeros(Y.shape[1])
        return mean, mean_y, np.maximum(q - total * mean**2, 0)

    def _pass(self, X: Matrix, u: Array, mean: Array, of: Any) -> Array:
        """sum_i u_i (phi_i - mean) of(phi_i - mean)' over one pass."""
        total: Any = 0.0
        for rows, F in self._lifted(X):
            G = F.astype(np.float64) - mean
            total = total + G.T @ (u[rows, None] * of(G, rows))
        return np.asarray(total)

    # asking
    def predict(self, X: Any) -> Array:
        """phi(x)'coef + intercept."""
        check_is_fitted(self, "coef_")
        return self._linear(self._check_X(X, reset=False), self.coef_, self.intercept_)

    @property
    def loo_predictions_(self) -> Array:
        """The prediction of each row of `fit` by the model of all others, in closed form."""
        X, Y, w = self._at_hand()
        fitted, h = self._fitted_and_leverage(X, w)
        out = Y - (Y - fitted) / (1 - h)[:, None]
        return out[:, 0] if self._flat else out

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`."""
        _, Y, w = self._at_hand()
        residual = Y - self.loo_predictions_.reshape(Y.shape)
        centred = Y - np.average(Y, axis=0, weights=w)
        return float(1 - np.average(residual**2, axis=0, weights=w).mean() / np.average(centred**2, axis=0, weights=w).mean())

    def _at_hand(self) -> tuple[Matrix, Array, Array | None]:
        check_is_fitted(self, "coef_")
        if self._rows is None or not hasattr(self, "moments_"):
            raise AttributeError("leave-one-out needs the rows of one `fit` at hand; streams, merged and loaded models have none.")
        return self._rows

    def _fitted_and_leverage(self, X: Matrix, w: Array | None) -> tuple[Array, Array]:
        alpha = np.unique(self.alpha_)
        if len(alpha) > 1:
            raise ValueError("leave-one-out in closed form needs one alpha for all outputs.")
        lever = ridge.Leverage.of(self._total(), self.n_features_lifted_, float(alpha[0]), intercept=self.fit_intercept)
        fitted, h = np.empty((X.shape[0], self._n_outputs)), np.empty(X.shape[0])
        for rows, F in self._lifted(X):
            fitted[rows] = (F @ self.coef_).reshape(len(F), -1) + self.intercept_
            h[rows] = lever(F, None if w is None else w[rows])
        return fitted, np.minimum(h, 1 - 1e-9)

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "split") -> Interval:
        """(lower, upper) that cover new y; `.guarantee` says how surely.

        method="split": a fifth of the rows, chosen by hash, calibrates the model of the others: at least `coverage`.
        method="jackknife+": every row calibrates the model without it: at least 2 coverage - 1, about `coverage` in practice.
        """
        _, Y, _ = self._at_hand()
        if Y.shape[1] > 1:
            raise ValueError("predict_interval is for one output; fit one model an output.")
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}.")
        X = self._check_X(X, reset=False)
        if method == "split":
            return self._split_interval(X, coverage)
        if method == "jackknife+":
            return self._jackknife_interval(X, coverage)
        raise ValueError(f"method must be 'split' or 'jackknife+', got {method!r}.")

    def _split_interval(self, X: Matrix, coverage: float) -> Interval:
        """The model of four fifths of the rows, calibrated on the others."""
        Xt, Y, w = self._at_hand()
        held = permutation(Stream(0), len(Y)) % CALIBRATION == 0  # of row numbers: equal rows may be on both sides
        if held.all() or not held.any():
            raise ValueError(f"{len(Y)} rows are too few to split; use method='jackknife+'.")
        rest = Moments.zero(self.moments_[0].shift)
        self._accumulate(Xt[~held], Y[~held], None if w is None else w[~held], [rest])
        s = ridge.solve(rest, self.n_features_lifted_, self.alpha_, intercept=self.fit_intercept)
        scores = np.abs(Y[held] - self._linear(Xt[held], s.coef, s.intercept))[:, 0]
        middle, width = self._linear(X, s.coef, s.intercept)[:, 0], conformal_quantile(scores, coverage)
        return Interval(middle - width, middle + width, SPLIT.format(coverage))

    def _jackknife_interval(self, X: Matrix, coverage: float) -> Interval:
        """mu_-i(x) = mu(x) - phi(x)'A^-1 phi_i r_i / (1 - h_i), about the mean."""
        Xt, Y, w = self._at_hand()
        fitted, h = self._fitted_and_leverage(Xt, w)
        loo = ((Y - fitted) / (1 - h)[:, None])[:, 0]
        lever = ridge.Leverage.of(self._total(), self.n_features_lifted_, float(np.unique(self.alpha_)[0]), intercept=self.fit_intercept)
        scaled = loo if w is None else loo * w
        bounds = [self._jackknife_rows(F, Xt, lever, scaled, loo, coverage) for _, F in self._pieces(X, len(Y))]
        lower, upper = (np.concatenate(b) for b in zip(*bounds, strict=True))
        return Interval(lower, upper, JACKKNIFE.format(2 * coverage - 1, coverage))

    def _pieces(self, X: Matrix, n: int) -> Any:
        """Few enough rows of features that an n x rows array stays small."""
        step = max(1, (32 << 20) // (8 * n))
        return ((s, self._dense(self.lift_.transform(X[s : s + step]))) for s in range(0, X.shape[0], step))

    def _jackknife_rows(
        self, F: Array, Xt: Matrix, lever: ridge.Leverage, scaled: Array, loo: Array, coverage: float
    ) -> tuple[Array, Array]:
        direction = lever.directions(F)  # (D, m)
        moved = np.empty((Xt.shape[0], len(F)))
        for rows, G in self._lifted(Xt):
            moved[rows] = (lever.base + (G - lever.mean) @ direction) * scaled[rows, None]
        without = F @ self.coef_ + self.intercept_ - moved
        return jackknife_plus(without, loo, coverage)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_rows": None}  # the training rows do not travel with the model


def given_folds(cv: Any, n: int) -> Array:
    """The fold of each row, from (training, test) positions: tests that share no row, each trained on all other rows."""
    fold = np.full(n, -1)
    for j, (train, test) in enumerate(cv):
        if len(train) + len(test) != n or (fold[test] >= 0).any():
            raise ValueError("cv must be folds that share no row, each with all other rows for training (as KFold gives), or a number.")
        fold[test] = j
    if (fold < 0).any():
        raise ValueError("cv must be folds that together hold every row, or a number of folds.")
    return fold


def _folds(cv: Any) -> int:
    if cv is None:
        return 1
    if isinstance(cv, int | np.integer) and cv >= 2:
        return int(cv)
    raise ValueError(f"cv must be None or a number of folds >= 2, got {cv!r}.")


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
