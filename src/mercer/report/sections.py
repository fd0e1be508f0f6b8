"""Sections of the page, in the order in which a reader asks: how good, why, where not, with what care, at what cost, and again how."""
from __future__ import annotations

from mercer.automl.result import Contender, Evidence
from mercer.report import matrix, plots, scores, tables, words
from mercer.report.tags import Child, Markup, join, name, tag


def hero(evidence: Evidence) -> Markup:
    """The first screen: the score of the chosen model beside all others, and the verdict."""
    title = tag("h1", "Predicting ", name(words.brief(evidence.target, 80), class_="target"))
    said = tag("div", title, _headline(evidence), tag("p", name(evidence.verdict), class_="verdict"), class_="said")
    return tag("header", said, scores.contenders(evidence) if evidence.contenders else None, _notes(evidence), class_="hero")


def sections(evidence: Evidence) -> list[tuple[str, str, Markup]]:
    """Anchor, heading and body of each section that has something to say."""
    every = [
        ("lift", "What the lift added over a linear model", _lift(evidence)),
        ("importance", "Which columns matter", _importance(evidence)),
        *_fit(evidence),
        ("worst", "Worst rows", tables.worst(evidence) if evidence.worst else None),
        ("columns", "What was done with each column", tables.treatments(evidence) if evidence.columns else None),
        ("warnings", "Warnings", _warnings(evidence)),
        ("cost", "Size and speed", _cost(evidence)),
        ("contenders", "Everything that was tried", tables.contenders(evidence) if evidence.contenders else None),
        ("plan", "The plan of the chosen model", tag("pre", name(evidence.plan), tabindex=0) if evidence.plan.strip() else None),
        ("reproduce", "Do it again", _reproduce(evidence)),
    ]
    return [(anchor, heading, body) for anchor, heading, body in every if body is not None]


def _headline(evidence: Evidence) -> Markup | None:
    chosen, places = evidence.chosen, scores.holdout_places(evidence)
    if chosen is None:
        return None
    known = words.finite(chosen.low) and words.finite(chosen.high)
    said = f"{scores.level(evidence)} interval {words.interval(chosen.low, chosen.high, places)}"
    ends = tag("span", said, class_="ends") if known else None
    what = tag("p", f"Holdout {scores.metric(evidence)} of ", name(words.brief(chosen.name)), class_="what")
    return join([what, tag("p", tag("strong", words.fixed(chosen.holdout, places)), ends, class_="score")])


def _notes(evidence: Evidence) -> Markup:
    held = f"{words.count(evidence.rows_holdout)} held out ({evidence.holdout_rule})"
    kept = f"{words.many(evidence.rows_train, 'row')} to learn from, {held}"
    lost = f"; {words.many(evidence.rows_dropped, 'row')} without a target dropped." if evidence.rows_dropped else "."
    number = len(evidence.warnings)
    wary = tag("li", tag("a", words.many(number, "warning"), " to read", href="#warnings")) if number else None
    told = (evidence.metric_note, words.decision(evidence), evidence.task_reason)
    sentences = [words.sentence(text) for text in told if text.strip()]
    return tag("ul", [tag("li", name(sentence)) for sentence in sentences], tag("li", name(kept + lost)), wary, class_="notes")


def _lift(evidence: Evidence) -> Markup | None:
    chosen = evidence.chosen
    if chosen is None:
        return None
    if evidence.lift_gain is None or not words.finite(evidence.lift_gain[0]) or chosen.kind in ("linear", "constant"):
        return tag("p", _no_lift(chosen))
    return join([tag("p", _gain(evidence, evidence.lift_gain)), scores.lift_gain(evidence)])


def _no_lift(chosen: Contender) -> str:
    if chosen.kind in ("linear", "constant"):
        return f"Nothing: the chosen model is {'linear' if chosen.kind == 'linear' else 'a constant'}, because no lift earned its place."
    return "It was not measured."


def _gain(evidence: Evidence, gain: tuple[float, float, float]) -> str:
    sign = 1 if evidence.higher_is_better else -1
    better, ends = sign * gain[0], [sign * end for end in gain[1:] if words.finite(end)]
    amount = words.fixed(abs(better), scores.gain_places(gain))
    side = "better" if better >= 0 else "worse"
    what = f"{scores.metric(evidence, start=True)} {side} by {amount} than the linear model on the same holdout rows"
    if len(ends) < 2:
        return f"{what}; without an interval this may be chance."
    clear = min(ends) > 0 or max(ends) < 0
    return f"{what}; the interval {'leaves out 0, so it is hardly' if clear else 'holds 0, so it may be'} chance."


def _importance(evidence: Evidence) -> Markup | None:
    if not evidence.importance:
        return None
    rest = evidence.importance[scores.SHOWN :]
    more = tag("details", tag("summary", f"The other {words.many(len(rest), 'column')}"), tables.importances(rest)) if rest else None
    return join([scores.importance(evidence), more])


def _fit(evidence: Evidence) -> list[tuple[str, str, Markup | None]]:
    if evidence.task == "regression":
        body = tag("div", plots.points(evidence), _coverage(evidence), class_="pair")
        return [("fit", "Predicted against actual", body if evidence.points or evidence.interval else None)]
    trust = tag("div", plots.calibration(evidence), tables.calibration(evidence), class_="pair") if evidence.calibration else None
    return [("fit", "Which classes are confused", matrix.confusion(evidence) if evidence.confusion else None),
            ("calibration", "Can the probabilities be trusted?", trust)]


def _coverage(evidence: Evidence) -> Markup | None:
    found = evidence.interval
    if not found:
        return None
    facts = [("asked for", words.percent(found.get("coverage_asked"))),
             ("measured on the holdout, each half by the width of the other", words.percent(found.get("coverage_measured"))),
             ("median width", words.number(found.get("median_width")))]
    guarantee = tag("p", name(words.sentence(str(found["guarantee"])))) if found.get("guarantee") else None
    return tag("div", tag("h3", "Prediction intervals"), _facts(facts), guarantee)


def _warnings(evidence: Evidence) -> Markup:
    if not evidence.warnings:
        return tag("p", "None.")
    return tag("ul", [tag("li", name(warning)) for warning in evidence.warnings], class_="warnings")


def _cost(evidence: Evidence) -> Markup:
    return _facts([
        ("model on disk", words.size(evidence.model_bytes)),
        ("to predict one row", words.duration(_seconds(evidence.latency_row_ms))),
        ("to predict 1,000 rows", words.duration(_seconds(evidence.latency_1000_ms))),
        ("from file to model, reading and judging included", words.duration(evidence.seconds)),
        ("most memory used", words.size(evidence.memory_peak_bytes)),
    ])


def _seconds(milliseconds: float) -> float | None:
    return milliseconds / 1000 if words.finite(milliseconds) else None


def _facts(facts: list[tuple[str, str]]) -> Markup:
    return tag("dl", [tag("div", tag("dt", what), tag("dd", value)) for what, value in facts], class_="facts")


def _reproduce(evidence: Evidence) -> Markup:
    made = [f"mercer {evidence.version}", f"seed {evidence.seed}", evidence.created]
    parts = [part for word in evidence.command.split(" ") for part in (" ", tag("span", word))][1:]  # lines break between words only
    command: Child = tag("pre", tag("code", tag("bdi", parts)), tabindex=0) if evidence.command.strip() else None
    return join([command, tag("p", name(", ".join(filter(None, made))), class_="quiet")])
