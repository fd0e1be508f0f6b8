"""KernelRidge: exactly at the rows, over landmarks, or over features by moments that stream and
merge."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from mercer import methods
from mercer.gpu.devices import device_of
from mercer.inputs import Array, Table
from mercer.models.base import all_or_nothing, note_columns
from mercer.models.folds import Folds
from mercer.models.intervals import Interval
from mercer.models.ridge import partitions
from mercer.models.ridge.base import RidgeEstimator
from mercer.models.ridge.dual import DualRidge
from mercer.models.ridge.fit import FittedRidge, fit, map_of
from mercer.models.ridge.moments import MomentRidge, begin, mergeable
from mercer.models.ridge.problem import RidgeSettings, TrainingRows
from mercer.models.settings import (
    Gamma,
    KernelSetting,
    LiftSetting,
    MemoryLimit,
    Seed,
    Via,
    grid,
)
from mercer.store import register


def _streams(self: KernelRidge) -> bool:
    """Whether a model of these settings can be one over features, whose statistics add."""
    return self.lift is not None or (
        methods.way(self.via) not in ("exact", "iterative") and not self._precomputed
    )


@register("ridge.KernelRidge")
class KernelRidge(MultiOutputMixin, RegressorMixin, RidgeEstimator):
    """argmin sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2 over functions f of a kernel.

    Or f(x) = phi(x)'c over its features. Factors and moments are by BLAS in as many threads as
    it has: another OMP_NUM_THREADS may change the last digits, 1 never does.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        A kernel; a name as in scikit-learn ("rbf", "linear", "poly", "laplacian", "cosine",
        "chi2", "additive_chi2", see `AdditiveChi2`), or a kernel of its Gaussian processes; a
        function of two matrices of rows, or of two rows; "precomputed" (X is then the Gram
        matrix); or None: a Gaussian scaled to the data.
    alpha : float or array-like of shape (n_outputs,), default=1.0
        The penalty, or one an output.
    via : str or a value of `mercer.methods`, default="auto"
        "exact": (K + alpha / w) dual = y - b, by Cholesky or by conjugate gradients;
        "iterative": by conjugate gradients; "features" or a value (`Fourier(1000)`, `Exact()`):
        one pass of moments over features; "landmarks", `Landmarks(5000)`: f a sum over
        landmarks, by moments (up to 2,048 of them) or passes (Falkon). "auto" is exact where
        half of K in float32 fits `memory_limit` (22,000 rows by default) and no folds are asked
        for, else features; a first `partial_fit` means features.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in scikit-learn: exp(-gamma |x - z|^2) of "rbf",
        exp(-gamma |x - z|_1) of "laplacian", (gamma x'z + coef0)^degree of "poly", exp(-gamma
        sum_j (x_j - z_j)^2 / (x_j + z_j)) of "chi2". "scale" is 1 / (d Var X), "auto" 1 / d.
        None is a Gaussian scaled to the data, 1 / d of "laplacian", and 1 of others.
    degree : int, default=None
        Of "poly"; None is 3.
    coef0 : float, default=None
        Of "poly", >= 0; None is 1.
    lift : Lift or transformer, default=None
        A feature map, instead of a kernel.
    fit_intercept : bool, default=True
        Whether to fit b, which is not penalised.
    cv : int, splitter, iterable of (training, test) positions, or "loo", default=None
        A number of folds is fixed by a hash of each row. alpha is then the best of `alphas` by
        the squared error of all folds together, and `cv_scores` tells the R^2 of every fold for
        any other penalties (over features: without another pass). "loo" chooses by left-out
        rows in closed form.
    alphas : array-like of float, default=None
        The penalties to choose from with `cv`; None is 25 from 1e-6 to 1e6 times alpha.
    bandwidths : array-like of float, default=None
        Factors of the kernel's bandwidths to choose from together with alpha, with cv="loo" and
        via="exact".
    tol : float, default=1e-6
        Of conjugate gradients: the residual |b - A x| / |b| to reach.
    max_iter : int, default=1000
        Their products at most.
    memory_limit : float or str, default=None
        As bytes or "4GB", by default 1 GB: of D x D statistics (beyond it conjugate gradients
        take several passes), of preconditioner and kept part of K.
    random_state : int, RandomState, Generator or None, default=None
        The seed of features, landmarks and preconditioners.
    device : str, default="cpu"
        "cuda" (or "cuda:1") solves exactly or over landmarks on that GPU, by conjugate
        gradients over fused tiles, and predicts there; it needs torch and triton. "auto" takes
        a GPU where there is one, and rows that are CUDA tensors mean theirs. Features but
        Fourier's, landmarks with folds, fewer than 3,000 rows, and kernels without GPU source
        stay on the CPU; `plan_` says where it was.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    solution_ : DualRidge, MomentRidge or FeatureRidge
        The fitted function.
    intercept_ : float or ndarray of shape (n_outputs,)
    alpha_ : ndarray of shape () or (n_outputs,)
        The penalty given, or chosen.
    kernel_ : Kernel
    plan_ : Plan
    coef_ : ndarray of shape (D,) or (D, n_outputs)
        Over features.
    lift_ : Lift
        Over features.
    moments_ : list of Moments
        Over features: of [phi, y], one of every fold.
    dual_coef_ : ndarray of shape (n,) or (n, n_outputs)
        Else: f(x) = sum_i dual_coef_i k(x, X_fit_i).
    X_fit_ : ndarray of shape (n, d), or list of items
        The rows, or landmarks, that dual_coef_ are of.
    residual_ : float
        Of the equations, relative to |y|.

    Examples
    --------
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> m = KernelRidge(alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(m.predict(X) - np.sin(X[:, 0])).max() < 0.01), m.plan_.way
    (True, 'cholesky')
    """

    def __init__(
        self,
        kernel: KernelSetting = None,
        alpha: Any = 1.0,
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        degree: int | None = None,
        coef0: float | None = None,
        lift: LiftSetting = None,
        fit_intercept: bool = True,
        cv: Any = None,
        alphas: Any = None,
        bandwidths: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
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
        self.device = device
        self.verbose = verbose

    # fitting
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit y (n,) or (n, q) of rows X (n, d) with weights (n,), by the way of `plan_`."""
        s = RidgeSettings.of(self)
        rows, Y, w, flat = self._checked(X, y, sample_weight, reset=True)
        settings = s.of_model(Y.shape[1])  # refuses what is none
        training = TrainingRows.of(rows, Y, w, self.cv, gram=self._precomputed)
        self.fitted_ = FittedRidge.of(fit(s, training, flat), training, settings)
        return self

    @all_or_nothing
    def _fit_dask(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """The same of dask collections: over features by moments of their partitions, or over the
        rows by products that their workers make."""
        s = RidgeSettings.of(self)
        if s.way in ("exact", "iterative") and s.lift is None:
            found = partitions.gathered(s, X, y, sample_weight, self.cv)
        else:
            found = FittedRidge(partitions.fit(s, X, y, sample_weight))
        note_columns(self, X)
        self.fitted_ = found
        return self

    @available_if(_streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in a batch; the first one fixes the map.

        A batch that is refused leaves the model as it was. A model that "auto" fitted exactly
        becomes one over features, whose first batch are the rows of its `fit`.
        """
        s, folds = RidgeSettings.of(self), Folds.by_hash(self.cv)
        begun = self.__sklearn_is_fitted__()
        stream = self.fitted_.stream(s, folds) if begun else None
        rows, Y, w, flat = self._checked(X, y, sample_weight, reset=not begun)
        s.penalties(Y.shape[1])  # refuses what is none, before a pass
        if stream is None:
            stream = begin(
                s, map_of(s, TrainingRows(rows, Y, w, folds), stream=True), folds, rows, Y, flat
            )
        stream.check_outputs(Y)
        why = "of a stream, over a map that its first batch fixed"
        self.fitted_ = FittedRidge(stream.taking(stream.gathered(rows, Y, w, s.gpu), s, why))
        return self

    @available_if(_streams)
    @all_or_nothing
    def merge(self, other: KernelRidge) -> Self:
        """Take in the rows that another model of the same map has seen."""
        mine = self._statistics()
        fitted = isinstance(other, KernelRidge) and other.__sklearn_is_fitted__()
        if not fitted or isinstance(theirs := other.solution_, DualRidge):
            raise ValueError(
                f"merge takes another fitted KernelRidge over features, got {type(other).__name__}."
            )
        s, more = RidgeSettings.of(self), mergeable(mine, theirs)
        self.fitted_ = FittedRidge(mine.merged(more, s))
        return self

    @available_if(_streams)
    @all_or_nothing
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again, to rounding of the largest sums ever held: `rounding_`.

        Rows that were never taken in are refused where what would be left cannot be the sums of
        any rows.
        """
        mine = self._statistics()
        if mine.folds.given is not None:
            raise ValueError(
                "folds were given by position, so the fold of a row is not known; give cv as a number of folds."
            )
        rows, Y, w, _ = self._checked(X, y, sample_weight, reset=False)
        mine.check_outputs(Y)
        gone = mine.gathered(rows, Y, w, RidgeSettings.of(self).gpu)
        self.fitted_ = FittedRidge(mine.losing(gone, len(Y), RidgeSettings.of(self)))
        return self

    def _statistics(self) -> MomentRidge:
        if not isinstance(found := self.solution_, MomentRidge):
            raise ValueError(
                "only a model over features has statistics that add and subtract; fit with via='features'."
            )
        if found.penalties.by == "loo" or self.cv == "loo":
            raise ValueError(
                "cv='loo' needs the rows of one fit, which statistics do not keep; give cv as a number of folds."
            )
        return found

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Table, Array, Array | None, bool]:
        """Rows, targets (n, q), weights, and whether y had one axis."""
        rows, y = self._rows_and_targets(X, y, reset=reset, multi_output=True, y_numeric=True)
        return (
            rows,
            np.asarray(y.reshape(len(y), -1), np.float64),
            self._weights(sample_weight, rows),
            y.ndim == 1,
        )

    # asking
    def predict(self, X: Any) -> Array:
        """f(x) + intercept, (n,) or (n, q)."""
        return self._fitted().predict(self._rows(X, reset=False), device_of(self.device))

    def cv_scores(self, alphas: Any = None) -> Array:
        """R^2 on each fold of the model of the others, (len(alphas), cv), for any penalties.

        nan where y does not vary. Over features it comes from the statistics alone. A model
        without statistics goes over the rows of its `fit` again.
        """
        fitted = self._fitted()
        model, folds = fitted.solution, fitted.folds
        if self.cv is None if folds is None else folds.k < 2:
            raise ValueError(
                "cv_scores needs folds, which are fixed before the pass; give cv=5 and fit again."
            )
        if folds is None:
            raise ValueError(
                "cv_scores of a model without statistics needs its rows again; fit once more."
            )
        s = self._fitted_by()
        if alphas is None:
            alphas = model.penalties.grid if isinstance(model, MomentRidge) else s.grid()
        return fitted.fold_errors(s, grid(alphas, "alphas")).scores()

    # left-out rows
    @property
    def loo_predictions_(self) -> Array:
        """The prediction of each row of `fit` by the model of all others, in closed form.

        nan where that is not known.
        """
        self._fitted().needed()
        return self.fitted_.loo_predictions(self._fitted_by())

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`, over the rows of positive weight."""
        self._fitted().needed()
        return self.fitted_.loo_score(self._fitted_by())

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "split") -> Interval:
        """(lower, upper) that cover new y at rows X (n, d); `.guarantee` says how surely.

        method="split": a fifth of the rows, chosen by a fixed shuffle, calibrates the model of
        the others: at least `coverage`. method="jackknife+": every row calibrates the model
        without it: at least 2 coverage - 1, about `coverage` in practice. Fewer than coverage /
        (1 - coverage) rows to calibrate with (9 for 0.9) can promise that by infinite intervals
        alone: a warning and the guarantee then say so. Ends are never nan, and otherwise
        finite. A saved model keeps what "split" needs; "jackknife+" needs the rows, which
        models over features and landmarks leave behind.
        """
        fitted = self._fitted()
        if fitted.split is None:
            fitted.needed()
        if fitted.solution.weights.outputs > 1:
            raise ValueError("predict_interval is for one output; fit one model an output.")
        if (
            isinstance(coverage, bool)
            or not isinstance(coverage, int | float | np.number)
            or not 0 < coverage < 1
        ):
            raise ValueError(f"coverage must be a number between 0 and 1, got {coverage!r}.")
        rows = self._rows(X, reset=False)
        if method == "split":
            if fitted.split is None:
                self.fitted_ = fitted = fitted.calibrated(self._fitted_by())
            return fitted.by_split(rows, float(coverage))
        if method != "jackknife+":
            raise ValueError(f"method must be 'split' or 'jackknife+', got {method!r}.")
        return fitted.by_jackknife(self._fitted_by(), rows, float(coverage))
