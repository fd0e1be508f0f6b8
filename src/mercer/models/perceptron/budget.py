"""The kernel perceptron: points, weights and what a scan needs of them, block after block, within a
budget of points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Ints, Is, Number, Whole, check
from mercer.kernels import Gaussian, Scale
from mercer.models.settings import KernelSetting
from mercer.ops import budget as ops
from mercer.ops.budget import Memory
from mercer.ops.budget_merging import merged
from mercer.ops.philox import Stream, uniforms
from mercer.store import register

N = TypeVar("N", bound="float | Array")
POLICIES = {
    "random": ops.RANDOM,
    "oldest": ops.OLDEST,
    "forgetron": ops.FORGETRON,
    "projectron": ops.PROJECTRON,
    "projectron++": ops.PLUS,
    "merging": ops.MERGING,
}
BLOCK, BLOCK_BYTES = (
    256,
    32 << 20,
)  # rows scanned at a time at most, and bytes of their kernel values
SQUARE = (
    ops.FORGETRON,
    ops.PROJECTRON,
    ops.PLUS,
    ops.MERGING,
)  # policies that hold a number for each pair of points


@register("perceptron.Rule")
@dataclass(frozen=True)
class UpdateRule:
    """When a row becomes a point, and what happens beyond the budget; see `KernelPerceptron`."""

    policy: int = ops.UNLIMITED
    budget: int = 0
    eta: float = 0.1
    margin: float = 0.0
    power: float = 0.0

    must = dict(
        policy=Whole(0, 7),
        budget=Whole(0, 1 << 31),
        eta=Number(0),
        margin=Number(0),
        power=Number(0),
    )

    @property
    def merges(self) -> bool:
        return self.policy == ops.MERGING


class PointSource(Protocol):
    """Where rows come from: `points` are whatever `take` gives, and only this knows how to compare
    them.

    No operator, as points come and go with every block, and merging makes points that are no rows.
    """

    def __len__(self) -> int: ...
    def take(self, rows: Array) -> Any: ...
    def values(self, piece: Any, points: Any) -> Array: ...
    def join(self, points: Any, piece: Any, index: Array) -> Any: ...


@register("perceptron.Scanner")
@dataclass(eq=False)
class Scanner:
    """The state of a scan: `memory`, the points, and the rule."""

    rule: UpdateRule
    memory: Memory
    points: Any
    stream: Stream

    must = dict(
        rule=Is("UpdateRule"),
        memory=Is("Memory"),
        points=Is("Table") | Ints("n", below=1 << 48),
        stream=Is("Stream"),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        """The loops write at places up to the number of points, and where there is a budget to one
        beyond it."""
        check(m := self.memory)
        room, limited = m.A.shape[1], self.rule.policy != ops.UNLIMITED
        if not 0 <= m.tally[ops.SIZE] <= (self.rule.budget if limited else room) or len(
            self.points
        ) != self.count(ops.SIZE):
            return f"counts {m.tally[ops.SIZE]} points, and has {len(self.points)}"
        if (
            not room
            or (limited and room != self.rule.budget + 1)
            or (self.rule.policy in SQUARE and len(m.Q) != room)
        ):
            return (
                f"has room for {room} points and {len(m.Q)} pairs, which is not that of its budget"
            )
        wide = self.points.width if self.rule.merges else 0
        return (
            "has room for points of another width"
            if self.rule.merges and m.P.shape != (room, wide)
            else None
        )

    @classmethod
    def start(cls, rule: UpdateRule, classes: int, source: PointSource, stream: Stream) -> Scanner:
        """No points yet."""
        room = rule.budget + 1 if rule.policy != ops.UNLIMITED else BLOCK
        C, pairs = 1 if classes == 2 else classes, room if rule.policy in SQUARE else 1
        points = source.take(np.arange(0))
        P = np.zeros((room if rule.merges else 1, points.width if rule.merges else 1))
        counts = np.full(room, -1), np.zeros(room), np.arange(room)
        memory = Memory(
            np.zeros((C, room)),
            np.zeros((C, room)),
            *counts,
            np.zeros((pairs, pairs)),
            P,
            np.zeros(7),
        )
        return cls(rule, memory, points, stream)

    def copy(self) -> Scanner:
        return replace(self, memory=Memory(*(a.copy() for a in self.memory)))

    def count(self, what: int) -> int:
        return int(self.memory.tally[what])

    @property
    def weights(self) -> Array:
        """(C, n) of the last hypothesis."""
        return self.memory.A[:, : self.count(ops.SIZE)]

    @property
    def mean(self) -> Array:
        """(C, n), the hypothesis after row t weighted by t^(p+1) - (t-1)^(p+1)."""
        n, total = (
            self.count(ops.SIZE),
            max(self.memory.tally[ops.SEEN], 1.0) ** (self.rule.power + 1),
        )
        return self.memory.A[:, :n] - self.memory.U[:, :n] / total

    def scan(
        self,
        source: PointSource,
        labels: Array,
        order: Array | None = None,
        slots: Array | None = None,
    ) -> Array:
        """Take in the rows in their order; which were mistakes. `slots` tells over several passes
        which rows are points."""
        rows = np.arange(len(source)) if order is None else order
        held = np.full(len(source), -1) if slots is None else slots
        if slots is None:
            self.memory.owner[:] = -1
        wrong = np.zeros(len(source), bool)
        for part in self._blocks(rows):
            wrong[part] = self._block(source, part, labels[part], held)
        return wrong

    def _blocks(self, rows: Array) -> Iterator[Array]:
        start = 0
        while start < len(rows):
            size = max(16, min(BLOCK, BLOCK_BYTES // (8 * (self.count(ops.SIZE) + BLOCK))))
            yield rows[start : start + size]
            start += size

    @np.errstate(over="ignore", invalid="ignore")  # what is too large is refused by a sentence
    def _block(self, source: PointSource, rows: Array, labels: Array, slots: Array) -> Array:
        piece, n, b = source.take(rows), self.count(ops.SIZE), len(rows)
        m = self._roomy(n + b)
        K = np.zeros((b, min(n + b, m.A.shape[1])))
        if n:
            K[:, :n] = source.values(piece, self.points)
        G = source.values(piece, piece).astype(np.float64)
        finite(K.sum() + G.sum())
        wrong = np.zeros(b, bool)
        m.source[:] = np.arange(len(m.source))
        if self.rule.policy == ops.UNLIMITED:
            own = m.A, m.U, m.owner, m.born, m.source, m.tally, wrong
            ops.scan_unlimited(K, G, labels, rows, slots, *own, self.rule.margin, self.rule.power)
        else:
            X = _dense(piece) if self.rule.merges else np.zeros((1, 1))
            self._within_budget(m, K, G, X, (labels, rows, slots), wrong)
        self.points = self._moved(source, piece, n)
        return wrong

    def _within_budget(
        self,
        m: Memory,
        K: Array,
        G: Array,
        X: Array,
        told: tuple[Array, Array, Array],
        wrong: Array,
    ) -> None:
        """Rows of a block, whose labels, places and points are told, with what the policy does
        where there are too many points."""
        seen, b, r = self.count(ops.SEEN), len(K), self.rule
        draws = uniforms(self.stream, seen, seen + b, 1)[:, 0]
        row = 0
        while row < b:
            args = (row, K, G, X, *told, draws, m, wrong, r.policy, r.budget)
            row = ops.scan(*args, r.eta, r.margin, r.power)
            if r.merges and self.count(ops.SIZE) > r.budget:
                ops.drop(merged(row - 1, K, told[2], m), row - 1, K, told[2], m, r.policy)

    def _roomy(self, n: int) -> Memory:
        """With room for n points, where there is no budget."""
        m, have = self.memory, self.memory.A.shape[1]
        if self.rule.policy == ops.UNLIMITED and n > have:
            more = max(n, 2 * have) - have
            A, U = (np.pad(a, ((0, 0), (0, more))) for a in (m.A, m.U))
            owner, born, source = (
                np.pad(m.owner, (0, more), constant_values=-1),
                np.pad(m.born, (0, more)),
                np.arange(have + more),
            )
            self.memory = Memory(A, U, owner, born, source, m.Q, m.P, m.tally)
        return self.memory

    def _moved(self, source: PointSource, piece: Any, old: int) -> Any:
        """The points after a block."""
        n = self.count(ops.SIZE)
        if self.rule.merges:
            return Table(self.memory.P[:n].copy(), self.points.columns)
        at = self.memory.source[:n]
        if n == old and (at == np.arange(n)).all():
            return self.points
        return source.join(self.points, piece, np.where(at < 0, old - 1 - at, at))


def _dense(piece: Table) -> Array:
    return np.asarray(piece.data.toarray() if piece.sparse else piece.data, np.float64)


def finite(values: N) -> N:
    """The values, where all are numbers."""
    if not np.isfinite(values).all():
        raise ValueError(
            "the kernel values of X are too large for sums of floating-point numbers; scale the columns first."
        )
    return values


def can_merge(kernel: KernelSetting) -> bool:
    """Whether two points can become one between them: a Gaussian, or a multiple of one.

    >>> can_merge(2 * Gaussian()), can_merge(Gaussian() + 1)
    (True, False)
    """
    return isinstance(kernel, Gaussian) or (
        isinstance(kernel, Scale) and kernel.factor > 0 and can_merge(kernel.kernel)
    )


def forgetron_bound(size: float, hinge: float, budget: int) -> float:
    """2 (R |u|)^2 + 4 L, for R |u| <= sqrt((B + 1) / ln(B + 1)) / 4 and B >= 83; infinite
    elsewhere.

    Dekel, Shalev-Shwartz and Singer, The Forgetron: a kernel-based perceptron on a budget (2008).

    >>> forgetron_bound(1.0, 3.0, 500), forgetron_bound(5.0, 3.0, 500)
    (14.0, inf)
    """
    holds = budget >= 83 and size <= math.sqrt((budget + 1) / math.log(budget + 1)) / 4
    return 2 * size**2 + 4 * hinge if holds else math.inf
