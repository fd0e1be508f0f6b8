"""Labelled trees, as nested tuples or bracketed text, in a forest of numbers that compiled loops
read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.fragments import Forest, children_of, ranks

TOKEN = re.compile(r"[()]|[^\s()]+")
Production = tuple[
    Any, ...
]  # a label, and of each child whether it has some of its own, and its label
END = object()
Event = tuple[str, str]  # "(" with a label, "." with that of a leaf, ")" with none


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees by the productions of their nodes, which are numbered in the order of `productions`."""

    productions: tuple[Production, ...]  # ascending
    forest: Forest

    @classmethod
    def of(cls, items: Sequence[Any]) -> Trees:
        """Of nested tuples or bracketed texts.

        >>> Trees.of(["(S (NP John) (VP runs))"]).productions
        (('NP', (False, 'John')), ('S', (True, 'NP'), (True, 'VP')), ('VP', (False, 'runs')))
        """
        found: dict[Production, int] = {}
        numbers: list[int] = []
        counts: list[int] = []
        places = [0]
        for item in items:
            for production, n_children in _nodes(_events(item)):
                numbers.append(found.setdefault(production, len(found)))
                counts.append(n_children)
            places.append(len(numbers))
        sorted_ = sorted(found)
        place = np.empty(len(found), np.int64)
        place[[found[p] for p in sorted_]] = np.arange(len(found))
        return cls(
            tuple(sorted_),
            _forest(
                np.array(places), place[np.array(numbers, np.int64)], np.array(counts, np.int64)
            ),
        )

    def __len__(self) -> int:
        return len(self.forest.places) - 1

    def beside(self, other: Trees) -> tuple[Forest, Forest]:
        """Both forests, with the same numbers for the same productions."""
        if other is self or self.productions == other.productions:
            return self.forest, other.forest
        every = sorted({*self.productions, *other.productions})
        number = {p: i for i, p in enumerate(every)}
        x, z = (_renumbered(t.forest, [number[p] for p in t.productions]) for t in (self, other))
        return x, z


def _renumbered(forest: Forest, numbers: list[int]) -> Forest:
    """With ascending numbers for productions, so that what is in order stays so."""
    return forest._replace(production=np.array(numbers, np.int64)[forest.production])


def _forest(places: Array, production: Array, counts: Array) -> Forest:
    """The forest of nodes in postorder; what loops read is looked at here."""
    children = children_of(places, counts)
    if len(children) != counts.sum():
        raise ValueError("the nodes of a tree are not in postorder; read the trees anew.")
    tree = np.repeat(np.arange(len(places) - 1), np.diff(places))
    order = np.lexsort((production, tree))
    first = np.concatenate([[0], np.cumsum(counts)])
    return Forest(places, production, first, children, order, ranks(places, production, order))


def _nodes(events: Iterator[Event]) -> Iterator[tuple[Production, int]]:
    """The productions of nodes with children in postorder, each with how many of these have
    children of their own."""
    stack: list[tuple[str, list[tuple[bool, str]]]] = [("", [])]
    for what, label in events:
        if what == "(":
            stack.append((label, []))
            continue
        children: list[tuple[bool, str]] = []
        if what == ")":
            label, children = stack.pop()
        stack[-1][1].append((bool(children), label))
        if children:
            yield (label, *children), sum(own for own, _ in children)


def _events(item: Any) -> Iterator[Event]:
    if isinstance(item, bytes):
        item = item.decode("utf-8", "surrogateescape")
    if isinstance(item, str):
        return _of_text(item)
    if isinstance(item, tuple | list):
        return _of_nested(item) if len(item) else iter(())
    raise ValueError(
        f"a tree cannot be {_shown(item)}; give nested tuples (label, child, ...) or text such as '(S (NP a) (VP b))'."
    )


def _shown(item: Any) -> str:
    plain = item is None or isinstance(item, str | int | float)
    return f"{item!r:.40}" if plain else f"an object of type {type(item).__name__}"


def _of_text(text: str) -> Iterator[Event]:
    """Events of bracketed text; blank text is a tree without nodes."""
    depth, ended, named = 0, False, True
    for token in TOKEN.finditer(text):
        found, at = token.group(), token.start()
        if depth == 0 and (ended or found != "("):
            raise _outside(text, at, found, ended)
        if found == "(":
            if not named:
                yield "(", ""
            depth, named = depth + 1, False
        elif not named:
            yield "(", "" if found == ")" else found
            named = True
        elif found != ")":
            yield ".", found
        if found == ")":
            depth -= 1
            ended = depth == 0
            yield ")", ""
    if depth:
        raise _wrong(text, _last_open(text), "this bracket is never closed; close every bracket")


def _outside(text: str, at: int, found: str, ended: bool) -> ValueError:
    if found == ")":
        return _wrong(text, at, "this bracket closes none; open every bracket")
    if ended:
        return _wrong(text, at, "the tree has ended before; give one tree for each item")
    return _wrong(text, at, f"{found!r:.40} is in no brackets; write a tree as '(S (NP a) (VP b))'")


def _wrong(text: str, at: int, what: str) -> ValueError:
    begin = max(0, at - 20)
    shown = f"{'...' * (begin > 0)}{text[begin : at + 20]}{'...' * (len(text) > at + 20)}"
    return ValueError(f"the tree {shown!r} cannot be read at position {at}: {what}.")


def _last_open(text: str) -> int:
    """The position of the innermost bracket that is never closed."""
    left: list[int] = []
    for token in TOKEN.finditer(text):
        if token.group() == "(":
            left.append(token.start())
        elif token.group() == ")":
            left.pop()
    return left[-1]


def _of_nested(tree: Any) -> Iterator[Event]:
    """Events of nested tuples; a label alone is a leaf, as is a tuple of one label."""
    yield "(", _label(tree)
    stack = [iter(_below(tree))]
    while stack:
        child = next(stack[-1], END)
        if child is END:
            stack.pop()
            yield ")", ""
        elif isinstance(child, str):
            yield ".", str(child)
        else:
            yield "(", _label(child)
            stack.append(iter(_below(child)))


def _has_label(node: Any) -> bool:
    """Whether a node names itself, as those of NLTK do, and lists its children alone."""
    return callable(getattr(node, "label", None))


def _label(node: Any) -> str:
    found: Any = node
    if _has_label(node):
        found = node.label()
    elif isinstance(node, tuple | list) and len(node):
        found = node[0]
    if isinstance(found, str):
        return str(found)
    raise ValueError(
        f"a tree has {_shown(found)} where a label is meant; give (label, child, ...), labels being strings."
    )


def _below(node: Any) -> Sequence[Any]:
    return node if _has_label(node) else node[1:]
