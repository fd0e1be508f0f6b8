"""The page as a parser reads it: whole, self-contained, complete, escaped, and unbroken where
something is missing."""

import math
import os
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.report import html, words, write
from tests.report.examples import EXAMPLES, binary, hostile, many_classes, regression, wide
from tests.report.reading import Page

NAN = math.nan
pages = pytest.mark.parametrize("make", [*EXAMPLES.values(), wide], ids=[*EXAMPLES, "wide"])


@pages
def test_whole(make):
    page = Page(html(make()))
    assert page.problems == []
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    links = [element.attributes["href"] for element in page.all("a")]
    assert links
    assert {link[1:] for link in links} <= set(ids)
    assert all(link.startswith("#") for link in links)


@pages
def test_self_contained(make):
    text = html(make())
    page = Page(text)
    assert not {element.tag for element in page.elements} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
    }
    assert not re.search(r"https?:|//[a-z]|url\(|@import|javascript:", text)
    assert not [
        name
        for element in page.elements
        for name in element.attributes
        if name.startswith("on") or name in ("src", "action")
    ]
    policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0].attributes["content"]
    assert policy.startswith("default-src 'none'")


@pages
def test_headings_in_order_and_figures_named(make):
    page = Page(html(make()))
    levels = [
        int(element.tag[1]) for element in page.elements if re.fullmatch(r"h[1-6]", element.tag)
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    by_id = {
        element.attributes["id"]: element for element in page.elements if "id" in element.attributes
    }
    for picture in page.all("svg", role="img"):
        assert by_id[picture.attributes["aria-labelledby"]].words
        assert len(by_id[picture.attributes["aria-describedby"]].words) > 40
    unnamed = [
        svg
        for svg in page.all("svg")
        if svg.attributes.get("role") != "img" and "svg" not in svg.path
    ]
    assert all(
        svg.attributes.get("aria-hidden") == "true" or svg.path[-1] == "li" for svg in unnamed
    )
    assert all(box.attributes["aria-label"] for box in page.all("div", role="region"))


@pages
def test_everything_is_there(make):
    result = make()
    page = Page(html(result))
    words = page.words
    for contender in result.contenders:
        assert words.count(contender.name) >= 2  # in the figure and in the table
    missing = [column["name"] for column in result.columns if column["name"][:100] not in words]
    assert missing == []
    for text in (
        result.verdict,
        result.metric_note,
        result.task_reason,
        result.holdout_rule,
        result.plan,
        *result.warnings,
    ):
        assert text in words
    assert result.command in page.all("code")[0].words
    assert all(label[:39] in words for label in result.classes)
    assert all(column in words for column, *_ in result.importance if len(column) < 60)


def test_order_of_sections():
    anchors = [element.attributes["id"] for element in Page(html(binary())).all("section")]
    assert anchors == [
        "lift",
        "importance",
        "fit",
        "calibration",
        "worst",
        "columns",
        "warnings",
        "cost",
        "contenders",
        "plan",
        "reproduce",
    ]
    page = Page(html(regression()))
    first = next(element for element in page.elements if element.tag == "figure")
    assert first.path[-1] == "header"
    assert regression().verdict in page.all("header")[0].words


def test_a_formula_is_in_the_header_and_escaped():
    shown = replace(regression(), formula="y = 3 1{a < 2} + 2 <b>")
    page = Page(html(shown))
    assert "y = 3 1{a < 2} + 2 <b>" in page.all("header")[0].words
    assert "y = 3" not in Page(html(regression())).all("header")[0].words


def test_headline_is_the_holdout_score():
    page, chosen = Page(html(regression())), regression().chosen
    assert page.all("strong")[0].words == f"{chosen.holdout:.3f}"
    assert (
        f"95\u00a0% interval {chosen.low:.3f} to {chosen.high:.3f}" in page.all("header")[0].words
    )
    assert f"{chosen.holdout:.3f}" in page.all("title")[0].words


HOSTILE = [
    "</script><script>alert(1)</script>",
    "</style><b>",
    "<!-- ",
    "]]>",
    "\"' onmouseover=alert(1) x='",
    "&lt;b&gt; &amp;#0; &#x202e;",
    "javascript:alert(1)",
    "\x00\x01\x1b[31m",
    "\ud800 lone",
    "שלום עולם",
    "مرحبا",
    "\u202egnp.exe",
    "a\u0301" * 50,
    "é" * 5000,
    "🧪" * 300,
    "{{7*7}} ${x} %s",
    "\r\n\t tab",
    "名前",
    "</title></head>",
    "\ufffe\uffff",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_only_text(text):
    check_escaped(text)


PIECES = st.lists(st.sampled_from([*HOSTILE, *"<>&\"'/="]), max_size=5).map("".join)


@given(st.text(st.characters(exclude_categories=()), max_size=60) | PIECES)
def test_any_text_is_only_text(text):
    check_escaped(text)


def check_escaped(text):
    written = html(hostile("x" + text))
    page = Page(written)
    assert page.problems == []
    assert page.skeleton() == Page(html(hostile("plain"))).skeleton()
    shown = re.sub(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", "\ufffd", "x" + text
    )
    assert shown in page.words
    written.encode()  # every page can be written


def test_names_have_a_direction_of_their_own():
    page = Page(html(replace(hostile("\u202eshalom"), metric="accuracy", version="1")))
    turned = [path for path, data in page.data if "\u202e" in data]
    assert len(turned) > 20
    assert {path for path in turned if "bdi" not in path} == {("html", "head", "title")}


def contender(**changes):
    return lambda: tuple(replace(one, **changes) for one in regression().contenders)


ABSENT = {
    "no trees": dict(
        contenders=lambda: tuple(one for one in regression().contenders if one.kind != "trees")
    ),
    "one contender": dict(contenders=lambda: (regression().chosen,)),
    "none chosen": dict(contenders=contender(chosen=False)),
    "no contenders": dict(contenders=()),
    "no intervals": dict(contenders=contender(low=None, high=None, cv=None, cv_error=None)),
    "nothing measured": dict(
        contenders=contender(holdout=None, low=None, high=None, cv=None, cv_error=None, seconds=NAN)
    ),
    "nan": dict(
        contenders=contender(
            holdout=NAN, low=NAN, high=math.inf, cv=-math.inf, cv_error=NAN, seconds=NAN
        )
    ),
    "equal scores": dict(contenders=contender(holdout=0.5, low=0.5, high=0.5)),
    "huge scores": dict(contenders=contender(holdout=-1e308, low=-1.7e308, high=1.7e308)),
    "tiny scores": dict(contenders=contender(holdout=1e-310, low=0.0, high=5e-324)),
    "no gain": dict(lift_gain=None),
    "gain of nothing": dict(lift_gain=(0.0, 0.0, 0.0)),
    "gain unknown": dict(lift_gain=(NAN, NAN, NAN)),
    "gain without ends": dict(lift_gain=(0.1, NAN, None)),
    "no importance": dict(importance=()),
    "importance unknown": dict(
        importance=(("a", NAN, NAN), ("b", 1.0, None), ("c", -math.inf, 0.0))
    ),
    "importance nought": dict(importance=(("a", 0.0, 0.0),)),
    "no columns": dict(columns=()),
    "bare columns": dict(columns=({"name": "a"}, {})),
    "no warnings": dict(warnings=()),
    "no worst": dict(worst=()),
    "bare worst": dict(
        worst=(
            {"row": 3},
            {"row": None, "actual": NAN, "predicted": None, "error": math.inf, "values": None},
        )
    ),
    "no points": dict(points=()),
    "one point": dict(points=((1.0, 2.0),)),
    "same points": dict(points=((5.0, 5.0),) * 9),
    "zeros": dict(points=((0.0, 0.0),) * 9),
    "points beyond": dict(points=((NAN, 1.0), (math.inf, 1.0), (1e308, -1e308), (1.0, None))),
    "wild prediction": dict(points=(*((float(i), float(i)) for i in range(20)), (3.0, 1e200))),
    "no interval": dict(interval=None),
    "bare interval": dict(interval={"coverage_asked": 0.9}),
    "no costs": dict(
        model_bytes=0, latency_row_ms=NAN, latency_1000_ms=0.0, seconds=NAN, memory_peak_bytes=None
    ),
    "no words": dict.fromkeys(
        (
            "version",
            "command",
            "created",
            "task_reason",
            "metric",
            "metric_note",
            "holdout_rule",
            "verdict",
            "plan",
            "target",
        ),
        "",
    ),
    "no rows": dict(rows_train=0, rows_holdout=0, rows_dropped=0),
}


@pytest.mark.parametrize("changes", ABSENT.values(), ids=ABSENT)
def test_missing_parts_do_not_break_it(changes):
    check_unbroken(
        replace(
            regression(),
            **{key: value() if callable(value) else value for key, value in changes.items()},
        )
    )


ABSENT_CLASSES = {
    "no confusion": dict(confusion=()),
    "ragged": dict(confusion=((1, 2), (3,))),
    "no rows": dict(confusion=((0, 0), (0, 0))),
    "too few names": dict(classes=("a",), confusion=((5, 1, 0), (0, 4, 1), (0, 0, 3))),
    "too many names": dict(classes=("a", "b", "c"), confusion=((5, 1), (0, 4))),
    "one class": dict(classes=("a",), confusion=((5,),)),
    "never wrong": dict(confusion=tuple(tuple(3 * (i == j) for j in range(30)) for i in range(30))),
    "no calibration": dict(calibration=()),
    "calibration unknown": dict(calibration=((NAN, NAN, 0), (0.2, None, 3))),
    "one bin": dict(calibration=((0.5, 0.5, 0),)),
}


@pytest.mark.parametrize("changes", ABSENT_CLASSES.values(), ids=ABSENT_CLASSES)
def test_missing_parts_of_classes_do_not_break_it(changes):
    check_unbroken(replace(many_classes(), **changes))


def check_unbroken(result):
    page = Page(html(result))
    assert page.problems == []
    assert not re.search(r"\b(nan|None|inf|infinity)\b", page.words)
    drawn = ("x", "x1", "x2", "cx", "cy", "r", "d", "width")
    numbers = [
        value
        for element in page.elements
        for key, value in element.attributes.items()
        if key in drawn
    ]
    assert not [value for value in numbers if re.search(r"nan|inf|None|e[+-]?\d", value)]


def test_written_whole_or_not_at_all(tmp_path, monkeypatch):
    goal = tmp_path / "report.html"
    write(binary(), goal)
    assert goal.read_text(encoding="utf-8") == html(binary())
    before = goal.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(regression(), goal)
    assert goal.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_written_through_a_link_and_with_the_usual_rights(tmp_path):
    goal, link, plain = tmp_path / "goal.html", tmp_path / "link.html", tmp_path / "plain"
    plain.touch()
    goal.write_text("old")
    link.symlink_to(goal)
    write(binary(), str(link))
    assert link.is_symlink()
    assert goal.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert goal.stat().st_mode == plain.stat().st_mode


def test_a_folder_is_refused_and_a_device_takes_it(tmp_path):
    with pytest.raises(IsADirectoryError):
        write(binary(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(
        FileNotFoundError,
        match=r"nowhere/report\.html cannot be written: the folder .*nowhere does not exist",
    ):
        write(binary(), tmp_path / "nowhere" / "report.html")
    write(binary(), os.devnull)
    assert not os.path.isfile(os.devnull)


def weighted(e, dropped=0, missing=0):
    """The same with a column of weights."""
    columns = [c for c in e.columns if c["kind"] != "target"]
    told = {"name": e.target, "kind": "target", "n_missing": missing}
    heavy = {"name": "heavy", "kind": "weight", "n_missing": 0}
    sums = tuple(tuple(1.5 * value for value in row) for row in e.confusion)
    return replace(e, columns=(*columns, told, heavy), confusion_weights=sums, rows_dropped=dropped)


@pytest.mark.parametrize("make", [binary, many_classes])
def test_weights_are_told_and_the_confusion_is_in_them(make):
    e = weighted(make())
    said, plain = (" ".join(data for _, data in Page(html(r)).data) for r in (e, make()))
    assert 'weighted by "heavy", that no choice has seen' in said
    assert 'weight "heavy"' in said
    assert "heavy" not in plain
    assert words.number(1.5 * sum(e.confusion[0])) in said
    assert "holdout rows by actual" not in said.lower() or "of the holdout rows by actual" in said


@pytest.mark.parametrize(
    ("missing", "said"),
    [(43, "without a target"), (0, "without a weight"), (40, "without a target or a weight")],
)
def test_rows_left_out_are_told_by_what_they_lack(missing, said):
    e = weighted(regression(), 43, missing)
    assert f"43 rows {said} left out" in " ".join(data for _, data in Page(html(e)).data)
    assert words.without(e) == said


def test_a_mean_is_told_with_what_it_is_of():
    e = regression()
    kinds = [c.kind for c in e.contenders if not c.chosen and c.kind in ("trees", "linear")]
    assert "trees" in kinds
    e = replace(e, members=(("machine", 0.35), ("trees", 0.65)), learnt=(("age", 0.7), ("b", 0.3)))
    said = " ".join(data for _, data in Page(html(e)).data)
    assert "What the mean of models added over a linear model" in said
    assert "What the lift added" not in said
    assert "Gradient-boosted trees have 65\u00a0% of the weight in this mean." in said
    assert "65\u00a0% of the mean" in said
    assert "for comparison" not in said
    assert "in the learnt metric of the kernel machine (35\u00a0% of the mean): age (70%)" in said
    alone = " ".join(data for _, data in Page(html(regression())).data)
    assert "What the lift added over a linear model" in alone
    assert "for comparison" in alone


def test_probabilities_are_told_with_their_class():
    two, many = (" ".join(data for _, data in Page(html(m())).data) for m in (binary, many_classes))
    assert f'predicted probability of "{binary().classes[1]}"' in two
    assert "predicted probability of the likeliest class" in many


def test_scores_of_cross_validation_are_not_said_to_be_of_unseen_rows():
    said = " ".join(data for _, data in Page(html(regression())).data)
    assert "All scores are on rows that no choice" not in said
    assert "Holdout scores are on rows that no choice saw" in said
