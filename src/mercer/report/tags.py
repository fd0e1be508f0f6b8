"""Markup that is escaped by construction: text becomes HTML only through `tag`, which trusts
nothing but its own results."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

VOID = frozenset(
    {"meta", "br", "col", "circle", "line", "path", "rect"}
)  # those of SVG close themselves
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Iterable["Child"] | None


def text(value: object) -> Markup:
    """Text as HTML; what no page may hold (controls, lone surrogates) is shown as a replacement
    character.

    >>> text("a < b & \\x00")
    'a &lt; b &amp; \ufffd'
    """
    return (
        value
        if isinstance(value, Markup)
        else Markup(html.escape(_UNPRINTABLE.sub("\ufffd", str(value)), quote=True))
    )


def tag(element: str, /, *children: Child, **attributes: object) -> Markup:
    """An element. `class_` is class, `aria_label` is aria-label; an attribute that is None or False
    is left out.

    >>> tag("p", "a < b", tag("b", "!"), class_="note")
    '<p class="note">a &lt; b<b>!</b></p>'
    """
    head = element + "".join(
        _attribute(key, value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(
        f"<{head}/>"
        if element in VOID and not children
        else f"<{head}>{join(children)}</{element}>"
    )


def join(children: Iterable[Child]) -> Markup:
    """One piece of markup from many."""
    return Markup(
        "".join(
            text(child) if isinstance(child, str) else join(child)
            for child in children
            if child is not None
        )
    )


def name(value: object, **attributes: object) -> Markup:
    """A name from the data, in a direction of its own so that Hebrew or Arabic does not reorder its
    surroundings."""
    shown = str(value)
    return tag("bdi", shown if shown.strip() else repr(shown), **attributes)


def _attribute(key: str, value: object) -> str:
    key = key.rstrip("_").replace("_", "-") if key != "viewBox" else key
    return f" {key}" if value is True else f' {key}="{text(_short(value))}"'


def _short(value: object) -> object:
    """Coordinates to a hundredth: a page of points stays small."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
