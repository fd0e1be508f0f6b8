"""Reading a page back with the standard parser, which neither mends nor forgives."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

EMPTY = {"meta", "br", "col"}


@dataclass
class Element:
    """One element: where it stands, what it holds."""

    tag: str
    attributes: dict[str, str | None]
    path: tuple[str, ...]
    text: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        return "".join(self.text)


class Page(HTMLParser):
    """Elements in order; `problems` has every end without a start and every start without an
    end."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.stack: list[Element] = []
        self.problems: list[str] = []
        self.data: list[tuple[tuple[str, ...], str]] = []
        self.feed(html)
        self.close()
        self.problems += [f"<{element.tag}> is never closed" for element in self.stack]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.problems.append(f"<{tag}> repeats an attribute: {names}")
        element = Element(tag, dict(attrs), tuple(parent.tag for parent in self.stack))
        self.elements.append(element)
        if tag not in EMPTY:
            self.stack.append(element)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.stack.pop()

    def handle_endtag(self, tag):
        if not self.stack or self.stack[-1].tag != tag:
            self.problems.append(f"</{tag}> within {[element.tag for element in self.stack]}")
        else:
            self.stack.pop()

    def handle_data(self, data):
        self.data.append((tuple(element.tag for element in self.stack), data))
        for element in self.stack:
            element.text.append(data)

    def handle_comment(self, data):
        self.problems.append(f"a comment: {data}")

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Elements of a kind; `class_` must be among the classes."""
        style = attributes.pop("class_", None)
        return [
            element
            for element in self.elements
            if element.tag == tag
            and all(element.attributes.get(key) == value for key, value in attributes.items())
            and (style is None or style in (element.attributes.get("class") or "").split())
        ]

    @property
    def words(self) -> str:
        """All that a reader sees."""
        return next(element for element in self.elements if element.tag == "body").words

    def skeleton(self) -> list[tuple[str, tuple[str, ...]]]:
        """Elements and the names of their attributes, without what a longer text may add: a hint, a
        break between words."""
        return [
            (element.tag, tuple(name for name in element.attributes if name != "title"))
            for element in self.elements
            if element.tag != "span" or "code" not in element.path
        ]
