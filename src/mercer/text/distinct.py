"""The n-grams behind hashed columns: the distinct ones of some documents, with their columns, signs
and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.text.documents import Part
from mercer.text.fitted import each_part
from mercer.text.grams import HashedColumns
from mercer.text.names import Collisions, ColumnNames, Distinct
from mercer.text.runs import gathered
from mercer.text.trie import grown


def distinct(part: Part, columns: HashedColumns, signed: bool = True) -> Distinct:
    """Every n-gram of some documents once, in its hashed column.

    >>> from mercer.text.grams import Grams
    >>> found = distinct(Part(0, ["to be or not to be"]), HashedColumns(Grams("words", 1, 1), 64))
    >>> [(found.name(i), int(found.counts[i])) for i in range(len(found))]
    [('to', 2), ('be', 2), ('or', 1), ('not', 1)]
    """
    g = columns.grams
    growth = grown(g.tokens(part), g.unit, g.orders)
    came = np.flatnonzero(growth.documents)  # the others only begin one
    totals = np.bincount(growth.rows[::2], growth.rows[1::2], minlength=len(growth.trie))
    buffer, offsets = gathered(came, *growth.trie.spelled(g.between))
    found = Distinct.hashed(buffer, offsets, totals[came].astype(np.int64), columns.width)
    if signed:
        return found
    ones = np.ones(len(came), np.int32)
    return Distinct(found.columns, ones, found.counts, found.buffer, found.offsets)


def names_in(
    texts: Any, columns: HashedColumns, column: int, signed: bool = True
) -> list[tuple[str, int, int]]:
    """(n-gram, count, sign) of all n-grams of a column that documents have, the most frequent
    first."""

    def of_column(part: Part) -> Distinct:
        found = distinct(part, columns, signed)
        picks = np.flatnonzero(found.columns == column)
        return found.take(picks, found.counts[picks])

    out = ColumnNames(columns.width)
    for batch in each_part(texts, of_column, learning=True):
        for found in batch:
            out = out.add(found)
    return out.names(column)


def all_collisions(kept: Sequence[ColumnNames]) -> Collisions:
    """The shares of n-grams, and of their occurrences, that share a column, of all blocks
    together."""
    sizes = np.array([(len(k.kept), k.kept.counts.sum()) for k in kept], np.float64)
    shares = np.array([k.collisions for k in kept])
    return Collisions(*((sizes * shares).sum(0) / np.maximum(sizes.sum(0), 1)).tolist())
