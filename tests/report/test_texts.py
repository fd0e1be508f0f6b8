from dataclasses import replace

import pytest

from mercer.cli.summary import summary
from mercer.report import page
from mercer.report.texts import spoken
from tests.report.examples import binary, regression

TOLD = {
    "column": "review <b>",
    "kind": "one and two words",
    "measure": "auc",
    "score": 0.9123,
    "penalty": 1.0,
    "tried": [["one and two words", 0.91], ["letters", None]],
    "skipped": [["both", "time"]],
    "rows": 90,
    "of_rows": 100,
    "ngrams": [["great <i>", "", 0.31, 40], ["bad", "", -0.2, 30]],
}


def of(result, output):
    grams = [[g, output, gain, n] for g, _, gain, n in TOLD["ngrams"]]
    return replace(result, texts=(TOLD | {"ngrams": grams},))


def test_page_shows_the_race_and_the_words():
    result = binary()
    html = page.html(of(result, result.classes[1]))
    assert "What the words say" in html
    assert "great &lt;i&gt;" in html
    assert "review &lt;b&gt;" in html
    assert "<i>" not in html
    assert "not tried, for lack of time" in html
    assert "0.9123" in html
    assert "What the words say" not in page.html(result)


@pytest.mark.parametrize("make", [binary, regression])
def test_words_speak_for_classes_or_for_more_and_less(make):
    result = make()
    told = of(result, result.classes[1] if result.classes else "target")
    sides = (
        [f"for {result.classes[1]}", f"for {result.classes[0]}"]
        if result.classes
        else ["for more", "for less"]
    )
    said = spoken(told)[0]
    assert f'{sides[0]} "great <i>"' in said
    assert f'{sides[1]} "bad"' in said
    assert said in summary(told)
    assert spoken(replace(told, texts=(TOLD | {"ngrams": []},))) == []
    assert type(result).from_dict(told.as_dict()).texts[0]["ngrams"] == told.texts[0]["ngrams"]


def test_of_many_classes_an_n_gram_may_speak_against_one():
    result = replace(binary(), classes=("a", "b", "c"))
    assert 'for b "great <i>"; against b "bad"' in spoken(of(result, "b"))[0]


def test_the_heaviest_come_first():
    result = binary()
    grams = [["low", "yes", 0.1, 9], ["top", "yes", -0.9, 5], ["mid", "yes", 0.5, 4]]
    told = replace(result, texts=(TOLD | {"ngrams": grams},))
    html = page.html(told)
    assert html.index("top") < html.index("\u201cmid") < html.index("\u201clow")
    assert '"mid", "low"' in spoken(told)[0]


def test_a_constant_reads_no_words():
    result = binary()
    contenders = tuple(replace(c, kind="constant") if c.chosen else c for c in result.contenders)
    told = replace(of(result, result.classes[1]), contenders=contenders)
    assert spoken(told) == []
    html = page.html(told)
    assert "a constant, which reads none of them" in html
    assert "great &lt;i&gt;" not in html
    assert "which reads none" not in page.html(of(result, result.classes[1]))
