"""Solvers of (K + diag(ridge)) x = b: small frozen values that factorise once, `init`, and then
solve many times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mercer.costs import MAX_CHOLESKY_ROWS
from mercer.inputs import Array, Table
from mercer.linalg.cg import Solved, System, conjugate_gradients, refined, unit_of
from mercer.linalg.cholesky import Cholesky, Factored
from mercer.linalg.precondition import MANY_COLUMNS, NoPreconditioner, RPCholesky, Woodbury
from mercer.operators import KernelOperator, Operator, StoredOperator
from mercer.operators.partitioned import PartitionedOperator
from mercer.plans import quantity
from mercer.store import register

# a round of conjugate gradients on a float32 matrix takes the residual down by this, not below its
# rounding
INNER_TOLERANCE = 1e-4
MOST = 1e30  # that float32 may hold
SAMPLE_ROWS = 256  # by which the rounding of a kernel matrix is judged


class Handle(Protocol):
    """K + diag(ridge), ready to be solved with."""

    @property
    def logdet(self) -> float: ...

    def solve(self, B: Array) -> Solved: ...


# conjugate gradients
@register("linalg.CG")
@dataclass(frozen=True)
class CG:
    """Preconditioned conjugate gradients: K only by products, in float32 where its rounding is
    small beside the ridge.

    The float32 triangle of K is kept where `memory` allows. Rounds of refinement recompute the
    residual with the kernel in float64, and stop where it is below tol |b|: what `solve` reports is
    that residual.

    Parameters
    ----------
    tol : of |b - A x| / |b|, for every column
    max_steps : products in all
    preconditioner : `RPCholesky(rank)` or `NoPreconditioner()`
    memory : bytes for the preconditioner (up to a third of it) and the kept triangle

    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> s = CG().init(KernelOperator(Gaussian(), X), np.full(500, 1e-3)).solve(X[:, :1])
    >>> s.residual <= 1e-6
    True
    """

    tol: float = 1e-6
    max_steps: int = 1000
    preconditioner: RPCholesky | NoPreconditioner = field(default_factory=RPCholesky)
    memory: float = 1e9

    def init(self, op: Operator, ridge: Array, columns: float = MANY_COLUMNS) -> Iterated:
        """Ready to solve, about so many columns."""
        P = self.preconditioner.init(
            op, ridge, self.memory / 3, self._price(op, ridge) + columns / 4
        )
        return Iterated(
            self, System(op, ridge), P, self._cheap(op, ridge, self.memory - P.S.nbytes)
        )

    def _price(self, op: Operator, ridge: Array) -> float:
        """Of a product with K, in products with a float32 triangle that is kept (measured with
        Gaussians of 4 to 50 columns)."""
        if not _narrow(op, ridge):
            return 8.0
        return 1.0 if StoredOperator.bytes(len(ridge), 4) <= 2 / 3 * self.memory else 4.0

    def _cheap(self, op: Operator, ridge: Array, memory: float) -> Operator | None:
        """A float32 stand-in for K, where it is of use: kept if it fits."""
        if not isinstance(op, KernelOperator) or not _narrow(op, ridge):
            return None
        if isinstance(op, PartitionedOperator):
            return op.astype(np.float32)
        rows = op.X.astype(np.float32)
        fits = StoredOperator.bytes(len(rows), 4) <= memory
        return StoredOperator(op.kernel, rows) if fits else KernelOperator(op.kernel, rows)


def _narrow(op: Operator, ridge: Array) -> bool:
    return isinstance(op, KernelOperator) and not op.X.items and float32_serves(op, ridge)


def float32_serves(op: KernelOperator, ridge: Array) -> bool:
    """Whether refinement gains a factor of ten a round: |K32 - K|, about eps sqrt(n) max k(x, x) or
    more where rows lose digits that tell them apart, is small beside the ridge."""
    size = float(np.abs(op.diag()).max())
    if not _in_range(op.X) or size > MOST:
        return False
    rounding = float(np.finfo(np.float32).eps) * size
    if 10 * math.sqrt(len(ridge)) * rounding > ridge.min():
        return False
    return bool(10 * math.sqrt(len(ridge)) * max(rounding, _lost(op)) <= ridge.min())


def _lost(op: KernelOperator) -> float:
    """The root mean square of what rows in float32 change in K, by some of them."""
    n = len(op.X)
    some = np.unique(np.linspace(0, n - 1, min(n, SAMPLE_ROWS)).astype(int))
    rows = op.restrict(some)
    gap = rows.block() - rows.astype(np.float32).block()
    return float(np.sqrt(np.mean(np.square(gap, dtype=np.float64))))


def _in_range(rows: Table) -> bool:
    """Whether rows are numbers that float32 can hold and square."""
    values = rows.data.data if rows.sparse else rows.data
    return values.size == 0 or float(max(-values.min(), values.max())) < 1e15


@register("linalg.Iterated")
@dataclass(frozen=True, eq=False)
class Iterated:
    """A with its preconditioner P; `logdet` is that of P."""

    of: CG
    system: System
    preconditioner: Woodbury
    cheap: Operator | None

    @property
    def logdet(self) -> float:
        return self.preconditioner.logdet

    def solve(self, B: Array) -> Solved:
        """A^-1 B, (n, q), to the tolerance or to `max_steps`."""
        used, unit = 0, unit_of(self.system.ridge)  # squares of x may be no numbers

        def rounds(product: Any, least: float) -> Any:
            def solve(R: Array, goal: Array) -> tuple[Array, int]:
                nonlocal used
                goal = np.maximum(goal, least * np.linalg.norm(R, axis=0))
                X, steps = conjugate_gradients(
                    lambda V: product(V / unit),
                    R,
                    lambda V: self.preconditioner.solve(V) * unit,
                    goal,
                    self.of.max_steps - used,
                )
                used += steps
                return X / unit, steps

            return solve

        exact = rounds(self.system.__matmul__, 0.0)
        solvers = [exact] if self.cheap is None else [rounds(self._times32, INNER_TOLERANCE), exact]
        return refined(self.system.__matmul__, B.astype(np.float64), solvers, self.of.tol)

    def product(self, V: Array) -> Array:
        """A V, in float32 inside where its rounding is small beside the ridge."""
        return self.system @ V if self.cheap is None else self._times32(V)

    def _times32(self, P: Array) -> Array:
        size = np.abs(P).max(axis=0)
        scaled = (P / np.where(size > 0, size, 1)).astype(np.float32)
        assert self.cheap is not None
        return (self.cheap @ scaled).astype(np.float64) * size + self.system.ridge[:, None] * P


# the choice
@register("linalg.Auto")
@dataclass(frozen=True)
class AutoSolver:
    """Cholesky up to 3,000 rows where the matrix fits in `memory`, CG beyond; `choose` says which
    and why.

    >>> AutoSolver().choose(1000)[1], AutoSolver().choose(50_000)[1]
    ('1,000 rows: one 8 MB matrix is factored', '50,000 rows: conjugate gradients, as a factor would take 20 GB and n^3 / 3 steps')
    """

    memory: float = 1e9
    tol: float = 1e-6

    def choose(self, n: int) -> tuple[Cholesky | CG, str]:
        """The solver for n rows, and the reason."""
        size = quantity(Cholesky().bytes(n), "B")
        if n <= MAX_CHOLESKY_ROWS and Cholesky().bytes(n) <= self.memory:
            return Cholesky(), f"{n:,} rows: one {size} matrix is factored"
        return CG(
            tol=self.tol, memory=self.memory
        ), f"{n:,} rows: conjugate gradients, as a factor would take {size} and n^3 / 3 steps"

    def init(
        self, op: Operator, ridge: Array, columns: float = MANY_COLUMNS
    ) -> Factored | Iterated:
        return self.choose(len(ridge))[0].init(op, ridge, columns)


Solver = Cholesky | CG | AutoSolver
