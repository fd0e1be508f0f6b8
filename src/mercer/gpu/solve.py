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
MIN_RESIDUAL = 1e-5  # of k(x, x): less than this left of it F does not tell in float32
ROUNDING = 1e-7  # of k(x, x): of what is left of a column in float32
OWN = 1e-4  # of what is left of a pivot: less than this beside others is a sum of them
INNER_TOLERANCE = 5e-5  # of a round on float32 products
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
        return cls(F, s, root, inverted(root))

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
    n, g = op.shape[0], torch.Generator(op.device)
    g.manual_seed(seed)
    F = torch.empty((n, rank), dtype=torch.float32, device=op.device)
    left = op.diag()
    most, trace = torch.stack([left.max(), left.sum()]).tolist()
    floor, done, ranks, traces = MIN_RESIDUAL * most, 0, [0], [trace]
    while done < rank and most > floor:
        drawn = _drawn(left, min(_proposals(n, done), rank - done), g)
        new, left, most, trace = _explained(op, F[:, :done], drawn, left, floor)
        F[:, done : done + new.shape[1]] = new
        done += new.shape[1]
        if search is not None and new.shape[1]:
            ranks, traces = [*ranks, done], [*traces, trace]
            if not search.worth_more(ranks, traces):
                break
    return F[:, :done]


def _proposals(n: int, done: int) -> int:
    """How many pivots are drawn at a time: more of many rows, as each draw waits."""
    first = min(max(n // ROWS, FIRST[0]), FIRST[1])
    return max(LEAST, min(max(first, done // ROUNDS), DRAWN // (4 * n)))


def _columns(op: GPUOperator, F: Tensor, cols: Tensor, dtype: Any) -> Tensor:
    """What F F' leaves of K[:, cols], by pieces of rows."""
    out = torch.empty((len(F), len(cols)), dtype=dtype, device=F.device)
    beside, piece = F[cols].T.to(dtype), PIECE if dtype == F.dtype else PIECE // 8
    for at in range(0, len(F), piece):
        rows = slice(at, at + piece)
        out[rows] = op.block(rows, cols, dtype).addmm_(F[rows].to(dtype), beside, alpha=-1)
    return out


def _drawn(left: Tensor, count: int, generator: Any) -> Tensor:
    """Rows drawn by what is left of them, none twice: those that come first where they come at such
    rates. Their number is known before, so that nothing waits for it."""
    u = torch.rand(len(left), generator=generator, dtype=left.dtype, device=left.device)
    return torch.topk(left / -u.log(), count).indices


def _explained(
    op: GPUOperator, F: Tensor, drawn: Tensor, left: Tensor, floor: float
) -> tuple[Tensor, Tensor, float, float]:
    """New columns of F; what they leave of the diagonal, its largest and its sum, all in one wait.
    Where a pivot is a sum of others, or pivots are so near to it that their inverse magnifies
    rounding beyond `floor`, columns are float64, and the first are taken that are neither."""
    G = _columns(op, F, drawn, torch.float32)
    L, failed = torch.linalg.cholesky_ex(A := G[drawn].double())
    inverse, least = inverted(L), (OWN * A.diagonal()).clamp(min=floor)
    apart = (failed == 0) & (L.diagonal().square() > least).all() & _held(inverse, floor).all()
    new, after = _factored(G, inverse, drawn, left)
    fine, most, trace = torch.stack([apart.to(left), after.max(), after.sum()]).tolist()
    if not fine:
        G = _columns(op, F, drawn, torch.float64)
        keep = torch.tensor(_apart(G[drawn].cpu().numpy(), floor), device=G.device).long()
        inverse = inverted(torch.linalg.cholesky(G[drawn[keep]][:, keep]))
        first, later = keep.split([k := int(_held(inverse, floor).sum()), len(keep) - k])
        told = torch.ones_like(drawn, dtype=torch.bool).index_fill_(0, later, False)
        new, after = _factored(G[:, first], inverse[:k, :k], drawn[told], left)
        most, trace = torch.stack([after.max(), after.sum()]).tolist()
    return new, after, most, trace


def _held(inverse: Tensor, floor: float) -> Tensor:
    """Up to which of the first pivots their inverse keeps the squares of rounding below `floor`."""
    rounding = (ROUNDING * floor / MIN_RESIDUAL * inverse).square().sum(dim=1)
    return rounding.cumsum(dim=0) < floor


def _factored(G: Tensor, inverse: Tensor, drawn: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """G L^-T in float32, and what its rows leave of the diagonal: nothing at those drawn."""
    new = (G @ inverse.T.to(G.dtype)).float()
    after = (left - (new * new).sum(dim=1)).clamp(min=0)
    return new, after.index_fill_(0, drawn, 0.0)


def inverted(L: Tensor) -> Tensor:
    """The inverse of a lower triangle."""
    one = torch.eye(len(L), dtype=L.dtype, device=L.device)
    return torch.linalg.solve_triangular(L, one, upper=False) if len(L) else one


def _apart(A: Array, floor: float) -> list[int]:
    """The rows that are no sums of those before them."""
    L, left, keep = np.zeros_like(A), A.diagonal().copy(), list[int]()
    least = np.maximum(OWN * left, floor)
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

    def goal(self, size: Tensor, norms: Tensor) -> Tensor:
        """Of a round of steps, by the sizes of the right-hand sides and of what is left of them."""
        return torch.maximum(0.5 * self.of.tol * size, INNER_TOLERANCE * norms)

    def solve_there(
        self, target: Tensor, begun: Tensor | None = None
    ) -> tuple[Tensor, Tensor, float, int]:
        """The same of tensors, with what is left, its size and the steps: rounds of conjugate
        gradients, each on a residual taken in float64, or as products are where that will do; the
        first is where others have `begun`."""
        size = torch.linalg.vector_norm(target, dim=0)
        X, R, steps = torch.zeros_like(target), target.clone(), 0
        exact = self.op if self.of.tol >= LOOSE else self.op.exact
        rounds: ConjugateGradients | None = None
        worst = 1.0
        for _ in range(MAX_ROUNDS):
            norms = torch.linalg.vector_norm(R, dim=0)
            if begun is None:
                rounds = rounds or ConjugateGradients(self, target)
                rounds.start(R, self.P.solve(R), self.goal(size, norms))
                steps += sum(1 for _ in rounds.steps(self.of.max_steps - steps))
                change = rounds.X
            else:
                change, begun = begun, None
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
