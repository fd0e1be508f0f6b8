"""SparseRegressor and SparseClassifier: a few features out of all that a lift gives, by L1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from mercer.inputs import Array, Table, validate_data
from mercer.invariants import Is, Labels, Whole
from mercer.models.base import all_or_nothing
from mercer.models.settings import (
    LiftSetting,
    MemoryLimit,
    Seed,
    of_largest,
    two_or_more,
)
from mercer.models.sparse.fit import SparseModel, fit
from mercer.models.sparse.formula import Formula, formulas
from mercer.models.sparse.problem import SparseRows, SparseSettings, takes_text
from mercer.models.sparse.solve import SparsePath
from mercer.plans import Plan
from mercer.store import Saved, register


class SparseBase(Saved, BaseEstimator):
    """What both tasks share."""

    model_: SparseModel
    n_features_in_: int

    must = dict(
        model_=Is("SparseModel"),
        n_features_in_=Whole(1),
        feature_names_in_=Labels("n_features_in_"),
        classes_=Labels("K"),
    )

    def __init__(
        self,
        lift: LiftSetting = None,
        alpha: float | str = "cv",
        *,
        n_alphas: int = 100,
        eps: float = 1e-3,
        cv: Any = 5,
        rule: str = "1se",
        l1_ratio: float = 1.0,
        refit: bool = True,
        stability: int = 0,
        scale: str | None = "unit",
        tol: float = 1e-6,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
    ) -> None:
        self.lift = lift
        self.alpha = alpha
        self.n_alphas = n_alphas
        self.eps = eps
        self.cv = cv
        self.rule = rule
        self.l1_ratio = l1_ratio
        self.refit = refit
        self.stability = stability
        self.scale = scale
        self.tol = tol
        self.memory_limit = memory_limit
        self.random_state = random_state

    # rows
    def _sparse_rows(self) -> bool:
        return self.lift is None or bool(getattr(self.lift, "sparse", False))

    def _rows(self, X: Any, *targets: Any, reset: bool, **options: Any) -> Any:
        """Rows as a table, and the targets where they come."""
        if takes_text(self.lift):
            if reset:
                self.n_features_in_ = 1
            return (
                (Table(list(X)), *(column_or_1d(y) for y in targets)) if targets else Table(list(X))
            )
        found = validate_data(
            self,
            X,
            *targets,
            reset=reset,
            dtype=[np.float64, np.float32],
            accept_sparse="csr" if self._sparse_rows() else False,
            order="C",
            **options,
        )
        names = getattr(self, "feature_names_in_", None)
        columns = None if names is None else tuple(map(str, names))
        if not targets:
            return Table(found, columns)
        return Table(found[0], columns), *found[1:]

    def _training(
        self, rows: Table, y: Array, sample_weight: Any, classes: int, groups: Any
    ) -> SparseRows:
        w = None
        if sample_weight is not None:
            w = _check_sample_weight(
                sample_weight, np.empty((len(y), 1)), dtype=np.float64, ensure_non_negative=True
            )
        return SparseRows.of(rows, y, w, classes, groups)

    # the fitted value
    def _model(self) -> SparseModel:
        check_is_fitted(self)
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def _scores(self, X: Any) -> tuple[Array, Any]:
        """f(x) (n, C) in float64, and the precision of the rows."""
        model, rows = self._model(), self._rows(X, reset=False)
        return model.scores(rows), rows.dtype

    @property
    def plan_(self) -> Plan:
        return self._model().plan

    @property
    def path_(self) -> SparsePath:
        """The models of all penalties, in the units of the lift's features."""
        return self._model().path

    @property
    def cv_losses_(self) -> Array:
        """The loss of every penalty in every fold, (n_alphas, cv)."""
        if (losses := self._model().losses) is None:
            raise AttributeError("cv_losses_ comes with alpha='cv' and rows enough for folds.")
        return losses.values

    @property
    def alpha_(self) -> float:
        return self._model().alpha

    @property
    def gap_(self) -> float:
        """How much better the best model of this penalty could be, relative to the loss without
        features."""
        return self._model().gap

    @property
    def support_(self) -> Array:
        """The places of the features kept."""
        return self._model().ids

    @property
    def names_(self) -> list[str]:
        """The names of the features kept."""
        return self._model().names

    @property
    def stability_(self) -> Array:
        """The share of half-samples in which each feature kept survives."""
        if (found := self._model().stability) is None:
            raise AttributeError("stability_ comes with stability=50, a number of half-samples.")
        return found

    def _table(self, classes: list[Any]) -> dict[str, list[Any]]:
        m = self._model()
        order = np.argsort(-np.abs(m.coef * m.deviations).max(0), kind="stable")
        rows = [(c, j) for c in range(len(m.coef)) for j in order if m.coef[c, j] != 0]
        table: dict[str, list[Any]] = {"class": [classes[c] for c, _ in rows]} if classes else {}
        table |= {
            "feature": [m.names[j] for _, j in rows],
            "coef": [float(m.coef[c, j]) for c, j in rows],
            "effect": [float(m.coef[c, j] * m.deviations[j]) for c, j in rows],
            "sign": [int(np.sign(m.coef[c, j])) for c, j in rows],
        }
        if m.stability is not None:
            table["stability"] = [float(m.stability[j]) for _, j in rows]
        return table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse_rows()
        if takes_text(self.lift):
            tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


@register("sparse.SparseRegressor")
class SparseRegressor(RegressorMixin, SparseBase):
    """argmin sum_i w_i (y_i - f(x_i))^2 / (2 sum_i w_i) + alpha (r |b|_1 + (1 - r) |b|^2/2).

    f(x) = b0 + sum_j b_j phi_j(x) over the features of a lift; r is `l1_ratio`, the intercept
    b0 is free. The penalty counts features in units of `scale`; coefficients are told in the
    units of the lift's features, and `formula_` in those of the columns.

    Penalties are those of scikit-learn's `LassoCV`: from the least that keeps nothing down to
    eps of it. Each is solved to rounding over the Gram matrix of the features where that fits
    (4,096 of them), else by Newton's steps on a working set, with sweeps over all features for
    the duality gap: `plan_` tells which. Copies and constants are kept once, features that
    others make up never break a path.

    Parameters
    ----------
    lift : Lift or transformer, default=None
        The features; None is `KitchenSink()` of dense rows, and the columns themselves of
        sparse ones. `Identity()` is the columns of dense rows.
    alpha : "cv" or float, default="cv"
        The penalty, > 0, or "cv": chosen by folds.
    n_alphas : int, default=100
        The number of penalties.
    eps : float, default=1e-3
        The least penalty, as a share of the largest.
    cv : int, splitter or iterable of (training, test) positions, default=5
        Folds. A number deals rows in the order of their targets, equal rows together; units,
        the lift and its scales are fitted inside each fold.
    rule : {"1se", "min"}, default="1se"
        The largest penalty whose mean loss is within one standard error of the least, by the
        differences fold by fold; or the one of the least.
    l1_ratio : float, default=1.0
        The share r of L1 in (0, 1], as in scikit-learn's `ElasticNet`.
    refit : bool, default=True
        Whether to fit the features kept once more under a small ridge penalty, where the folds'
        loss is less so.
    stability : int, default=0
        The number of half-samples for `stability_`.
    scale : {"unit", "columns", None}, default="unit"
        "columns": the columns of X are brought to [-1, 1] (divided by their largest magnitude,
        less an offset only where they are far from zero) before `KitchenSink` or products of
        columns see them, and features count as they come. "unit": the same, and features count
        in units of their standard deviations. None: nothing is scaled. Other lifts always read
        the columns as they are.
    tol : float, default=1e-6
        The duality gap to reach, relative to the loss without features (the variance of y).
    memory_limit : float or str, default=None
        Of features held in memory, as bytes or "4GB"; by default 1 GB.
    random_state : int, RandomState, Generator or None, default=None
        The seed of folds and half-samples; None is a fixed one.

    Attributes
    ----------
    model_ : SparseModel
        The fitted value.
    coef_ : ndarray of shape (D,)
        Of all features, in the units of the lift.
    intercept_ : float
    support_ : ndarray of shape (k,)
        The places of the features kept.
    names_ : list of str
        Their names.
    alpha_ : float
        The penalty given, or chosen.
    path_ : SparsePath
        `alphas`, `ids`, `coef` (m, 1, k), `intercept`, `gaps` and `sizes` of all penalties.
    gap_ : float
        How much better the best model of this penalty could be, relative to the variance of y.
    cv_losses_ : ndarray of shape (n_alphas, n_folds)
    stability_ : ndarray of shape (k,)
        The share of half-samples in which each feature kept survives.
    formula_ : Formula
        The model as text, in the user's units; it can be called.
    table_ : dict of lists
        Features, coefficients, effects (of one standard deviation) and signs, largest first.
    plan_ : Plan

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = 3 * X[:, 0] * X[:, 1] - 2 * X[:, 2] + 0.1 * rng.normal(size=300)
    >>> m = SparseRegressor().fit(X, y)
    >>> m.names_, m.plan_.way
    (['x2', 'x0*x1'], 'gram')
    >>> print(m.formula_)
    0.005... - 2.00... x2 + 3.00... x0*x1
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit y (n,) of rows X (n, d), with weights (n,); folds divide no group (n,)."""
        s = SparseSettings.of(self)
        rows, y = self._rows(X, y, reset=True, y_numeric=True)
        y = np.asarray(y, np.float64)
        if not np.isfinite(np.square(y - y.mean())).all():
            raise ValueError("y is too large for sums of its squares; give it in larger units.")
        self.model_ = fit(s, self._training(rows, y, sample_weight, 0, groups))
        return self

    def predict(self, X: Any) -> Array:
        """f(x), (n,), in the precision of the rows."""
        f, dtype = self._scores(X)
        return f[:, 0].astype(dtype)

    @property
    def coef_(self) -> Array:
        return self._model().full[0]

    @property
    def intercept_(self) -> float:
        return float(self._model().intercept[0])

    @property
    def formula_(self) -> Formula:
        """The model as text, in the user's units."""
        return formulas(self._model())[0]

    @property
    def table_(self) -> dict[str, list[Any]]:
        """The features kept, those of the largest effect first."""
        return self._table([])


@register("sparse.SparseClassifier")
class SparseClassifier(ClassifierMixin, SparseBase):
    """argmin sum_i w_i loss_i / sum_i w_i + alpha (r |b|_1 + (1 - r) |b|^2/2).

    loss = log(1 + exp(-y f)) for two classes, -log softmax(f)_y for more, f as in
    `SparseRegressor`, whose penalties, folds, scales and refits these are; folds compare
    -log P(y). Always by working sets.

    Parameters
    ----------
    lift : Lift or transformer, default=None
        The features; None is `KitchenSink()` of dense rows, and the columns themselves of
        sparse ones. `Identity()` is the columns of dense rows.
    alpha : "cv" or float, default="cv"
        The penalty, > 0, or "cv": chosen by folds.
    n_alphas : int, default=100
        The number of penalties.
    eps : float, default=1e-3
        The least penalty, as a share of the largest.
    cv : int, splitter or iterable of (training, test) positions, default=5
        Folds; see `SparseRegressor`.
    rule : {"1se", "min"}, default="1se"
        The largest penalty within one standard error of the least loss, or that of the least.
    l1_ratio : float, default=1.0
        The share r of L1 in (0, 1].
    refit : bool, default=True
        Whether to fit the features kept once more under a small ridge penalty, where the folds'
        loss is less so.
    stability : int, default=0
        The number of half-samples for `stability_`.
    scale : {"unit", "columns", None}, default="unit"
        The units in which features are penalised; see `SparseRegressor`.
    tol : float, default=1e-6
        The duality gap to reach, relative to the loss without features.
    memory_limit : float or str, default=None
        Of features held in memory, as bytes or "4GB"; by default 1 GB.
    random_state : int, RandomState, Generator or None, default=None
        The seed of folds and half-samples; None is a fixed one.

    Attributes
    ----------
    model_ : SparseModel
        The fitted value.
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, D) or (n_classes, D)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of shape (k,)
        The places of the features kept, for any class.
    names_ : list of str
    alpha_ : float
    path_ : SparsePath
    gap_ : float
    cv_losses_ : ndarray of shape (n_alphas, n_folds)
    stability_ : ndarray of shape (k,)
    formula_ : Formula, or dict of Formula by class
        Scores as text, in the user's units.
    table_ : dict of lists
    plan_ : Plan

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> m = SparseClassifier(n_alphas=20, eps=0.01).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> m.names_[0], m.predict_proba(X[:5]).shape
    ('x0*x1', (5, 2))
    """

    classes_: Array

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit classes y (n,) of rows X (n, d), with weights (n,); folds divide no group (n,)."""
        s = SparseSettings.of(self)
        rows, y = self._rows(X, y, reset=True)
        check_classification_targets(y)
        p = self._training(rows, np.asarray(y), sample_weight, 0, groups)
        classes, codes = np.unique(p.y, return_inverse=True)
        K = len(two_or_more(classes))
        model = fit(s, replace(p, y=codes, classes=K))
        self.model_, self.classes_ = model, classes
        return self

    def decision_function(self, X: Any) -> Array:
        """(n,), positive for the second of two classes, else (n, K); in the precision of rows."""
        f, dtype = self._scores(X)
        return (f[:, 0] if f.shape[1] == 1 else f).astype(dtype)

    def predict(self, X: Any) -> Array:
        """The class of the largest score, (n,)."""
        return of_largest(self.decision_function(X), self.classes_)

    def predict_proba(self, X: Any) -> Array:
        """The probability of every class, (n, K), in float64."""
        f, _ = self._scores(X)
        return np.hstack([expit(-f), expit(f)]) if f.shape[1] == 1 else softmax(f, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`, (n, K), without underflow."""
        f, _ = self._scores(X)
        return (
            np.hstack([log_expit(-f), log_expit(f)]) if f.shape[1] == 1 else log_softmax(f, axis=1)
        )

    @property
    def coef_(self) -> Array:
        return self._model().full

    @property
    def intercept_(self) -> Array:
        return self._model().intercept

    @property
    def formula_(self) -> Any:
        """The score as text, in the user's units; one a class for more than two."""
        found = formulas(self._model())
        return (
            found[0] if len(found) == 1 else dict(zip(self.classes_.tolist(), found, strict=True))
        )

    @property
    def table_(self) -> dict[str, list[Any]]:
        """The features kept, those of the largest effect first."""
        labels = self.classes_.tolist()
        return self._table(labels if len(labels) > 2 else [])
