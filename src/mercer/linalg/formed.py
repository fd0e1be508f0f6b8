"""Solving (K + diag(ridge)) x = b with K formed once: by conjugate gradients where few steps
suffice, else by a factor in float32, and where its rounding forbids that by one in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, spotrf

from mercer.costs import quickest, systems
from mercer.costs.choice import choose
from mercer.costs.systems import NARROW, STEPS, WIDE
from mercer.inputs import Array
from mercer.linalg.cg import Map, Solved, conjugate_gradients, refined, unit_of
from mercer.linalg.cholesky import Cholesky, Factored
from mercer.operators import KernelOperator, Operator, dense
from mercer.ops.philox import Stream, uniforms
from mercer.ops.threads import parallel_map, single_blas
from mercer.ops.tiles import cuts
from mercer.ops.triangles import multiplied, solved
from mercer.store import register

Solve = Callable[[Array, Array], tuple[Array, int]]
MAX_CONDITION = 1e6  # of A: beyond, float32 and steps of conjugate gradients lose too many digits
POWERS = 3  # products that the largest eigenvalue is judged by
GOLDEN = (math.sqrt(5) - 1) / 2
JITTER = 1e-13  # of a trace: less of an eigenvalue is rounding
PIECE = 128  # rows that are rounded to float32 at a time
FIRST_STEPS = 3  # after which it is first asked how many are to come


@register("linalg.Formed")
@dataclass(frozen=True)
class Formed:
    """One triangle of K in float64, kept while equations are solved.

    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(800, 1))
    >>> s = Formed().init(KernelOperator(Gaussian(), X), np.ones(800)).solve(X)
    >>> s.residual <= 1e-12, s.way
    (True, 'conjugate gradients')
    """

    tol: float = 1e-12
    enough: float = 1e-10  # where rounding lets no residual come below tol

    def init(self, op: Operator, ridge: Array, columns: float = 1) -> FormedSystem:
        """Ready to solve, about so many columns."""
        wide = op.astype(np.float64)
        A = wide.upper() if isinstance(wide, KernelOperator) else dense(wide, np.float64)
        A.flat[:: len(A) + 1] += ridge
        if (unit := unit_of(A.diagonal())) != 1:
            with np.errstate(all="ignore"):  # below the diagonal there may be anything
                A /= unit
        mild = is_mild(A, MAX_CONDITION * (float(ridge.min()) / unit))
        way = choose("ridge_system", systems.ways(len(A), columns, mild=mild))
        return FormedSystem(self, op, ridge, A, unit, way)

    def bytes(self, n: int) -> float:
        """At most: A, and a factor in float64."""
        return 16.0 * n * n


@dataclass(frozen=True, eq=False)
class FormedSystem:
    """A on and above its diagonal in a unit of its own, the way that is tried first, and the factors
    that were needed."""

    of: Formed
    op: Operator
    ridge: Array
    A: Array
    unit: float
    way: str

    @cached_property
    def narrow(self) -> Array | None:
        """The factor in float32; None where rounding leaves no positive matrix."""
        A = np.empty_like(self.A, np.float32)

        def work(rows: slice) -> None:
            A[rows, rows.start :] = self.A[rows, rows.start :]

        with np.errstate(all="ignore"):  # below the diagonal there may be anything
            parallel_map(work, cuts(len(A), PIECE))
        L, failed = spotrf(A.T, lower=1, clean=0, overwrite_a=1)
        return None if failed else L

    @cached_property
    def wide(self) -> Array | Factored:
        """The factor in float64; of A that is not positive what else there is."""
        L, failed = dpotrf(self.A.T, lower=1, clean=0)
        return Cholesky(tol=self.of.enough).init(self.op, self.ridge) if failed else L

    @property
    def definite(self) -> bool:
        """Whether no factor showed that A is not."""
        found = self.__dict__.get("wide")
        return found.definite if isinstance(found, Factored) else True

    def solve(self, B: Array) -> Solved:
        """A^-1 B, (n, q)."""
        ways: dict[str, Solve] = {
            STEPS: FewSteps(self.A, self.ridge / self.unit),
            NARROW: self._by_narrow,
            WIDE: self._by_wide,
        }
        then = quickest(systems.factors(len(self.A)))
        chain = [WIDE] if self.way == WIDE else list(dict.fromkeys((self.way, then, WIDE)))
        solvers = [ways[way] for way in chain]
        s = refined(self.product, np.asarray(B, np.float64), solvers, self.of.tol, self.of.enough)
        with np.errstate(over="ignore"):
            return replace(s, x=s.x / self.unit, way=chain[s.last])

    def product(self, V: Array) -> Array:
        """A V, in that unit."""
        with single_blas():
            return multiplied(self.A, V)

    def _by_narrow(self, R: Array, goal: Array) -> tuple[Array, int]:
        if self.narrow is None:
            return np.zeros_like(R), 0
        size = np.where((norm := np.linalg.norm(R, axis=0)) > 0, norm, 1)  # few exponents
        with single_blas():
            return solved(self.narrow, (R / size).astype(np.float32)) * size, 1

    def _by_wide(self, R: Array, goal: Array) -> tuple[Array, int]:
        if isinstance(self.wide, Factored):
            found = self.wide.solve(R)
            return found.x * self.unit, found.steps
        with single_blas():
            return solved(self.wide, R), 1


class FewSteps:
    """Conjugate gradients on A until they are done, or until those to come would take longer than
    a factor."""

    def __init__(self, A: Array, ridge: Array) -> None:
        self.A, self.ridge = A, ridge
        self.over = False
        self.left: list[float] = []  # digits to go, before every step

    def __call__(self, R: Array, goal: Array) -> tuple[Array, int]:
        self.left = [math.log(max(1.0, float((np.linalg.norm(R, axis=0) / goal).max())))]
        with single_blas():
            if self.over or self.inverse is None:
                return np.zeros_like(R), 0
            return conjugate_gradients(
                lambda V: multiplied(self.A, V), R, self.inverse, goal, len(R), self.hopeless
            )

    @cached_property
    def inverse(self) -> Map | None:
        """That of a preconditioner; None where there is none."""
        n = len(self.A)
        try:
            T, s = low_rank(self.A, self.ridge, spread(n, systems.rank(n)))
        except np.linalg.LinAlgError:
            return None
        scale = s[:, None]

        def solve(R: Array) -> Array:
            V = scale * R
            V -= T @ (T.T @ V)
            V *= scale
            return V

        return solve

    def hopeless(self, size: Array, goal: Array) -> bool:
        """Whether a factor would be quicker than the steps to come, at the pace of the latter half
        of those before."""
        self.left.append(math.log(float((size / goal).max())))
        k = len(self.left) - 1
        if k < FIRST_STEPS:
            return False
        gain = (self.left[k // 2] - self.left[k]) / (k - k // 2)
        steps = self.left[k] / gain if gain > 0 else math.inf
        n = len(self.A)
        self.over = steps * systems.step(n, len(size)) > min(systems.factors(n).values())
        return self.over


def is_mild(A: Array, most: float) -> bool:
    """Whether the largest eigenvalue of A > 0 is about this at most: the trace bounds it, and few
    products tell it from below."""
    if A.trace() <= most:
        return True
    v = uniforms(Stream(0), 0, len(A), 1)
    with single_blas(), np.errstate(all="ignore"):
        for _ in range(POWERS):
            v = multiplied(A, v / np.linalg.norm(v))
    return float(np.linalg.norm(v)) <= most


def spread(n: int, r: int) -> Array:
    """r of n positions in ascending order: one of every r-th part, at places that repeat in no
    rhythm.

    >>> spread(100, 5)
    array([ 0, 32, 44, 77, 89])
    """
    j = np.arange(r)
    return ((j + j * GOLDEN % 1) * n / r).astype(np.intp)


def columns_of(A: Array, at: Array) -> Array:
    """Columns (n, r) of a symmetric A that is told on and above its diagonal."""
    C = A[:, at]
    for j, i in enumerate(at):
        C[i:, j] = A[i, i:]
    return C


def low_rank(A: Array, ridge: Array, at: Array) -> tuple[Array, Array]:
    """T and s of P^-1 = s (I - T T') s, where P = C W^-1 C' + diag(ridge), C = K[:, at],
    W = K[at, at] and s = ridge^-1/2; LinAlgError where rounding forbids it."""
    s, places = 1 / np.sqrt(ridge), np.arange(len(at))
    C = columns_of(A, at)
    C[at, places] -= ridge[at]
    W = C[at]
    C *= s[:, None]
    H = C.T @ C
    H += W
    H.flat[:: len(at) + 1] += JITTER * H.trace()
    L, failed = dpotrf(H, lower=1)
    if failed:
        raise np.linalg.LinAlgError
    return dtrsm(1.0, L, C.T, lower=1).T, s
