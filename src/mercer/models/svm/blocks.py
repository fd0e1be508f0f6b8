"""Rounds of blocks: some duals are chosen, solved by second-order steps, and the gradient of all is
brought up to date; shrinking."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.inputs import Array
from mercer.logs import logger
from mercer.models.svm.device import DeviceRows
from mercer.models.svm.gram import PART_ROWS, GramMatrix, padded
from mercer.models.svm.problem import DualProblem, DualSolution, evaluate, feasible_start, inside
from mercer.operators import TiledOperator
from mercer.operators.cache import RowCache
from mercer.ops import kernel_rows, smo
from mercer.ops.threads import parallel_map, single_blas
from mercer.ops.tiles import cuts

LOG = logger("svm")

ONE_BLOCK = 2048  # up to so many duals are one block
MIN_BLOCK, MAX_BLOCK = 2048, 4096  # duals of a block: twice those inside their bounds, within these
STEPS = 100_000  # inside a block
DEPTH = 0.05  # a block is solved until its violation is this part of that of all duals
SHRINK_EVERY, SHRINK_PART = (
    4,
    0.4,
)  # rounds between two looks at what could be left out, and the least part that pays


KernelRows = RowCache | GramMatrix | DeviceRows


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """The duals that take part, with their gradient G = Kb - t."""

    index: Array
    b: Array
    G: Array
    lo: Array
    hi: Array
    ridge: Array
    columns: KernelRows

    def only(self, keep: Array) -> ActiveSet:
        index, b, G, lo, hi, ridge = (
            v[keep] for v in (self.index, self.b, self.G, self.lo, self.hi, self.ridge)
        )
        assert isinstance(self.columns, RowCache)  # what is all in memory is never shrunk
        return ActiveSet(index, b, G, lo, hi, ridge, self.columns.only(keep))


class BlockSolver:
    """Rounds: choose a block of duals by their slopes, solve it, and add its kernel rows times the
    changes to the gradient.

    Of Joachims (1998) with the second-order choice of Fan, Chen and Lin (2005). Half of a block
    stays from one round to the next. Duals at a bound that no slope pulls away are left out, and
    their gradient is made good before the end.
    """

    def __init__(
        self,
        op: TiledOperator,
        problem: DualProblem,
        tol: float,
        *,
        columns: KernelRows,
        start: Array | None = None,
        shrinks: bool = True,
        largest: int = MAX_BLOCK,
    ) -> None:
        self.op, self.problem, self.tol, self.columns, self.shrinks, self.largest = (
            op,
            problem,
            tol,
            columns,
            shrinks,
            largest,
        )
        self.slack, self.b = tol * problem.unit, feasible_start(problem, start)
        self.G = -problem.t.astype(np.float64)
        self.ridge = np.zeros(op.shape[0]) if problem.ridge is None else problem.ridge
        self.left: list[
            tuple[Array, Array]
        ] = []  # which duals were left out, and all duals at that time
        self.block, self.K = np.empty(0, np.intp), np.empty((0, 0), op.dtype)
        self.room = np.empty(0, op.dtype)
        self.rounds = self.steps = self.made = 0
        self.root = np.sqrt(np.maximum(op.diag(), 0.0))
        self.part = self._everyone()
        if len(given := np.flatnonzero(self.b)):
            self._add(given, self.b[given])

    def _everyone(self) -> ActiveSet:
        problem = self.problem
        return ActiveSet(
            np.arange(self.op.shape[0]),
            self.b,
            self.G,
            problem.lo,
            problem.hi,
            self.ridge,
            self.columns,
        )

    # tiles keep the cores busy; threads of BLAS for short sums between them would only wait for
    # each other
    @single_blas()
    def run(self, most: int) -> DualSolution:
        """Rounds until the gap is at most tol/100 of the objective, or at most tol and no two
        slopes differ by more than tol."""
        while True:
            up, down = self._slopes()
            found = self._evaluated(up, down)
            LOG.info(
                "round %d: relative gap %.1e, %d of %d duals",
                *(self.rounds, found.relative, len(self.part.b), len(self.problem.t)),
            )
            if found.converged or self.rounds >= most:
                if not self.left:
                    return found
                self._widen()
                continue
            if found.violation <= self.slack:
                self.slack /= 10  # flat, but the gap is not closed
                continue
            self._round(up, down, found.violation)
            if self.shrinks and self.rounds % SHRINK_EVERY == 0:
                self._shrink()

    def _slopes(self) -> tuple[Array, Array]:
        """Slopes of the up and down sets: of a rise and of a fall of every dual that takes part;
        far away where it may not."""
        p, change = self.part, np.empty(len(self.part.b))
        if smo.snap(p.b, p.lo, p.hi, change):
            self._add(np.flatnonzero(change), change[change != 0])
        up, down = np.empty(len(p.b)), np.empty(len(p.b))
        smo.gates(p.b, p.lo, p.hi, self.problem.e, up, down)
        up += p.G
        down += p.G
        return up, down

    def _evaluated(self, up: Array, down: Array) -> DualSolution:
        p = self.part
        problem = replace(self.problem, t=self.problem.t[p.index], lo=p.lo, hi=p.hi, ridge=p.ridge)
        made = self.made + self.columns.made + (p.columns.made if self.left else 0)
        work = self.rounds, self.steps, made
        return evaluate(
            problem,
            p.b,
            p.G,
            up,
            down,
            tol=self.tol,
            slack=self.slack,
            work=work,
            root=self.root[p.index],
        )

    def _round(self, up: Array, down: Array, worst: float) -> None:
        """Solve one block, and bring the gradient up to date."""
        p = self.part
        block, kept = self._choose(up, down)
        K = self._square(block, kept)
        b, lo, hi, q = p.b[block], p.lo[block], p.hi[block], len(block)
        G = np.zeros(K.shape[1])
        G[:q] = p.G[block]
        steps = smo.pairs if self.problem.bias else smo.singles
        goal = max(DEPTH * worst, self.slack / 2)
        shape = (-1, smo.LANE)
        self.steps += steps(
            K.reshape(q, *shape), G.reshape(shape), b, lo, hi, self.problem.e, goal, STEPS
        )
        change, self.rounds = b - p.b[block], self.rounds + 1
        moved = change != 0
        p.b[block] = b
        self.block = block
        self.K = K if isinstance(p.columns, RowCache) else self.K
        self._add(block[moved], change[moved])

    def _add(self, which: Array, change: Array) -> None:
        p = self.part
        p.columns.add(p.G, p.index[which], change, inside(p.b[which], p.lo[which], p.hi[which]))
        p.G[which] += p.ridge[which] * change

    def _choose(self, up: Array, down: Array) -> tuple[Array, Array]:
        """The duals of a block: some of the last one (at these places in it), and those whose
        slopes are most wrong."""
        p = self.part
        if len(p.b) <= min(ONE_BLOCK, self.largest):
            every = np.arange(len(p.b))
            return every, every[: len(self.block) if np.array_equal(every, self.block) else 0]
        between = inside(p.b, p.lo, p.hi)
        most = min(self.largest, len(p.b))
        q = int(np.clip(2 * between.sum(), min(MIN_BLOCK, most), most)) // 2 * 2
        kept = np.argsort(~between[self.block], kind="stable")[: q // 2]
        stay = self.block[kept]
        up[stay], down[stay] = np.inf, -np.inf
        risers = lowest(up, (q - len(stay)) // 2)
        down[risers] = -np.inf
        fallers = lowest(-down, (q - len(stay)) // 2)
        return np.concatenate([stay, risers, fallers]), kept

    def _square(self, block: Array, kept: Array) -> Array:
        """K of the block, its columns padded to lanes: picked from all values, formed on a GPU, or
        beside what the last block had."""
        p, every = self.part, np.arange(len(block))
        if isinstance(p.columns, RowCache):
            return self._beside_last(block, kept)
        K = p.columns.some(p.index[block], self._room(p.columns, len(block)))
        K[every, every] += p.ridge[block].astype(K.dtype)
        return K

    def _beside_last(self, block: Array, kept: Array) -> Array:
        """The same, where what the last block had is copied."""
        p, q, k = self.part, len(block), len(kept)
        K = padded(q, self.op.dtype)
        kernel_rows.pick(self.K, kept, kept, K)
        self.K = self.K[:0, :0].copy()  # one block at a time
        if k < q:
            rows = self.op.block(p.index[block[k:]], p.index[block])
            parallel_map(
                lambda s: kernel_rows.mirror(rows[s], K, 0, k + s.start), cuts(q - k, PART_ROWS)
            )
            K[k:, :q] = rows
            new = np.arange(k, q)
            K[new, new] += p.ridge[block[k:]].astype(K.dtype)
        return K

    def _room(self, columns: GramMatrix | DeviceRows, q: int) -> Array:
        """Memory for a block of q duals, that of the last one where it is large enough: new pages
        would take longer than what is written to them."""
        size = q * smo.lanes(q) * smo.LANE
        if len(self.room) < size:
            self.room = columns.room(size)
        return self.room

    # shrinking
    def _shrink(self) -> None:
        """Leave out the duals that no pair would move now."""
        up, down = self._slopes()
        low, high = float(up.min()), float(down.max())
        if not self.problem.bias:
            low, high = min(low, -high, 0.0), max(high, -low, 0.0)
        keep = (up <= high) | (down >= low)
        if keep.mean() > 1 - SHRINK_PART or high - low <= 4 * self.slack:
            return
        self._settle()
        p, place = self.part, np.cumsum(keep) - 1
        self.left.append((p.index[~keep], self.b.copy()))
        stay = keep[self.block]
        at = np.flatnonzero(stay)
        self.part, self.block = p.only(keep), place[self.block[stay]]
        self.K = self.K[at[:, None], at]

    def _settle(self) -> None:
        """Write what takes part back to all."""
        p = self.part
        self.b[p.index], self.G[p.index] = p.b, p.G

    def _widen(self) -> None:
        """Everyone takes part again: the gradient of those left out gets what changed since."""
        self._settle()
        self.made += self.part.columns.made
        self.block = self.part.index[self.block]
        for index, then in self.left:
            moved, change = np.flatnonzero(self.b != then), np.zeros(self.op.shape[0])
            self.columns.add(
                change, moved, (self.b - then)[moved]
            )  # of all columns, as for these rows are kept
            self.G[index] += change[index]
        self.left, self.part = [], self._everyone()


def lowest(values: Array, k: int) -> Array:
    """The places of the k least values, without those that are out of reach."""
    if k >= len(values):
        return np.flatnonzero(values < smo.MAX_GRADIENT / 2)
    found = np.argpartition(values, k)[:k] if k > 0 else np.empty(0, np.intp)
    return found[values[found] < smo.MAX_GRADIENT / 2]
