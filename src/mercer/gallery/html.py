"""Pages and the index as HTML: one file each, with its style, its scripts and its numbers inside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from mercer.gallery.page import Page, Shown, Slip, embedded
from mercer.report.tags import Child, Markup, join, tag

# Nothing is fetched from anywhere; heat maps are images that the page itself draws.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
RUNTIME = ("linalg", "kernels", "parse", "learners", "plot", "figure")


@cache
def asset(name: str) -> str:
    """A file of the package: style or script."""
    return files("mercer.gallery").joinpath(name).read_text(encoding="utf-8")


def script(page: Page) -> str:
    """The script that draws a page."""
    return asset(f"figures/{page.slug}.js")


def document(title: str, *body: Child) -> str:
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Markup('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", Markup(asset("runtime/page.css"))),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{head}{tag("body", *body)}</html>\n'


def page_html(page: Page, pages: Sequence[Page], slips: Sequence[tuple[Slip, Shown]]) -> str:
    """A page, with links to those before and after it."""
    title = f"{page.title} · Mercer gallery"
    return document(
        title,
        _top(page, pages),
        tag(
            "main",
            tag("h1", page.title),
            tag("p", page.claim, class_="claim"),
            tag("div", id="figure", class_="figure", role="group", aria_label="interactive figure"),
            tag("div", _look(page), _code(page), class_="columns"),
            [_slip(slip, shown) for slip, shown in slips],
        ),
        tag("footer", "Made by Mercer; nothing on this page is fetched from anywhere."),
        tag("script", Markup(embedded(page.numbers())), type="application/json", id="data"),
        _scripts(script(page)),
    )


def index_html(pages: Sequence[Page]) -> str:
    """The list of all pages; the playground, which is the last, comes first."""
    cards = [_card(page, number) for number, page in enumerate(pages, 1)]
    return document(
        "Mercer gallery",
        tag("nav", tag("span", class_="gap"), _theme(), class_="top"),
        tag(
            "main",
            tag("h1", "See the lift"),
            tag(
                "p",
                "A kernel is an inner product of features; features are a kernel. Each page has one claim, a "
                "figure to move, and the lines of Mercer that made its numbers.",
                class_="claim",
            ),
            tag("ul", cards[-1:], cards[:-1], class_="cards"),
        ),
        _scripts(),
    )


def _scripts(*more: str) -> Markup:
    runtime = [asset(f"runtime/{name}.js") for name in RUNTIME]
    return tag("script", Markup("\n".join([*runtime, *more])))


def _card(page: Page, number: int) -> Markup:
    link = tag(
        "a", tag("b", f"{number}. {page.title}"), tag("span", page.claim), href=f"{page.slug}.html"
    )
    return tag("li", link, class_="first" if page.slug == "playground" else None)


def _top(page: Page, pages: Sequence[Page]) -> Markup:
    place = pages.index(page)
    before, after = pages[place - 1], pages[(place + 1) % len(pages)]
    return tag(
        "nav",
        tag("a", "All pages", href="index.html"),
        tag("span", f"{place + 1} of {len(pages)}", class_="number"),
        tag("span", class_="gap"),
        tag("a", "← ", before.title, href=f"{before.slug}.html", rel="prev"),
        tag("a", after.title, " →", href=f"{after.slug}.html", rel="next"),
        _theme(),
        class_="top",
    )


def _theme() -> Markup:
    return tag("button", "light or dark", type="button", id="theme")


def _look(page: Page) -> Markup:
    items = [tag("li", sentence) for sentence in page.look]
    return tag("section", tag("h2", "What to look at"), tag("ul", items, class_="look"))


def _code(page: Page) -> Markup:
    copy = tag("button", "copy", type="button", id="copy", aria_label="copy the code")
    shown = tag("pre", tag("code", page.code.strip()), tabindex=0)
    return tag(
        "section",
        tag("h2", "The lines that made it"),
        tag("div", shown, copy, class_="code"),
    )


def _slip(slip: Slip, shown: Shown) -> Markup:
    rows = (("the note says", slip.says), ("right is", slip.right), ("numbers", shown.sentence))
    told = join([join([tag("dt", name), tag("dd", words)]) for name, words in rows])
    return tag("section", tag("h2", f"A slip in {slip.where}"), tag("dl", told), class_="slip")
