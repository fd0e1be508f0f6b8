"""Solvers of (K + diag(ridge)) x = b: small frozen values that factorise once, `init`, and then solve many times."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_solve, cholesky, lu_factor, lu_solve, solve_triangular

from mercer.inputs import Array, Table
from mercer.learners.krylov import Solved, conjugate_gradients, refined
from mercer.learners.precondition import Identity, RPCholesky, Woodbury
from mercer.operators.kernel import KernelOperator
from mercer.operators.stored import GivenOperator, StoredOperator
from mercer.ops.tiles import cuts
from mercer.plan import quantity

INDEFINITE = 1e-3  # a matrix that needs more jitter, relative to its diagonal, is of no kernel
INNER = 1e-4  # a round of conjugate gradients on a float32 matrix takes the residual down by this, not below its rounding
SMALL = 3000  # rows up to which a Cholesky factor is quicker than anything else
COLUMNS = 256
Operator = Any  # KernelOperator | GivenOperator: `@`, `block`, `diag`, `shape`, `dtype`


class Handle(Protocol):
    """K + diag(ridge), ready to be solved with."""

    @property
    def logdet(self) -> float: ...

    def solve(self, B: Array) -> Solved: ...


@dataclass(frozen=True, eq=False)
class System:
    """A = K + diag(ridge) as it is: the kernel in float64 at the rows given, whatever a solver does inside."""

    op: Operator
    ridge: Array

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.exact @ V + self.ridge[:, None] * V)

    @cached_property
    def exact(self) -> Operator:
        return recast(self.op, np.float64)


def recast(op: Operator, dtype: Any) -> Operator:
    """The same operator with its rows, and so its values, in another precision."""
    if isinstance(op, GivenOperator) or op.dtype == dtype or op.X.items:
        return op
    return KernelOperator(op.kernel, op.X.astype(dtype))


def restricted(op: Operator, rows: Array) -> Operator:
    """The operator of some of its rows and columns."""
    return GivenOperator(op.K[np.ix_(rows, rows)]) if isinstance(op, GivenOperator) else KernelOperator(op.kernel, op.X[rows])


# Cholesky
@dataclass(frozen=True)
class Cholesky:
    """A = L L' in one n x n array; float32 halves it, and residuals in float64 mend its digits.

    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 5, 50)[:, None]
    >>> s = Cholesky().init(KernelOperator(Gaussian(), X), np.full(50, 0.1)).solve(np.sin(X))
    >>> bool(np.allclose(Gaussian()(X) @ s.x + 0.1 * s.x, np.sin(X))), s.residual < 1e-10
    (True, True)
    """

    dtype: str = "float64"
    tol: float = 1e-10

    def init(self, op: Operator, ridge: Array) -> Factored:
        system = System(op, ridge)
        jitter = 0.0
        while True:  # where rounding makes A indefinite, the least jitter that mends it; refinement takes it out again
            try:
                return Factored(self, system, self._factor(system, jitter))
            except np.linalg.LinAlgError:
                size = float(np.abs(op.diag()).max())
                jitter = max(10 * jitter, float(np.finfo(self.dtype).eps) * size)
            if jitter > INDEFINITE * size:
                return Pivoted.of_system(self, system)

    def _factor(self, system: System, jitter: float) -> Array:
        K = dense(system.exact if self.dtype == "float64" else system.op, self.dtype)
        K.flat[:: len(K) + 1] += system.ridge + jitter
        return cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)  # K' is K in the order that LAPACK reads

    def bytes(self, n: int) -> float:
        return float(np.dtype(self.dtype).itemsize) * n * n


def dense(op: Operator, dtype: Any) -> Array:
    """K as one new array."""
    return np.array(op.K, dtype) if isinstance(op, GivenOperator) else np.asarray(recast(op, dtype).block(), dtype)


@dataclass(frozen=True, eq=False)
class Factored:
    """L with L L' = A."""

    of: Cholesky
    system: System
    L: Array

    @property
    def logdet(self) -> float:
        """log det A."""
        return float(2 * np.log(np.diag(self.L).astype(np.float64)).sum())

    def solve(self, B: Array) -> Solved:
        """A^-1 B, (n, q)."""

        def once(R: Array, goal: Array) -> tuple[Array, int]:
            size = np.where((norm := np.linalg.norm(R, axis=0)) > 0, norm, 1)  # float32 has few exponents
            return cho_solve((self.L, True), (R / size).astype(self.L.dtype), check_finite=False) * size, 1

        return refined(self.system.__matmul__, B.astype(np.float64), [once], self.of.tol)

    def inverse_diag(self) -> Array:
        """The diagonal of A^-1: the squared columns of L^-1, some at a time."""
        n, out = len(self.L), np.empty(len(self.L))
        for cols in cuts(n, COLUMNS):
            unit = np.zeros((n - cols.start, cols.stop - cols.start), self.L.dtype, order="F")
            np.fill_diagonal(unit, 1)
            part = solve_triangular(self.L[cols.start :, cols.start :], unit, lower=True, overwrite_b=True, check_finite=False)
            out[cols] = np.square(part, dtype=np.float64).sum(axis=0)
        return out


@dataclass(frozen=True, eq=False)
class Pivoted(Factored):
    """L U = P A, for a Gram matrix that was given and is of no kernel: its equations still have a solution."""

    pivots: Array = field(default_factory=lambda: np.empty(0, np.intp))

    @classmethod
    def of_system(cls, of: Cholesky, system: System) -> Pivoted:
        A = dense(system.exact, np.float64)
        A.flat[:: len(A) + 1] += system.ridge
        return cls(of, system, *lu_factor(A, overwrite_a=True, check_finite=False))

    @property
    def logdet(self) -> float:
        return float(np.log(np.abs(np.diag(self.L))).sum())

    def solve(self, B: Array) -> Solved:
        def once(R: Array, goal: Array) -> tuple[Array, int]:
            return lu_solve((self.L, self.pivots), R, check_finite=False), 1

        return refined(self.system.__matmul__, B.astype(np.float64), [once], self.of.tol)

    def inverse_diag(self) -> Array:
        return np.diag(lu_solve((self.L, self.pivots), np.eye(len(self.L)), check_finite=False)).copy()


# conjugate gradients
@dataclass(frozen=True)
class CG:
    """Preconditioned conjugate gradients: K only by products, in float32 where its rounding is small beside the ridge.

    The float32 triangle of K is kept where `memory` allows. Rounds of refinement recompute the residual with the kernel in
    float64, and stop where it is below tol |b|: what `solve` reports is that residual.

    Parameters
    ----------
    tol : of |b - A x| / |b|, for every column
    max_steps : products in all
    preconditioner : `RPCholesky(rank)` or `Identity()`
    memory : bytes for the preconditioner (up to a third of it) and the kept triangle

    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> s = CG().init(KernelOperator(Gaussian(), X), np.full(500, 1e-3)).solve(X[:, :1])
    >>> s.residual <= 1e-6
    True
    """

    tol: float = 1e-6
    max_steps: int = 1000
    preconditioner: RPCholesky | Identity = field(default_factory=RPCholesky)
    memory: float = 1e9

    def init(self, op: Operator, ridge: Array) -> Iterated:
        P = self.preconditioner.init(op, ridge, self.memory / 3)
        return Iterated(self, System(op, ridge), P, self._cheap(op, ridge, self.memory - P.S.nbytes))

    def _cheap(self, op: Operator, ridge: Array, memory: float) -> Operator | None:
        """A float32 stand-in for K, where it is of use: kept if it fits."""
        if isinstance(op, GivenOperator) or op.X.items or not float32_serves(op, ridge):
            return None
        rows = op.X.astype(np.float32)
        fits = StoredOperator.bytes(len(rows), 4) <= memory
        return StoredOperator(op.kernel, rows) if fits else KernelOperator(op.kernel, rows)


def float32_serves(op: Operator, ridge: Array) -> bool:
    """Whether refinement gains a factor of ten a round: |K32 - K|, about eps sqrt(n) max k(x, x), is small beside the ridge."""
    rounding = float(np.finfo(np.float32).eps) * math.sqrt(len(ridge)) * float(np.abs(op.diag()).max())
    return bool(10 * rounding <= ridge.min()) and _in_range(op.X)


def _in_range(rows: Table) -> bool:
    """Whether rows are numbers that float32 can hold and square."""
    values = rows.data.data if rows.sparse else rows.data
    return values.size == 0 or float(max(-values.min(), values.max())) < 1e15


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
        used = 0

        def rounds(product: Any, least: float) -> Any:
            def solve(R: Array, goal: Array) -> tuple[Array, int]:
                nonlocal used
                goal = np.maximum(goal, least * np.linalg.norm(R, axis=0))
                X, steps = conjugate_gradients(product, R, self.preconditioner.solve, goal, self.of.max_steps - used)
                used += steps
                return X, steps

            return solve

        exact = rounds(self.system.__matmul__, 0.0)
        solvers = [exact] if self.cheap is None else [rounds(self._times32, INNER), exact]
        return refined(self.system.__matmul__, B.astype(np.float64), solvers, self.of.tol)

    def _times32(self, P: Array) -> Array:
        size = np.abs(P).max(axis=0)
        scaled = (P / np.where(size > 0, size, 1)).astype(np.float32)
        assert self.cheap is not None
        return (self.cheap @ scaled).astype(np.float64) * size + self.system.ridge[:, None] * P


# the choice
@dataclass(frozen=True)
class Auto:
    """Cholesky up to 3,000 rows where the matrix fits in `memory`, CG beyond; `choose` says which and why.

    >>> Auto().choose(1000)[1], Auto().choose(50_000)[1]
    ('1,000 rows: one 8 MB matrix is factored', '50,000 rows: conjugate gradients, as a factor would take 20 GB and n^3 / 3 steps')
    """

    memory: float = 1e9
    tol: float = 1e-6

    def choose(self, n: int) -> tuple[Cholesky | CG, str]:
        """The solver for n rows, and the reason."""
        size = quantity(Cholesky().bytes(n), "B")
        if n <= SMALL and Cholesky().bytes(n) <= self.memory:
            return Cholesky(), f"{n:,} rows: one {size} matrix is factored"
        return CG(tol=self.tol, memory=self.memory), f"{n:,} rows: conjugate gradients, as a factor would take {size} and n^3 / 3 steps"

    def init(self, op: Operator, ridge: Array) -> Factored | Iterated:
        return self.choose(len(ridge))[0].init(op, ridge)


Solver = Cholesky | CG | Auto
