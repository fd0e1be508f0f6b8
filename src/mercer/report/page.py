"""The page: the result of a fit as one HTML text, and that text as a file that is whole or not
there.

Sections come in the order in which a reader asks: how good, why, where not, with what care, at what
cost, and again how.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from mercer.automl.result import Contender, FitResult
from mercer.report import figures, scores, tables, texts, words
from mercer.report.tags import Child, Markup, join, name, tag, text
from mercer.store.commit import beside, naming

# Nothing is fetched and nothing runs, even if a name in the data tried to.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def hero(result: FitResult) -> Markup:
    """The first screen: the score of the chosen model beside all others, and the verdict."""
    title = tag("h1", "Predicting ", name(words.brief(result.target, 80), class_="target"))
    said = tag(
        "div",
        title,
        _headline(result),
        tag("p", name(result.verdict), class_="verdict"),
        tag("p", tag("code", name(result.formula))) if result.formula else None,
        class_="said",
    )
    return tag(
        "header",
        said,
        scores.contenders(result) if result.contenders else None,
        _notes(result),
        class_="hero",
    )


def sections(result: FitResult) -> list[tuple[str, str, Markup]]:
    """Anchor, heading and body of each section that has something to say."""
    every = [
        ("lift", f"What {_gainer(result)} added over a linear model", _lift(result)),
        ("importance", "Which columns matter", _importance(result)),
        ("texts", "What the words say", texts.sections(result) if result.texts else None),
        *_fit(result),
        ("worst", "Worst rows", tables.worst(result) if result.worst else None),
        (
            "columns",
            "What was done with each column",
            tables.treatments(result) if result.columns else None,
        ),
        ("warnings", "Warnings", _warnings(result)),
        ("cost", "Size and speed", _cost(result)),
        (
            "contenders",
            "Everything that was tried",
            tables.contenders(result) if result.contenders else None,
        ),
        (
            "plan",
            "The plan of the chosen model",
            tag("pre", name(result.plan), tabindex=0) if result.plan.strip() else None,
        ),
        ("reproduce", "Do it again", _reproduce(result)),
    ]
    return [(anchor, heading, body) for anchor, heading, body in every if body is not None]


def _headline(result: FitResult) -> Markup | None:
    chosen, places = result.chosen, scores.holdout_places(result)
    if chosen is None:
        return None
    known = words.finite(chosen.low) and words.finite(chosen.high)
    said = f"{scores.level(result)} interval {words.interval(chosen.low, chosen.high, places)}"
    ends = tag("span", said, class_="ends") if known else None
    what = tag(
        "p", f"Holdout {scores.metric(result)} of ", name(words.brief(chosen.name)), class_="what"
    )
    return join(
        [what, tag("p", tag("strong", words.fixed(chosen.holdout, places)), ends, class_="score")]
    )


def _notes(result: FitResult) -> Markup:
    held = f"{words.count(result.rows_holdout)} held out ({result.holdout_rule})"
    kept = f"{words.many(result.rows_train, 'row')} to learn from, {held}"
    lost = (
        f"; {words.many(result.rows_dropped, 'row')} {words.without(result)} left out."
        if result.rows_dropped
        else "."
    )
    number = len(result.warnings)
    wary = (
        tag("li", tag("a", words.many(number, "warning"), " to read", href="#warnings"))
        if number
        else None
    )
    told = (result.metric_note, words.decision(result), result.task_reason)
    sentences = [words.sentence(text) for text in told if text.strip()]
    return tag(
        "ul",
        [tag("li", name(sentence)) for sentence in sentences],
        tag("li", name(kept + lost)),
        wary,
        class_="notes",
    )


def _lift(result: FitResult) -> Markup | None:
    chosen = result.chosen
    if chosen is None:
        return None
    if (
        result.lift_gain is None
        or not words.finite(result.lift_gain[0])
        or chosen.kind in ("linear", "constant")
    ):
        return tag("p", _no_lift(chosen))
    return join(
        [tag("p", _gain(result, result.lift_gain) + _of_trees(result)), scores.lift_gain(result)]
    )


def _gainer(result: FitResult) -> str:
    """Who is compared with a linear model: a mean may be of trees as well, which are no lift."""
    return "the mean of models" if result.members else "the lift"


def _of_trees(result: FitResult) -> str:
    share = dict(result.members).get("trees")
    return (
        f" Gradient-boosted trees have {words.percent(share)} of the weight in this mean."
        if words.finite(share)
        else ""
    )


def _no_lift(chosen: Contender) -> str:
    if chosen.kind in ("linear", "constant"):
        return f"Nothing: the chosen model is {'linear' if chosen.kind == 'linear' else 'a constant'}, because no lift earned its place."
    return "It was not measured."


def _gain(result: FitResult, gain: tuple[float, float, float]) -> str:
    sign = 1 if result.higher_is_better else -1
    better, ends = sign * gain[0], [sign * end for end in gain[1:] if words.finite(end)]
    amount = words.fixed(abs(better), scores.gain_places(gain))
    side = "better" if better >= 0 else "worse"
    what = f"{scores.metric(result, start=True)} {side} by {amount} than the linear model on the same holdout rows"
    if len(ends) < 2:
        return f"{what}; without an interval this may be chance."
    clear = min(ends) > 0 or max(ends) < 0
    return f"{what}; the interval {'leaves out 0, so it is hardly' if clear else 'holds 0, so it may be'} chance."


def _importance(result: FitResult) -> Markup | None:
    if not result.importance:
        return None
    rest = result.importance[scores.SHOWN :]
    more = (
        tag(
            "details",
            tag("summary", f"The other {words.many(len(rest), 'column')}"),
            tables.importances(rest),
        )
        if rest
        else None
    )
    said = words.learnt(result, scores.SHOWN)
    return join([scores.importance(result), more, tag("p", said) if said else None])


def _fit(result: FitResult) -> list[tuple[str, str, Markup | None]]:
    if result.task == "regression":
        body = tag("div", figures.points(result), _coverage(result), class_="pair")
        return [
            ("fit", "Predicted against actual", body if result.points or result.interval else None)
        ]
    trust = (
        tag("div", figures.calibration(result), tables.calibration(result), class_="pair")
        if result.calibration
        else None
    )
    return [
        (
            "fit",
            "Which classes are confused",
            tables.confusion(result) if result.confusion else None,
        ),
        ("calibration", "Can the probabilities be trusted?", trust),
    ]


def _coverage(result: FitResult) -> Markup | None:
    found = result.interval
    if not found:
        return None
    facts = [
        ("asked for", words.percent(found.get("coverage_asked"))),
        (
            "measured on the holdout, each half by the width of the other",
            words.percent(found.get("coverage_measured")),
        ),
        ("median width", words.number(found.get("median_width"))),
    ]
    guarantee = (
        tag("p", name(words.sentence(str(found["guarantee"])))) if found.get("guarantee") else None
    )
    return tag("div", tag("h3", "Prediction intervals"), _facts(facts), guarantee)


def _warnings(result: FitResult) -> Markup:
    if not result.warnings:
        return tag("p", "None.")
    return tag("ul", [tag("li", name(warning)) for warning in result.warnings], class_="warnings")


def _cost(result: FitResult) -> Markup:
    return _facts(
        [
            ("model on disk", words.size(result.model_bytes)),
            ("to predict one row", words.duration(_seconds(result.latency_row_ms))),
            ("to predict 1,000 rows", words.duration(_seconds(result.latency_1000_ms))),
            ("from file to model, reading and judging included", words.duration(result.seconds)),
            ("most memory used", words.size(result.memory_peak_bytes)),
        ]
    )


def _seconds(milliseconds: float) -> float | None:
    return milliseconds / 1000 if words.finite(milliseconds) else None


def _facts(facts: list[tuple[str, str]]) -> Markup:
    return tag(
        "dl",
        [tag("div", tag("dt", what), tag("dd", value)) for what, value in facts],
        class_="facts",
    )


def _reproduce(result: FitResult) -> Markup:
    made = [f"mercer {result.version}", f"seed {result.seed}", result.created]
    parts = [part for word in result.command.split(" ") for part in (" ", tag("span", word))][
        1:
    ]  # lines break between words only
    command: Child = (
        tag("pre", tag("code", tag("bdi", parts)), tabindex=0) if result.command.strip() else None
    )
    return join([command, tag("p", name(", ".join(filter(None, made))), class_="quiet")])


def html(result: FitResult, model_id: str = "") -> str:
    """The report as one self-contained HTML text: no scripts, no network, light and dark, screen
    and paper.

    `model_id` names the model file that it belongs to, as `mercer check` shows it.

    >>> import pandas as pd, mercer
    >>> table = pd.DataFrame({"x": [i % 9 for i in range(60)], "y": [2.5 * (i % 9) + i % 2 for i in range(60)]})
    >>> html(mercer.fit_table(table, "y", time=0.001).result)[:15]
    '<!DOCTYPE html>'
    """
    parts = sections(result)
    links = [tag("a", heading, href=f"#{anchor}") for anchor, heading, _ in parts]
    nav = tag("nav", links, aria_label="Sections")
    body = [
        tag("section", tag("h2", heading), inside, id=anchor) for anchor, heading, inside in parts
    ]
    of = f" Of the model {model_id}." if model_id else ""
    foot = tag(
        "footer",
        f"Made by mercer {result.version}. Holdout scores are on rows that no choice saw, those of cross-validation on training rows.{of}",
    )
    page = tag(
        "html", _head(result), tag("body", hero(result), nav, tag("main", body), foot), lang="en"
    )
    return f"<!DOCTYPE html>\n{page}\n"


def write(result: FitResult, path: str | os.PathLike[str]) -> None:
    """Write the report; a failure leaves what was there before.

    >>> import tempfile, pandas as pd, mercer
    >>> table = pd.DataFrame({"x": [i % 9 for i in range(60)], "y": [2.5 * (i % 9) + i % 2 for i in range(60)]})
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write(mercer.fit_table(table, "y", time=0.001).result, path)
    >>> path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    goal, page = Path(os.path.realpath(path)), html(result).encode()
    if not goal.parent.is_dir():
        raise FileNotFoundError(
            f"{os.fspath(path)} cannot be written: the folder {goal.parent} does not exist; make it first."
        )
    with naming(path):
        _write(goal, page)


def _write(goal: Path, page: bytes) -> None:
    if (
        goal.exists() and not goal.is_file()
    ):  # a device or a pipe takes the bytes; a folder refuses them
        goal.write_bytes(page)
        return
    part = beside(goal)
    try:
        _flush(part, page)
        os.replace(part, goal)
    finally:
        part.unlink(missing_ok=True)


def _flush(part: Path, page: bytes) -> None:
    with part.open("xb") as file:
        file.write(page)
        file.flush()
        os.fsync(file.fileno())


def _head(result: FitResult) -> Markup:
    chosen = result.chosen
    score = f" {words.fixed(chosen.holdout, scores.holdout_places(result))}" if chosen else ""
    title = f"{words.brief(result.target, 60)}: {scores.metric(result)}{score}"
    return tag(
        "head",
        join(
            [
                tag("meta", charset="utf-8"),
                tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
                tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
                tag("meta", name="color-scheme", content="light dark"),
                tag("title", text(title)),
                tag("style", _css()),
            ]
        ),
    )


@cache
def _css() -> Markup:
    return Markup(files("mercer.report").joinpath("page.css").read_text(encoding="utf-8"))
