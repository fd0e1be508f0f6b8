"""Penalised linear models on features: losses of scores, their values and slopes, summed over tiles
of rows in one pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, log_softmax, softmax

from mercer.inputs import Array, Table
from mercer.models.maps import FittedMap
from mercer.ops.tiles import cuts
from mercer.stats import Newton
from mercer.stats.fold import fold, threads
from mercer.stats.sample import mix

TILE_BYTES = 1 << 20  # of features: both products of a pass then read them from cache
SHORT, MANY, FEW = (
    512,
    8192,
    512,
)  # up to so many features, MANY rows tell their curvature, else FEW do
FAR = 8.0  # deviations of a column's mean from zero beyond which the column is shifted


# losses of scores f (n, K): the sum of the rows' values, its slope (n, K), the mean curvature of
# each row (n,), and the change of the slope (n, K) where scores change by U (n, K)
class Loss(Protocol):
    def value(self, f: Array, Y: Array, w: Array) -> float: ...
    def slope(self, f: Array, Y: Array, w: Array) -> Array: ...
    def curvature(self, f: Array, Y: Array, w: Array) -> Array: ...
    def bend(self, f: Array, Y: Array, w: Array, U: Array) -> Array: ...


class OneScore(ABC):
    """A loss of one score, whose curvature is all there is to its second derivative."""

    @abstractmethod
    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        """By the score of every row, (n,)."""

    def bend(self, f: Array, Y: Array, w: Array, U: Array) -> Array:
        """curvature times U"""
        return self.curvature(f, Y, w)[:, None] * U


class Logistic(OneScore):
    """w log(1 + exp(-y f)), y in {-1, 1}."""

    def value(self, f: Array, Y: Array, w: Array) -> float:
        return float(w @ np.logaddexp(0, -Y * f)[:, 0])

    def slope(self, f: Array, Y: Array, w: Array) -> Array:
        return -w[:, None] * Y * expit(-Y * f)

    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        return w * (expit(f) * expit(-f))[:, 0]


class Softmax:
    """-w log softmax(f)_y, Y one row of the identity a row."""

    def value(self, f: Array, Y: Array, w: Array) -> float:
        return -float(w @ np.sum(Y * log_softmax(f, axis=1), axis=1))

    def slope(self, f: Array, Y: Array, w: Array) -> Array:
        return w[:, None] * (softmax(f, axis=1) - Y)

    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        """The mean of diag(p) - p p' over scores that sum to zero."""
        return w * (1 - np.square(softmax(f, axis=1)).sum(1)) / (f.shape[1] - 1)

    def bend(self, f: Array, Y: Array, w: Array, U: Array) -> Array:
        """w (diag(p) - p p') U"""
        P = softmax(f, axis=1)
        return w[:, None] * P * (U - np.sum(P * U, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The features (n, D) of rows, less a fixed shift: batches of them, and any rows picked."""

    n: int
    D: int
    dtype: Any
    shift: Array | None
    kept: bool
    batches: Callable[[], Iterable[tuple[slice, Array]]]
    pick: Callable[[Array], Array]
    limit: float

    def tiles(self) -> Iterator[tuple[Array, int, list[slice]]]:
        step = max(16, TILE_BYTES // (self.D * self.dtype.itemsize))
        return ((F, rows.start, cuts(len(F), step)) for rows, F in self.batches())

    def fold(self, of: Callable[[slice, Array], Any], total: Any) -> Any:
        """total + of(rows, F) + ... over tiles that stay in cache, in a fixed order whatever the
        number of threads."""
        for F, start, tiles in self.tiles():
            total = fold(
                ((F[t], slice(start + t.start, start + t.stop)) for t in tiles),
                lambda v: of(v[1], v[0]),
                total,
                threads,
            )
        return total

    @cached_property
    def squares(self) -> Array:
        """|F_i|^2, (n,)."""
        return self._each(lambda F: np.einsum("ij,ij->i", F, F, dtype=np.float64))

    def scores(self, coef: Array) -> Array:
        """F coef, (n,), in the precision of the features."""
        narrow = coef.astype(self.dtype)
        return self._each(lambda F: F @ narrow)

    def summed(self, r: Array) -> Array:
        """F'r in float64, (D,)."""
        return self.fold(
            lambda t, F: (r[t].astype(F.dtype) @ F).astype(np.float64), np.zeros(self.D)
        )

    def _each(self, of: Callable[[Array], Array]) -> Array:
        """of(F), one number a row, over one pass."""
        out = np.zeros(self.n)

        def fill(t: slice, F: Array) -> float:
            out[t] = of(F)
            return 0.0

        self.fold(fill, 0.0)
        return out

    def sample(self) -> Array:
        """The rows that tell the curvature: all of few, else those whose numbers have the least
        hashes."""
        most = (
            MANY
            if self.D <= SHORT
            else int(min(FEW, max(16, self.limit // (4 * self.D * self.dtype.itemsize))))
        )
        if self.n <= most:
            return np.arange(self.n)
        return np.sort(np.argsort(mix(np.arange(self.n, dtype=np.uint64)))[:most])


@dataclass(frozen=True, eq=False)
class Point:
    """A model theta (D [+ 1], K), its scores (n, K) and the objective there."""

    theta: Array
    f: Array
    value: float
    gradient: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """loss(F coef + intercept) + alpha/2 |coef|^2, the intercept being the last row of theta."""

    rows: FeatureRows
    loss: Loss
    Y: Array
    w: Array
    alpha: float
    intercept: bool

    @property
    def zero(self) -> Array:
        return np.zeros((self.rows.D + self.intercept, self.Y.shape[1]))

    def at(self, theta: Array) -> Point:
        """One pass: scores, value and gradient."""
        D, f = self.rows.D, np.empty(self.Y.shape)
        coef, b = theta[:D].astype(self.rows.dtype), theta[D:].sum(0)

        def of(t: slice, F: Array) -> Newton:
            f[t] = F @ coef
            f[t] += b
            r = self.loss.slope(f[t], self.Y[t], self.w[t])
            return Newton(
                self.loss.value(f[t], self.Y[t], self.w[t]), self._back(F, r), np.zeros(())
            )

        s = self.rows.fold(of, Newton(0.0, self.zero, np.zeros(())))
        return Point(theta, f, s.value + self.penalty(theta), s.gradient + self._pull(theta))

    def _back(self, F: Array, r: Array) -> Array:
        """[F, 1]' r, in F's precision and then in float64."""
        g = (r.T.astype(F.dtype) @ F).T.astype(np.float64)
        return np.concatenate([g, r.sum(0)[None]]) if self.intercept else g

    def penalty(self, theta: Array) -> float:
        """alpha/2 |coef|^2"""
        return self.alpha / 2 * float(np.square(theta[: self.rows.D]).sum())

    def _pull(self, theta: Array) -> Array:
        pull = self.alpha * theta
        pull[self.rows.D :] = 0
        return pull

    def step(self, x: Point, d: Array, slope: float) -> Point:
        """As `searched`, to the rounding of the features."""
        return searched(self, x, d, slope, float(np.finfo(self.rows.dtype).eps))


class Searched(Protocol):
    """What a step along a line asks of an objective."""

    @property
    def loss(self) -> Loss: ...
    @property
    def Y(self) -> Array: ...
    @property
    def w(self) -> Array: ...
    def at(self, theta: Array) -> Point: ...
    def penalty(self, theta: Array) -> float: ...


def searched(p: Searched, x: Point, d: Array, slope: float, eps: float) -> Point:
    """x + t d with t = 1, or halved until the objective falls enough; scores are linear in t, so
    halving needs no pass."""
    rounding = eps * abs(x.value)
    new, t = p.at(x.theta + d), 1.0
    value, df = new.value, new.f - x.f
    while value > x.value + 1e-4 * t * slope + rounding:
        t /= 2
        if t < 1e-12:
            return x
        value = p.loss.value(x.f + t * df, p.Y, p.w) + p.penalty(x.theta + t * d)
    return new if t == 1 else p.at(x.theta + t * d)


def feature_rows(phi: FittedMap, X: Table, *, intercept: bool, limit: float) -> FeatureRows:
    """The features of X: kept as one array where they fit the limit of memory, else computed again
    at every pass."""
    head, n, D = phi.features(X[:1024]), len(X), phi.width
    shift = offset(head) if intercept else None
    if float(n) * D * head.dtype.itemsize <= limit:
        kept = moved(phi.features(X), shift)
        return FeatureRows(
            n, D, kept.dtype, shift, True, lambda: [(slice(0, n), kept)], lambda i: kept[i], limit
        )

    def pick(i: Array) -> Array:
        return moved(phi.features(X[i]), shift)

    return FeatureRows(
        n,
        D,
        head.dtype,
        shift,
        False,
        lambda: ((rows, moved(F, shift)) for rows, F in phi.batches(X)),
        pick,
        limit,
    )


def unshifted(rows: FeatureRows, theta: Array, *, intercept: bool) -> tuple[Array, Array]:
    """coef (K, D) and intercept (K,) of features that are not shifted."""
    coef = theta[: rows.D]
    b = theta[rows.D] if intercept else np.zeros(theta.shape[1])
    return coef.T.copy(), b if rows.shift is None else b - rows.shift @ coef


def offset(head: Array) -> Array | None:
    """The means of the columns that are far from zero, in their own deviations: sums about zero
    would lose their digits."""
    mean, deviation = head.mean(0, dtype=np.float64), head.std(0, dtype=np.float64)
    far = np.abs(mean) > FAR * deviation
    return np.where(far, mean, 0).astype(head.dtype) if far.any() else None


def moved(F: Array, shift: Array | None) -> Array:
    return F if shift is None else F - shift
