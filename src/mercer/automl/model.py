"""TableModel: the treatment of columns, a predictor and its result, as one value that is saved and
loaded."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np

from mercer.automl.evaluate import Decision
from mercer.automl.frames import as_source, like
from mercer.automl.intervals import COVERAGE, Margin, NoveltyDetector, widening
from mercer.automl.metrics import metric_named, number
from mercer.automl.predict import PredictionJob
from mercer.automl.predictors import (
    Classifier,
    ConstantPredictor,
    Predictor,
    Regressor,
    WeightedMean,
)
from mercer.automl.result import FitResult, card
from mercer.inputs import Array
from mercer.store import register, save
from mercer.tables import Columns, DataError
from mercer.tables.arrow import Batch, pa
from mercer.tables.errors import many


@register("automl.TableModel")
@dataclass(frozen=True, eq=False, repr=False)
class TableModel:
    """What `mercer fit` makes: predicts tables that have the columns of that of training.

    A saved model holds a sample of the treated training rows, and, where it is a kernel machine
    or rests on landmarks, more of them: treat the file as you treat the table.

    Parameters
    ----------
    columns : Columns
        The treatment.
    predictor : Predictor
    margin : Margin or None
        Of regression intervals.
    decision : Decision
        Of classes.
    result : FitResult
    unusual : NoveltyDetector
        Which rows are unlike those of training.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import datasets, fit_table
    >>> table = datasets.diabetes()
    >>> data = pd.DataFrame(table.rows, columns=table.columns)
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
    result: FitResult
    unusual: NoveltyDetector

    @property
    def classes(self) -> tuple[str, ...]:
        return self.result.classes

    def predicting(self, source: Any) -> PredictionJob:
        """The predictions of a table, about to be made; the schema is checked here."""
        return PredictionJob(self, as_source(source, self.result.decimal))

    def with_threshold(self, threshold: float | None) -> TableModel:
        """The same of two classes, with the class of `result.decision` from this probability
        on.
        """
        return (
            self
            if threshold is None
            else replace(self, decision=self.decision.at(threshold, len(self.classes)))
        )

    def predict(self, data: Any, threshold: float | None = None) -> Any:
        """A frame with a row for every row of the data, in order.

        It has the id where there is one, `prediction`, and

        - of numbers `lower` and `upper`, the ends of an interval that holds 90 % of such rows
          (missing where the holdout had too few rows for any);
        - of classes `p_<class>` for each of them; the prediction has the type that the target had
          in training;
        - `unusual`, 1 for a row unlike any of training: far from all of a sample of them, beyond
          their range, or with a level or a missing value that training never had, as about 1 %
          of rows like those of training are by chance. Its interval is wider.

        Parameters
        ----------
        data : path, list of paths, data frame or pyarrow table
            With the columns of training. The frame that comes back is of the same library (of
            pandas, with the same index), and a pyarrow table for files.
        threshold : float, default=None
            Of two classes, the probability from which on the class of `result.decision` comes.
        """
        return self.with_threshold(threshold)._asked(data)

    def predict_proba(self, data: Any) -> Any:
        """The probabilities `p_<class>` in the order of `classes`, as a frame like `predict`'s."""
        if not self.classes:
            raise ValueError(
                f'"{self.result.target}" is a number, which has no classes; ask predict or predict_interval.'
            )
        return self._asked(data, [f"p_{label}" for label in self.classes])

    def predict_interval(self, data: Any, coverage: float = COVERAGE) -> Any:
        """`lower` and `upper` ends of an interval, as a frame like that of `predict`.

        On average over samples, at least a share `coverage` of new rows from the same source is
        covered (split conformal on the holdout's residuals); missing where the holdout had too
        few rows for that.
        """
        if self.margin is None:
            raise ValueError(
                f'"{self.result.target}" has classes, not numbers; ask predict or predict_proba.'
            )
        return replace(self, margin=self.margin.at(coverage))._asked(data, ["lower", "upper"])

    def score(self, data: Any, metric: str | None = None) -> float:
        """The metric (None: that of `result`) of what `predict` says of rows that have a
        target.

        Rows without a target, or of a class that training lacks, are left out; weights count
        where the model has a weight column and the data have it. Errors (rmse, mae, log_loss)
        are better where they are less.
        """
        source, asked = (
            as_source(data, self.result.decimal),
            metric_named(self.result.task, metric or self.result.metric),
        )
        self.columns.check(source.schema)
        if (target := self.columns.target) not in source.schema.names:
            raise DataError(
                f'the table lacks the target "{target}", without which nothing can be scored; give rows with it.'
            )
        rows = [self.columns.transform(batch) for batch in source.batches() if batch.num_rows]
        parts = [(r.y, self.predictor(r.X), r.weight) for r in rows if len(r)]
        if not parts:
            raise DataError(
                f'no row has a value of the target "{target}", so there is nothing to score.'
            )
        y, f, w = (None if p[0] is None else np.concatenate(p) for p in zip(*parts, strict=True))
        assert y is not None
        assert f is not None
        if not self.classes:
            return asked(y, f, w).value
        known = np.flatnonzero(y >= 0)
        if not len(known):
            raise DataError(
                f'no row has a class of "{target}" that training had, so there is nothing to score.'
            )
        return asked.decided(
            y[known], f[known], self.decision(f[known]), None if w is None else w[known]
        ).value

    def report(self, path: str | PathLike[str]) -> None:
        """Write the report: one self-contained HTML page, as `mercer fit` does."""
        pages = import_module(
            "mercer.report"
        )  # which is above: a result goes there, and nothing comes back
        pages.write(self.result, path)

    def _asked(self, data: Any, names: list[str] | None = None) -> Any:
        """Columns of the predictions, all or some; what was odd about the rows is a warning."""
        job = self.predicting(data)
        table = pa.Table.from_batches(job.batches(), job.schema)
        for text in (*job.source.said, *job.oddities()):
            warnings.warn(text, UserWarning, stacklevel=3)
        return like(table if names is None else table.select(names), data)

    def __repr__(self) -> str:
        e = self.result
        best = e.chosen
        score = (
            ""
            if best is None or best.holdout is None
            else f": {best.name}, {e.metric} {number(best.holdout, e.metric)}"
        )
        rows = many(e.rows_holdout, "held-out row")
        return f"TableModel({e.target} from {many(len(self.columns.used_), 'column')}{score} on {rows})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return card(self.result)

    def predict_batches(self, source: Any) -> Iterator[Batch]:
        """Record batches of `predict`'s columns, in order; of any number of rows few are held."""
        return self.predicting(source).batches()

    def outputs(self, X: Array, odd: Array | None = None) -> dict[str, Any]:
        """The columns of predictions for treated rows; `odd` tells rows with odd cells."""
        found, strange = self.predictor(X), self.unusual(X, odd)
        flag = {"unusual": pa.array((strange > 1).astype(np.int64))}
        if not self.classes:
            return {"prediction": pa.array(found), **self._bounds(found, widening(strange)), **flag}
        labels = np.asarray(self.classes, dtype=object)[self.decision(found)]
        shares = {
            f"p_{label}": pa.array(np.ascontiguousarray(found[:, k]))
            for k, label in enumerate(self.classes)
        }
        return {
            "prediction": pa.array(labels.tolist(), pa.string()).cast(self.columns.target_.kind),
            **shares,
            **flag,
        }

    def _bounds(self, found: Array, wider: Array) -> dict[str, Any]:
        """No bounds where the holdout had too few rows for any."""
        sides = (
            self.margin(found, wider)
            if self.margin is not None and np.isfinite(self.margin.width)
            else None
        )
        nothing = pa.nulls(len(found), pa.float64())
        return dict(
            zip(
                ("lower", "upper"),
                map(pa.array, sides) if sides is not None else (nothing, nothing),
                strict=True,
            )
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file; `mercer.load` gives it back."""
        save(self, path, kind="table model")

    def state(self) -> dict[str, Any]:
        return {
            "columns": self.columns.state(),
            "predictor": self.predictor,
            "margin": self.margin,
            "decision": self.decision,
            "result": self.result.as_dict(),
            "unusual": self.unusual,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableModel:
        columns, told = (
            Columns.from_state(state["columns"]),
            state["result"] if "result" in state else state["evidence"],
        )  # as before
        if not isinstance(
            state["predictor"], ConstantPredictor | Regressor | Classifier | WeightedMean
        ) or not isinstance(state["decision"], Decision):
            raise ValueError("the file holds no predictor of a table; fit the model again.")
        if not isinstance(state.get("unusual"), NoveltyDetector) or not isinstance(
            state["margin"], Margin | None
        ):
            raise ValueError("the file is of an older form of models; fit the model again.")
        return cls(
            columns,
            state["predictor"],
            state["margin"],
            state["decision"],
            FitResult.from_dict(told),
            state["unusual"],
        )
