"""Pages as values and as files: their lines run, their numbers are embedded safely, each file stands alone."""

import json
import re

import pytest

from mercer.gallery import PAGES
from mercer.gallery.files import page_text
from mercer.gallery.html import POLICY, asset, index_html, script
from mercer.gallery.page import embedded
from mercer.gallery.slips import SLIPS, shown

IDS = [page.slug for page in PAGES]


def test_there_are_all_pages():
    assert len(PAGES) == 23
    assert len(set(IDS)) == 23
    assert IDS[-2:] == ["slips", "playground"]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_a_page_says_what_it_must(page):
    lines = page.code.strip().splitlines()
    imports = [line for line in lines if line.startswith(("import", "from"))]
    written = [line for line in lines if line.strip()]
    assert len(written) >= 5
    assert len(written) - len(imports) <= 10
    assert all(len(line) <= 120 for line in lines)
    assert len(re.findall(r"[.:](?= |$)", page.claim)) <= 4
    assert len(page.look) == 3
    assert "figure({" in script(page)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_a_page_is_one_small_file_that_asks_for_nothing(page):
    text = page_text(page)
    assert len(text.encode()) < 1_000_000
    assert POLICY in text
    assert "https://" not in text
    assert re.findall(r'(?:src|href)="(?!data:,)([^"]*)"', text.split("<script")[0]) == [
        "index.html",
        *(f"{PAGES[(IDS.index(page.slug) + step) % 23].slug}.html" for step in (-1, 1)),
    ]
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert json.loads(data) == json.loads(embedded(page.numbers()))
    assert text.count("</script>") == 2


def test_the_index_names_every_page():
    text = index_html(PAGES)
    for page in PAGES:
        assert f'href="{page.slug}.html"' in text


def test_every_slip_is_shown_on_a_page_and_in_numbers():
    assert len(SLIPS) == 16
    told = {key for page in PAGES for key in page.slips}
    assert told == set(SLIPS)
    for key in SLIPS:
        s = shown(key)
        assert len(s.x) == len(s.note) == len(s.right)
        assert re.search(r"\d", s.sentence)
        assert any(abs(a - b) > 1e-3 for a, b in zip(s.note, s.right, strict=True)), key


def test_scripts_cannot_end_their_element():
    names = [
        f"runtime/{n}.js" for n in ("linalg", "kernels", "parse", "learners", "plot", "figure")
    ]
    for text in [*map(asset, names), *map(script, PAGES)]:
        assert "</script" not in text.lower()
        assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|importScripts)\b", text)
