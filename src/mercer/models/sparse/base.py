"""What sparse regressors and classifiers share: rows as they come, and the fitted value as users see
it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer.inputs import Array, Table, sample_weights, validate_data
from mercer.invariants import Is, Labels, Whole
from mercer.models.base import documents_of
from mercer.models.settings import LiftSetting, MemoryLimit, Seed, takes_text
from mercer.models.sparse.fit import SparseModel
from mercer.models.sparse.plot import path_table, plot_path
from mercer.models.sparse.problem import WeighedRows
from mercer.models.sparse.solve import SparsePath
from mercer.plans import Plan
from mercer.store import Saved


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
        verbose: bool | int = False,
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
        self.verbose = verbose

    # rows
    def _sparse_rows(self) -> bool:
        return self.lift is None or bool(getattr(self.lift, "sparse", False))

    def _rows(self, X: Any, *targets: Any, reset: bool, **options: Any) -> Any:
        """Rows as a table, and the targets where they come."""
        if takes_text(self.lift):
            if reset:
                self.n_features_in_ = 1
            rows = Table(documents_of(X))
            return (rows, *(column_or_1d(y) for y in targets)) if targets else rows
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
    ) -> WeighedRows:
        w = None
        if sample_weight is not None:
            w = sample_weights(sample_weight, np.empty((len(y), 1)))
        return WeighedRows.of(rows, y, w, classes, groups)

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

    @property
    def path_table_(self) -> dict[str, list[float]]:
        """Of every penalty: features kept, gap, and with folds the mean loss of rows left out and
        the standard error of its difference from the least."""
        return path_table(self._model())

    def plot_path(self, ax: Any = None) -> Any:
        """What one standard deviation of each feature adds to a score, at every penalty: on
        Matplotlib's axes, which are returned. Features of the model have their names."""
        labels = getattr(self, "classes_", np.zeros(0)).tolist()
        return plot_path(self._model(), list(map(str, labels)) if len(labels) > 2 else [], ax)

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
