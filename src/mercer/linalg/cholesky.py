"""Solving (K + diag(ridge)) x = b by a factor: Cholesky's, or a pivoted one where a Gram matrix
that was given is of no kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.linalg import lu_factor, lu_solve, solve_triangular
from scipy.linalg.lapack import get_lapack_funcs

from mercer.inputs import Array
from mercer.linalg.cg import Solved, System, refined
from mercer.operators import KernelOperator, Operator, dense
from mercer.ops.tiles import cuts
from mercer.ops.triangles import multiplied, solved
from mercer.store import register

MAX_JITTER_ROUNDINGS, MAX_JITTER = (
    100.0,
    1e-3,
)  # in n eps, and of the diagonal: a matrix that needs more is of no kernel
INVERSE_COLUMNS = 256
MIN_KEPT = 1e-4  # of A's diagonal: below, that of L is so much larger that differences lose digits


@register("linalg.Cholesky")
@dataclass(frozen=True)
class Cholesky:
    """A = L L' in one n x n array; float32 halves it, and residuals in float64 mend its digits.

    >>> from mercer.kernels import Gaussian
    >>> from mercer.operators import KernelOperator
    >>> X = np.linspace(0, 5, 50)[:, None]
    >>> s = Cholesky().init(KernelOperator(Gaussian(), X), np.full(50, 0.1)).solve(np.sin(X))
    >>> bool(np.allclose(Gaussian()(X) @ s.x + 0.1 * s.x, np.sin(X))), s.residual < 1e-10
    (True, True)
    """

    dtype: str = "float64"
    tol: float = 1e-10

    def init(self, op: Operator, ridge: Array, columns: float = 0) -> Factored:
        """The factor: the same for any number of columns."""
        system, jitter = System(op, ridge), 0.0
        size = float(np.abs(op.diag()).max()) or 1.0
        while (
            jitter <= self._rounding(system) * size
        ):  # A made indefinite by rounding: refinement takes the jitter out again
            try:
                return Factored(self, system, *self._factor(system, jitter))
            except np.linalg.LinAlgError:
                jitter = max(10 * jitter, float(np.finfo(self.dtype).eps) * size)
        return Pivoted.of_system(self, system)

    def _rounding(self, system: System) -> float:
        """How far below zero, relative to the diagonal, rounding may take an eigenvalue of a
        kernel."""
        eps = max(float(np.finfo(dtype).eps) for dtype in (self.dtype, system.exact.dtype))
        return min(MAX_JITTER_ROUNDINGS * len(system.ridge) * eps, MAX_JITTER)

    def _factor(self, system: System, jitter: float) -> tuple[Array, Array | None]:
        """L, and the diagonal of A where its other entries are above that of L."""
        K = dense(system.exact if self.dtype == "float64" else system.op, self.dtype)
        K.flat[:: len(K) + 1] += system.ridge
        kept = self.dtype == "float64" and isinstance(system.op, KernelOperator)
        kept = kept and float(K.diagonal().max()) >= MIN_KEPT
        diagonal = K.diagonal().copy() if kept else None
        K.flat[:: len(K) + 1] += jitter
        (potrf,) = get_lapack_funcs(("potrf",), (K,))
        L, failed = potrf(K.T, lower=1, clean=0, overwrite_a=1)  # K' in the order that LAPACK reads
        if failed:
            raise np.linalg.LinAlgError
        return L, diagonal

    def bytes(self, n: int) -> float:
        return float(np.dtype(self.dtype).itemsize) * n * n


@dataclass(frozen=True, eq=False)
class Factored:
    """L with L L' = A, below the diagonal of one array; above it what A has there, where its
    `diagonal` is told: a product with A then needs no kernel."""

    of: Cholesky
    system: System
    L: Array
    diagonal: Array | None = None

    definite: ClassVar[bool] = True

    @property
    def logdet(self) -> float:
        """log det A."""
        return float(2 * np.log(np.diag(self.L).astype(np.float64)).sum())

    def solve(self, B: Array) -> Solved:
        """A^-1 B, (n, q)."""

        def once(R: Array, goal: Array) -> tuple[Array, int]:
            size = np.where(
                (norm := np.linalg.norm(R, axis=0)) > 0, norm, 1
            )  # float32 has few exponents
            return solved(self.L, (R / size).astype(self.L.dtype)) * size, 1

        return refined(self.product, B.astype(np.float64), [once], self.of.tol)

    def product(self, V: Array) -> Array:
        """A V."""
        if self.diagonal is None:
            return self.system @ V
        along = self.diagonal - self.L.diagonal()
        return multiplied(self.L, V) + along[:, None] * V

    def inverse_diag(self) -> Array:
        """The diagonal of A^-1: the squared columns of L^-1, some at a time."""
        n, out = len(self.L), np.empty(len(self.L))
        for cols in cuts(n, INVERSE_COLUMNS):
            unit = np.zeros((n - cols.start, cols.stop - cols.start), self.L.dtype, order="F")
            np.fill_diagonal(unit, 1)
            part = solve_triangular(
                self.L[cols.start :, cols.start :],
                unit,
                lower=True,
                overwrite_b=True,
                check_finite=False,
            )
            out[cols] = np.square(part, dtype=np.float64).sum(axis=0)
        return out


@dataclass(frozen=True, eq=False)
class Pivoted(Factored):
    """L U = P A, for a Gram matrix that was given and is of no kernel: its equations still have a
    solution."""

    pivots: Array = field(default_factory=lambda: np.empty(0, np.intp))

    definite: ClassVar[bool] = False

    @classmethod
    def of_system(cls, of: Cholesky, system: System) -> Pivoted:
        A = dense(system.exact, np.float64)
        A.flat[:: len(A) + 1] += system.ridge
        LU, pivots = lu_factor(A, overwrite_a=True, check_finite=False)
        return cls(of, system, LU, pivots=pivots)

    @property
    def logdet(self) -> float:
        return float(np.log(np.abs(np.diag(self.L))).sum())

    def solve(self, B: Array) -> Solved:
        def once(R: Array, goal: Array) -> tuple[Array, int]:
            return lu_solve((self.L, self.pivots), R, check_finite=False), 1

        return refined(self.system.__matmul__, B.astype(np.float64), [once], self.of.tol)

    def inverse_diag(self) -> Array:
        return np.diag(
            lu_solve((self.L, self.pivots), np.eye(len(self.L)), check_finite=False)
        ).copy()
