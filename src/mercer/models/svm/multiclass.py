"""Classifiers of exact SVMs: the problems of the two hinge losses, one class against another, one
against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Ints, Is
from mercer.models.svm import blocks
from mercer.models.svm.gram import GramMatrix, fill_mirrored, padded, panels, square
from mercer.models.svm.pairs import PairProblems, pair_block
from mercer.models.svm.problem import FEW_ROWS, DualProblem, DualSolution
from mercer.models.svm.solver import (
    ROUGH,
    few_rows,
    gram_fits,
    initial_duals,
    kernel_rows_of,
    refined,
    solve,
    solve_one_block,
)
from mercer.operators import TiledOperator
from mercer.operators.exact import exact
from mercer.operators.products import Part
from mercer.ops.threads import limit, n_threads, parallel_map
from mercer.store import register

SIDE_BY_SIDE = 2  # pairs of more than one block that are solved at a time, where there is room
VECTORS = 16  # of all duals of all pairs, while pairs are judged at once


@dataclass(frozen=True)
class HingeSettings:
    """What all problems of a classifier share."""

    loss: str = "hinge"
    bias: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    memory: float = 1e9

    def problem(self, y: Array, c: Array) -> DualProblem:
        """max(0, 1 - y f), weighted by c: duals y a, 0 <= a <= c; its square: no upper bound, and
        1/(2 c) on the diagonal."""
        if self.loss == "hinge":
            return DualProblem(y, np.minimum(y, 0) * c, np.maximum(y, 0) * c, bias=self.bias)
        return DualProblem(
            y,
            np.where(y > 0, 0.0, -np.inf),
            np.where(y > 0, np.inf, 0.0),
            ridge=0.5 / c,
            bias=self.bias,
        )


@register("svm.BinaryRule")
@dataclass(frozen=True, eq=False)
class BinaryRule:
    """One score: the duals of these rows."""

    index: Array
    solution: DualSolution

    must = dict(index=Ints("m", below=1 << 48), solution=Is("DualSolution"))

    @staticmethod
    def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
        return {"index": state["index"], "solution": state["duals"]} if "duals" in state else state


def one_vs_rest(
    op: TiledOperator,
    signs: list[Array],
    c: Array,
    how: HingeSettings,
    starts: list[Array] | None = None,
) -> list[BinaryRule]:
    """One rule for each vector of signs, over all rows, whose kernel values they share."""
    every = np.arange(op.shape[0])
    given: list[Array | None] = [None] * len(signs) if starts is None else list(starts)
    problems = [how.problem(y, c) for y in signs]
    if op.shape[0] <= blocks.ONE_BLOCK:
        K, limits = square(op), (how.tol, how.max_iter)
        jobs = list(zip(problems, given, strict=True))
        alone = len(jobs) == 1  # its steps write a ridge to the diagonal
        found = parallel_map(
            lambda job: solve_one_block(K if alone else K.copy(), job[0], *limits, job[1]), jobs
        )
        both = zip(problems, found, strict=True)
        return [
            BinaryRule(every, refined(op, problem, m, how.tol, how.max_iter, how.memory))
            for problem, m in both
        ]
    shared = kernel_rows_of(op, how.memory) if len(signs) > 1 else None
    return [
        BinaryRule(
            every,
            solve(
                op, problem, how.tol, how.max_iter, memory=how.memory, start=start, columns=shared
            ),
        )
        for problem, start in zip(problems, given, strict=True)
    ]


class OneVsOne:
    """A rule for every two classes a < b, of their rows only; a is positive.

    Where there is room for them all kernel values are computed once, with the rows by class, and
    pairs that are small enough for one block are parts of them, solved side by side and judged all
    at once. Else the kernel block of a class is shared by all its pairs, or nothing is.
    """

    def __init__(self, op: TiledOperator, codes: Array, c: Array, how: HingeSettings) -> None:
        self.op, self.c, self.how = op, c, how
        self.of = [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]
        self.pairs = list(combinations(range(len(self.of)), 2))
        stop = np.cumsum([len(i) for i in self.of]).tolist()
        self.at = [slice(e - len(i), e) for e, i in zip(stop, self.of, strict=True)]
        self.K = square(op, np.concatenate(self.of)) if self._has_room() else None
        share = self.of if self.K is None and self._shares() else []
        self.own = [square(op, i) for i in share]
        self.left, self.right = (
            [panels(op, i, left=left) for i in share] for left in (True, False)
        )

    @property
    def _largest(self) -> int:
        """The rows of the largest pair."""
        return int(np.sort([len(i) for i in self.of])[-2:].sum())

    @property
    def _on_gpu(self) -> bool:
        """Whether the largest pairs ask a GPU for products, and for no kernel rows."""
        return self.op.gpu is not None and self._largest > blocks.ONE_BLOCK

    def _has_room(self) -> bool:
        """Whether all kernel values are kept, beside those of a pair, a block of them where one
        is not enough, and some vectors of all pairs."""
        if self._on_gpu:
            return False
        n, itemsize = self.op.shape[0], self.op.dtype.itemsize
        left = self.how.memory - GramMatrix.bytes(n, itemsize) - VECTORS * 8.0 * n * len(self.of)
        return gram_fits(self._largest, max(left, 0.0), itemsize)

    def _shares(self) -> bool:
        """Whether kernel values within classes are kept for all pairs; beside those of a pair, and
        a block of them, where one block is not enough."""
        if self._on_gpu:
            return False
        sizes, itemsize = np.array([len(i) for i in self.of], float), self.op.dtype.itemsize
        own, most = float(np.square(sizes).sum()) * itemsize, self._largest
        if most <= blocks.ONE_BLOCK:
            return own <= self.how.memory / 2
        sides = 2.0 * itemsize * self.op.shape[0] * (self.op.X.width + 2)
        return gram_fits(most, max(self.how.memory - own - sides, 0.0), itemsize)

    def solve(self, starts: list[Array] | None = None) -> list[BinaryRule]:
        """In the order (0, 1), (0, 2), ..., (1, 2), ..."""
        pairs = self.pairs
        jobs = [(a, b, None if starts is None else starts[k]) for k, (a, b) in enumerate(pairs)]
        small = [
            k
            for k, (a, b) in enumerate(pairs)
            if len(self.of[a]) + len(self.of[b]) <= blocks.ONE_BLOCK
        ]
        plain = starts is None and self.how.loss == "hinge" and self.how.bias
        done = {} if self.K is None or not (plain and small) else self._at_once(self.K, small)
        left = [k for k in small if k not in done]
        found = dict(zip(left, parallel_map(lambda k: self._pair(*jobs[k]), left), strict=True))
        settled = {k: self._settled(*pairs[k], rule) for k, rule in found.items()}
        done = done | settled
        large = [k for k in range(len(pairs)) if k not in done]
        done = done | self._large(jobs, large)
        return [done[k] for k in range(len(pairs))]

    def _large(self, jobs: list[Any], large: list[int]) -> dict[int, BinaryRule]:
        """The rules of pairs of more than one block: two side by side where half of what is left
        of the memory is enough for each, whatever the number of threads."""
        itemsize, kept = self.op.dtype.itemsize, sum(K.nbytes for K in self._kept())
        half = max(self.how.memory - kept, 0.0) / SIDE_BY_SIDE
        fits = gram_fits(self._largest, half, itemsize)
        if not fits and kept:
            return {k: self._pair(*jobs[k]) for k in large}
        go: Callable[..., Any] = self._pair if fits else self._easy_pair
        with limit(min(SIDE_BY_SIDE, n_threads())):
            found = dict(zip(large, parallel_map(lambda k: go(*jobs[k], half), large), strict=True))
        return {
            k: m if isinstance(m, BinaryRule) else self._pair(jobs[k][0], jobs[k][1], m)
            for k, m in found.items()
        }

    def _easy_pair(
        self, a: int, b: int, start: Array | None, memory: float
    ) -> BinaryRule | Array | None:
        """The rule of a pair that asks for few kernel rows; of another one the duals to start from,
        as it needs all of the memory."""
        index, tol = np.concatenate([self.of[a], self.of[b]]), self.how.tol
        own, problem = self.op.restrict(index), self._problem(a, b, index)
        if start is None:
            start = initial_duals(own, problem, max(tol, ROUGH), memory)
        if start is None or not few_rows(start):
            return start
        limits = tol, self.how.max_iter
        found = solve(own, problem, *limits, memory=memory, start=start)
        return BinaryRule(index, replace(found, way=FEW_ROWS))

    def _kept(self) -> list[Array]:
        return self.own if self.K is None else [self.K]

    def _at_once(self, K: Array, small: list[int]) -> dict[int, BinaryRule]:
        """The rules of these pairs that end by first steps, with gaps that count rounding."""
        order, tol = np.concatenate(self.of), self.how.tol
        some = PairProblems(K, self.at, [self.pairs[k] for k in small], self.c[order], tol)
        duals = some.solved()
        if not (duals.ended != "").any():
            return {}
        rows = some.sample(duals)
        root = np.sqrt(np.abs(self.op.scale[order]))
        found = some.certified(duals, root, rows, exact(self.op, order[rows], order))
        return {
            k: BinaryRule(order[some.rows[s]], f)
            for k, s, f in zip(small, some.parts, found, strict=True)
            if f is not None and (f.relative <= tol or f.rounding < 0.5 * f.gap)
        }

    def _settled(self, a: int, b: int, rule: BinaryRule) -> BinaryRule:
        how, problem = self.how, self._problem(a, b, rule.index)
        return BinaryRule(
            rule.index,
            refined(self.op, problem, rule.solution, how.tol, how.max_iter, how.memory, rule.index),
        )

    def _problem(self, a: int, b: int, index: Array) -> DualProblem:
        return self.how.problem(
            np.repeat([1.0, -1.0], [len(self.of[a]), len(self.of[b])]), self.c[index]
        )

    def _pair(self, a: int, b: int, start: Array | None, memory: float | None = None) -> BinaryRule:
        index, how = np.concatenate([self.of[a], self.of[b]]), self.how
        memory = how.memory if memory is None else memory
        problem = self._problem(a, b, index)
        K = self._block(a, b) if self.own or self.K is not None else None
        if K is not None and len(index) <= blocks.ONE_BLOCK:
            return BinaryRule(index, solve_one_block(K, problem, how.tol, how.max_iter, start))
        columns = None if K is None else GramMatrix(K)
        own, limits = self.op.restrict(index), (how.tol, how.max_iter)
        found = solve(own, problem, *limits, memory=memory, start=start, columns=columns)
        return BinaryRule(index, found)

    def _block(self, a: int, b: int) -> Array:
        """The kernel values of both classes, their columns padded to lanes."""
        if self.K is not None:
            return pair_block(self.K, self.at[a], self.at[b])
        m, n = len(self.of[a]), len(self.of[a]) + len(self.of[b])
        K = padded(n, self.op.dtype)
        K[:m, :m], K[m:, m:n] = self.own[a][:, :m], self.own[b][:, : n - m]
        fill_mirrored(self.op, list(product(self.left[a], self.right[b])), K, m)
        return K


def by_class(rules: Sequence[BinaryRule], codes: Array, K: int) -> Array:
    """Duals of pairs as (K - 1, n): a row's duals against the other classes, in their order."""
    out = np.zeros((K - 1, len(codes)))
    for (a, b), rule in zip(combinations(range(K), 2), rules, strict=True):
        mine = codes[rule.index] == a
        out[b - 1, rule.index[mine]] = rule.solution.b[mine]
        out[a, rule.index[~mine]] = rule.solution.b[~mine]
    return out


def votes(F: Array, K: int) -> Array:
    """Scores of classes from those of pairs: the number of pairs won, and less than half a vote by
    how clearly.

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


def pair_parts(coef: Array, counts: Array) -> list[Part]:
    """Coefficients (K - 1, m) of vectors that are sorted by class, so many of each, as parts of the
    scores of every two classes."""
    K, ends = len(counts), np.cumsum(counts)
    column = {pair: k for k, pair in enumerate(combinations(range(K), 2))}
    return [
        (
            slice(end - count, end),
            [column[min(b, c), max(b, c)] for b in range(K) if b != c],
            coef[:, end - count : end],
        )
        for c, (end, count) in enumerate(zip(ends.tolist(), counts.tolist(), strict=True))
    ]


def pair_functions(coef: Array, counts: Array) -> Array:
    """The same as coefficients of every pair over all vectors, (K (K - 1) / 2, m)."""
    of = np.repeat(np.arange(len(counts)), counts)
    pairs = combinations(range(len(counts)), 2)
    return np.stack(
        [np.where(of == a, coef[b - 1], np.where(of == b, coef[a], 0.0)) for a, b in pairs]
    )
