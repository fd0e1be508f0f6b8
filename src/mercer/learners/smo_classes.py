"""Classifiers of exact SVMs: the boxes of the two hinge losses, one class against another, one against the rest."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Ints, Is
from mercer.learners import smo_blocks
from mercer.learners.smo import cache, settled, solve
from mercer.learners.smo_box import Box, Duals
from mercer.learners.smo_rows import KernelRows, room
from mercer.learners.smo_whole import whole
from mercer.ops.threads import parallel_map
from mercer.store import register


@dataclass(frozen=True)
class How:
    """What all problems of a classifier share."""

    loss: str = "hinge"
    bias: bool = True
    tol: float = 1e-3
    most: int = 1000
    limit: float = 1e9

    def box(self, y: Array, c: Array) -> Box:
        """max(0, 1 - y f), weighted by c: duals y a, 0 <= a <= c; its square: no upper bound, and 1/(2 c) on the diagonal."""
        if self.loss == "hinge":
            return Box(y, np.minimum(y, 0) * c, np.maximum(y, 0) * c, bias=self.bias)
        return Box(y, np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0), ridge=0.5 / c, bias=self.bias)


@register("svm.MulticlassRule")
@dataclass(frozen=True, eq=False)
class Rule:
    """One score: the duals of these rows."""

    index: Array
    duals: Duals

    must = dict(index=Ints("m", below=1 << 48), duals=Is("Duals"))


def one_vs_rest(rows: KernelRows, signs: list[Array], c: Array, how: How, starts: list[Array] | None = None) -> list[Rule]:
    """One rule for each vector of signs, over all rows, whose kernel values they share."""
    every = np.arange(rows.n)
    given: list[Array | None] = [None] * len(signs) if starts is None else list(starts)
    boxes = [how.box(y, c) for y in signs]
    if rows.n <= smo_blocks.WHOLE:
        K = rows.square()
        found = parallel_map(lambda v: whole(K.copy(), v[0], how.tol, how.most, v[1]), list(zip(boxes, given, strict=True)))
        return [Rule(every, settled(rows, box, m, how.tol, how.most, how.limit)) for box, m in zip(boxes, found, strict=True)]
    shared = cache(rows, how.limit) if len(signs) > 1 else None
    return [
        Rule(every, solve(rows, box, how.tol, how.most, limit=how.limit, start=start, columns=shared))
        for box, start in zip(boxes, given, strict=True)
    ]


class OneVsOne:
    """A rule for every two classes a < b, of their rows only; a is positive.

    Pairs that are small enough for one block are solved side by side; the kernel block of a class is shared by all its pairs.
    """

    def __init__(self, rows: KernelRows, codes: Array, c: Array, how: How) -> None:
        self.rows, self.c, self.how = rows, c, how
        self.of = [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]
        sizes = np.array([len(i) for i in self.of], float)
        small = float(np.square(sizes[sizes <= smo_blocks.WHOLE]).sum()) * rows.dtype.itemsize <= how.limit / 2
        most = np.sort(sizes)[-2:].sum() if len(sizes) > 1 else 0
        share = self.of if small and most <= smo_blocks.WHOLE else []
        self.own = parallel_map(lambda i: rows.block(i, i), share)
        self.left, self.right = ([rows.side(i, left=left) for i in share] for left in (True, False))

    def solve(self, starts: list[Array] | None = None) -> list[Rule]:
        """In the order (0, 1), (0, 2), ..., (1, 2), ..."""
        pairs = list(combinations(range(len(self.of)), 2))
        jobs = [(a, b, None if starts is None else starts[k]) for k, (a, b) in enumerate(pairs)]
        small = [k for k, (a, b) in enumerate(pairs) if len(self.of[a]) + len(self.of[b]) <= smo_blocks.WHOLE]
        done = dict(zip(small, parallel_map(lambda k: self._pair(*jobs[k]), small), strict=True))
        return [self._settled(*pairs[k], done[k]) if k in done else self._pair(*jobs[k]) for k in range(len(pairs))]

    def _settled(self, a: int, b: int, rule: Rule) -> Rule:
        how, box = self.how, self._box(a, b, rule.index)
        return Rule(rule.index, settled(self.rows, box, rule.duals, how.tol, how.most, how.limit, rule.index))

    def _box(self, a: int, b: int, index: Array) -> Box:
        return self.how.box(np.repeat([1.0, -1.0], [len(self.of[a]), len(self.of[b])]), self.c[index])

    def _pair(self, a: int, b: int, start: Array | None) -> Rule:
        index, how = np.concatenate([self.of[a], self.of[b]]), self.how
        box = self._box(a, b, index)
        if self.own:
            return Rule(index, whole(self._block(a, b), box, how.tol, how.most, start))
        return Rule(index, solve(self.rows.pick(index), box, how.tol, how.most, limit=how.limit, start=start))

    def _block(self, a: int, b: int) -> Array:
        """The kernel values of both classes, their columns padded to lanes."""
        A, B = self.own[a], self.own[b]
        m, n = len(A), len(A) + len(B)
        K, across = room(n, A.dtype), np.empty((m, n - m), A.dtype)
        self.rows.fill(self.left[a], self.right[b], across)
        K[:m, :m], K[:m, m:n], K[m:, :m], K[m:, m:n] = A, across, across.T, B
        return K


def by_class(rules: list[Rule], codes: Array, K: int) -> Array:
    """Duals of pairs as (K - 1, n): a row's duals against the other classes, in their order."""
    out = np.zeros((K - 1, len(codes)))
    for (a, b), rule in zip(combinations(range(K), 2), rules, strict=True):
        mine = codes[rule.index] == a
        out[b - 1, rule.index[mine]] = rule.duals.b[mine]
        out[a, rule.index[~mine]] = rule.duals.b[~mine]
    return out


def votes(F: Array, K: int) -> Array:
    """Scores of classes from those of pairs: the number of pairs won, and less than half a vote by how clearly.

    >>> votes(np.array([[2.0, -1.0, -3.0]]), 3).argmax(1)
    array([2])
    """
    won, sure = np.zeros((len(F), K), F.dtype), np.zeros((len(F), K), F.dtype)
    for k, (a, b) in enumerate(combinations(range(K), 2)):
        f, first = F[:, k], F[:, k] > 0
        won[:, a] += first
        won[:, b] += ~first
        sure[:, a] += f
        sure[:, b] -= f
    return won + sure / (3 * (np.abs(sure) + 1))
