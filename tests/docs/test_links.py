"""Links inside the documentation lead to files and headings that are there."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.markdown import ROOT, anchors, links, name, pages

PAGES = pages()
INCLUDED = {  # pages of the site that show a file of the root
    "docs/changelog.md": "CHANGELOG.md",
    "docs/contributing.md": "CONTRIBUTING.md",
}


def anchors_of(path: Path) -> set[str]:
    shown = ROOT / INCLUDED.get(name(path), name(path))
    return anchors(shown.read_text(encoding="utf-8"))


def broken(page: Path, text: str) -> list[str]:
    """Links of the text of a page that lead nowhere."""
    return [to for to in links(text) if not _leads(page, to)]


def _leads(page: Path, to: str) -> bool:
    path, _, anchor = unquote(to).partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.exists() or not there.is_relative_to(ROOT):
        return False
    return not anchor or (there.suffix == ".md" and anchor in anchors_of(there))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    assert broken(page, page.read_text(encoding="utf-8")) == []


def test_a_link_that_leads_nowhere_is_seen():
    page = ROOT / "docs" / "index.md"
    there = "[a](migration.md) [b](../CONTRIBUTING.md#commands) [c](https://example.org/none)"
    assert broken(page, there) == []
    gone = "[a](none.md) ![p](pictures/none.png) [b](migration.md#none) [c](#none) [d]: gone.md\n"
    assert broken(page, gone) == ["none.md", "pictures/none.png", "migration.md#none", "#none"]
    assert broken(page, "`[a](none.md)`\n\n```\n[b](none.md)\n```\n") == []


def test_anchors_are_those_of_github():
    text = "# One: `a_b`, two\n\n## Same\n\n## Same\n\n```\n# no heading\n```\n"
    assert anchors(text) == {"one-a_b-two", "same", "same-1"}
