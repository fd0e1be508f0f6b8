"""FeatureMachineRegressor and FeatureMachineClassifier: kernel machines that learn their metric, and
choose everything by held-out rows."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.gpu.devices import device_of, without
from mercer.inputs import Array, sample_weights, validate_data
from mercer.invariants import Is, Labels, Whole
from mercer.lifts.base import seed_of
from mercer.models.base import all_or_nothing, bytes_of
from mercer.models.feature_machine.fit import (
    FeatureSettings,
    FittedMachine,
    class_scores,
    fit,
    not_searched,
    spread,
)
from mercer.models.feature_machine.search import MIN_SEARCH, MetricProblem
from mercer.models.intervals import Interval, conformal_quantile
from mercer.models.settings import MemoryLimit, Seed, number, two_or_more
from mercer.plans import Plan
from mercer.store import Saved, register
from mercer.tensors import take_tensors

NONE_COVERED = "nothing is guaranteed: fewer than 50 rows leave none to calibrate"
COVERED = (
    "at least {0:.3g} of new rows from the same source are covered (split conformal: {1:,} rows that "
    "neither the metric nor the search saw)"
)


class FeatureMachineBase(Saved, BaseEstimator):
    """What both tasks share."""

    machine_: FittedMachine
    n_features_in_: int

    must = dict(
        machine_=Is("FittedMachine"),
        n_features_in_=Whole(1),
        feature_names_in_=Labels("n_features_in_"),
        classes_=Labels("K"),
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_tensors(cls, "predict", "predict_proba", "decision_function", "gradient", "score")

    def __init__(
        self,
        time_limit: float | None = None,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
        device: str = "cpu",
        *,
        verbose: bool | int = False,
    ) -> None:
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _settings(self) -> FeatureSettings:
        limit = self.time_limit
        if limit is not None:
            seconds = number(limit)
            if isinstance(limit, bool) or seconds is None or not seconds > 0:
                raise ValueError(
                    f"time_limit must be a number of seconds > 0 or None, got {limit!r}."
                )
            limit = seconds
        memory = 4e9 if self.memory_limit is None else bytes_of(self.memory_limit)
        gpu = device_of(self.device)
        seed = seed_of(self.random_state)
        return FeatureSettings(limit, memory, seed, gpu, without(self.device))

    def _numbers(self, X: Any, *targets: Any, reset: bool, **options: Any) -> Any:
        return validate_data(
            self,
            X,
            *targets,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            **options,
        )

    def _weighted(self, X: Array, sample_weight: Any) -> tuple[Array, Array]:
        """The rows that count, and their weights of mean 1."""
        w = sample_weights(sample_weight, X)
        some = np.flatnonzero(w > 0)
        return some, w[some] / w[some].mean()

    def _fit(
        self,
        s: FeatureSettings,
        X: Array,
        Y: Array,
        weight: Array,
        units: tuple[Array, Array],
        K: int,
    ) -> FittedMachine:
        """Y are in these units, (y - centre) / scale; of no classes K is 0."""
        p = MetricProblem(
            np.asarray(X, np.float64),
            Y.astype(np.float32),
            None if (weight == 1).all() else weight,
            units[0],
            K,
            s.seed,
            s.memory,
        )
        if len(p.X) < MIN_SEARCH:
            told = f"{not_searched(len(p.X))}; give at least {MIN_SEARCH} rows"
            warnings.warn(f"{type(self).__name__}: {told}.", UserWarning, stacklevel=4)
        return fit(p, s, *units)

    def _machine(self) -> FittedMachine:
        check_is_fitted(self)
        return self.machine_

    def __sklearn_is_fitted__(self) -> bool:
        return "machine_" in vars(self)

    def _values(self, X: Any) -> Array:
        machine, rows = self._machine(), self._numbers(X, reset=False)
        gpu = device_of(self.device)
        return machine.ensemble(np.asarray(rows, np.float64), gpu).astype(rows.dtype)

    @property
    def plan_(self) -> Plan:
        return self._machine().plan

    @property
    def importances_(self) -> Array:
        """Shares of the columns in the mean squared gradient, (d,), which add to 1."""
        return self._machine().importances

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@register("feature_machine.FeatureMachineRegressor")
class FeatureMachineRegressor(MultiOutputMixin, RegressorMixin, FeatureMachineBase):
    """f(x) = sum_i a_i exp(-(|S x - S x_i|_p / L)^q) + b, with a metric S that is learnt.

    Ridge regression is alternated with S = M^(1/2), M = mean of g g' over the gradients g of
    the fitted function: a column, or a direction, counts as much as f changes along it. Norm p,
    exponent q, length L, the form of M (diagonal or full), rounds, penalty and the scaling of
    inputs (standardised, or normal scores of ranks) are chosen by held-out rows; several
    machines are averaged where that helps on them. Missing values (nan) are filled by medians
    and told by columns of their own.

    Parameters
    ----------
    time_limit : float, default=None
        Seconds, of which two fifths go to the search; None searches everything.
    memory_limit : float or str, default=None
        As bytes or "4GB", which is the default: beyond it rows are solved in cells.
    random_state : int, RandomState, Generator or None, default=None
        The seed of splits.
    device : str, default="cpu"
        "cuda" (or "cuda:1") searches on that GPU, learns the metric on up to 40,000 rows,
        solves all rows in one piece as far as its memory goes, and predicts there. It needs
        torch and triton. "auto" takes a GPU where there is one.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    machine_ : FittedMachine
        The fitted value.
    importances_ : ndarray of shape (n_features_in_,)
    plan_ : Plan

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models (2024).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 6))
    >>> m = FeatureMachineRegressor(random_state=0).fit(X, np.sin(2 * X[:, 0]) + X[:, 1])
    >>> bool(m.importances_[:2].sum() > 0.9)
    True
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search, then fit y (n,) or (n, q) of rows X (n, d) with weights (n,)."""
        s = self._settings()
        X, y = self._numbers(X, y, reset=True, multi_output=True, y_numeric=True)
        some, w = self._weighted(X, sample_weight)
        Y = np.asarray(y, np.float64).reshape(len(y), -1)[some]
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.average(Y, axis=0, weights=w)
            scale = spread(Y - centre, w)
        if not np.isfinite(scale).all():
            raise ValueError("y is too large for sums of it; give it in larger units.")
        self.machine_ = self._fit(s, X[some], (Y - centre) / scale, w, (centre, scale), 0)
        self._flat = np.ndim(y) == 1
        return self

    def predict(self, X: Any) -> Array:
        """(n,) or (n, q)."""
        values = self._values(X)
        return values[:, 0] if self._flat else values

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Interval:
        """(lower, upper) of new targets: the machine that was fitted without the calibration rows,
        and the quantile of its residuals at them.

        The prediction is always inside. Too few calibration rows give infinite intervals.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}.")
        m, rows = self._machine(), self._numbers(X, reset=False)
        X64 = np.asarray(rows, np.float64)
        gpu = device_of(self.device)
        middle, point = m.cautious(X64, gpu), m.ensemble(X64, gpu)
        half = conformal_quantile(m.residuals, coverage) if len(m.residuals) else np.inf
        low, high = np.minimum(middle - half, point), np.maximum(middle + half, point)
        if self._flat:
            low, high = low[:, 0], high[:, 0]
        said = COVERED.format(coverage, len(m.residuals)) if len(m.residuals) else NONE_COVERED
        return Interval(low.astype(rows.dtype), high.astype(rows.dtype), said)

    def gradient(self, X: Any) -> Array:
        """d f / d x at every row, (n, d) or (n, q, d); 0 by what is missing."""
        m, rows = self._machine(), self._numbers(X, reset=False)
        G = m.ensemble.gradients(np.asarray(rows, np.float64)).astype(rows.dtype)
        return G[:, 0] if self._flat else G


@register("feature_machine.FeatureMachineClassifier")
class FeatureMachineClassifier(ClassifierMixin, FeatureMachineBase):
    """The largest of functions f_k(x) = sum_i a_ik exp(-(|S x - S x_i|_p / L)^q) + b_k.

    They are fitted to indicators of the classes by ridge regression, with a learnt metric S;
    see `FeatureMachineRegressor` for the search. Probabilities are in proportion to exp(slope
    f_k + offset_k), the slope and offsets fitted to rows that neither metric nor search saw.

    Parameters
    ----------
    time_limit : float, default=None
        Seconds, of which two fifths go to the search; None searches everything.
    memory_limit : float or str, default=None
        As bytes or "4GB", which is the default: beyond it rows are solved in cells.
    random_state : int, RandomState, Generator or None, default=None
        The seed of splits.
    device : str, default="cpu"
        "cuda" (or "cuda:1") searches on that GPU, learns the metric on up to 40,000 rows,
        solves all rows in one piece as far as its memory goes, and predicts there. It needs
        torch and triton. "auto" takes a GPU where there is one.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    machine_ : FittedMachine
        The fitted value.
    classes_ : ndarray of shape (n_classes,)
    importances_ : ndarray of shape (n_features_in_,)
    plan_ : Plan

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 6))
    >>> m = FeatureMachineClassifier(random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> bool(m.importances_[:2].sum() > 0.9), m.predict_proba(X[:5]).shape
    (True, (5, 2))
    """

    classes_: Array

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search, then fit classes y (n,) of rows X (n, d) with weights (n,)."""
        s = self._settings()
        X, y = self._numbers(X, y, reset=True)
        check_classification_targets(y)
        some, w = self._weighted(X, sample_weight)
        classes, codes = np.unique(y[some], return_inverse=True)
        K = len(two_or_more(classes))
        hot = np.eye(K)[codes]
        hot = hot[:, 1:] if K == 2 else hot
        centre = np.average(hot, axis=0, weights=w)
        units = centre, np.ones(len(centre))
        self.machine_ = self._fit(s, X[some], hot - centre, w, units, K)
        self.classes_ = classes
        return self

    def decision_function(self, X: Any) -> Array:
        """One score a class, (n, K); of two classes f(x) - 1/2, (n,)."""
        F = self._values(X)
        return F[:, 0] - 0.5 if F.shape[1] == 1 else F

    def predict_proba(self, X: Any) -> Array:
        """P(k | x), (n, K)."""
        F = self._values(X)
        found = self._machine().probabilities
        assert found is not None
        return found(class_scores(F.astype(np.float64))).astype(F.dtype)

    def predict(self, X: Any) -> Array:
        """The most probable class, (n,)."""
        most = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most]

    def gradient(self, X: Any) -> Array:
        """d f_k / d x at every row, (n, K, d); of two classes that of the second, (n, d)."""
        m, rows = self._machine(), self._numbers(X, reset=False)
        G = m.ensemble.gradients(np.asarray(rows, np.float64)).astype(rows.dtype)
        return G[:, 0] if G.shape[1] == 1 else G
