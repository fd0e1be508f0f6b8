"""Working sets: Newton's steps under an L1 penalty on the few features that count, and a sweep over
all others that adds what they lack and bounds how far the end is from the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.models.sparse.dictionary import Dictionary, Found
from mercer.models.sparse.losses import SparseLoss
from mercer.models.sparse.members import Members, Square
from mercer.ops.lasso import lasso_minimum

STEPS = 100  # Newton's, at one penalty
FRESH = 0.2  # a step that leaves more of the gap asks for the curvature of where it is
LEVEL = 1e-13  # the sum of residuals that counts as zero
ROUNDING = 1e-14  # of an objective: what the last steps gain is less, and they still close the gap
FEW = 1e7  # products of all pairs of features over the rows, up to which all are members
FLAT = 1e-9  # the least curvature of a row: steps over rows that are certain stay finite
TOGETHER = 6  # scores that are stepped at once
MOST_NEW = 1000  # features that come at once
AIM = 0.3  # of the tolerance, on the members alone
EXTRA = 64  # features that a sweep lists beyond twice those that are not zero


@dataclass(frozen=True, eq=False)
class Curve:
    """The curvature of a group of scores over the members, the intercepts eliminated: G (gk, gk),
    U (gk, g) T^+, and T^+ (g, g)."""

    G: Square
    U: Array
    T: Array


@dataclass(frozen=True, eq=False)
class Ended:
    """Where a penalty ended: coefficients of `ids`, intercepts, and the duality gap, relative to
    the loss without features."""

    ids: Array
    coef: Array  # (C, k)
    intercept: Array  # (C,) of columns that are not centred
    gap: float
    steps: int


class WorkingSet:
    """min sum_i w_i l(f_i) + l1 |B|_1 + l2 |B|^2/2 over f = X B' + b0, at falling penalties."""

    def __init__(self, X: Dictionary, loss: SparseLoss, tol: float) -> None:
        self.X, self.loss, self.tol = X, loss, tol
        self.members, C = Members(X), loss.Y.shape[1]
        self.B, self.b0 = np.zeros((C, 0)), np.array(loss.start, np.float64)
        self._move(np.tile(self.b0, (X.n, 1)))
        self.null = self.value or 1.0
        self.groups = np.array_split(np.arange(C), -(-C // TOGETHER))
        self.curves: list[Curve | None] = [None] * len(self.groups)
        few = X.n * X.width**2 <= FEW
        self.sweep(-1.0 if few else 0.0, X.width if few else EXTRA)
        self.last = self.largest  # l1 of the penalty before
        if few:
            self._take(np.sort(self._new(-1.0, X.width)))

    def _move(self, f: Array) -> None:
        self.f = f
        self.value, self.R = self.loss.at(f)

    # all features
    def sweep(self, above: float, k: int) -> None:
        """Products of all features with the residuals of every score."""
        V = self.loss.w[:, None] * self.R
        self.found: list[Found] = [self.X.largest(np.ascontiguousarray(v), k, above) for v in V.T]

    @property
    def largest(self) -> float:
        """The least l1 at which no feature enters, before any has."""
        return max(found.largest for found in self.found)

    def _new(self, above: float, most: int) -> Array:
        """Features found beyond a product, the largest first, that are no members."""
        ids = np.concatenate([f.ids for f in self.found])
        size = np.concatenate([np.abs(f.values) for f in self.found])
        some = (size > above) & ~np.isin(ids, self.members.ids)
        ids = ids[some][np.argsort(-size[some], kind="stable")]
        _, first = np.unique(ids, return_index=True)
        return ids[np.sort(first)][:most]

    def _beyond(self) -> float:
        """A bound on the products of features that are no members."""
        top = 0.0
        for f in self.found:
            others = f.values[~np.isin(f.ids, self.members.ids)]
            top = max(top, float(np.abs(others).max(initial=0.0)))
            if len(np.union1d(f.ids, self.members.ids)) < self.X.width:
                top = max(top, f.bound)
        return top

    @property
    def _complete(self) -> bool:
        """Whether all features are members, so that no sweep finds more."""
        return len(self.members) == self.X.width

    # the members
    def _take(self, ids: Array) -> None:
        if not len(ids):
            return
        since = len(self.members)
        self.members.add(ids)
        self.B = np.concatenate([self.B, np.zeros((len(self.B), len(ids)))], axis=1)
        old = self.curves[0]
        if old is None or not self.loss.constant:
            self.curves = [None] * len(self.curves)
            return
        new = self.members.pairs(self.loss.w, since)  # columns are centred by these weights
        old.G.add(new)
        self.curves = [Curve(old.G, np.zeros((old.G.k, 1)), old.T)]

    def _prune(self, above: float, l2: float) -> None:
        """Members that are zero, and whose products are not beyond a number, go."""
        if len(self.members) < 2 * EXTRA or self._complete:
            return
        at = np.flatnonzero(((self.B != 0) | (np.abs(self._slopes(l2)) > above)).any(0))
        if len(at) + EXTRA > len(self.members):
            return
        self.members.keep(at)
        self.B = self.B[:, at].copy()
        old = self.curves[0]
        self.curves = [None] * len(self.curves)
        if self.loss.constant and old is not None:
            old.G.keep(at)
            self.curves = [Curve(old.G, old.U[at], old.T)]

    def _slopes(self, l2: float) -> Array:
        """Weighted products of members with residuals, less l2 B: (C, k)."""
        return self.members.products(self.loss.w[:, None] * self.R).T - l2 * self.B

    def _curve(self, g: Array) -> Curve:
        """That of a group of scores, at the scores as they are."""
        w, k = self.loss.w, len(self.members)
        S, U = np.zeros((len(g), k, len(g), k)), np.zeros((len(g), k, len(g)))
        for a, c in enumerate(g):
            for b, d in enumerate(g[: a + 1]):
                h = w * self.loss.curvature(self.R, c, d)
                h = np.maximum(h, FLAT * w) if c == d else h
                S[a, :, b] = self.members.pairs(h)
                S[b, :, a] = S[a, :, b].T
                U[a, :, b] = U[b, :, a] = self.members.products(h)
        flat, inverse = U.reshape(-1, len(g)), self._inverse(g)
        left = flat @ inverse
        return Curve(Square.of(S.reshape(len(left), -1) - left @ flat.T), left, inverse)

    def _inverse(self, g: Array) -> Array:
        """Of the curvature of the intercepts; those of all classes may move together, at no
        change."""
        w = self.loss.w
        T = np.array([[w @ self.loss.curvature(self.R, c, d) for d in g] for c in g])
        T[np.diag_indices(len(g))] += FLAT
        return np.linalg.inv(T + 1.0 / len(g) if len(g) == len(self.b0) > 1 else T)

    def _newton(self, i: int, l1: float, l2: float) -> None:
        """One step of a group of scores: the quadratic there, solved, and as much of the way as
        lowers."""
        g, curve = self.groups[i], self.curves[i]
        if curve is None:
            self.curves[i] = curve = self._curve(g)
        V = self.loss.w[:, None] * self.R[:, g]
        b, off = self.B[g].ravel(), V.sum(0)
        slope = self.members.products(V).T.ravel() - curve.U @ off
        d = lasso_minimum(curve.G.room, slope + curve.G.all @ b, l1, l2, b) - b if len(b) else b
        d0 = curve.T @ off - curve.U.T @ d
        self._walk(g, V, d.reshape(len(g), -1), d0, (l1, l2))

    def _walk(self, g: Array, V: Array, d: Array, d0: Array, l: tuple[float, float]) -> None:
        """Along d, halved until the objective falls; V are the weighted residuals."""
        df = np.stack([self.members.times(row) for row in d], axis=1) + d0
        b, f, penalty = self.B[g], self.f, _penalty(self.B[g], l)
        before, slope = self.value + penalty, _penalty(b + d, l) - penalty - float(np.vdot(V, df))
        rounding = ROUNDING * (abs(before) + float(self.loss.w @ np.abs(f).max(1)))
        t = 1.0
        while t > 1e-10:
            new = f.copy()
            new[:, g] += t * df
            self._move(new)
            after = self.value + _penalty(b + t * d, l)
            if after <= before + 1e-4 * t * min(slope, 0.0) + rounding:
                self.B[g] = b + t * d
                self.b0[g] += t * d0
                return
            t /= 2
        self._move(f)

    def _level(self) -> None:
        """The intercepts at their best, so that residuals sum to zero."""
        every = np.arange(len(self.b0))
        for _ in range(20):
            off = self.loss.w @ self.R
            if np.abs(off).max() <= LEVEL:
                break
            step = np.clip(self._inverse(every) @ off, -1.0, 1.0) if not self.loss.constant else off
            self.b0 += step
            self._move(self.f + step)

    def gap(self, q: Array, l1: float, l2: float, beyond: float = 0.0) -> float:
        """Of the objective; `beyond` bounds the products of features that are no members."""
        top = max(float(np.abs(q).max(initial=0.0)), beyond)
        s = min(1.0, l1 / top) if top > 0 else 1.0
        squares = l2 * float(np.square(self.B).sum()) / 2
        primal = self.value + l1 * float(np.abs(self.B).sum()) + squares
        return primal - self.loss.dual(self.R, s) + s * s * squares

    def _settle(self, l1: float, l2: float, aim: float) -> int:
        """Steps on the members until their own gap is small; how many."""
        last = np.inf
        for step in range(STEPS):
            self._level()
            gap = self.gap(self._slopes(l2), l1, l2)
            if gap <= aim or (gap >= 0.999 * last and step > 8):
                return step
            if gap > FRESH * last and not self.loss.constant:
                self.curves = [None] * len(self.curves)
            last = gap
            for i in range(len(self.groups)):
                self._newton(i, l1, l2)
        return STEPS

    def at(self, alpha: float, l1_ratio: float, following: float | None = None) -> Ended:
        """Solve at a penalty, not larger than the one before; `following` is the one after."""
        l1, l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
        strong = max(2 * l1 - self.last, 0.0)  # products up to here are not expected to matter
        self._prune(strong, l2)
        if not self._complete:
            self._take(self._new(strong, MOST_NEW))
        self.last, steps = l1, 0
        after = l1 if following is None else max(0.0, 2 * following * l1_ratio - l1)
        while True:
            steps += self._settle(l1, l2, AIM * self.tol * self.null)
            if self._complete:
                return self._ended(self.gap(self._slopes(l2), l1, l2), steps)
            active = int((self.B != 0).any(0).sum())
            self.sweep(after, 2 * active + EXTRA)
            gap = self.gap(self._slopes(l2), l1, l2, self._beyond())
            new = self._new(l1 * (1 + 1e-12), max(16, active))
            if gap <= self.tol * self.null or not len(new):
                return self._ended(gap, steps)
            self._take(new)

    def rest(self) -> None:
        """Let go of columns and their products, which take most of the memory; the penalties are
        done."""
        self.members, self.curves = Members(self.X), []

    def _ended(self, gap: float, steps: int) -> Ended:
        some = (self.B != 0).any(0)
        ids, B = self.members.ids[some], self.B[:, some]
        return Ended(ids, B, self.b0 - B @ self.X.means(ids), max(gap, 0.0) / self.null, steps)


def _penalty(b: Array, l: tuple[float, float]) -> float:
    return l[0] * float(np.abs(b).sum()) + l[1] / 2 * float(np.square(b).sum())
