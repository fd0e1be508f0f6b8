"""The site is built with warnings as errors; its pages ask for nothing outside, and no link in it
leads nowhere."""

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import pytest

from tests.docs.markdown import ROOT

NEEDED = (
    "sphinx",
    "pydata_sphinx_theme",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
)
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
STYLE = re.compile(
    r"url\(\s*['\"]?((?:https?:)?//[^'\")]+)|@import\s+['\"]?((?:https?:)?//[^'\";]+)"
)
SECONDS = 600


class Page(HTMLParser):
    """What a page loads, where it links to, and the anchors it has."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get(LOADING.get(tag)) and given.get("rel") not in ("canonical", "search"):
            self.loads.append(given[LOADING[tag]])


def outside(url):
    return bool(re.match(r"(?:https?:)?//", url))


def lost(folder, pages):
    """Links that lead to no file, or to no anchor of a page."""
    found = []
    for path, page in pages.items():
        for url in page.links + page.loads:
            to, anchor = urldefrag(unquote(url).partition("?")[0])
            if re.match(r"[a-z]+:|//", url) or url == "#":
                continue
            there = (path.parent / to).resolve() if to else path
            known = pages.get(there)
            if not there.is_file() or (anchor and known and anchor not in known.anchors):
                found.append(f"{path.relative_to(folder)}: {url}")
    return found


def read(folder):
    return {
        p.resolve(): Page(p.read_text(encoding="utf-8"))
        for p in folder.rglob("*.html")
        if "_static" not in p.relative_to(folder).parts
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"the site: {', '.join(absent)} not installed; ./do docs installs them")
    folder = tmp_path_factory.mktemp("site")
    flags = ["--quiet", "--fail-on-warning", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *flags, "-d", folder / "_build", ROOT / "docs", folder],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder.resolve()


@pytest.mark.long
def test_pages_load_nothing_from_outside(site):
    pages = read(site)
    assert len(pages) > 200
    assert {url for page in pages.values() for url in page.loads if outside(url)} == set()
    styles = [p.read_text(encoding="utf-8") for p in site.rglob("*.css")]
    assert styles
    assert [found for text in styles for found in STYLE.findall(text)] == []


@pytest.mark.long
def test_no_link_of_the_site_leads_nowhere(site):
    assert lost(site, read(site)) == []


@pytest.mark.long
def test_the_search_works_without_a_server(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    assert "kernelridge" in index
    assert "searchindex.js" in (site / "search.html").read_text(encoding="utf-8")


def test_a_page_that_asks_outside_or_links_nowhere_is_seen(tmp_path):
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example/x.js"></script><a href="b.html#here">b</a>'
        '<a href="b.html#none">b</a><a href="c.html">c</a><a href="https://example.org">d</a>'
    )
    (tmp_path / "b.html").write_text(
        '<p id="here"></p><link rel="stylesheet" href="//x.org/y.css">'
    )
    pages = read(tmp_path.resolve())
    loads = [url for page in pages.values() for url in page.loads]
    assert all(map(outside, loads))
    assert len(loads) == 2
    assert lost(tmp_path.resolve(), pages) == ["a.html: b.html#none", "a.html: c.html"]
    assert STYLE.findall("a { src: url('https://x.org/f.woff') }")
    assert not STYLE.findall("a { src: url('f.woff'); b: url(data:x) }")
