"""Figures of scores: every contender on the holdout with its interval, what the lift added, and
what each column is worth.

A figure has rows, each with a label, a value in words and marks on a common axis; places are
percentages, so that text keeps its size on a phone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mercer.automl.result import Contender, FitResult
from mercer.report import words
from mercer.report.figures import AxisScale, around, drawable, labels
from mercer.report.tags import Child, Markup, join, name, tag

HEIGHT = 34  # pixels
MIDDLE = HEIGHT / 2
DOT = "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z"
BIG = "M-7 0a7 7 0 1 0 14 0a7 7 0 1 0 -14 0z"
SQUARE = "M-5 -5h10v10h-10z"
LEFT, RIGHT = "M0 0l9 -6v12z", "M0 0l-9 -6v12z"
ROLES = {"constant": "baseline", "linear": "baseline", "trees": "for comparison"}
SQUEEZE = {"constant": 0.25}
SHOWN = 20  # columns drawn; the others are listed


@dataclass(frozen=True)
class Row:
    """One line of the figure; what its marks show is also said by `value`."""

    label: Child
    value: Child
    marks: Markup
    style: str = ""


def figure(
    rows: Sequence[Row],
    scale: AxisScale | None,
    *,
    caption: Child,
    ident: str,
    behind: Markup | None = None,
    backdrop: Markup | None = None,
) -> Markup:
    """The rows above their axis, with marks behind each row or behind all; without a scale only the
    words are shown."""
    lines = [_line(row, scale, behind) for row in rows]
    axis = (
        tag(
            "li",
            tag("svg", *_axis(scale), class_="track axis", height=24),
            class_="row axis",
            aria_hidden="true",
        )
        if scale
        else None
    )
    whole = tag("svg", backdrop, class_="backdrop", aria_hidden="true") if backdrop else None
    return tag(
        "figure",
        tag("div", whole, tag("ul", lines, axis), class_="rows"),
        tag("figcaption", caption),
        id=ident,
    )


def at(scale: AxisScale, value: float) -> str:
    """A place on the axis."""
    return f"{100 * scale.place(value):.2f}%"


def span(scale: AxisScale, low: float, high: float, height: float, class_: str) -> Markup:
    """A bar from low to high about the middle of the row."""
    start, stop = sorted((scale.place(low), scale.place(high)))
    return tag(
        "rect",
        x=f"{100 * start:.2f}%",
        y=MIDDLE - height / 2,
        width=f"{100 * (stop - start):.2f}%",
        height=height,
        class_=class_,
    )


def whisker(scale: AxisScale, low: float, high: float) -> Markup:
    """An interval with ends."""
    ends = [_upright(at(scale, value), MIDDLE - 5, MIDDLE + 5, "whisker") for value in (low, high)]
    line = tag(
        "line", x1=at(scale, low), x2=at(scale, high), y1=MIDDLE, y2=MIDDLE, class_="whisker"
    )
    return join([line, *ends])


def mark(place: str, shape: str, class_: str) -> Markup:
    """A shape at a place: a path about the origin."""
    return tag("svg", tag("path", d=shape, class_=class_), x=place, y=MIDDLE, overflow="visible")


def band(scale: AxisScale, low: float, high: float) -> Markup:
    """A shaded interval as high as what it stands in."""
    return tag(
        "rect",
        x=at(scale, low),
        y=0,
        width=f"{100 * (scale.place(high) - scale.place(low)):.2f}%",
        height="100%",
        class_="band",
    )


def rule(scale: AxisScale, value: float) -> Markup:
    """An upright dashed line."""
    return _upright(at(scale, value), 0, "100%", "rule")


def _line(row: Row, scale: AxisScale | None, behind: Markup | None) -> Markup:
    marks = join([*_grid(scale), behind, row.marks]) if scale else None
    track = tag("svg", marks, class_="track", height=HEIGHT, aria_hidden="true") if scale else None
    said = [tag("span", row.label, class_="label"), tag("span", row.value, class_="value")]
    return tag("li", said, track, class_=f"row {row.style}".strip())


def _grid(scale: AxisScale) -> list[Markup]:
    return [_upright(at(scale, tick), 0, "100%", "grid") for tick in scale.ticks()]


def _axis(scale: AxisScale) -> list[Markup]:
    ticks = scale.ticks()
    return [
        tag("text", said, x=at(scale, tick), y=16, text_anchor=_anchor(scale.place(tick)))
        for tick, said in zip(ticks, labels(ticks), strict=True)
    ]


def _anchor(place: float) -> str:
    return "start" if place < 0.03 else "end" if place > 0.97 else "middle"


def _upright(x: str, top: object, bottom: object, class_: str) -> Markup:
    return tag("line", x1=x, x2=x, y1=top, y2=bottom, class_=class_)


def contenders(result: FitResult) -> Markup:
    """Dots and intervals of all contenders, best first; the interval of the chosen one is shaded
    behind the others."""
    ordered = [c for c in ranked(result) if words.finite(c.holdout)] or ranked(result)
    places, scale = holdout_places(result), _score_scale(ordered)
    shade = _shade(result.chosen, scale)
    rows = [_contender(contender, scale, places, dict(result.members)) for contender in ordered]
    return figure(
        rows,
        scale,
        caption=name(_caption(result, bool(shade), scale, ordered)),
        backdrop=shade,
        ident="scores",
    )


def ranked(result: FitResult) -> list[Contender]:
    """Best holdout score first, those without one last."""
    sign = -1 if result.higher_is_better else 1
    return sorted(
        result.contenders,
        key=lambda c: (
            not words.finite(c.holdout),
            sign * c.holdout if words.finite(c.holdout) else 0.0,
        ),
    )


def holdout_places(result: FitResult) -> int:
    """Decimals for every score on the page: those of the chosen one, or of all."""
    telling = (
        [result.chosen]
        if result.chosen and words.finite(result.chosen.holdout)
        else result.contenders
    )
    scores = [c.holdout for c in telling if words.finite(c.holdout)]
    return words.decimals(
        scores, [c.high - c.low for c in telling if words.finite(c.low) and words.finite(c.high)]
    )


def lift_gain(result: FitResult) -> Markup | None:
    """The paired difference between the chosen model and the linear one, against nothing."""
    gain = result.lift_gain
    if gain is None or not drawable(gain[0]):
        return None
    ends = [value for value in gain if drawable(value)]
    scale, places = around([0.0, *ends], 0.1), gain_places(gain)
    marks = join(
        [
            whisker(scale, min(ends), max(ends)) if len(ends) > 1 else None,
            mark(at(scale, gain[0]), BIG, "dot chosen"),
        ]
    )
    value = [
        tag("b", words.fixed(gain[0], places)),
        tag("small", words.interval(gain[1], gain[2], places)),
    ]
    caption = f"Score of the chosen model minus that of the linear one on the same rows; 0 is no difference. {direction(result)}"
    return figure(
        [Row("chosen − linear", value, marks, "chosen")],
        scale,
        caption=caption,
        behind=rule(scale, 0.0),
        ident="gain",
    )


def gain_places(gain: Sequence[float]) -> int:
    """Decimals for the gain and its ends."""
    return words.decimals([value for value in gain if words.finite(value)], [])


def importance(result: FitResult) -> Markup:
    """Bars of the loss of score when a column is shuffled, the largest first."""
    shown = result.importance[:SHOWN]
    ends = [end for _, loss, error in shown for end in _ends(loss, error)]
    scale = around([0.0, *ends], 0.04)
    places = words.decimals(ends, [])
    rows = [_bar(column, loss, error, scale, places) for column, loss, error in shown]
    caption = "How much of the score is lost when the column is shuffled among the holdout rows, with its standard error."
    caption += words.above_one(result)
    return figure(rows, scale, caption=caption, behind=rule(scale, 0.0), ident="shuffled")


def direction(result: FitResult) -> str:
    """Which way is better."""
    return "Further right is better." if result.higher_is_better else "Further left is better."


def _shade(chosen: Contender | None, scale: AxisScale | None) -> Markup | None:
    if scale is None or chosen is None or not drawable(chosen.low) or not drawable(chosen.high):
        return None
    return band(scale, min(chosen.low, chosen.high), max(chosen.low, chosen.high))


def _contender(
    contender: Contender, scale: AxisScale | None, places: int, members: Mapping[str, float]
) -> Row:
    share = members.get(contender.kind)
    role = ROLES.get(contender.kind) if share is None else f"{words.percent(share)} of the mean"
    badge = "chosen" if contender.chosen else role
    label = [
        name(words.brief(contender.name)),
        tag("small", badge, class_="badge") if badge else None,
    ]
    ends = (
        tag("small", words.interval(contender.low, contender.high, places))
        if words.finite(contender.low)
        else None
    )
    marks = _dot(contender, scale) if scale else Markup()
    return Row(
        label,
        [tag("b", words.fixed(contender.holdout, places)), ends],
        marks,
        "chosen" if contender.chosen else "",
    )


def _dot(contender: Contender, scale: AxisScale) -> Markup:
    score = contender.holdout
    if not drawable(score):
        return Markup()
    if not scale.low <= score <= scale.high:
        return mark(at(scale, score), LEFT if score < scale.low else RIGHT, "dot")
    shape = BIG if contender.chosen else SQUARE if contender.kind == "trees" else DOT
    style = (
        "chosen"
        if contender.chosen
        else "trees"
        if contender.kind == "trees"
        else "hollow"
        if contender.kind in ROLES
        else ""
    )
    ends = (
        whisker(scale, contender.low, contender.high)
        if drawable(contender.low) and drawable(contender.high)
        else None
    )
    return join([ends, mark(at(scale, score), shape, f"dot {style}".strip())])


def _score_scale(ordered: Sequence[Contender]) -> AxisScale | None:
    """Room for all, save a worst one that would squeeze three or more others into a tenth of the
    width (a constant: a quarter)."""
    kept = [contender for contender in ordered if drawable(contender.holdout)]
    while (
        len(kept) > 3
        and not kept[-1].chosen
        and _width(kept[:-1]) < SQUEEZE.get(kept[-1].kind, 0.1) * _width(kept)
    ):
        kept = kept[:-1]
    return around(_extent(kept)) if kept else None


def _extent(kept: Sequence[Contender]) -> list[float]:
    return [
        value
        for contender in kept
        for value in (contender.holdout, contender.low, contender.high)
        if drawable(value)
    ]


def _width(kept: Sequence[Contender]) -> float:
    return max(_extent(kept)) - min(_extent(kept))


def _caption(
    result: FitResult, shaded: bool, scale: AxisScale | None, ordered: Sequence[Contender]
) -> str:
    beyond = scale and any(
        drawable(c.holdout) and not scale.low <= c.holdout <= scale.high for c in ordered
    )
    heavy = words.brief(words.weight(result), 60)
    weighted = f', weighted by "{heavy}",' if heavy else ""
    parts = [
        f"{metric(result, start=True)} on {words.many(result.rows_holdout, 'holdout row')}{weighted} that no choice has seen.",
        direction(result),
        f"Lines are {level(result)} intervals; the shade is that of the chosen model."
        if shaded
        else "",
        "An arrow points to a score beyond the axis." if beyond else "",
        _absent([c.name for c in result.contenders if c not in ordered]),
    ]
    return " ".join(filter(None, parts))


def _absent(names: Sequence[str]) -> str:
    return f"Not measured on the holdout: {', '.join(map(words.brief, names))}." if names else ""


def level(result: FitResult) -> str:
    """The confidence of an interval."""
    return words.percent(result.confidence)


def metric(result: FitResult, start: bool = False) -> str:
    """The metric as people write it, within a sentence or at its start."""
    known = {
        "r2": "R²",
        "rmse": "RMSE",
        "mae": "MAE",
        "mse": "MSE",
        "auc": "AUC",
        "roc_auc": "ROC AUC",
        "f1": "F1",
    }
    said = known.get(result.metric, words.brief(result.metric, 60).replace("_", " ") or "score")
    return said[:1].upper() + said[1:] if start else said


def _ends(loss: float, error: float) -> list[float]:
    return [
        end
        for end in ((loss, loss - error, loss + error) if words.finite(error) else (loss,))
        if drawable(end)
    ]


def _bar(column: str, loss: float, error: float, scale: AxisScale, places: int) -> Row:
    ends = _ends(loss, error)
    bar = span(scale, 0.0, loss, 0.4 * MIDDLE * 2, "bar") if drawable(loss) else None
    marks = join([bar, whisker(scale, min(ends), max(ends)) if len(ends) == 3 else None])
    doubt = tag("small", f"± {words.fixed(error, places)}") if words.finite(error) else None
    return Row(name(words.brief(column, 60)), [tag("b", words.fixed(loss, places)), doubt], marks)
