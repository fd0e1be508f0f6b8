"""The compiled loops that walk a whole trie: its order, and the n-grams it spells."""

from __future__ import annotations

from typing import Any

from mercer.inputs import Array
from mercer.ops.jit import njit


@njit
def sizes(prefixes: Array, size: Array) -> None:
    """Of w symbols and the paths behind them: add to each what all paths have that go on from it."""
    w = len(size) - len(prefixes)
    for i in range(len(prefixes) - 1, -1, -1):
        p = prefixes[i]
        size[-1 - p if p < 0 else w + p] += size[w + i]


@njit
def preorder(prefixes: Array, kept: Array, columns: Array, size: Array) -> Any:
    """Number what is kept of a trie so that every path comes before those that go on from it, and
    these in the order of their last symbols; -1 for what is not kept. Returns how many there are.

    Of w symbols and the paths behind them `kept` says 0 or 1; `size` has their `sizes`.
    """
    w, total = len(kept) - len(prefixes), 0
    for s in range(w):
        columns[s], total = total, total + size[s]
        size[s] = columns[s] + kept[s]  # from here on: the next number below it
    for i in range(len(prefixes)):
        p = prefixes[i]
        above = -1 - p if p < 0 else w + p
        columns[w + i], size[above] = size[above], size[above] + size[w + i]
        size[w + i] = columns[w + i] + kept[w + i]
    for i in range(len(kept)):
        if not kept[i]:
            columns[i] = -1
    return total


@njit
def lengths(prefixes: Array, symbols: Array, offsets: Array, between: Any, out: Array) -> None:
    """The bytes of every symbol, and of every path behind them with so many between symbols."""
    w = len(offsets) - 1
    for s in range(w):
        out[s] = offsets[s + 1] - offsets[s]
    for i in range(len(prefixes)):
        p, s = prefixes[i], symbols[i]
        out[w + i] = out[-1 - p if p < 0 else w + p] + between + out[s]


@njit
def spell(
    prefixes: Array, symbols: Array, names: Array, offsets: Array, ends: Array, text: Array
) -> None:
    """Write every symbol and path, a blank between symbols where there is room for one.

    ends[i] is where number i ends in text, as `lengths` says; a path begins with the path before it.
    """
    w, begin = len(offsets) - 1, 0
    for s in range(w):
        for t in range(offsets[s], offsets[s + 1]):
            text[begin + t - offsets[s]] = names[t]
        begin = ends[s]
    for i in range(len(prefixes)):
        p, s = prefixes[i], symbols[i]
        above = -1 - p if p < 0 else w + p
        start = ends[above - 1] if above else 0
        for t in range(start, ends[above]):
            text[begin + t - start] = text[t]
        last = ends[w + i] - (offsets[s + 1] - offsets[s])
        for t in range(begin + ends[above] - start, last):
            text[t] = 32
        for t in range(offsets[s], offsets[s + 1]):
            text[last + t - offsets[s]] = names[t]
        begin = ends[w + i]


@njit
def sort_by(keys: Array, order: Array, heads: Array, out: Array) -> None:
    """The places in `order` by keys[place], whole numbers below len(heads) - 1, equal ones as they
    come; `heads` holds zeros."""
    for t in range(len(order)):
        heads[keys[order[t]] + 1] += 1
    for k in range(1, len(heads)):
        heads[k] += heads[k - 1]
    for t in range(len(order)):
        k = keys[order[t]]
        out[heads[k]] = order[t]
        heads[k] += 1
