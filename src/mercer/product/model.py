"""TableModel: the treatment of columns, a predictor and its evidence, as one value that is saved and loaded."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.product.decide import Decision
from mercer.product.evidence import Evidence
from mercer.product.frames import as_source, like
from mercer.product.intervals import COVERAGE, Margin
from mercer.product.metrics import named
from mercer.product.notebook import card
from mercer.product.predicting import Predicting
from mercer.product.predictors import Classifier, Constant, Predictor, Regressor
from mercer.product.unusual import Unusual, widening
from mercer.product.verdict import number
from mercer.store import register, save
from mercer.tables import Columns, DataError
from mercer.tables.arrow import pa
from mercer.tables.errors import many


@register("automl.TableModel")
@dataclass(frozen=True, eq=False, repr=False)
class TableModel:
    """What `mercer fit` makes: predicts tables that have the columns of the one it was fitted to.

    Attributes: `columns` (the treatment), `predictor`, `margin` of regression intervals, `decision` of classes, `evidence`,
    `unusual` (which rows are unlike those of training). A saved model holds a sample of the treated training rows, and, where it is a
    kernel machine or rests on landmarks, more of them: treat the file as you treat the table.

    >>> from mercer.datasets import diabetes
    >>> import pandas as pd
    >>> table = diabetes()
    >>> data = pd.DataFrame(table.rows, columns=table.columns)
    >>> from mercer import fit_table
    >>> model = fit_table(data, "progression", time=1)
    >>> model.predict(data[:2]).columns.tolist()
    ['prediction', 'lower', 'upper', 'unusual']
    >>> model.score(data) > 0.3
    True
    """

    columns: Columns
    predictor: Predictor
    margin: Margin | None
    decision: Decision
    evidence: Evidence
    unusual: Unusual

    @property
    def classes(self) -> tuple[str, ...]:
        return self.evidence.classes

    def predicting(self, source: Any) -> Predicting:
        """The predictions of a table, about to be made; the schema is checked here."""
        return Predicting(self, as_source(source))

    def with_threshold(self, threshold: float | None) -> TableModel:
        """The same model, which predicts the class of `evidence.decision` from another probability on; of two classes only."""
        return self if threshold is None else replace(self, decision=self.decision.at(threshold, len(self.classes)))

    def predict(self, data: Any, threshold: float | None = None) -> Any:
        """A frame with a row for every row of the data, in order: the id where there is one, `prediction`, and

        - of numbers `lower` and `upper`, the ends of an interval that holds 90 % of such rows (missing where the holdout had too
          few rows for any);
        - of classes `p_<class>` for each of them; the prediction has the type that the target had in training;
        - `unusual`, 1 for a row unlike any of training: far from all of a sample of them, beyond their range, or with a level or
          a missing value that training never had, as about 1 % of rows like those of training are by chance. Its interval is wider.

        Parameters
        ----------
        data : a path, several, a data frame (pandas, polars, ...) or a pyarrow table with the columns of training. The frame that
            comes back is of the same library (of pandas, with the same index), and a pyarrow table for files
        threshold : of two classes, the probability from which on the class of `evidence.decision` is predicted
        """
        return self.with_threshold(threshold)._asked(data)

    def predict_proba(self, data: Any) -> Any:
        """The probability of each class, `p_<class>` in the order of `classes`, as a frame like that of `predict`."""
        if not self.classes:
            raise ValueError(f'"{self.evidence.target}" is a number, which has no classes; ask predict or predict_interval.')
        return self._asked(data, [f"p_{label}" for label in self.classes])

    def predict_interval(self, data: Any, coverage: float = COVERAGE) -> Any:
        """`lower` and `upper` ends of an interval for every row, as a frame like that of `predict`.

        On average over samples, at least that share of new rows from the same source is covered (split conformal on the
        holdout's residuals); missing where the holdout had too few rows for that.
        """
        if self.margin is None:
            raise ValueError(f'"{self.evidence.target}" has classes, not numbers; ask predict or predict_proba.')
        return replace(self, margin=self.margin.at(coverage))._asked(data, ["lower", "upper"])

    def score(self, data: Any, metric: str | None = None) -> float:
        """The metric (that of `evidence` where none is named) of what `predict` says of these rows, which have a target.

        Rows without a target, or of a class that training lacks, are left out; weights count where the model has a weight column
        and the data have it. Errors (rmse, mae, log_loss) are better where they are less.
        """
        source, asked = as_source(data), named(self.evidence.task, metric or self.evidence.metric)
        self.columns.check(source.schema)
        if (target := self.columns.target) not in source.schema.names:
            raise DataError(f'the table lacks the target "{target}", without which nothing can be scored; give rows with it.')
        rows = [self.columns.transform(batch) for batch in source.batches() if batch.num_rows]
        parts = [(r.y, self.predictor(r.X), r.weight) for r in rows if len(r)]
        if not parts:
            raise DataError(f'no row has a value of the target "{target}", so there is nothing to score.')
        y, f, w = (None if p[0] is None else np.concatenate(p) for p in zip(*parts, strict=True))
        assert y is not None
        assert f is not None
        if not self.classes:
            return asked(y, f, w).value
        known = np.flatnonzero(y >= 0)
        if not len(known):
            raise DataError(f'no row has a class of "{target}" that training had, so there is nothing to score.')
        return asked.decided(y[known], f[known], self.decision(f[known]), None if w is None else w[known]).value

    def report(self, path: str | PathLike[str]) -> None:
        """Write the report: one self-contained HTML page, as `mercer fit` does."""
        pages = import_module("mercer.report")  # which is above: evidence goes there, and nothing comes back
        pages.write(self.evidence, path)

    def _asked(self, data: Any, names: list[str] | None = None) -> Any:
        """Columns of the predictions, all or some; what was odd about the rows is a warning."""
        job = self.predicting(data)
        table = pa.Table.from_batches(job.batches(), job.schema)
        for text in (*job.source.said, *job.oddities()):
            warnings.warn(text, UserWarning, stacklevel=3)
        return like(table if names is None else table.select(names), data)

    def __repr__(self) -> str:
        e = self.evidence
        best = e.chosen
        score = "" if best is None or best.holdout is None else f": {best.name}, {e.metric} {number(best.holdout, e.metric)}"
        rows = many(e.rows_holdout, "held-out row")
        return f"TableModel({e.target} from {many(len(self.columns.used_), 'column')}{score} on {rows})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return card(self.evidence)

    def predict_batches(self, source: Any) -> Iterator[Any]:
        """Record batches in the order of the rows, with the columns of `predict`; however many rows there are, few are held at once."""
        return self.predicting(source).batches()

    def outputs(self, X: Array, odd: Array | None = None) -> dict[str, Any]:
        """The columns of predictions for treated rows; `odd` tells rows with odd cells."""
        found, strange = self.predictor(X), self.unusual(X, odd)
        flag = {"unusual": pa.array((strange > 1).astype(np.int64))}
        if not self.classes:
            return {"prediction": pa.array(found), **self._bounds(found, widening(strange)), **flag}
        labels = np.asarray(self.classes, dtype=object)[self.decision(found)]
        shares = {f"p_{label}": pa.array(np.ascontiguousarray(found[:, k])) for k, label in enumerate(self.classes)}
        return {"prediction": pa.array(labels.tolist(), pa.string()).cast(self.columns.target_.kind), **shares, **flag}

    def _bounds(self, found: Array, wider: Array) -> dict[str, Any]:
        """No bounds where the holdout had too few rows for any."""
        sides = self.margin(found, wider) if self.margin is not None and np.isfinite(self.margin.width) else None
        nothing = pa.nulls(len(found), pa.float64())
        return dict(zip(("lower", "upper"), map(pa.array, sides) if sides is not None else (nothing, nothing), strict=True))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file; `mercer.load` gives it back."""
        save(self, path, kind="table model")

    def state(self) -> dict[str, Any]:
        return {
            "columns": self.columns.state(), "predictor": self.predictor, "margin": self.margin, "decision": self.decision,
            "evidence": self.evidence.as_dict(), "unusual": self.unusual,
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableModel:
        columns, evidence = Columns.from_state(state["columns"]), Evidence.from_dict(state["evidence"])
        if not isinstance(state["predictor"], Constant | Regressor | Classifier) or not isinstance(state["decision"], Decision):
            raise ValueError("the file holds no predictor of a table; fit the model again.")
        if not isinstance(state.get("unusual"), Unusual) or not isinstance(state["margin"], Margin | None):
            raise ValueError("the file is of an older form of models; fit the model again.")
        return cls(columns, state["predictor"], state["margin"], state["decision"], evidence, state["unusual"])
