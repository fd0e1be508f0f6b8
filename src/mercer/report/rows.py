"""Figures of rows: a label, a value in words and marks on a common axis; places are percentages, so text keeps its size on a phone."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mercer.report.scale import AxisScale, labels
from mercer.report.tags import Child, Markup, join, tag

HEIGHT = 34  # pixels
MIDDLE = HEIGHT / 2


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
    """The rows above their axis, with marks behind each row or behind all; without a scale only the words are shown."""
    lines = [_line(row, scale, behind) for row in rows]
    axis = tag("li", tag("svg", *_axis(scale), class_="track axis", height=24), class_="row axis", aria_hidden="true") if scale else None
    whole = tag("svg", backdrop, class_="backdrop", aria_hidden="true") if backdrop else None
    return tag("figure", tag("div", whole, tag("ul", lines, axis), class_="rows"), tag("figcaption", caption), id=ident)


def at(scale: AxisScale, value: float) -> str:
    """A place on the axis."""
    return f"{100 * scale.place(value):.2f}%"


def span(scale: AxisScale, low: float, high: float, height: float, class_: str) -> Markup:
    """A bar from low to high about the middle of the row."""
    start, stop = sorted((scale.place(low), scale.place(high)))
    return tag("rect", x=f"{100 * start:.2f}%", y=MIDDLE - height / 2, width=f"{100 * (stop - start):.2f}%", height=height, class_=class_)


def whisker(scale: AxisScale, low: float, high: float) -> Markup:
    """An interval with ends."""
    ends = [_upright(at(scale, value), MIDDLE - 5, MIDDLE + 5, "whisker") for value in (low, high)]
    line = tag("line", x1=at(scale, low), x2=at(scale, high), y1=MIDDLE, y2=MIDDLE, class_="whisker")
    return join([line, *ends])


def mark(place: str, shape: str, class_: str) -> Markup:
    """A shape at a place: a path about the origin."""
    return tag("svg", tag("path", d=shape, class_=class_), x=place, y=MIDDLE, overflow="visible")


def band(scale: AxisScale, low: float, high: float) -> Markup:
    """A shaded interval as high as what it stands in."""
    return tag("rect", x=at(scale, low), y=0, width=f"{100 * (scale.place(high) - scale.place(low)):.2f}%", height="100%", class_="band")


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
    return [tag("text", said, x=at(scale, tick), y=16, text_anchor=_anchor(scale.place(tick)))
            for tick, said in zip(ticks, labels(ticks), strict=True)]


def _anchor(place: float) -> str:
    return "start" if place < 0.03 else "end" if place > 0.97 else "middle"


def _upright(x: str, top: object, bottom: object, class_: str) -> Markup:
    return tag("line", x1=x, x2=x, y1=top, y2=bottom, class_=class_)
