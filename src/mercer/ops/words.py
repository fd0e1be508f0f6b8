"""Monomials as words, whose letters are columns: by number, by letters, and cut into heads and
tails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.ops.monomials import Program, plan
from mercer.ops.tiles import cuts

TILE = 512  # heads and tails in a tile: building them costs a few percent of their products
NONE = -1  # the letter of a word that is shorter than the longest


def letters(program: Program, places: Array) -> Array:
    """(m, degree) the columns of each monomial, in order, then `NONE`; places count the constant.

    >>> from mercer.ops.monomials import plan
    >>> letters(plan(3, 2), np.array([0, 2, 5])).tolist()
    [[-1, -1], [1, -1], [0, 1]]
    """
    at = np.array(places, np.int64)
    words, length = np.full((len(at), program.degree), NONE, np.int64), np.zeros(len(at), np.int64)
    for k in range(program.degree, 0, -1):  # split off the leading column, k times
        here = np.flatnonzero(at >= program.first[k, 0])
        a = np.searchsorted(program.first[k, 1:], at[here], side="right")
        at[here] += program.parent[k, a] - program.first[k, a]
        words[here, length[here]] = a
        length[here] += 1
    return words


def places(program: Program, words: Array) -> Array:
    """(m,) where the monomials of these columns stand, the constant counted: undoes `letters`.

    >>> from mercer.ops.monomials import plan
    >>> places(plan(3, 2), np.array([[0, 1], [1, -1]])).tolist()
    [5, 2]
    """
    at, length = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    for column in words.T[::-1]:  # the shortest suffix first
        here = np.flatnonzero(column != NONE)
        length[here] += 1
        k, a = length[here], column[here]
        at[here] += program.first[k, a] - program.parent[k, a]
    return at


def of_length(program: Program, k: int) -> Array:
    """(m, k) the columns of all monomials of degree k, in order.

    >>> from mercer.ops.monomials import plan
    >>> of_length(plan(2, 2), 2).tolist()
    [[0, 0], [0, 1], [1, 1]]
    """
    if k == 0:
        return np.empty((1, 0), np.int64)
    span = np.arange(program.first[k, 0], program.first[k, -1])
    return letters(program, span)[:, :k]


@dataclass(frozen=True, eq=False)
class Half:
    """Heads or tails: words, the letter of each where the other half joins, and how often it stands
    there in a row."""

    words: Array  # (m, l)
    joint: Array  # (m,)
    run: Array  # (m,)

    @classmethod
    def of(cls, words: Array, at: int) -> Half:
        """Words that join at their first letter (0) or at their last (-1)."""
        if not words.shape[1]:
            return cls(words, np.full(len(words), NONE), np.zeros(len(words), np.int64))
        joint = words[:, at]
        return cls(words, joint, (words == joint[:, None]).sum(1))

    def __getitem__(self, some: slice | Array) -> Half:
        return Half(self.words[some], self.joint[some], self.run[some])

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, eq=False)
class Patch:
    """Heads and tails; a pair of them is a word where the head ends before the tail begins, or with
    its letter, no more often than the caps allow."""

    heads: Half
    tails: Half
    near: int  # heads before this one end before all tails begin

    def words(self, h: Array, t: Array) -> Array:
        return np.concatenate([self.heads.words[h], self.tails.words[t]], axis=1)

    def strange(self, caps: Array) -> Array:
        """(h - near, t) which pairs are no words."""
        some = self.heads[self.near :]
        last, first = some.joint[:, None], self.tails.joint[None]
        once_more = some.run[:, None] + self.tails.run <= caps[self.tails.joint]
        return np.asarray((last > first) | ((last == first) & ~once_more))


def tiles(caps: Array, degrees: range) -> Iterator[Patch]:
    """All words of these degrees, each in one tile."""
    for k in degrees:
        program = plan(len(caps), k, degree_per_column=np.minimum(caps, k).tolist())
        tails = Half.of(of_length(program, k - k // 2), 0)
        heads = Half.of(of_length(program, k // 2), -1)
        heads = heads[np.argsort(heads.joint, kind="stable")]
        for some in cuts(len(tails), TILE):
            first, last = tails.joint[some.start], tails.joint[some.stop - 1]
            stop = int(np.searchsorted(heads.joint, last, side="right"))
            for few in cuts(stop, TILE):
                near = int(np.searchsorted(heads.joint[few], first))
                yield Patch(heads[few], tails[some], near)
