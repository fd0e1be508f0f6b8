"""Figures: marks stand where their values are, and ticks are round."""

import math
import re
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mercer.report import figures, html, words
from mercer.report.figures import AxisScale, around, drawable, labels, round_ticks, spread
from tests.report.examples import EXAMPLES, binary, many_classes, regression
from tests.report.reading import Page

NUMBERS = st.floats(-1e149, 1e149).map(lambda value: value if drawable(value) else 0.0)


def figure(page, ident):
    """The elements of one figure."""
    start = next(
        i for i, element in enumerate(page.elements) if element.attributes.get("id") == ident
    )
    depth = len(page.elements[start].path)
    inside = (
        i for i in range(start + 1, len(page.elements)) if len(page.elements[i].path) <= depth
    )
    return page.elements[start + 1 : next(inside, len(page.elements))]


def place(element):
    return float(element.attributes["x"].rstrip("%"))


@pytest.mark.parametrize("make", EXAMPLES.values(), ids=EXAMPLES)
def test_dots_stand_where_the_scores_are(make):
    result = make()
    dots = [
        element
        for element in figure(Page(html(result)), "scores")
        if element.tag == "svg" and element.attributes.get("overflow")
    ]
    scores = sorted((one.holdout for one in result.contenders), reverse=result.higher_is_better)
    assert len(dots) == len(scores)
    slope, start = np.polyfit(scores, [place(dot) for dot in dots], 1)
    assert slope > 0
    np.testing.assert_allclose(
        start + slope * np.array(scores), [place(dot) for dot in dots], atol=0.02
    )  # percent


def test_a_score_far_away_becomes_an_arrow():
    e = regression()
    far = tuple(
        replace(one, holdout=-500.0, low=-900.0, high=-100.0) if one.kind == "linear" else one
        for one in e.contenders
    )
    page = Page(html(replace(e, contenders=far)))
    dots = [
        element
        for element in figure(page, "scores")
        if element.tag == "svg" and element.attributes.get("overflow")
    ]
    assert [place(dot) for dot in dots][-1] == 0.0
    assert max(place(dot) for dot in dots) - place(dots[-2]) > 20  # the others keep their room
    assert "An arrow points to a score beyond the axis." in page.words
    assert "−500.000" in page.words


def test_a_contender_without_a_holdout_score_is_named_below():
    e = regression()
    unmeasured = tuple(
        replace(one, holdout=None, low=None, high=None) if one.kind == "fourier" else one
        for one in e.contenders
    )
    page = Page(html(replace(e, contenders=unmeasured)))
    shown = [
        element.words
        for element in figure(page, "scores")
        if element.attributes.get("class") == "label"
    ]
    assert len(shown) == len(e.contenders) - 1
    assert "Not measured on the holdout: Fourier features." in page.words


def test_shade_is_the_interval_of_the_chosen():
    page = Page(html(binary()))
    band = next(
        element for element in figure(page, "scores") if element.attributes.get("class") == "band"
    )
    ends = [
        element
        for element in figure(page, "scores")
        if element.attributes.get("class") == "whisker"
    ]
    places = {(line.attributes["x1"], line.attributes["x2"]) for line in ends}
    low, high = place(band), place(band) + float(band.attributes["width"].rstrip("%"))
    assert any(
        abs(float(a.rstrip("%")) - low) < 0.02 and abs(float(b.rstrip("%")) - high) < 0.02
        for a, b in places
    )


def test_bars_are_as_long_as_the_losses():
    bars = [
        element
        for element in figure(Page(html(regression())), "shuffled")
        if element.attributes.get("class") == "bar"
    ]
    widths = np.array([float(bar.attributes["width"].rstrip("%")) for bar in bars])
    losses = np.array([abs(loss) for _, loss, _ in regression().importance])
    np.testing.assert_allclose(widths, losses * widths.max() / losses.max(), atol=0.02)


def test_every_point_is_drawn():
    points = tuple((float(i), float(i % 7)) for i in range(2000))
    page = Page(html(replace(regression(), points=(*points, (math.nan, 1.0)))))
    assert (
        sum(element.attributes["d"].count("M") for element in page.all("path", class_="points"))
        == 2000
    )
    assert "2,000 holdout rows" in page.words


def test_skewed_prices_are_drawn_by_their_logarithm():
    assert "Both axes are logarithmic." in Page(html(regression())).words
    even = tuple((float(i), i + 1.0) for i in range(100))
    assert "logarithmic" not in Page(html(replace(regression(), points=even))).words


def test_confusion_of_few_is_a_table_with_every_count():
    e = binary()
    cells = [
        element.words for element in Page(html(e)).all("td") if element.attributes.get("style")
    ]
    counts = [value for row in e.confusion for value in row]
    shares = [words.percent(value / sum(row)) for row in e.confusion for value in row]
    assert cells == [
        f"{count}{share}" for count, share in zip(map(str, counts), shares, strict=True)
    ]


def test_confusion_of_many_is_drawn_and_its_worst_pairs_are_named():
    e = many_classes()
    page = Page(html(e))
    drawn = [
        element
        for element in page.all("path")
        if (element.attributes.get("class") or "").startswith("shade")
    ]
    assert sum(path.attributes["d"].count("M") for path in drawn) == np.count_nonzero(e.confusion)
    counts = np.array(e.confusion) * (1 - np.eye(30, dtype=int))
    i, j = np.unravel_index(counts.argmax(), counts.shape)
    rows = [element.words for element in page.all("tr")]
    assert (
        f"{e.classes[i]}{e.classes[j]}{counts[i, j]}{words.percent(counts[i, j] / sum(e.confusion[i]))}"
        in rows
    )


@pytest.mark.parametrize(
    ("kind", "gain", "higher", "said"),
    [
        (
            "fourier",
            (0.1, 0.05, 0.15),
            True,
            "better by 0.100 than the linear model on the same holdout rows; the interval leaves out 0",
        ),
        ("fourier", (0.1, -0.05, 0.25), True, "the interval holds 0, so it may be chance"),
        ("fourier", (-0.1, -0.15, -0.05), False, "better by 0.100"),
        ("fourier", (0.1, 0.05, 0.15), False, "worse by 0.100"),
        ("linear", (0.0, 0.0, 0.0), True, "the chosen model is linear"),
        ("constant", None, True, "the chosen model is a constant"),
    ],
)
def test_what_the_lift_added(kind, gain, higher, said):
    e = binary()
    contenders = tuple(replace(one, chosen=one.kind == kind) for one in e.contenders)
    assert (
        said
        in Page(
            html(replace(e, contenders=contenders, lift_gain=gain, higher_is_better=higher))
        ).words
    )


@given(NUMBERS, NUMBERS)
def test_ticks_are_within_and_apart(a, b):
    low, high = sorted((a, b))
    assume(high - low > 1e-9 * max(abs(low), abs(high)))
    ticks = round_ticks(low, high)
    slack = 1e-6 * (high - low)
    assert 2 <= len(ticks) <= 8
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert all(before < after for before, after in pairwise(ticks))


@given(st.floats(-1e5, 1e5), st.floats(1e-3, 1e5))
def test_labels_tell_ticks_apart(low, span):
    ticks = round_ticks(low, low + span)
    assume(max(map(abs, ticks)) < 1e4 or span > 1e-2 * max(map(abs, ticks)))
    assert len(set(labels(ticks))) == len(ticks)


@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_scales_keep_the_order(values):
    for scale in (around(values), spread(values)):
        places = [scale.place(value) for value in sorted(values)]
        assert all(0 <= place <= 1 for place in places)
        assert places == sorted(places)
        assert len(scale.ticks()) <= 8


def test_logarithmic_scale_holds_zero_and_negatives():
    scale = AxisScale(-100.0, 1e5, unit=1.0)
    assert scale.ticks(most=20) == [
        -100.0,
        -10.0,
        -1.0,
        0.0,
        1.0,
        10.0,
        100.0,
        1000.0,
        10000.0,
        100000.0,
    ]
    steps = np.diff([scale.place(10.0**power) for power in range(1, 6)])
    np.testing.assert_allclose(steps, steps[-1], rtol=0.1)


def schemes():
    css = files("mercer.report").joinpath("page.css").read_text(encoding="utf-8")
    return [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", css, re.S)
    ]


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", schemes(), ids=["light", "dark", "print"])
def test_contrast(scheme):
    def contrast(front, ground):
        low, high = sorted((luminance(scheme[front]), luminance(scheme[ground])))
        return (high + 0.05) / (low + 0.05)

    words_on = [
        (front, ground)
        for front in ("ink", "quiet", "accent")
        for ground in ("ground", "sheet", "soft")
    ]
    poor = {
        pair: contrast(*pair)
        for pair in [*words_on, ("wary", "sheet"), ("ink", "wary-soft")]
        if contrast(*pair) < 4.5
    }
    marks = [
        (front, ground)
        for front in ("mark", "trees", "accent")
        for ground in ("ground", "sheet", "soft")
    ]
    assert poor | {pair: contrast(*pair) for pair in marks if contrast(*pair) < 3} == {}


def test_a_constant_has_no_correlation():
    assert np.isnan(figures._correlation([(y, 0.1 + 1e-17 * y) for y in range(9)]))
    assert np.isnan(figures._correlation([(y, 1e5 * (0.1 + 1e-16 * (y % 2))) for y in range(9)]))
    assert figures._correlation([(y, 2e-9 * y) for y in range(9)]) > 0.999
