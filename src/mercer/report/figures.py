"""Figures: axes with round ticks, linear or logarithmic on both sides of a linear middle; predicted
against actual; calibration.

Each has a title and a description for those who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeGuard

import numpy as np

from mercer.automl.result import FitResult
from mercer.report import words
from mercer.report.tags import Child, Markup, join, name, tag
from mercer.report.words import finite, fixed, number

LARGEST = 1e150  # beyond, the ratios of an axis would overflow
WIDTH, HEIGHT, LEFT, TOP, SIDE = 380, 372, 52, 12, 316
CONSTANT = 1e-12  # of the size of numbers: a deviation that is rounding
LAYERS = 8  # points are dealt to as many translucent paths, so that crowds look darker


def drawable(value: object) -> TypeGuard[float]:
    """Whether an axis can hold the number.

    >>> drawable(1.0), drawable(None), drawable(float("inf")), drawable(-1e155)
    (True, False, False, False)
    """
    return finite(value) and (value == 0 or 1 / LARGEST < abs(value) < LARGEST)


@dataclass(frozen=True)
class AxisScale:
    """Place of v in [low, high] after v -> sign(v) log10(1 + |v|/unit); unit None is linear.

    >>> AxisScale(0.0, 10.0).place(2.5)
    0.25
    """

    low: float
    high: float
    unit: float | None = None

    def place(self, value: float) -> float:
        """Where the value lies; beyond an end, at the end."""
        start, stop = self.bend(self.low), self.bend(self.high)
        return min(1.0, max(0.0, (self.bend(value) - start) / (stop - start)))

    def bend(self, value: float) -> float:
        """The value as it is drawn."""
        return (
            value
            if self.unit is None
            else math.copysign(math.log10(1 + abs(value) / self.unit), value)
        )

    def ticks(self, most: int = 5) -> list[float]:
        """Round values within the scale."""
        return round_ticks(self.low, self.high, most) if self.unit is None else self._powers(most)

    def _powers(self, most: int) -> list[float]:
        inside = self._ladder((1.0,))
        if len(inside) < 3:
            inside = self._ladder((1.0, 2.0, 5.0))
        stride = max(1, math.ceil(len(inside) / most))
        return inside[::-stride][::-1]

    def _ladder(self, factors: Sequence[float]) -> list[float]:
        unit = self.unit or 1.0
        top = math.floor(math.log10(max(abs(self.low), abs(self.high)) / unit) + 1e-9)
        steps = [
            float(f"{unit * 10.0**power * factor:.3g}")
            for power in range(top + 1)
            for factor in factors
        ]
        return [
            tick
            for tick in (*(-step for step in steps[::-1]), 0.0, *steps)
            if self.low <= tick <= self.high
        ]


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from low to high.

    >>> round_ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> round_ticks(0.13, 0.87)
    [0.2, 0.4, 0.6, 0.8]
    """
    rough = 0.85 * (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, places) + 0.0 for index in range(first, last + 1)]


def around(values: Sequence[float], margin: float = 0.06) -> AxisScale:
    """A linear scale that holds the values with some air.

    >>> around([1.0, 2.0], margin=0.5)
    AxisScale(low=0.5, high=2.5, unit=None)
    """
    low, high = min(values), max(values)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        air = abs(low) * 0.05 or 1.0
        return AxisScale(low - air, high + air)
    return AxisScale(low - margin * (high - low), high + margin * (high - low))


def spread(values: Sequence[float]) -> AxisScale:
    """A scale for values of the data: logarithmic where nearly all are positive and spread over
    more than a factor of ten.

    >>> spread([1.0, 2.0, 3.0]).unit is None, spread([10.0**k for k in range(7)]).unit, spread([0.0, 1.0, 1.0, 1e4]).unit
    (True, 0.1, 1.0)
    """
    every = np.asarray(values, dtype=float)
    positive = every[every > 0]
    if (
        not positive.size
        or not skewed(every)
        or np.quantile(positive, 0.99) < 10 * np.quantile(positive, 0.05)
    ):
        return around(values, 0.03)
    low, high = min(values), max(values)
    unit = 10.0 ** (
        math.floor(math.log10(np.quantile(positive, 0.01))) - (low > 0)
    )  # far below the values the scale is a plain logarithm
    return AxisScale(
        low / 1.2 if low > 0 else low * 1.2, high * 1.2 if high > 0 else high / 1.2, unit
    )


def skewed(values: np.ndarray) -> bool:
    """Whether hardly anything is negative and the upper tail is more than three times as long as
    the lower one."""
    low, middle, high = np.quantile(values, (0.02, 0.5, 0.98))
    return bool(low >= 0 and high - middle > 3 * (middle - low))


def labels(ticks: Sequence[float]) -> list[str]:
    """The ticks in words, all with as many decimals as their distance asks for.

    >>> labels([0.8, 0.825, 0.85]), labels([0.0, 50_000.0, 1_000_000.0])
    (['0.800', '0.825', '0.850'], ['0', '50k', '1M'])
    """
    largest = max((abs(tick) for tick in ticks), default=0.0)
    if 0 < largest < 1e-4 or largest >= 1e4:
        return [_lettered(tick) for tick in ticks]
    gap = min((second - first for first, second in pairwise(ticks)), default=largest or 1.0)
    places = next(digits for digits in range(17) if abs(round(gap, digits) - gap) <= 1e-3 * gap)
    return [fixed(tick, places) for tick in ticks]


def _lettered(value: float) -> str:
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if 10**power <= abs(value) * 1.000001 and abs(value) < 1e15:
            return number(value / 10**power, 3) + letter
    return number(value, 3)


def points(result: FitResult) -> Markup:
    """Predicted against actual, on one scale for both."""
    kept = [
        (actual, predicted)
        for actual, predicted in result.points
        if drawable(actual) and drawable(predicted)
    ]
    if not kept:
        return tag("p", "No predictions can be drawn.", class_="quiet")
    scale = _common(kept)
    how = " Both axes are logarithmic." if scale.unit else ""
    desc = f"{words.many(len(kept), 'holdout row')}: correlation {words.number(_correlation(kept), 3)}. Points on the line are right.{how}"
    layers = [
        tag("path", d=_dots(kept[start::LAYERS], scale), class_="points")
        for start in range(min(LAYERS, len(kept)))
    ]
    plot = _plot(
        join([_frame(scale, "actual", "predicted"), *layers]),
        "Predicted against actual",
        desc,
        "points",
    )
    return tag("figure", plot, tag("figcaption", desc))


def calibration(result: FitResult) -> Markup:
    """Observed share against predicted probability; the area of a point is its number of
    predictions."""
    kept = [
        (said, seen, size)
        for said, seen, size in result.calibration
        if drawable(said) and drawable(seen)
    ]
    if not kept:
        return tag("p", "No probabilities were measured.", class_="quiet")
    gap = sum(size * abs(said - seen) for said, seen, size in kept) / max(
        1, sum(size for *_, size in kept)
    )
    desc = (
        f"On average the observed share differs from the predicted probability by {words.number(100 * gap, 2)} percentage points. "
        f"Points on the line are right; larger ones are more predictions."
    )
    scale, most = AxisScale(0.0, 1.0), max(1, *(size for *_, size in kept))
    dots = [
        tag(
            "circle",
            cx=_x(scale, said),
            cy=_y(scale, seen),
            r=3 + 7 * (max(0, size) / most) ** 0.5,
            class_="bin",
        )
        for said, seen, size in kept
    ]
    plot = _plot(
        join([_frame(scale, "predicted probability", "observed share"), *dots]),
        "Calibration",
        desc,
        "calibration",
    )
    return tag(
        "figure",
        plot,
        tag("figcaption", name(f"Probabilities {words.of_class(result)}."), " ", desc),
    )


def _common(kept: Sequence[tuple[float, float]]) -> AxisScale:
    """The scale of the actual values, widened to the predictions short of absurd ones."""
    actual = [pair[0] for pair in kept]
    reach = max(actual) - min(actual) or abs(actual[0]) or 1.0
    near = [
        value for _, value in kept if min(actual) - reach / 2 <= value <= max(actual) + reach / 2
    ]
    scale = spread(actual)
    if scale.unit and min(actual) > 0:
        near = [value for value in near if value > 0]
    return spread([*actual, *near]) if scale.unit is None else _widened(scale, near)


def _widened(scale: AxisScale, values: Sequence[float]) -> AxisScale:
    return AxisScale(min([scale.low, *values]), max([scale.high, *values]), scale.unit)


def _correlation(kept: Sequence[tuple[float, float]]) -> float:
    actual, predicted = (
        np.asarray(side) / max(1.0, float(np.max(np.abs(side)))) for side in zip(*kept, strict=True)
    )
    if any(side.std() <= CONSTANT * np.abs(side).max() for side in (actual, predicted)):
        return float("nan")
    spreads = actual.std() * predicted.std()
    return (
        float(np.mean((actual - actual.mean()) * (predicted - predicted.mean())) / spreads)
        if spreads > 0
        else float("nan")
    )


def _dots(pairs: Sequence[tuple[float, float]], scale: AxisScale) -> str:
    return "".join(
        f"M{_x(scale, actual):.1f} {_y(scale, predicted):.1f}h0" for actual, predicted in pairs
    )


def _frame(scale: AxisScale, across: str, up: str) -> Markup:
    ticks = scale.ticks()
    named = list(zip(ticks, labels(ticks), strict=True))
    lines = [
        (
            tag("line", x1=_x(scale, t), x2=_x(scale, t), y1=TOP, y2=TOP + SIDE, class_="grid"),
            tag("line", x1=LEFT, x2=LEFT + SIDE, y1=_y(scale, t), y2=_y(scale, t), class_="grid"),
        )
        for t in ticks
    ]
    below = [
        tag("text", words_, x=_x(scale, t), y=TOP + SIDE + 16, text_anchor="middle")
        for t, words_ in named
    ]
    beside = [
        tag("text", words_, x=LEFT - 6, y=_y(scale, t) + 4, text_anchor="end")
        for t, words_ in named
    ]
    diagonal = tag("line", x1=LEFT, y1=TOP + SIDE, x2=LEFT + SIDE, y2=TOP, class_="rule")
    middle = TOP + SIDE / 2
    titles: list[Child] = [
        tag(
            "text",
            across,
            x=LEFT + SIDE / 2,
            y=HEIGHT - 6,
            text_anchor="middle",
            class_="axis-title",
        ),
        tag(
            "text",
            up,
            x=12,
            y=middle,
            text_anchor="middle",
            transform=f"rotate(-90 12 {middle:g})",
            class_="axis-title",
        ),
    ]
    return join([lines, diagonal, below, beside, titles])


def _plot(drawn: Markup, title: str, desc: str, ident: str) -> Markup:
    heads = [tag("title", title, id=f"{ident}-title"), tag("desc", desc, id=f"{ident}-desc")]
    return tag(
        "svg",
        heads,
        drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="plot",
        role="img",
        aria_labelledby=f"{ident}-title",
        aria_describedby=f"{ident}-desc",
    )


def _x(scale: AxisScale, value: float) -> float:
    return LEFT + SIDE * scale.place(value)


def _y(scale: AxisScale, value: float) -> float:
    return TOP + SIDE * (1 - scale.place(value))
