"""Maclaurin: random products of projections for kernels that are power series of the inner
product."""

from __future__ import annotations

import math
from functools import reduce
from typing import ClassVar

import numpy as np

from mercer.inputs import Array, Matrix
from mercer.invariants import Each, Floats, Ints, Whole
from mercer.kernels import (
    Constant,
    Exp,
    Kernel,
    Linear,
    Polynomial,
    Power,
    Product,
    Scale,
    Series,
    Sum,
    exp,
)
from mercer.kernels.base import whole
from mercer.lifts.base import Lift, Seed, by_rows, stream_of
from mercer.ops.philox import Stream, signs, uniforms
from mercer.pairs.side import square_norms
from mercer.store import register

MAX_ORDER = 128  # most terms of a series
MAX_TAIL = 1e-12  # of the series at the size of the rows, that is left out


def coefficients(k: Kernel) -> Array:
    """a_0, a_1, ... of k = sum a_n (x'z)^n, all >= 0; of an infinite series the first 128.

    >>> coefficients(Polynomial(2, 3.0)).tolist()
    [9.0, 6.0, 1.0]
    """
    match k:
        case Constant():
            return np.ones(1)
        case Linear(metric=None):
            return np.array([0.0, 1.0])
        case Polynomial(degree=p, bias=c):
            return np.array([math.comb(p, i) * c ** (p - i) for i in range(p + 1)])
        case Scale(factor=c, kernel=t):
            return c * coefficients(t)
        case Sum(terms=ts):
            return reduce(_add, map(coefficients, ts))
        case Product(terms=ts):
            return reduce(_times, map(coefficients, ts))
        case Power(kernel=t, degree=n):
            return reduce(_times, [coefficients(t)] * n, np.ones(1))
        case Series(kernel=t, coefficients=a):
            return _series(coefficients(t), a)
        case Exp(kernel=t):
            return _exp(coefficients(t))
    raise ValueError(
        f"{k!r} is not a power series of x'z made of Linear and Polynomial; use k.lift or Nystrom."
    )


def _add(a: Array, b: Array) -> Array:
    out = np.zeros(max(len(a), len(b)))
    out[: len(a)] += a
    out[: len(b)] += b
    return out


def _times(a: Array, b: Array) -> Array:
    return np.convolve(a, b)[:MAX_ORDER]


def _series(t: Array, a: tuple[float, ...]) -> Array:
    return reduce(lambda high, c: _add(_times(high, t), np.array([c])), reversed(a), np.zeros(1))


def _exp(a: Array) -> Array:
    """The series of exp(a(t)): n e_n = sum_k k a_k e_(n-k)."""
    e = np.zeros(MAX_ORDER)
    e[0] = math.exp(a[0])
    slope = np.arange(len(a)) * a
    for n in range(1, MAX_ORDER):
        k = np.arange(1, min(n, len(a) - 1) + 1)
        e[n] = slope[k] @ e[n - k] / n
    return e


def exponential(X: Matrix) -> Kernel:
    """exp(x'z / v), v the mean of |x|^2 over the rows: the default of maps of exponentials."""
    v = float(square_norms(X).mean())
    return exp(Scale(1 / v if 1e-300 < v < math.inf else 1.0, Linear()))


@register("lifts.Maclaurin")
class Maclaurin(Lift):
    """sqrt(a_n / (q_n m)) prod_(i <= n) w_i'x with random signs w_i, for sum a_n (x'z)^n.

    The order n of a feature has probability q_n. The terms of order 0 and 1 are taken exactly
    where they fill at most half of the features. Orders are spread evenly over the law q_n,
    proportional to a_n r^n with r the root mean square of |x|^2, so that what the rows need is
    drawn. Unbiased, up to a share of 1e-12 of the series at r.

    Parameters
    ----------
    kernel : Kernel, default=None
        A function of x'z; None is exp(x'z / v), v the mean of |x|^2.
    n_features : int, default=256
        The number D of features.
    random_state : int, RandomState, Generator or None, default=None
        The seed of signs and orders.

    References
    ----------
    Kar and Karnick, Random feature maps for dot product kernels (2012).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) / 2
    >>> F = Maclaurin(exp(Linear()), n_features=8192, random_state=0).fit_transform(X)
    >>> bool(np.abs(F @ F.T - exp(Linear())(X)).mean() < 0.1)
    True
    """

    sparse: ClassVar[bool] = True

    must = dict(
        coefficients_=Floats("a", low=0),
        orders_=Ints("m", below="a"),
        scales_=Floats("m"),
        n_exact_=Whole(0, "n_features_out_ + 1"),
        signs_=Each(Each(Whole(0, "m"), Floats(None, "n_features_in_"))),
    )

    def _laws(self) -> str | None:
        m = self.n_features_out_ - self.n_exact_
        fits = len(self.orders_) == m and all(s + len(W) == m for s, W in self.signs_)
        return None if fits else f"has signs or orders that are not those of {m} random features"

    def __init__(
        self, kernel: Kernel | None = None, n_features: int = 256, random_state: Seed = None
    ) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.random_state = random_state

    def _learn(self, X: Matrix) -> None:
        self.kernel_ = exponential(X) if self.kernel is None else self.kernel
        D = self.n_features_out_ = whole(self.n_features, "n_features", least=1)
        size = float(np.sqrt(np.square(square_norms(X)).mean()))
        self.coefficients_ = a = _used(coefficients(self.kernel_), size)
        width = (a[0] > 0) + (len(a) > 1 and a[1] > 0) * X.shape[1]
        self.n_exact_ = int(width) if width <= D / 2 or (len(a) <= 2 and width <= D) else 0
        self._draw(a, size, stream_of(self.random_state))

    def _draw(self, a: Array, size: float, stream: Stream) -> None:
        """Orders, ascending; scales; and for every factor the signs of the features that have
        it.
        """
        share = _terms(a, size)
        share[: 2 * (self.n_exact_ > 0)] = 0
        m = (self.n_features_out_ - self.n_exact_) if share.any() else 0
        self.n_features_out_ = self.n_exact_ + m
        q = share / max(share.sum(), 1e-300)
        at = (np.arange(m) + uniforms(stream.child(0), 0, 1, 1)[0, 0]) / max(m, 1)
        self.orders_ = np.minimum(np.searchsorted(np.cumsum(q), at, side="right"), len(a) - 1)
        self.scales_ = np.sqrt(a[self.orders_] / (q[self.orders_] * m))
        starts = [int(np.searchsorted(self.orders_, k)) for k in range(1, len(a))]
        self.signs_ = [
            (s, signs(stream.child(k + 1), s, m, self.n_features_in_))
            for k, s in enumerate(starts)
            if s < m
        ]

    def _map(self, X: Matrix) -> Array:
        F = np.empty((X.shape[0], self.n_features_out_), X.dtype)
        factors = [(s, W.T.astype(X.dtype)) for s, W in self.signs_]
        scales = self.scales_.astype(X.dtype)

        def fill(part: Matrix, rows: slice) -> None:
            self._exactly(part, F[rows, : self.n_exact_])
            out = F[rows, self.n_exact_ :]
            out[:] = scales
            for s, W in factors:
                out[:, s:] *= part @ W

        by_rows(X, self.n_features_out_, fill)
        return F

    def _exactly(self, part: Matrix, out: Array) -> None:
        """sqrt(a_0), sqrt(a_1) x, as far as they are not zero."""
        a = self.coefficients_
        first = int(a[0] > 0)
        if out.shape[1] and first:
            out[:, 0] = math.sqrt(a[0])
        if out.shape[1] > first:
            out[:, first:] = (
                part.toarray() if hasattr(part, "toarray") else part
            ) * part.dtype.type(math.sqrt(a[1]))


def _terms(a: Array, size: float) -> Array:
    """a_n size^n over the largest of them: what each order counts for rows of that squared norm."""
    with np.errstate(divide="ignore"):
        logs = np.log(a) + np.arange(len(a)) * math.log(max(size, 1e-300))
    return np.exp(logs - logs.max())


def _used(a: Array, size: float) -> Array:
    """The series without its tail, negligible at that size; at least two terms where there are."""
    left = np.cumsum(_terms(a, size)[::-1])[::-1]
    used = max(int(np.count_nonzero(left > MAX_TAIL * left[0])), min(2, len(a)))
    if used == MAX_ORDER:
        raise ValueError(
            f"the kernel's series needs more than {MAX_ORDER} terms at rows of squared norm {size:.3g}; scale X down."
        )
    return a[:used]
