"""Solve (K + diag(ridge)) x = b on the GPU: conjugate gradients whose vectors never leave it, a
low-rank preconditioner at random pivots, and residuals taken in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.costs.pivots import PivotSearch
from mercer.gpu.backend import Tensor, torch
from mercer.gpu.conjugate import ConjugateGradients
from mercer.gpu.devices import free_bytes
from mercer.gpu.operator import GPUOperator
from mercer.inputs import Array
from mercer.linalg.cg import Solved
from mercer.plans import quantity

PIECE = 1 << 17  # rows of columns that are formed at a time
LEAST, ROUNDS = 64, 3  # pivots drawn at a time; or one part of those there are
FIRST, ROWS = (128, 256), 64  # as many at first; within these, one for so many rows
DRAWN = 1 << 28  # bytes of the columns of pivots that are drawn at a time
MIN_RESIDUAL = 1e-6  # of k(x, x): less than this left of it is rounding
OWN = 1e-4  # of what is left of a pivot: less than this beside others is a sum of them
INNER_TOLERANCE = 1e-4  # of a round on float32 products
MAX_ROUNDS = 6
LOOSE = 5e-5  # a tolerance from which products to 1e-6 tell the residual
SHARE = 0.4  # of free memory that a preconditioner may take
ROW_BYTES, VECTOR_BYTES, FIXED_BYTES = 64, 128, 1 << 28  # a number of X, a row of B, and all else


@dataclass(frozen=True)
class GPUSolver:
    """Conjugate gradients on the fused operator.

    Parameters
    ----------
    tol : of |b - A x| / |b|, for every column
    max_steps : products in all
    rank : pivots of the preconditioner; None: as many as pay (`mercer.costs.pivots`), at most what
    `memory` holds and 12 sqrt(n) or 1,000, the larger
    memory : bytes for the preconditioner, or `SHARE` of what the device has free where that is less
    """

    tol: float = 1e-6
    max_steps: int = 1000
    rank: int | None = None
    memory: float = 2.4e9
    seed: int = 0
    device: str | None = None

    def init(self, op: Any, ridge: Array, columns: float = 1.0) -> GPUSystem:
        """Ready to solve with K of an operator on the CPU, or one that is on the GPU."""
        if not isinstance(op, GPUOperator):
            op = GPUOperator(op.kernel, op.X, device=self.device)
        d = torch.from_numpy(np.ascontiguousarray(ridge)).to(op.device)
        rank, search = self.rank_at(len(ridge), op.device), None
        if self.rank is None:
            search = PivotSearch(
                len(ridge), int(columns), self.tol, float(np.mean(1 / np.maximum(ridge, 1e-300)))
            )
        return GPUSystem(self, op, d, Preconditioner.of(op, d, rank, self.seed, search))

    def rank_at(self, n: int, device: str) -> int:
        """Pivots for n rows on a device at most, as its memory allows."""
        room = int(min(self.memory, SHARE * free_bytes(device)) // (4 * n))
        return max(1, min(n, self.rank or max(1000, int(12 * n**0.5)), room))

    def no_room(self, n: int, d: int, columns: int, device: str) -> str | None:
        """Why rows and vectors do not fit the device, in words; None where they do."""
        needed, free = (
            n * (ROW_BYTES * d + VECTOR_BYTES * columns) + FIXED_BYTES,
            free_bytes(device),
        )
        if needed <= free:
            return None
        return f"it needs {quantity(needed, 'B')}, and the GPU has {quantity(free, 'B')} free"


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """(F F' + diag(d))^-1 by Woodbury's formula, S = d^-1/2 F in float32 and the root of I + S'S in
    float64, with its inverse: products where triangular solves would wait for each other."""

    S: Tensor
    s: Tensor
    root: Tensor
    inverse: Tensor

    @classmethod
    def of(
        cls, op: GPUOperator, d: Tensor, rank: int, seed: int, search: PivotSearch | None = None
    ) -> Preconditioner:
        F = pivoted_factor(op, rank, seed, search)
        s = d.rsqrt()
        F *= s[:, None].float()
        H = torch.eye(F.shape[1], dtype=torch.float64, device=F.device)
        for at in range(0, len(F), 1 << 16):
            part = F[at : at + (1 << 16)].double()
            H += part.T @ part
        root = torch.linalg.cholesky(H)
        one = torch.eye(len(root), dtype=root.dtype, device=root.device)
        return cls(F, s, root, torch.linalg.solve_triangular(root, one, upper=False))

    @property
    def rank(self) -> int:
        return int(self.S.shape[1])

    def correlated(self, E: Tensor) -> Tensor:
        """(n, q) with covariance F F' + diag(d) from independent normals E (rank + n, q)."""
        low = (self.S @ E[: self.rank].float()).double()
        return (low + E[self.rank :]) / self.s[:, None]

    def solve(self, R: Tensor) -> Tensor:
        s = self.s[:, None]
        U = s * R
        inner = self.inverse.T @ (self.inverse @ (self.S.T @ U.float()).double())
        return U.sub_(self.S @ inner.float()).mul_(s)

    @property
    def logdet(self) -> float:
        return float(2 * self.root.diagonal().log().sum() - 2 * self.s.log().sum())


def pivoted_factor(
    op: GPUOperator, rank: int, seed: int, search: PivotSearch | None = None
) -> Tensor:
    """F (n, r) float32 with F F' near K: columns at pivots drawn by what is left of the diagonal, up
    to `rank`, or while a search finds that more of them pay.

    Chen, Epperly, Tropp and Webber, Randomly pivoted Cholesky (2022).
    """
    n, rng = op.shape[0], np.random.default_rng(seed)
    F = torch.empty((n, rank), dtype=torch.float32, device=op.device)
    left = op.diag().clone()
    most, trace = _told(left)
    floor, done, ranks, traces = MIN_RESIDUAL * most, 0, [0], [trace]
    while done < rank and most > floor:
        drawn = _drawn(left, min(_proposals(n, done), rank - done), rng)
        G = _columns(op, drawn) - F[:, :done] @ F[drawn, :done].T
        keep, L = _factor(G[drawn].double(), floor)
        if len(keep):
            one = torch.eye(len(keep), dtype=L.dtype, device=L.device)
            inverse = torch.linalg.solve_triangular(L, one, upper=False)
            new = (G if len(keep) == len(drawn) else G[:, keep]) @ inverse.T.float()
            F[:, done : done + len(keep)] = new
            done += len(keep)
            left = (left - (new * new).sum(dim=1)).clamp(min=0)
        left[drawn] = 0.0
        most, trace = _told(left)
        if search is not None and len(keep):
            ranks, traces = [*ranks, done], [*traces, trace]
            if not search.worth_more(ranks, traces):
                break
    return F[:, :done]


def _proposals(n: int, done: int) -> int:
    """How many pivots are drawn at a time: more of many rows, as a draw waits several times."""
    first = min(max(n // ROWS, FIRST[0]), FIRST[1])
    return max(LEAST, min(max(first, done // ROUNDS), DRAWN // (4 * n)))


def _told(left: Tensor) -> tuple[float, float]:
    """The largest and the sum, in one wait."""
    most, trace = torch.stack([left.max(), left.sum()]).tolist()
    return most, trace


def _columns(op: GPUOperator, cols: Tensor) -> Tensor:
    """K[:, cols] in float32, by pieces of rows."""
    out = torch.empty((op.shape[0], len(cols)), dtype=torch.float32, device=op.device)
    for at in range(0, len(out), PIECE):
        out[at : at + PIECE] = op.block(slice(at, at + PIECE), cols, torch.float32)
    return out


def _drawn(left: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Rows drawn by what is left of them, each once."""
    sums = torch.cumsum(left, dim=0)
    at = torch.from_numpy(rng.random(count)).to(left.device) * sums[-1]
    return torch.unique(torch.searchsorted(sums, at).clamp(max=len(left) - 1))


def _factor(A: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """The pivots of a small block that are not sums of others, and their Cholesky factor."""
    least = (OWN * A.diagonal()).clamp(min=floor)
    L, failed = torch.linalg.cholesky_ex(A)
    if bool((failed == 0) & (L.diagonal().square() > least).all()):
        return torch.arange(len(A), device=A.device), L
    keep = torch.tensor(_apart(A.cpu().numpy(), least.cpu().numpy()), device=A.device).long()
    return keep, torch.linalg.cholesky(A[keep][:, keep])


def _apart(A: Array, least: Array) -> list[int]:
    """The rows of which more than `least` is left beside those before them."""
    L, left, keep = np.zeros_like(A), A.diagonal().copy(), list[int]()
    for i in range(len(A)):
        if left[i] > least[i]:
            k = len(keep)
            L[:, k] = (A[:, i] - L[:, :k] @ L[i, :k]) / np.sqrt(left[i])
            left -= L[:, k] ** 2
            keep.append(i)
    return keep


@dataclass(frozen=True, eq=False)
class HostPreconditioner:
    """The same for arrays of the host, as learners on the CPU read `Woodbury`."""

    of: Preconditioner

    @property
    def rank(self) -> int:
        return self.of.rank

    @property
    def s(self) -> Array:
        return np.asarray(self.of.s.cpu().numpy())

    @property
    def logdet(self) -> float:
        return self.of.logdet

    def correlated(self, E: Array) -> Array:
        return _back(self.of.correlated(_moved(E, self.of.s)))

    def solve(self, B: Array) -> Array:
        return _back(self.of.solve(_moved(B, self.of.s)))


def _moved(A: Array, like: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(A, np.float64)).to(like.device)


def _back(A: Tensor) -> Array:
    return np.asarray(A.cpu().numpy())


@dataclass(frozen=True, eq=False)
class GPUSystem:
    """A = K + diag(d), ready to be solved with."""

    of: GPUSolver
    op: GPUOperator
    d: Tensor
    P: Preconditioner

    @property
    def preconditioner(self) -> HostPreconditioner:
        return HostPreconditioner(self.P)

    def product(self, V: Array) -> Array:
        """A V of arrays of the host, K by products to about 1e-6."""
        return _back(self.times(_moved(V, self.d)))

    def times(self, V: Tensor) -> Tensor:
        """A V"""
        return torch.addcmul(self.op.normwise(V), self.d[:, None], V)

    def on_device(self, A: Array) -> Tensor:
        """An array as a tensor beside the system's, in float64."""
        return _moved(A, self.d)

    @staticmethod
    def beside(parts: list[Tensor]) -> Tensor:
        """Tensors side by side."""
        return torch.cat(parts, dim=1)

    @property
    def logdet(self) -> float:
        """That of the preconditioner."""
        return self.P.logdet

    def solve(self, B: Array) -> Solved:
        """A^-1 B (n, q)"""
        X, R, worst, steps = self.solve_there(_moved(B, self.d))
        return Solved(_back(X), _back(R), worst, steps)

    def solve_there(self, target: Tensor) -> tuple[Tensor, Tensor, float, int]:
        """The same of tensors, with what is left, its size and the steps: rounds of conjugate
        gradients, each on a residual taken in float64, or as products are where that will do."""
        size = torch.linalg.vector_norm(target, dim=0)
        X, R, steps = torch.zeros_like(target), target.clone(), 0
        exact = self.op if self.of.tol >= LOOSE else self.op.exact
        rounds = ConjugateGradients(self, target, by_residual=True)
        worst = 1.0
        for _ in range(MAX_ROUNDS):
            norms = torch.linalg.vector_norm(R, dim=0)
            goal = torch.maximum(0.5 * self.of.tol * size, INNER_TOLERANCE * norms)
            rounds.start(R, self.P.solve(R), goal)
            steps += sum(1 for _ in rounds.steps(self.of.max_steps - steps))
            change = rounds.X
            left = target - (exact @ (X + change) + self.d[:, None] * (X + change))
            new = torch.linalg.vector_norm(left, dim=0)
            gained = new < norms  # not where float32 products led astray, or to no number
            X, R = torch.where(gained, X + change, X), torch.where(gained, left, R)
            kept = torch.where(gained, new, norms)
            worst = float((kept / torch.where(size > 0, size, 1.0)).max())
            open_ = kept > self.of.tol * size
            stuck = bool((open_ & (kept > 0.5 * norms)).any())
            if not bool(open_.any()) or steps >= self.of.max_steps or stuck:
                break
        return X, R, worst, steps
