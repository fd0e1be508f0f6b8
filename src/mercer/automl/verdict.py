"""The verdict: one to three plain sentences on what the holdout showed, also where others did better."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mercer.automl.metrics import Metric
from mercer.tables.errors import many

TITLES = {
    "r2": "R²", "rmse": "RMSE", "mae": "mean absolute error", "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy",
    "log_loss": "log loss", "auc": "area under the curve",
}
IN_UNITS = ("rmse", "mae")  # of the target
NEAR = 0.02  # a difference below this, of errors relative, is none to speak of


@dataclass(frozen=True)
class Rival:
    """Another model on the same rows: its name, its score, and the chosen one's score minus it with an interval."""

    name: str
    value: float
    difference: tuple[float, float, float]
    handicap: str = ""  # what it had less of than the chosen one, which makes a comparison say nothing


def number(value: float, metric: str) -> str:
    """Four digits, shares with three decimals.

    >>> number(0.81234, "r2"), number(45678.9, "rmse"), number(-0.0001, "r2")
    ('0.812', '45,680', '0.000')
    """
    if metric not in IN_UNITS:
        return _unsigned(f"{value:.3f}")
    digits = float(f"{value:.4g}")
    return _unsigned(f"{digits:,.0f}" if abs(digits) >= 1000 else f"{digits:g}")


def _unsigned(digits: str) -> str:
    """Without a minus before a zero."""
    return digits if digits.strip("-0.") else digits.lstrip("-")


def sentence(metric: Metric, name: str, value: float, low: float, high: float, rows: int, copies: int = 0) -> str:
    """The number, its interval and what it rests on."""
    shown = [number(v, metric.name) for v in (value, low, high)]
    interval = f"95 % interval {shown[1]} to {shown[2]}"
    apart = f", {copies:,} of them copies of training rows" if copies else " that nothing was fitted or chosen on"
    return f"{name}: {TITLES[metric.name]} {shown[0]} ({interval}) on {many(rows, 'row')}{apart}."


def against_linear(metric: Metric, rival: Rival) -> str:
    """What the lift added."""
    state, amount = _state(metric, rival)
    if state != "worse" and rival.handicap:
        return f"A linear model was {rival.handicap}, so nothing is said of it."
    if state == "better":
        return f"That is better than a linear model ({number(rival.value, metric.name)}) by {amount}."
    if state == "worse":
        return f"A linear model did better on these rows ({number(rival.value, metric.name)}, by {amount})."
    return _even(metric, rival, "A linear model", "is")


def against_trees(metric: Metric, rival: Rival) -> str:
    """Where trees win, it is said."""
    state, amount = _state(metric, rival)
    shown = number(rival.value, metric.name)
    if state != "worse" and rival.handicap:
        return f"Gradient-boosted trees were {rival.handicap}, so nothing is said of them."
    if state == "worse":
        return f"Gradient-boosted trees are better here: {shown}, by {amount}; if this score is all that counts, use them."
    if state == "better":
        return f"It also beats gradient-boosted trees ({shown}) by {amount}."
    return _even(metric, rival, "Gradient-boosted trees", "are")


def _even(metric: Metric, rival: Rival, who: str, verb: str) -> str:
    """About as good where the scores are near; where they are far apart, that the rows are too few to tell."""
    shown, gap = number(rival.value, metric.name), abs(rival.difference[0])
    if _same(metric, rival):
        return f"{who} {verb} as good ({shown}): there is no difference in the digits shown."
    if gap <= NEAR * (abs(rival.value) if metric.name in IN_UNITS else 1.0):
        return f"{who} {verb} about as good ({shown}): the difference is within its error."
    far = f"the difference of {number(gap, metric.name)} is within its error"
    return f"{who} scored {shown}; {far}, so these rows do not tell which is better."


def _same(metric: Metric, rival: Rival) -> bool:
    """Whether the scores, or all of what is between them, are the same in the digits shown."""
    gap = rival.difference[0]
    mine, other, between = (number(value, metric.name) for value in (rival.value + gap, rival.value, gap))
    return mine == other or not between.strip("-0.,")


def _state(metric: Metric, rival: Rival) -> tuple[str, str]:
    """Better, worse or neither, by whether the interval of the difference leaves zero out; and by how much.

    Scores that are equal in all digits shown, as of exact fits, are even, whatever rounding leaves between them.
    """
    value, low, high = (metric.gain(v) for v in rival.difference)
    low, high = min(low, high), max(low, high)
    state = "even" if _same(metric, rival) else "better" if low > 0 else "worse" if high < 0 else "even"
    return state, f"{number(abs(value), metric.name)} ({' to '.join(number(v, metric.name) for v in sorted((abs(low), abs(high))))})"


def verdict(
    metric: Metric, kind: str, first: str, linear: Rival | None, trees: Rival | None, doubted: Sequence[str] = (),
    short: Mapping[str, str] | None = None, alone: bool = False,
) -> str:  # fmt: skip
    """All of it; `doubted` names the models whose score on the holdout is not what cross-validation led to expect, `short` those that
    were left out and of what there was too little, and `alone` tells that nothing more flexible than the chosen one was tried.
    """
    whom = " and of ".join(name.lower() for name in doubted)
    parts = [f"Cross-validation and holdout disagree on the score of {whom}, so none of this is firm: see the warnings."] if doubted else []
    parts.append(first)
    if kind in ("constant", "linear"):
        parts.append(_kept(kind, short or {}, alone))
    elif linear is not None:
        parts.append(against_linear(metric, linear))
    parts += [against_trees(metric, trees)] if trees is not None else []
    return " ".join(parts)


def _kept(kind: str, short: Mapping[str, str], alone: bool) -> str:
    """Why a constant or the linear model was kept: nothing is said of models that were never tried."""
    lack = " and ".join(sorted(set(short.values()), reverse=True))
    remedy = f"give more {lack} ({' and '.join('--' + what for what in lack.split(' and '))})"
    if short and alone:
        what = "Nothing but a constant" if kind == "constant" else "Nothing more flexible than the linear model"
        return f"{what} could be tried in the {lack} given, so this does not tell what the columns are worth: {remedy}."
    left = f" Not tried, for want of {lack}: {', '.join(short).lower()}; {remedy} to have them compared." * bool(short)
    if kind == "constant":
        end = "." if short else ": these columns tell little of the target."
        return f"By cross-validation nothing that was tried predicts better than a constant{end}{left}"
    tried = "that was tried " * bool(short)
    return f"Nothing more flexible {tried}was better by more than its error in cross-validation, so the linear model was kept.{left}"


def disagreement(metric: Metric, name: str, holdout: float, cv: float, errors: float) -> str:
    """Two scores of one model that are further apart than chance explains."""
    title, shown = TITLES[metric.name], [number(v, metric.name) for v in (holdout, cv)]
    what = f"{name} has {title} {shown[0]} on the holdout but {shown[1]} in cross-validation, {errors:.0f} standard errors apart"
    why = "the held-out rows are unlike the training rows, or a few odd rows decide the score"
    return f"cross-validation and holdout disagree: {what}; {why}: rely on neither number before you know."
