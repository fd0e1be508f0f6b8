"""Tuples and lists of text that nest deeper than a stack, such as trees, as one flat list."""

from __future__ import annotations

from typing import Any

DEEP = 32  # levels beyond which they are flat
MAX_NODES = 10_000_000  # of one value


def is_deep(v: Any) -> bool:
    """Whether tuples and lists of nothing but text nest more than `DEEP` levels; not where one holds
    itself.

    >>> tree = "leaf"
    >>> for _ in range(40):
    ...     tree = ("S", tree)
    >>> is_deep(tree), is_deep(("S", "leaf"))
    (True, False)
    """
    if type(v) not in (tuple, list):
        return False
    path, inside, deepest, nodes = [iter(v)], [id(v)], 0, 0
    while path:
        deepest, nodes = max(deepest, len(path)), nodes + 1
        child = next(path[-1], None)
        if child is None:
            path.pop()
            inside.pop()
        elif type(child) in (tuple, list):
            if nodes > MAX_NODES or (len(path) <= DEEP and id(child) in inside):
                return False
            path.append(iter(child))
            inside.append(id(child))
        elif type(child) is not str:
            return False
    return deepest > DEEP


def pack(v: Any) -> list[int | str]:
    """Each value before those in it: text as it is, a tuple of n as n, a list of n as -1 - n.

    >>> pack(("S", ["a", ()]))
    [2, 'S', -3, 'a', 0]
    """
    out: list[int | str] = []
    left = [v]
    while left:
        v = left.pop()
        if isinstance(v, str):
            out.append(v)
        else:
            out.append(len(v) if isinstance(v, tuple) else -1 - len(v))
            left.extend(reversed(v))
    return out


def unpack(body: Any) -> Any:
    """The value again; ValueError of what is none.

    >>> unpack([2, "S", -3, "a", 0])
    ('S', ['a', ()])
    """
    made: list[Any] = []
    for node in reversed(body) if type(body) is list else ():
        if type(node) is str:
            made.append(node)
            continue
        size = (node if node >= 0 else -1 - node) if type(node) is int else -1
        if not 0 <= size <= len(made):
            raise ValueError(f"the tree holds {node!r:.60}, which no nested value has here.")
        inside = made[len(made) - size :][::-1]
        del made[len(made) - size :]
        made.append(tuple(inside) if node >= 0 else inside)
    if len(made) != 1:
        raise ValueError("the tree holds a nested value of no, or of several parts.")
    return made[0]
