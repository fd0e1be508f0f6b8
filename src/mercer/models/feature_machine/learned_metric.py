"""LearnedMetric: a linear map of the columns, learnt from the gradients of kernel ridge regression,
as a transformer before any estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mercer.engines.lazy import take_dask
from mercer.engines.partitions import Partitions
from mercer.engines.reader import PartitionReader
from mercer.engines.sample import Picker
from mercer.engines.tree import fold
from mercer.inputs import Array, validate_data
from mercer.invariants import Floats, Is, Labels, Number, Text, Whole
from mercer.kernels import Kernel, Laplace
from mercer.kernels.defaults import what_came
from mercer.lifts.base import seed_of
from mercer.logs import logger
from mercer.models.base import all_or_nothing
from mercer.models.feature_machine.dense import (
    PathRows,
    PenaltyClimb,
    best_fit,
    median_distance,
    under,
)
from mercer.models.feature_machine.fit import spread
from mercer.models.feature_machine.paths import FLOOR, GRADIENT_ROWS, WORSE, metric_of, pulled_back
from mercer.models.feature_machine.scaling import InputScaling
from mercer.models.settings import Seed
from mercer.operators import KernelOperator
from mercer.store import Saved, register

LOG = logger("feature_machine")

MAX_ROWS = 8_000  # on which a metric is learnt
MAX_DRAWN = 1 << 28  # rows of dask collections, whose numbers are put in an order: 2 GB
FITTED_SHARE = 0.6  # of them; the others are held out
MAX_FULL_COLUMNS = 1_000
MAX_CLASSES = 50  # of an integer type; with more values they are numbers


@register("feature_machine.FittedMetric")
@dataclass(frozen=True, eq=False)
class FittedMetric:
    """S as (d,), a diagonal, or (d, d), for rows in their own units; M is the mean outer product of
    gradients in units of the columns' spreads, and what was held out lost `loss` after `rounds`."""

    S: Array
    M: Array
    form: str
    rounds: int
    loss: float

    must = dict(
        S=Floats("d") | Floats("d", "d"),
        M=Floats("d") | Floats("d", "d"),
        form=Text("diagonal", "full"),
        rounds=Whole(),
        loss=Number(0, finite=False),
    )

    def _laws(self) -> str | None:
        return None if self.S.ndim == (1 if self.form == "diagonal" else 2) else "has another form"

    @property
    def width(self) -> int:
        return len(self.S)

    def __call__(self, X: Array) -> Array:
        """X S'"""
        S = self.S.astype(X.dtype)
        return X * S if S.ndim == 1 else X @ S.T

    @property
    def importances(self) -> Array:
        shares = np.maximum(self.M if self.M.ndim == 1 else self.M.diagonal(), 0)
        total = float(shares.sum())
        return shares / total if total > 0 else np.full(self.width, 1 / self.width)


@dataclass(frozen=True, eq=False)
class _Walk:
    """A metric and what it reached."""

    loss: float
    rounds: int
    metric: Array | None
    M: Array
    shrink: float  # so that rows stay as far apart as they were


def learn(kernel: Kernel | None, rows: PathRows, form: str, most: int, seed: int) -> list[_Walk]:
    """Round by round: the equations on some rows, their loss on the others, the next metric."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    cut = max(1, min(len(rows) - 1, int(FITTED_SHARE * len(rows))))
    fitted, held = rows.take(order[:cut]), rows.take(order[cut:])
    metric: Array | None = None
    norm = kernel.norm if isinstance(kernel, Laplace) else 2
    apart = median_distance(fitted.U, norm, np.random.default_rng(seed))
    k = Laplace(apart) if kernel is None else kernel
    out: list[_Walk] = []
    climb = PenaltyClimb()
    for t in range(most + 1):
        U, V = under(fitted.U, metric), under(held.U, metric)
        shrink = apart / median_distance(U, norm, np.random.default_rng(seed))
        U, V = U * np.float32(shrink), V * np.float32(shrink)
        found = best_fit(np.asarray(k(U)), np.asarray(k(V, U)), fitted, held, climb)
        if found is None:
            break
        fit, climb = found
        at = np.sort(rng.permutation(len(U))[:GRADIENT_ROWS])
        M = KernelOperator(k, U[at], U).gradient_outer_product(
            fit.A, diagonal=form == "diagonal", near=FLOOR
        )
        M = pulled_back(np.asarray(M, np.float64) * shrink**2, metric)
        LOG.info("round %d over %d rows: held-out loss %.6g", t, len(rows), fit.loss)
        out.append(_Walk(fit.loss, t, metric, M, shrink))
        new = metric_of(M, 0.5)
        if new is None or fit.loss > WORSE * min(w.loss for w in out):
            break
        metric = new
    return out


@register("feature_machine.LearnedMetric")
class LearnedMetric(TransformerMixin, Saved, BaseEstimator):
    """x -> S x with S = M^(1/2), M the mean of g g' over gradients g of a kernel machine.

    Each round fits ridge regression with the kernel at S x, takes the gradients of the fitted
    function, and has the next S; of the rounds, the first without a metric among them, the one
    counts that is best on held-out rows. Columns are brought to unit spread inside, and rows
    stay as far apart as they were in the median, so that a bandwidth keeps its meaning.

    S has seen all labels: leave-one-out of an estimator behind it, or intervals from that, are
    too good. Use `cross_fit`, or folds around the whole pipeline.

    Parameters
    ----------
    kernel : Kernel, default=None
        Of columns of unit spread; None is exp(-r / L), L the median distance.
    form : {"auto", "diagonal", "full"}, default="auto"
        One weight a column, or any directions (up to 1,000 columns); "auto" takes what is
        better on held-out rows.
    rounds : int, default=3
        The most.
    cross_fit : int, default=None
        With k folds, `fit_transform` maps every row by the metric of the other folds.
    random_state : int, RandomState, Generator or None, default=None
        The seed of splits.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    fitted_metric_ : FittedMetric
        The fitted value.
    metric_ : ndarray of shape (d,) or (d, d)
        S'S, its diagonal where the form is diagonal.
    importances_ : ndarray of shape (d,)
        Shares of the columns in the trace of M, in units of their spreads.
    directions_ : ndarray of shape (d, d)
        Unit vectors along which the function changes, most first, as rows.
    form_ : str
    rounds_ : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 5))
    >>> m = LearnedMetric(random_state=0).fit(X, np.sin(X[:, 0] + X[:, 1]))
    >>> m.transform(X).shape, bool(m.importances_[:2].sum() > 0.9)
    ((400, 5), True)
    """

    fitted_metric_: FittedMetric
    n_features_in_: int

    must = dict(
        fitted_metric_=Is("FittedMetric", width="n_features_in_"),
        n_features_in_=Whole(1),
        feature_names_in_=Labels("n_features_in_"),
    )

    def __init__(
        self,
        kernel: Kernel | None = None,
        form: str = "auto",
        rounds: int = 3,
        *,
        cross_fit: int | None = None,
        random_state: Seed = None,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.form = form
        self.rounds = rounds
        self.cross_fit = cross_fit
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Learn S from rows X (n, d) and targets y: numbers (n,) or (n, q), or classes (n,), which
        are texts, truth values, or integers of few values (floats are numbers)."""
        self._check_settings()
        X, y = self._numbers(X, y)
        self.fitted_metric_ = self._learnt(X, y, seed_of(self.random_state))
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """The rows of fit under the metric; with `cross_fit`, each under one that has not seen its
        target."""
        self.fit(X, y)
        if self.cross_fit is None:
            return self.transform(X)
        X, y = self._numbers(X, y)
        seed, out = seed_of(self.random_state), np.empty_like(X)
        from sklearn.model_selection import KFold  # it takes a tenth of a first use

        for train, test in KFold(self.cross_fit, shuffle=True, random_state=seed % 2**32).split(X):
            out[test] = self._learnt(X[train], y[train], seed)(X[test])
        return out

    def transform(self, X: Any) -> Array:
        """X S', (n, d)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return self.fitted_metric_(X)

    def _check_settings(self) -> None:
        if self.form not in ("auto", "diagonal", "full"):
            raise ValueError(f"form must be 'auto', 'diagonal' or 'full', got {self.form!r}.")
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            before = "; put maps of rows before it in a pipeline" * hasattr(
                self.kernel, "transform"
            )
            came = what_came(self.kernel)
            raise ValueError(f"kernel must be a kernel or None, got {came}{before}.")
        for name, least in (("rounds", 0), ("cross_fit", 2)):
            v = getattr(self, name)
            if v is None and name == "cross_fit":
                continue
            if not isinstance(v, int | np.integer) or isinstance(v, bool) or v < least:
                raise ValueError(f"{name} must be an integer >= {least}, got {v!r}.")

    def _numbers(self, X: Any, y: Any) -> tuple[Array, Array]:
        if y is None:
            raise ValueError(
                "LearnedMetric requires y to be passed, but the target y is None; give targets."
            )
        X, y = validate_data(
            self, X, y, dtype=[np.float64, np.float32], multi_output=True, ensure_min_samples=2
        )
        return X, y

    def _fit_dask(self, X: Any, y: Any = None) -> Self:
        """The same of dask collections, whose rows that count come to the client: it is their numbers
        that are drawn, so that the metric is that of the same rows in memory."""
        self._check_settings()
        if y is None or self.cross_fit is not None:
            raise ValueError(
                "LearnedMetric of dask collections needs y, and takes no cross_fit; give y, and cross_fit=None."
            )
        data, seed = Partitions.of(X, y), seed_of(self.random_state)
        if data.rows > MAX_DRAWN:
            raise ValueError(
                f"X has {data.rows:,} rows, of which none are drawn beyond {MAX_DRAWN:,}; give some partitions of it."
            )
        drawn = drawn_rows(data.rows, seed)
        reader = PartitionReader(data.columns, self.kernel, supervised=False)
        found = fold(data, Picker(reader, np.sort(drawn)))
        at = np.searchsorted(found.number, drawn)
        rows, told = self._numbers(found.table(data.columns).data[at], found.Y[at])
        fitted = self._of_rows(rows, told, seed)
        self.__dict__.pop("feature_names_in_", None)
        if data.columns.names is not None:
            self.feature_names_in_ = np.asarray(data.columns.names, object)
        self.fitted_metric_ = fitted
        return self

    def _learnt(self, X: Array, y: Array, seed: int) -> FittedMetric:
        some = drawn_rows(len(X), seed)
        return self._of_rows(X[some], y[some], seed)

    def _of_rows(self, X: Array, y: Array, seed: int) -> FittedMetric:
        """Of the rows that count, in the order in which they were drawn."""
        scaling = InputScaling.of(np.asarray(X, np.float64), "standard")
        Y = targets(y)
        rows = PathRows(scaling(np.asarray(X, np.float64)), Y.astype(np.float32))
        d = X.shape[1]
        forms = (
            [self.form]
            if self.form != "auto"
            else ["diagonal", "full"][: 1 + (d <= MAX_FULL_COLUMNS)]
        )
        walks = [
            (form, w) for form in forms for w in learn(self.kernel, rows, form, self.rounds, seed)
        ]
        if not walks:
            raise ValueError(
                "no kernel ridge regression could be solved; scale the columns of X first."
            )
        form, best = min(walks, key=lambda pair: pair[1].loss)
        metric = np.ones(d) if best.metric is None else best.metric
        if form == "full" and metric.ndim == 1:
            metric = np.diag(metric)
        S = best.shrink * (metric / scaling.scale)
        return FittedMetric(S, best.M, form, best.rounds, best.loss)

    # what is known
    def _fitted(self) -> FittedMetric:
        check_is_fitted(self)
        return self.fitted_metric_

    @property
    def metric_(self) -> Array:
        S = self._fitted().S
        return S**2 if S.ndim == 1 else S.T @ S

    @property
    def importances_(self) -> Array:
        return self._fitted().importances

    @property
    def directions_(self) -> Array:
        M = self._fitted().M
        if M.ndim == 1:
            return np.eye(len(M))[np.argsort(-M, kind="stable")]
        return np.linalg.eigh(M)[1][:, ::-1].T

    @property
    def form_(self) -> str:
        return self._fitted().form

    @property
    def rounds_(self) -> int:
        return self._fitted().rounds

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the columns where each has a weight, else learnedmetric0 and so on."""
        fitted = self._fitted()
        names = _check_feature_names_in(self, input_features)
        if fitted.form == "diagonal":
            return names
        return np.array([f"learnedmetric{i}" for i in range(fitted.width)], object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


take_dask(LearnedMetric)


def drawn_rows(n: int, seed: int) -> Array:
    """The numbers of the rows that a metric is learnt on, in the order drawn."""
    return np.random.default_rng(seed).permutation(n)[:MAX_ROWS]


def targets(y: Array) -> Array:
    """Numbers of unit spread, or one-hot classes, about their means, (n, q)."""
    if is_classes(y):
        _, codes = np.unique(y, return_inverse=True)
        Y = np.eye(codes.max() + 1)[codes]
    else:
        Y = np.asarray(y, np.float64).reshape(len(y), -1)
    Y = Y - Y.mean(axis=0)
    return np.asarray(Y / spread(Y))


def is_classes(y: Array) -> bool:
    """Whether y are classes: texts and truth values, and whole numbers of an integer type that come
    back often; floating-point numbers never are.

    >>> is_classes(np.array(["a", "b"])), is_classes(np.arange(1000)), is_classes(np.arange(1000) % 7)
    (True, False, True)
    """
    if y.ndim > 1 or y.dtype.kind == "f":
        return False
    distinct = len(np.unique(y))
    return y.dtype.kind not in "iu" or (distinct <= MAX_CLASSES and 5 * distinct <= len(y))
