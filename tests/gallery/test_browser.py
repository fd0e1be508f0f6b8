"""Every page in a real browser: nothing is logged or fetched, every control, handle and plot that can be moved
is moved and changes the figure, and nothing sticks out on a phone."""

import time

import pytest

from mercer.gallery import PAGES
from mercer.gallery.files import page_text
from mercer.gallery.html import index_html
from tests.gallery.chromium import Browser, program

pytestmark = pytest.mark.browser
SLUGS = [page.slug for page in PAGES]
# What a reader sees of the figure; handles carry their places.
SEEN = "document.querySelector('#figure .plots').innerHTML + document.querySelector('.readout').innerHTML"
PLACE = """(() => {{ const e = document.querySelector({0!r}); e.scrollIntoView({{block: 'center'}});
  const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2, b.width, b.height]; }})()"""
CONTROLS = """[...document.querySelectorAll('#figure .control')].map(c => {
  const e = c.querySelector('input, select, button');
  return {id: e.id, kind: e.type, hidden: c.hidden, options: e.options ? [...e.options].map(o => o.value) : []}; })"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"), program())
    yield found
    found.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gallery")
    for page in PAGES:
        (folder / f"{page.slug}.html").write_text(page_text(page), encoding="utf-8")
    (folder / "index.html").write_text(index_html(PAGES), encoding="utf-8")
    return folder


def seen(browser):
    return browser.evaluate(SEEN)


def waits_for(browser, before):
    """Whether the figure becomes another than it was."""
    end = time.monotonic() + 20
    while (now := seen(browser)) == before and time.monotonic() < end:
        browser.settle()
    return now != before


def place(browser, selector):
    return browser.evaluate(PLACE.format(selector))


def focus(browser, id):
    browser.evaluate(f"document.getElementById({id!r}).focus()")


def move(browser, control):
    """Move a control as a reader would: keys on a slider, a choice or a text, a click on the others."""
    id, kind = control["id"], control["kind"]
    if kind == "range":
        focus(browser, id)
        at_end = browser.evaluate(f"(e => +e.value >= +e.max)(document.getElementById({id!r}))")
        for _ in range(6):
            browser.key("ArrowLeft" if at_end else "ArrowRight")
    elif kind == "select-one":
        focus(browser, id)
        last = browser.evaluate(
            f"(e => e.selectedIndex === e.options.length - 1)(document.getElementById({id!r}))"
        )
        browser.key("ArrowUp" if last else "ArrowDown")
    elif kind == "text":
        focus(browser, id)
        browser.evaluate(f"document.getElementById({id!r}).select()")
        browser.call("Input.insertText", text={"control-text": "Laplace(0.5)"}.get(id, "ACGTAC"))
    else:
        x, y, *_ = place(browser, f"#{id}")
        browser.click(x, y)
    browser.settle()


def controls(browser):
    return [c for c in browser.evaluate(CONTROLS) if not c["hidden"]]


@pytest.mark.parametrize("slug", [*SLUGS, "index"])
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_loads_quietly_and_fits(browser, pages, slug, width, dark):
    browser.open(pages / f"{slug}.html", width, dark=dark)
    assert browser.troubles() == []
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert browser.evaluate(wide)
    if slug != "index":
        assert browser.evaluate(
            "[...document.querySelectorAll('#figure svg')].every(s => s.getAttribute('aria-label'))"
        )
        assert browser.evaluate("document.querySelectorAll('#figure svg *').length > 20")


def goes_back(control):
    return "as-they-were" in control["id"] or "from-the-start" in control["id"]


@pytest.mark.parametrize("slug", SLUGS)
def test_every_control_changes_the_figure(browser, pages, slug):
    """Buttons that put things back come last, when there is something to put back; controls that a choice hides
    are moved once one of its options shows them."""
    browser.open(pages / f"{slug}.html")
    every = {c["id"] for c in browser.evaluate(CONTROLS)}
    moved = set()
    for back in (False, True):
        while control := next(
            (c for c in controls(browser) if c["id"] not in moved and goes_back(c) == back), None
        ):
            if back:
                drag_a_handle(browser)
            before = seen(browser)
            move(browser, control)
            assert waits_for(browser, before), control
            moved.add(control["id"])
    for id in every - moved:  # shown by another option of some choice
        moved |= reveal(browser, pages / f"{slug}.html", id)
    assert moved == every
    assert browser.troubles() == []


def reveal(browser, path, id):
    for choice in [c for c in browser.evaluate(CONTROLS) if c["options"]]:
        for option in choice["options"]:
            browser.open(path)
            browser.evaluate(
                f"(e => {{ e.value = {option!r}; e.dispatchEvent(new Event('change')); }})(document.getElementById({choice['id']!r}))"
            )
            browser.settle()
            found = next((c for c in controls(browser) if c["id"] == id), None)
            if found:
                before = seen(browser)
                move(browser, found)
                assert waits_for(browser, before), found
                return {id}
    return set()


HANDLES = "[...document.querySelectorAll('[data-handle]')].map(h => [h.closest('svg').dataset.plot, h.dataset.handle])"


def drag_a_handle(browser):
    for plot, name in browser.evaluate(HANDLES)[-1:]:
        x, y, *_ = place(browser, f"[data-plot='{plot}'] [data-handle='{name}']")
        browser.drag(x, y, 0, 17)


@pytest.mark.parametrize("slug", SLUGS)
def test_handles_and_views_follow_pointer_and_keys(browser, pages, slug):
    browser.open(pages / f"{slug}.html")
    handles = browser.evaluate(HANDLES)
    for plot, name in [*handles[:2], *handles[-2:]]:
        selector = f"[data-plot='{plot}'] [data-handle='{name}']"
        x, y, *_ = place(browser, selector)
        before = seen(browser)
        browser.drag(x, y, -14, 21)
        assert waits_for(browser, before), (plot, name, "drag")
        before = seen(browser)
        browser.evaluate(f"document.querySelector({selector!r}).focus()")
        for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft"):
            browser.key(key)
        assert waits_for(browser, before), (plot, name, "keys")
    for view in browser.evaluate(
        "[...document.querySelectorAll('svg.spin')].map(s => s.dataset.plot)"
    ):
        x, y, *_ = place(browser, f"[data-plot='{view}']")
        before = seen(browser)
        browser.drag(x, y, 60, 10)
        assert waits_for(browser, before), (view, "turn")
    for plot in browser.evaluate(
        "[...document.querySelectorAll('svg.adds')].map(s => s.dataset.plot)"
    ):
        x, y, w, h = place(browser, f"[data-plot='{plot}']")
        before, many = seen(browser), len(browser.evaluate(HANDLES))
        browser.click(x + w / 3.7, y - h / 3.3)
        assert waits_for(browser, before)
        browser.evaluate(f"document.querySelector(\"[data-plot='{plot}']\").focus()")
        browser.key("ArrowRight")
        browser.key("Enter")
        assert len(browser.evaluate(HANDLES)) == many + 2
    assert browser.troubles() == []


def test_the_copy_button_and_the_theme(browser, pages):
    browser.open(pages / "parabolic.html")
    for id in ("copy", "theme"):
        x, y, *_ = place(browser, f"#{id}")
        browser.click(x, y)
    end = time.monotonic() + 10
    while browser.evaluate("document.getElementById('copy').textContent") == "copy":
        assert time.monotonic() < end
        browser.settle()
    assert browser.evaluate("document.documentElement.dataset.theme") == "dark"
    ground = "getComputedStyle(document.body).backgroundColor"
    assert browser.evaluate(ground) == "rgb(20, 22, 26)"
    assert browser.troubles() == []


def contrast(a, b):
    """Of two colours, as the guidelines for accessible content have it."""
    channel = lambda v: v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4
    light = [
        sum(w * channel(v / 255) for w, v in zip((0.2126, 0.7152, 0.0722), c, strict=True))
        for c in (a, b)
    ]
    return (max(light) + 0.05) / (min(light) + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_are_told_apart(browser, pages, dark):
    browser.open(pages / "parabolic.html", dark=dark)
    colour = lambda name: browser.evaluate(f"colour({name!r})")
    for text in ("ink", "quiet", "accent", "minus", "wary"):
        for ground in ("ground", "sheet"):
            assert contrast(colour(text), colour(ground)) >= 4.5, (text, ground)
    for mark in ("plus", "minus", "third", "mark"):
        assert contrast(colour(mark), colour("sheet")) >= 3, mark
