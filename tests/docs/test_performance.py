"""The page on performance is made from the figures, which name benchmarks that there are."""

import importlib.util
import json

import pytest

from bench.__main__ import names
from tests.docs.markdown import ROOT

FIGURES = json.loads((ROOT / "docs" / "performance.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def performance():
    spec = importlib.util.spec_from_file_location("performance", ROOT / "tools" / "performance.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_figures(performance):
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert page == performance.page(FIGURES), "python tools/performance.py writes it anew"


def test_every_section_names_a_benchmark_and_has_full_rows():
    for section in FIGURES["sections"]:
        assert section["bench"]
        assert set(section["bench"]) <= set(names())
        assert section["rows"]
        assert {len(row) for row in section["rows"]} == {len(section["columns"])}
    assert set(FIGURES["runs"]) <= set(names())


def test_a_run_is_taken_in_the_place_of_an_earlier_one(performance):
    row = {"name": "a|b", "unit": "s", "ours": 0.5, "peer": 1.0, "ratio": 2.0, "quality": "r2 1"}
    rows = [row | {"failure": None}, row | {"failure": "not equal", "ratio": None}]
    result = {"bench": "gram", "machine": {"cores": 3}, "rows": rows}
    taken = performance.taken(FIGURES, [result])
    assert taken["runs"]["gram"]["rows"] == rows
    assert taken["sections"] == FIGURES["sections"]
    text = performance.page(taken)
    assert "| a\\|b | 0.5 s | 1 s | 2.00x | r2 1 |" in text
    assert "| a\\|b |  |  | none | not equal |" in text
