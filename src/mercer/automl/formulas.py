"""Formulas that predict: a sparse model of columns in the units of the table, its numbers rounded,
and what it says in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.automl.metrics import IN_UNITS, Metric, Score
from mercer.automl.predictors import (
    Classifier,
    IdentityTarget,
    LogTarget,
    Predictor,
    Regressor,
    TargetTransform,
)
from mercer.automl.units import ColumnUnits
from mercer.inputs import Array, Table
from mercer.invariants import Is, Whole, check
from mercer.models.sparse.fit import SparseModel
from mercer.models.sparse.formula import Formula, formulas
from mercer.models.sparse.terms import Term, terms_of
from mercer.plans import Plan
from mercer.store import register

MIN_DIGITS, MAX_DIGITS = 2, 12  # of what is shown
DIGITS = 15  # that float64 holds
STAYS = 0.02  # standard errors that a score may lose by rounding
NOTHING = 1e-5  # of a score between 0 and 1, or of the deviation of the target
# functions of a formula, in words
SLOG = "slog(t) = sign(t) log(1 + |t|)"
NORMAL_SCORE = (
    "normal_score(t): the standard normal number of the same rank as t among the rows of the fit"
)
FUNCTIONS = {"slog(": SLOG, "normal_score(": NORMAL_SCORE}


@register("automl.ReadableModel")
@dataclass(frozen=True, eq=False)
class ReadableModel:
    """A sparse estimator of columns in the units of the table, whose numbers have so many digits."""

    estimator: Any
    units: ColumnUnits
    digits: int

    must = dict(
        estimator=Is("SparseRegressor", "SparseClassifier"),
        units=Is("ColumnUnits"),
        digits=Whole(1),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        reads, known = self.estimator.n_features_in_, len(self.units.names)
        return None if reads == known else f"reads {reads} columns and has units of {known}"

    @property
    def classes_(self) -> Array:
        return np.asarray(self.estimator.classes_)

    @property
    def plan_(self) -> Plan:
        return self.estimator.plan_

    @property
    def formulas(self) -> list[Formula]:
        """One a score, with the names of the columns."""
        return [replace(f, names=list(self.units.names)) for f in formulas(self.estimator.model_)]

    @property
    def n_terms(self) -> int:
        return len(self.estimator.model_.ids)

    def predict(self, X: Array) -> Array:
        """Of treated rows."""
        return np.asarray(self.estimator.predict(self.units(X)))

    def predict_proba(self, X: Array) -> Array:
        """The same of classes, (n, K)."""
        return np.asarray(self.estimator.predict_proba(self.units(X)))


def readable(predictor: object) -> ReadableModel | None:
    """The formula of a predictor that is one."""
    inner = getattr(predictor, "estimator", None)
    return inner if isinstance(inner, ReadableModel) else None


# rounding
def at_fewest_digits(
    m: SparseModel,
    target: TargetTransform,
    rows: tuple[Array, Array],
    predictor: Callable[[SparseModel, int], Regressor | Classifier],
    score: Callable[[Predictor], Score],
    metric: Metric,
) -> Predictor:
    """The predictor of the rounded model, of the fewest digits at which its score on the rows (in
    the units of the table, with weights) is what it is without rounding."""
    X, w = rows
    F = m.map.columns(Table(X), m.ids)
    mean = (w / w.sum()) @ F
    f = F @ m.coef.T
    spread = float(np.sqrt(np.square(f - f.mean(0)).mean(0).max()))
    whole = score(predictor(m, MAX_DIGITS + 5))
    lost = allowed(whole, metric, target, spread)
    for digits in range(MIN_DIGITS, MAX_DIGITS + 1):
        made = predictor(rounded(m, target, mean, spread, digits), digits)
        if not metric.gain(score(made).value) < metric.gain(whole.value) - lost:
            break
    return made


def allowed(whole: Score, metric: Metric, target: TargetTransform, spread: float) -> float:
    """What a score may lose: hardly a part of its own error, which exact fits do not have."""
    unit = spread * _unit(target)[0] if metric.name in IN_UNITS else 1.0
    return float(np.nan_to_num(STAYS * whole.error())) + NOTHING * unit


def _unit(target: TargetTransform) -> tuple[float, float]:
    """Of the scores: they are shown times the first, plus the second."""
    return (target.scale, target.centre) if isinstance(target, IdentityTarget) else (1.0, 0.0)


def rounded(
    m: SparseModel, target: TargetTransform, mean: Array, spread: float, digits: int
) -> SparseModel:
    """With coefficients of so many digits as they are shown, and an intercept, moved to keep the
    mean of the scores, of as many digits of their spread."""
    scale, centre = _unit(target)
    factors = scale * np.array([t.factor for t in terms_of(m.map, m.ids)])
    coef = significant(m.coef * factors, digits) / factors
    level = (m.intercept + (m.coef - coef) @ mean) * scale + centre
    size = spread * scale if spread > 0 else float(np.abs(level).max()) or 1.0
    places = digits - int(np.floor(np.log10(size)))
    level = np.array([round(float(v), places) for v in level])
    return replace(m, coef=coef, intercept=(level - centre) / scale)


def significant(values: Array, digits: int) -> Array:
    """Numbers to so many digits.

    >>> significant(np.array([123.456, -0.00123456, 0.0]), 2).tolist()
    [120.0, -0.0012, 0.0]
    """
    told = [float(f"{v:.{digits - 1}e}") for v in np.ravel(values).tolist()]
    return np.array(told).reshape(np.shape(values))


# words
def spelled_formula(predictor: object, target: str, classes: tuple[str, ...]) -> str:
    """What a formula predicts, in words; nothing of any other predictor, and of one without terms."""
    said = readable(predictor)
    if said is None or not said.n_terms:
        return ""
    how = predictor.target if isinstance(predictor, Regressor) else IdentityTarget()
    texts = [_spelled(f, said.units, *_unit(how)) for f in said.formulas]
    if isinstance(predictor, Regressor):
        told = [f"{_left_side(target, how)} = {texts[0]}"]
    elif len(texts) == 1:
        second = classes[int(said.classes_[1])]
        told = [f"log odds of {target} = {second}: {texts[0]}"]
    else:
        labels = [classes[int(c)] for c in said.classes_]
        told = [f"score of {one}: {text}" for one, text in zip(labels, texts, strict=True)]
    if isinstance(how, LogTarget) and how.retransformation != 1:
        told.append(f"{target} is {how.retransformation:.4g} times the exponential of that")
    told += [meant for name, meant in FUNCTIONS.items() if any(name in text for text in texts)]
    return "; ".join(told)


def _left_side(target: str, how: TargetTransform) -> str:
    if isinstance(how, IdentityTarget):
        return target
    return f"log({target})" if not how.shift else f"log({target} + {how.shift:g})"


def _spelled(f: Formula, units: ColumnUnits, scale: float, centre: float) -> str:
    """As it was rounded: no digit is left out."""
    level = f.intercept * scale + centre
    exact = DIGITS - 1 - int(np.floor(np.log10(max(abs(level), abs(centre), 1e-300))))
    parts = [_number(round(level, exact))]
    for b, t in f.terms:
        sign, size = "-" if b * scale < 0 else "+", _number(abs(b * scale))
        parts += [sign, f"{size} {term_text(t, units)}"]
    if parts[0] == "0" and len(parts) > 1:
        parts = parts[2:] if parts[1] == "+" else [f"-{parts[2]}", *parts[3:]]
    return " ".join(parts)


def term_text(t: Term, units: ColumnUnits) -> str:
    """A term with the names of columns; a jump by the column itself, whatever it was bent by."""
    if not t.jumps:
        return t.text(list(units.names))
    j = t.columns[0]
    return f"1{{{units.own[j]} < {units.told(j, t.numbers[0]):.12g}}}"


def _number(value: float) -> str:
    """
    >>> _number(0.1 + 0.2), _number(120000.0), _number(-0.0)
    ('0.3', '120000', '0')
    """
    return f"{value + 0.0:.{DIGITS}g}"
