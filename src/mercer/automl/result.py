"""The result of a fit: everything that was measured while a table became a model, as plain frozen
values that the report and JSON show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from html import escape
from typing import Any

from mercer.automl.metrics import TITLES, number
from mercer.tables.errors import many

Reader = Callable[[Any], Any]  # of a value of JSON


@dataclass(frozen=True)
class Contender:
    """One model that was tried: its score by cross-validation and on the holdout, with the interval
    from `low` to `high`.

    `kind` is one of constant, linear, sparse, explicit, fourier, landmarks, machine, ensemble, trees.

    Examples
    --------
    >>> one = Contender("Linear", "linear", "", 0.4, 0.1, 0.5, 0.3, 0.6, 1.0, True, "")
    >>> one.holdout, one.chosen
    (0.5, True)
    """

    name: str
    kind: str
    detail: str
    cv: float | None
    cv_error: float | None
    holdout: float | None
    low: float | None
    high: float | None
    seconds: float
    chosen: bool
    note: str
    # the score of the chosen one less this one's, on the same rows, with its 95 % interval: on the
    # holdout, and by cross-validation
    difference: tuple[float, float, float] | None = None
    cv_difference: tuple[float, float, float] | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Contender:
        """The contender whose `as_dict` this is."""
        return cls(**_read(values, cls, _CONTENDER))


@dataclass(frozen=True)
class FitResult:
    """What was asked, what was tried, what came out, and what to be wary of; all scores are on rows
    that no choice has seen.

    `fit_table` gives one as `model.result`; `as_dict` and `from_dict` are its way to JSON and back.

    Examples
    --------
    >>> import pandas as pd, mercer
    >>> table = pd.DataFrame({"x": [i % 9 for i in range(60)], "y": [2.5 * (i % 9) + i % 2 for i in range(60)]})
    >>> result = mercer.fit_table(table, "y", time=0.001).result
    >>> result.rows_train + result.rows_holdout, result.metric, result.chosen in result.contenders
    (60, 'r2', True)
    """

    version: str
    command: str
    seed: int
    created: str
    target: str
    task: str  # "regression" | "classification"
    task_reason: str
    classes: tuple[str, ...]
    metric: str
    higher_is_better: bool
    metric_note: str
    rows_train: int
    rows_holdout: int
    rows_dropped: int
    holdout_rule: str
    contenders: tuple[Contender, ...]
    verdict: str
    lift_gain: (
        tuple[float, float, float] | None
    )  # chosen minus linear on the holdout: value, low, high
    importance: tuple[
        tuple[str, float, float], ...
    ]  # original column, loss of score when permuted, standard error
    columns: tuple[dict[str, Any], ...]  # one treatment for each original column
    warnings: tuple[str, ...]
    worst: tuple[dict[str, Any], ...]  # row, actual, predicted, error, values
    points: tuple[tuple[float, float], ...]  # regression: (actual, predicted)
    interval: (
        dict[str, Any] | None
    )  # regression: coverage_asked, coverage_measured, median_width, guarantee
    confusion: tuple[tuple[int, ...], ...]  # classification, rows = actual
    calibration: tuple[
        tuple[float, float, int], ...
    ]  # mean predicted probability, observed share, count
    model_bytes: int
    latency_row_ms: float
    latency_1000_ms: float
    seconds: float
    memory_peak_bytes: int | None
    plan: str
    confidence: float = 0.95  # of the intervals of the scores and of the gain
    scores: dict[str, Any] | None = (
        None  # every metric of the task, of what the model predicts for the holdout
    )
    decision: dict[str, Any] | None = (
        # of two classes: class, and the threshold of its probability from which on it is predicted
        None
    )
    learnt: tuple[tuple[str, float], ...] = ()  # original column, its share in a learnt metric
    members: tuple[tuple[str, float], ...] = ()  # of a chosen mean: kinds and weights
    # what the rows of `confusion` weigh, where they have weights: accuracy is the share on the
    # diagonal
    confusion_weights: tuple[tuple[float, ...], ...] = ()
    rows_refitted: int = 0  # that the saved model was fitted to after its scores were taken
    # of each column of texts: column, kind, penalty, measure, score, tried, final, skipped, rows,
    # of_rows, ngrams (the n-gram, what it speaks for, its weight, documents that have it)
    texts: tuple[dict[str, Any], ...] = ()
    decimal: str = ""  # the mark of the csv files of training, where it shows
    # of a few terms in the units of the table, where one is as good as any: what it predicts in words
    formula: str = ""

    @property
    def chosen(self) -> Contender | None:
        """The contender that became the model."""
        return next((contender for contender in self.contenders if contender.chosen), None)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for strict JSON, where NaN and infinity have no name and become None."""
        return {name: plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FitResult:
        """The result whose `as_dict` this is; ValueError where something is missing, unknown or of
        the wrong kind."""
        return cls(**_read(values, cls, _RESULT))


def plain(value: Any) -> Any:
    """A value that JSON can hold: NumPy scalars as Python's own, anything else as its text.

    >>> plain({"a": (1, float("nan")), "b": {"c"}})
    {'a': [1, None], 'b': "{'c'}"}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    value = value.item() if hasattr(value, "item") and not getattr(value, "ndim", 0) else value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | bool | int) else str(value)


def _read(values: Mapping[str, Any], cls: type, readers: Mapping[str, Reader]) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise ValueError(
            f"{cls.__name__} cannot be read: expected a mapping, got {type(values).__name__}."
        )
    needed = {field.name for field in fields(cls) if field.default is MISSING}
    wrong = [*sorted(needed - set(values)), *(str(name) for name in values if name not in readers)]
    if wrong:
        raise ValueError(
            f"{cls.__name__} cannot be read: {', '.join(wrong)} missing or unknown; write it with this version of mercer."
        )
    return {name: _field(cls, name, readers[name], value) for name, value in values.items()}


def _field(cls: type, name: str, reader: Reader, value: object) -> object:
    try:
        return reader(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{cls.__name__} cannot be read: {name} is damaged ({error}).") from error


def _typed(kind: type) -> Reader:
    def read(value: object) -> object:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
        return value

    return read


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _optional(reader: Reader) -> Reader:
    return lambda value: None if value is None else reader(value)


def _tuple(reader: Reader) -> Reader:
    def read(values: object) -> tuple[object, ...]:
        if not isinstance(values, list | tuple):
            raise TypeError(f"expected a list, got {type(values).__name__}")
        return tuple(reader(value) for value in values)

    return read


def _record(*readers: Reader) -> Reader:
    def read(values: Iterable[object]) -> tuple[object, ...]:
        return tuple(reader(value) for reader, value in zip(readers, values, strict=True))

    return read


_text, _whole, _flag, _mapping = (_typed(kind) for kind in (str, int, bool, dict))
_CONTENDER: dict[str, Reader] = {
    **dict.fromkeys(("name", "kind", "detail", "note"), _text),
    **dict.fromkeys(("cv", "cv_error", "holdout", "low", "high"), _optional(_number)),
    "seconds": _number,
    "chosen": _flag,
    **dict.fromkeys(("difference", "cv_difference"), _optional(_record(_number, _number, _number))),
}
_RESULT: dict[str, Reader] = {
    **dict.fromkeys(
        ("version", "command", "created", "target", "task", "task_reason", "metric", "metric_note"),
        _text,
    ),
    **dict.fromkeys(("holdout_rule", "verdict", "plan", "decimal", "formula"), _text),
    **dict.fromkeys(("seed", "rows_train", "rows_holdout", "rows_dropped", "model_bytes"), _whole),
    "rows_refitted": _whole,
    **dict.fromkeys(("learnt", "members"), _tuple(_record(_text, _number))),
    **dict.fromkeys(("latency_row_ms", "latency_1000_ms", "seconds", "confidence"), _number),
    **dict.fromkeys(("classes", "warnings"), _tuple(_text)),
    **dict.fromkeys(("columns", "worst", "texts"), _tuple(_mapping)),
    "higher_is_better": _flag,
    "contenders": _tuple(Contender.from_dict),
    "lift_gain": _optional(_record(_number, _number, _number)),
    "importance": _tuple(_record(_text, _number, _number)),
    "points": _tuple(_record(_number, _number)),
    "interval": _optional(_mapping),
    "confusion": _tuple(_tuple(_whole)),
    "confusion_weights": _tuple(_tuple(_number)),
    "calibration": _tuple(_record(_number, _number, _whole)),
    "memory_peak_bytes": _optional(_whole),
    **dict.fromkeys(("scores", "decision"), _optional(_mapping)),
}


def card(e: FitResult) -> str:
    """What was predicted and how well; names from the data are escaped, and nothing is fetched."""
    title = f"Predicting <b>{_escaped(e.target)}</b>: {_escaped(TITLES.get(e.metric, e.metric))} on {many(e.rows_holdout, 'held-out row')}"
    head = "".join(
        f"<th>{name}</th>" for name in ("model", "holdout", "95 % interval", "cross-validation")
    )
    rows = "".join(_row(c, e.metric) for c in e.contenders)
    wary = "".join(f"<li>{_escaped(text)}</li>" for text in e.warnings)
    notes = (
        f"<details><summary>{many(len(e.warnings), 'warning')}</summary><ul>{wary}</ul></details>"
        if wary
        else ""
    )
    return f"<div><p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{_escaped(e.verdict)}</p>{notes}</div>"


def _row(c: Contender, metric: str) -> str:
    name = f"<b>{_escaped(c.name)}</b> (chosen)" if c.chosen else _escaped(c.name)
    ends = (
        ""
        if c.low is None or c.high is None
        else f"{number(c.low, metric)} to {number(c.high, metric)}"
    )
    cells = (_shown(c.holdout, metric), ends, _shown(c.cv, metric))
    return f"<tr><td>{name}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _shown(value: float | None, metric: str) -> str:
    return "" if value is None else number(value, metric)


def _escaped(value: object) -> str:
    return escape("".join(c if c.isprintable() else "\ufffd" for c in str(value)))
