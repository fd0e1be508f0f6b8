"""TableModel: the treatment of columns, a predictor and its evidence, as one value that is saved and loaded."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.product.cells import Tree
from mercer.product.decide import Decision
from mercer.product.evidence import Evidence
from mercer.product.frames import as_source
from mercer.product.intervals import Margin
from mercer.product.machines import Machine, Only
from mercer.product.predicting import Predicting
from mercer.product.predictors import Classifier, Constant, Predictor, Regressor
from mercer.product.targets import Identity, Log
from mercer.product.verdict import number
from mercer.store import register, save
from mercer.tables import Columns
from mercer.tables.arrow import pa

for _value in (Decision, Margin, Constant, Regressor, Classifier, Identity, Log, Machine, Only, Tree):
    register(_value)


@register
@dataclass(frozen=True, eq=False, repr=False)
class TableModel:
    """What `mercer fit` makes: predicts tables that have the columns of the one it was fitted to.

    Attributes: `columns` (the treatment), `predictor`, `margin` of regression intervals, `decision` of classes, `evidence`.
    """

    columns: Columns
    predictor: Predictor
    margin: Margin | None
    decision: Decision
    evidence: Evidence

    @property
    def classes(self) -> tuple[str, ...]:
        return self.evidence.classes

    def predicting(self, source: Any) -> Predicting:
        """The predictions of a table, about to be made; the schema is checked here."""
        return Predicting(self, as_source(source))

    def predict(self, data: Any) -> Array:
        """The target of every row, in order: numbers (n,), or the labels of classes in the type that they had in training.

        data : a path, several, a data frame (pandas, polars, ...) or a pyarrow table with the columns of training
        """
        return self._asked(data, ["prediction"])[:, 0]

    def predict_proba(self, data: Any) -> Array:
        """The probability of each class, (n, K), in the order of `classes`."""
        if not self.classes:
            raise ValueError(f'"{self.evidence.target}" is a number, which has no classes; ask predict or predict_interval.')
        return self._asked(data, [f"p_{label}" for label in self.classes]).astype(np.float64)

    def predict_interval(self, data: Any) -> Array:
        """Lower and upper ends of an interval for every row, (n, 2); nan where the holdout had too few rows for any."""
        if self.classes:
            raise ValueError(f'"{self.evidence.target}" has classes, not numbers; ask predict or predict_proba.')
        return self._asked(data, ["lower", "upper"]).astype(np.float64)

    def _asked(self, data: Any, names: list[str]) -> Array:
        """Columns of the predictions; what was odd about the rows is a warning."""
        job = self.predicting(data)
        parts = [np.stack([np.asarray(b.column(n).to_numpy(zero_copy_only=False)) for n in names], axis=1) for b in job.batches()]
        for text in job.oddities():
            warnings.warn(text, UserWarning, stacklevel=3)
        return np.concatenate(parts) if parts else np.zeros((0, len(names)))

    def __repr__(self) -> str:
        e = self.evidence
        best = e.chosen
        score = "" if best is None or best.holdout is None else f": {best.name}, {e.metric} {number(best.holdout, e.metric)}"
        return f"TableModel({e.target} from {len(self.columns.used_)} columns{score} on {e.rows_holdout:,} held-out rows)"

    def predict_batches(self, source: Any) -> Iterator[Any]:
        """Record batches in the order of the rows: the id where there is one, then prediction, lower, upper or p_<class> ..."""
        return self.predicting(source).batches()

    def outputs(self, X: Array) -> dict[str, Any]:
        """The columns of predictions for treated rows."""
        found = self.predictor(X)
        if not self.classes:
            return {"prediction": pa.array(found), **self._bounds(found)}
        labels = np.asarray(self.classes, dtype=object)[self.decision(found)]
        shares = {f"p_{label}": pa.array(np.ascontiguousarray(found[:, k])) for k, label in enumerate(self.classes)}
        return {"prediction": pa.array(labels.tolist(), pa.string()).cast(self.columns.target_.kind), **shares}

    def _bounds(self, found: Array) -> dict[str, Any]:
        """No bounds where the holdout had too few rows for any."""
        sides = self.margin(found) if self.margin is not None and np.isfinite(self.margin.width) else None
        nothing = pa.nulls(len(found), pa.float64())
        return dict(zip(("lower", "upper"), map(pa.array, sides) if sides is not None else (nothing, nothing), strict=True))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file; `mercer.load` gives it back."""
        save(self, path, kind="table model")

    def state(self) -> dict[str, Any]:
        return {
            "columns": self.columns.state(), "predictor": self.predictor, "margin": self.margin, "decision": self.decision,
            "evidence": self.evidence.as_dict(),
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableModel:
        columns, evidence = Columns.from_state(state["columns"]), Evidence.from_dict(state["evidence"])
        if not isinstance(state["predictor"], Constant | Regressor | Classifier) or not isinstance(state["decision"], Decision):
            raise ValueError("the file holds no predictor of a table; fit the model again.")
        return cls(columns, state["predictor"], state["margin"], state["decision"], evidence)
