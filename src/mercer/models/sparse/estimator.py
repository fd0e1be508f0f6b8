"""SparseRegressor and SparseClassifier: a few features out of all that a lift gives, by L1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from mercer.inputs import Array
from mercer.models.base import all_or_nothing
from mercer.models.settings import of_largest, two_or_more
from mercer.models.sparse.base import SparseBase
from mercer.models.sparse.fit import fit
from mercer.models.sparse.formula import Formula, formulas
from mercer.models.sparse.problem import SparseSettings
from mercer.store import register

LEAST_SPREAD = 1e-150  # of targets: the square of less is nothing


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
        the lift and its scales are fitted inside each fold. 5 are fewer where rows are, other
        numbers may not exceed them.
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
        Of features held in memory, as bytes or "4GB"; by default 1 GB. Up to 4,096 features
        that take more are made anew some rows at a time.
    random_state : int, RandomState, Generator or None, default=None
        The seed of folds and half-samples; None is a fixed one.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

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
    path_table_ : dict of lists
        Penalties, the number of features, gaps, and with folds losses and their errors.
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
        with np.errstate(over="ignore"):
            squares = np.square(y - y.mean())
        if not np.isfinite(squares).all():
            raise ValueError("y is too large for sums of its squares; give it in larger units.")
        if 0 < np.abs(y - y.mean()).max() < LEAST_SPREAD:
            raise ValueError(
                "y differs by too little for sums of its squares; give it in smaller units."
            )
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
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

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
    path_table_ : dict of lists
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
