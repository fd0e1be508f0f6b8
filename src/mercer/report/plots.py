"""Square plots: predicted against actual, and calibration; each with a title and a description for those who cannot see it."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.automl.result import FitResult
from mercer.report import words
from mercer.report.scale import AxisScale, drawable, labels, spread
from mercer.report.tags import Child, Markup, join, tag

WIDTH, HEIGHT, LEFT, TOP, SIDE = 380, 372, 52, 12, 316
LAYERS = 8  # points are dealt to as many translucent paths, so that crowds look darker


def points(result: FitResult) -> Markup:
    """Predicted against actual, on one scale for both."""
    kept = [(actual, predicted) for actual, predicted in result.points if drawable(actual) and drawable(predicted)]
    if not kept:
        return tag("p", "No predictions can be drawn.", class_="quiet")
    scale = _common(kept)
    how = " Both axes are logarithmic." if scale.unit else ""
    desc = f"{words.many(len(kept), 'holdout row')}: correlation {words.number(_correlation(kept), 3)}. Points on the line are right.{how}"
    layers = [tag("path", d=_dots(kept[start::LAYERS], scale), class_="points") for start in range(min(LAYERS, len(kept)))]
    plot = _plot(join([_frame(scale, "actual", "predicted"), *layers]), "Predicted against actual", desc, "points")
    return tag("figure", plot, tag("figcaption", desc))


def calibration(result: FitResult) -> Markup:
    """Observed share against predicted probability; the area of a point is its number of predictions."""
    kept = [(said, seen, size) for said, seen, size in result.calibration if drawable(said) and drawable(seen)]
    if not kept:
        return tag("p", "No probabilities were measured.", class_="quiet")
    gap = sum(size * abs(said - seen) for said, seen, size in kept) / max(1, sum(size for *_, size in kept))
    desc = (f"On average the observed share differs from the predicted probability by {words.number(100 * gap, 2)} percentage points. "
            f"Points on the line are right; larger ones are more predictions.")
    scale, most = AxisScale(0.0, 1.0), max(1, *(size for *_, size in kept))
    dots = [tag("circle", cx=_x(scale, said), cy=_y(scale, seen), r=3 + 7 * (max(0, size) / most) ** 0.5, class_="bin")
            for said, seen, size in kept]
    plot = _plot(join([_frame(scale, "predicted probability", "observed share"), *dots]), "Calibration", desc, "calibration")
    return tag("figure", plot, tag("figcaption", desc))


def _common(kept: Sequence[tuple[float, float]]) -> AxisScale:
    """The scale of the actual values, widened to the predictions short of absurd ones."""
    actual = [pair[0] for pair in kept]
    reach = max(actual) - min(actual) or abs(actual[0]) or 1.0
    near = [value for _, value in kept if min(actual) - reach / 2 <= value <= max(actual) + reach / 2]
    scale = spread(actual)
    if scale.unit and min(actual) > 0:
        near = [value for value in near if value > 0]
    return spread([*actual, *near]) if scale.unit is None else _widened(scale, near)


def _widened(scale: AxisScale, values: Sequence[float]) -> AxisScale:
    return AxisScale(min([scale.low, *values]), max([scale.high, *values]), scale.unit)


def _correlation(kept: Sequence[tuple[float, float]]) -> float:
    actual, predicted = (np.asarray(side) / max(1.0, float(np.max(np.abs(side)))) for side in zip(*kept, strict=True))
    spreads = actual.std() * predicted.std()
    return float(np.mean((actual - actual.mean()) * (predicted - predicted.mean())) / spreads) if spreads > 0 else float("nan")


def _dots(pairs: Sequence[tuple[float, float]], scale: AxisScale) -> str:
    return "".join(f"M{_x(scale, actual):.1f} {_y(scale, predicted):.1f}h0" for actual, predicted in pairs)


def _frame(scale: AxisScale, across: str, up: str) -> Markup:
    ticks = scale.ticks()
    named = list(zip(ticks, labels(ticks), strict=True))
    lines = [(tag("line", x1=_x(scale, t), x2=_x(scale, t), y1=TOP, y2=TOP + SIDE, class_="grid"),
              tag("line", x1=LEFT, x2=LEFT + SIDE, y1=_y(scale, t), y2=_y(scale, t), class_="grid")) for t in ticks]
    below = [tag("text", words_, x=_x(scale, t), y=TOP + SIDE + 16, text_anchor="middle") for t, words_ in named]
    beside = [tag("text", words_, x=LEFT - 6, y=_y(scale, t) + 4, text_anchor="end") for t, words_ in named]
    diagonal = tag("line", x1=LEFT, y1=TOP + SIDE, x2=LEFT + SIDE, y2=TOP, class_="rule")
    middle = TOP + SIDE / 2
    titles: list[Child] = [
        tag("text", across, x=LEFT + SIDE / 2, y=HEIGHT - 6, text_anchor="middle", class_="axis-title"),
        tag("text", up, x=12, y=middle, text_anchor="middle", transform=f"rotate(-90 12 {middle:g})", class_="axis-title"),
    ]
    return join([lines, diagonal, below, beside, titles])


def _plot(drawn: Markup, title: str, desc: str, ident: str) -> Markup:
    heads = [tag("title", title, id=f"{ident}-title"), tag("desc", desc, id=f"{ident}-desc")]
    return tag("svg", heads, drawn, viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="plot", role="img",
               aria_labelledby=f"{ident}-title", aria_describedby=f"{ident}-desc")


def _x(scale: AxisScale, value: float) -> float:
    return LEFT + SIDE * scale.place(value)


def _y(scale: AxisScale, value: float) -> float:
    return TOP + SIDE * (1 - scale.place(value))
