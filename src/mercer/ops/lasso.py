"""Quadratics under an L1 penalty, by active sets over a Gram matrix.

    min_b b'Gb/2 - c'b + l1 |b|_1 + l2 |b|^2/2

The set A of coefficients that are not zero and their signs s are known at every step, so b_A solves
(G_AA + l2 I) b_A = c_A - l1 s: a factor of that matrix gains and loses features. A step stops where
the first coefficient comes to zero, which leaves; where none does, the features enter whose slope
q = c - Gb - l2 b is larger than l1. A feature that depends on those of A has a direction along which
Gb stays, and which lowers the penalty: it is followed until a coefficient is zero. So every step
lowers the objective, whatever the rank (the steps are those of Lee, Battle, Raina and Ng, Efficient
sparse coding algorithms, 2007, with dependent columns added). While A stays, b is linear in l1: the
penalties until it changes need no steps.

Here in NumPy, which needs no compiler; of more features `mercer.ops.lasso_loops` is the same, faster.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from mercer.inputs import Array
from mercer.ops.lasso_loops import (
    DEPENDENT,
    MOST,
    NEAR,
    ROUNDING,
    TIMES,
    active_path,
    factor,
    units,
)
from mercer.ops.threads import single_blas

SMALL = 640  # features up to which there is less to gain than 10 s of compiling take
ROUNDS = 10_000  # of steps at one penalty: reached by rounding that goes in circles alone
GATHERED = 10  # times the work of a product that it takes to gather its rows
BLOCK = 32  # features of which those that depend on others are found one by one


def lasso_path(
    G: Array, c: Array, yy: float, alphas: Array, l1_ratio: float
) -> tuple[Array, Array, Array]:
    """b (m, p) of falling penalties, the gaps (m,), and the rounds they took (m,).

    G (p, p) is symmetric, `yy` the squares of the target; l1 = alpha l1_ratio, l2 = alpha
    (1 - l1_ratio).

    >>> B, gaps, _ = lasso_path(np.eye(2), np.array([3.0, -1.0]), 10.0, np.array([4.0, 2, 0.5]), 1.0)
    >>> B.tolist(), bool((gaps < 1e-14).all())
    ([[0.0, 0.0], [1.0, 0.0], [2.5, -0.5]], True)
    """
    if len(c) <= SMALL:
        with single_blas():  # steps of some 100 us: a second thread costs more than it does
            return stepped_path(G, c, yy, alphas, l1_ratio, np.zeros(len(c)))
    return active_path(G, c, yy, alphas, l1_ratio, np.zeros(len(c)), ROUNDS, np.empty((0, 0)))


def lasso_minimum(G: Array, c: Array, l1: float, l2: float, start: Array) -> Array:
    """b (p,) of one penalty, from a start. Of G the first p rows and columns count."""
    p = len(c)
    if p <= SMALL:
        found = LassoSteps(G[:p, :p], c, start.copy())
        with single_blas():
            found.begin(l2)
            found.solve(l1, ROUNDS)
        return found.b
    alpha, known = np.array([l1 + l2]), factor(G, l2, start)
    B, _, _ = active_path(G, c, 1.0, alpha, l1 / alpha[0], start.copy(), ROUNDS, known)
    return np.asarray(B[0])


def independent(G: Array) -> Array:
    """Which features those before them do not make up, (p,).

    >>> independent(np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])).tolist()
    [True, False, True]
    """
    found = LassoSteps(G, np.zeros(len(G)), np.zeros(len(G)))
    found.take(np.arange(len(G)))
    return ~found.free


def stepped_path(
    G: Array, c: Array, yy: float, alphas: Array, l1_ratio: float, b: Array, rounds: int = ROUNDS
) -> tuple[Array, Array, Array]:
    """`lasso_path` in NumPy, from a start b, which moves, in so many rounds a penalty."""
    m, at = len(alphas), 0
    out, took = np.zeros((m, len(c))), np.zeros(m, np.int64)
    found = LassoSteps(G, c, b)
    while at < m:
        l1, l2 = float(alphas[at] * l1_ratio), float(alphas[at] * (1 - l1_ratio))
        found.begin(l2)
        took[at] = found.solve(l1, rounds)
        out[at] = found.b
        at += 1
        if l2 == 0 and at < m and took[at - 1] < rounds:
            at += found.follow(l1 - alphas[at:], l1, out[at:])
    return out, path_gaps(G, c, yy, alphas, l1_ratio, out), took


def path_gaps(G: Array, c: Array, yy: float, alphas: Array, l1_ratio: float, B: Array) -> Array:
    """The duality gaps (m,): residuals, scaled until every slope is within l1 but for what rounding
    may have added to it, are dual points."""
    l1, l2 = alphas * l1_ratio, alphas * (1 - l1_ratio)
    some, (roots, top) = np.flatnonzero((B != 0).any(0)), units(G, c)
    b = B[:, some]
    Q = c - b @ G[some]
    Q[:, some] -= l2[:, None] * b
    inner = (Q[:, some] * b).sum(1)
    off = np.multiply.outer(ROUNDING * (top + np.abs(b) @ roots[some]), roots)
    top = (np.abs(Q, out=Q) - off).max(1, initial=0.0)
    scale = np.minimum(1.0, l1 / np.where(top > 0, top, l1))
    squares = np.maximum(yy - b @ c[some] - inner, 0.0)  # |y - Xb|^2 + l2 |b|^2
    return np.asarray((1 - scale) ** 2 * squares / 2 + l1 * np.abs(b).sum(1) - scale * inner)


class LassoSteps:
    """b (p,), which moves, the features `act` (k,) of it that are not zero, their signs `s` (p,),
    and the factor U'U = G_AA + l2 I."""

    def __init__(self, G: Array, c: Array, b: Array) -> None:
        self.G, self.c, self.b = G, c, b
        self.s, self.q = np.sign(b), c
        self.l2, self.ready = 0.0, False
        self.roots, self.top = units(G, c)
        self._forget()

    def _forget(self) -> None:
        self.act, self.U = np.zeros(0, np.int64), np.zeros((0, 0), order="F")
        self.free = np.ones(len(self.b), bool)  # those that are not in A

    def begin(self, l2: float) -> None:
        """A factor of the features that are not zero; those that depend on others become so."""
        if self.ready and l2 == self.l2:
            return
        self._forget()
        self.l2, self.ready = l2, True
        some = np.flatnonzero(self.b)
        self.s[some] = np.sign(self.b[some])
        self.take(some)
        self.b[self.free] = 0.0

    # the factor
    def take(self, ids: Array) -> None:
        """Features enter, in their order, but for those that depend on others."""
        if not len(ids):
            return
        A, G = self.act, self.G
        S = G[ids[:, None], ids]
        size = S.diagonal() + self.l2
        S[np.diag_indices(len(ids))] = size
        B = dtrtrs(self.U, G[A[:, None], ids], trans=1)[0] if len(A) else np.zeros((0, len(ids)))
        S -= B.T @ B
        R, bad = dpotrf(S, lower=0, clean=1)
        if not bad and (np.square(R.diagonal()) > DEPENDENT * size).all():
            self._extend(ids, B, R)
        elif len(ids) > BLOCK:
            for start in range(0, len(ids), BLOCK):
                self.take(ids[start : start + BLOCK])
        else:
            R, kept = _in_order(S, DEPENDENT * size)
            self._extend(ids[kept], B[:, kept], R)

    def _extend(self, ids: Array, B: Array, R: Array) -> None:
        k, size = len(self.act), len(self.act) + len(ids)
        U = np.zeros((size, size), order="F")
        U[:k, :k], U[:k, k:], U[k:, k:] = self.U, B, R
        self.U, self.act = U, np.concatenate([self.act, ids])
        self.free[ids] = False

    def _leave(self, r: int) -> None:
        """The feature at place r of the active ones becomes zero."""
        U, j, k = self.U, self.act[r], len(self.act) - 1
        new = np.zeros((k, k), order="F")
        new[:r, :r], new[:r, r:] = U[:r, :r], U[:r, r + 1 :]
        if r < k:
            below = U[r:, r + 1 :]
            new[r:, r:] = dpotrf(below.T @ below, lower=0, clean=1)[0]
        self.U, self.act = new, np.delete(self.act, r)
        self.b[j], self.free[j] = 0.0, True

    # steps
    def _times(self, v: Array) -> Array:
        """G times v (k,) on the active features, zero elsewhere: rows are gathered where that costs
        less than the whole product."""
        A = self.act
        if GATHERED * len(A) < len(self.b):
            return np.asarray(v @ self.G[A])
        full = np.zeros(len(self.b))
        full[A] = v
        return np.asarray(self.G @ full)

    def _slopes(self) -> None:
        A, b = self.act, self.b
        self.q = self.c - self._times(b[A])
        if self.l2:
            self.q -= self.l2 * b

    def _settle(self, l1: float) -> None:
        """Solve on the active features, which leave where their sign would turn."""
        while len(self.act):
            A = self.act
            s, b = self.s[A], self.b[A]
            right = self.q[A] - l1 * s
            d = dpotrs(self.U, right)[0]
            turned = np.flatnonzero(((b + d) * s <= 0) & (d * s < 0))
            if not len(turned):
                self.b[A] = b + d
                return
            far = -b[turned] / d[turned]
            first = int(far.argmin())
            self.b[A] = b + far[first] * d
            self.q[A] -= far[first] * right
            self._leave(int(turned[first]))

    def _rounding(self) -> Array:
        """What each slope may be off by, (p,)."""
        A = self.act
        return ROUNDING * (self.top + float(np.abs(self.b[A]) @ self.roots[A])) * self.roots

    def _enter(self, l1: float, tol: Array, seen: Array) -> bool:
        """Let the features of the largest slopes in; whether there were any."""
        over = np.where(self.free & (seen < TIMES), np.abs(self.q) - l1 - tol, -1.0)
        worst = float(over.max(initial=-1.0))
        if worst <= 0:
            return False
        ids, k = np.flatnonzero(over >= NEAR * worst)[:MOST], len(self.act)
        self.s[ids] = np.sign(self.q[ids])
        self.take(ids)
        seen[self.act[k:]] += 1
        if len(self.act) == k:  # all depend on the active ones: one alone, as others must settle
            for j in ids.tolist():
                seen[j] += 1
                if self._slide(j):
                    break
            self._slopes()
        return True

    def _slide(self, j: int) -> bool:
        """j depends on the active features: move along the direction that leaves Gb as it is until
        one of them comes to zero and leaves. Whether there was such."""
        A, sign = self.act, self.s[j]
        z, b = dpotrs(self.U, self.G[A, j])[0] * sign, self.b[A]
        down = np.flatnonzero(z * self.s[A] > 0)
        if not len(down):
            return False
        far = b[down] / z[down]
        first = int(far.argmin())
        self.b[A] = b - far[first] * z
        self._leave(int(down[first]))
        self.take(np.array([j]))
        self.b[j] = 0.0 if self.free[j] else far[first] * sign
        return True

    def solve(self, l1: float, rounds: int) -> int:
        """One penalty, from where b is; the rounds it took."""
        seen, again = np.zeros(len(self.b), np.int64), 2
        self._slopes()
        for step in range(rounds):
            self._settle(l1)
            self._slopes()
            tol = 1e-13 * l1 + self._rounding()
            if self._enter(l1, tol, seen):
                continue
            A = self.act
            if again == 0 or (np.abs(self.q[A] - l1 * self.s[A]) <= tol[A]).all():
                return step + 1
            again -= 1
        return rounds

    def follow(self, falls: Array, l1: float, out: Array) -> int:
        """Of penalties less than l1 by rising `falls`, how many keep these features and signs: b is
        linear in them, and is written to the first rows of `out`. It is where the last of them is."""
        A = self.act
        if not len(A):
            return 0
        d = dpotrs(self.U, self.s[A])[0]
        b, h = self.b[A], self._times(d)
        with np.errstate(divide="ignore", invalid="ignore"):
            zero = np.where(d * self.s[A] < 0, -b / d, np.inf).min()
            above = np.where(self.free & (h < 1), (l1 - self.q) / (1 - h), np.inf).min()
            below = np.where(self.free & (h > -1), (l1 + self.q) / (1 + h), np.inf).min()
        n = int(np.searchsorted(falls, min(zero, above, below)))
        out[:n, A] = b + np.multiply.outer(falls[:n], d)
        if n:
            self.b[A] = out[n - 1, A]
        return n


def _in_order(S: Array, least: Array) -> tuple[Array, Array]:
    """R'R = S of the features of which those before leave more than the least, and which."""
    S, R, kept = S.copy(), np.zeros(S.shape), list[int]()
    for j in range(len(S)):
        if S[j, j] > least[j]:
            row = S[j] / np.sqrt(S[j, j])
            row[:j] = 0.0
            R[len(kept)] = row
            S -= np.multiply.outer(row, row)
            kept.append(j)
    return R[: len(kept)][:, kept], np.array(kept, np.int64)
