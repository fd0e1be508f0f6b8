"""Gaussian process classification: Laplace's approximation about the mode of f, its evidence with gradient, and probabilities."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.special import expit, log_expit, log_ndtr, logsumexp

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Floats, Number
from mercer.kernels import Kernel
from mercer.models.gp.likelihood import Evidence, few_threads, pull
from mercer.models.gp.posterior import PointProcess
from mercer.ops.tiles import cuts
from mercer.store import register

STEPS, TOL = 60, 1e-10
LEAST, MOST = 1e-14, 1e-4  # jitter tried, in shares of the largest diagonal entry
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
LOGITS = np.arange(-40, 40.25, 0.5)
DENSITY = 0.5 * expit(LOGITS) * expit(-LOGITS)
WIDE = 0.5  # the deviation of f from which a sum over logits is more exact than one over f
PIECE = 4096


@dataclass(frozen=True, eq=False)
class Mode:
    """Where p(f | y) is largest: f = K a; slope and curvature of log p(y | f) there; L L' = I + W^1/2 K W^1/2."""

    f: Array
    a: Array
    W: Array
    L: Array
    log: float  # the evidence


def mode(K: Array, y: Array, start: Array | None = None) -> Mode:
    """Newton's method on log p(y | f) - f'K^-1 f / 2 for labels y in {-1, 1}.

    Rasmussen and Williams (2006), algorithm 3.1.
    """
    a = np.zeros(len(y)) if start is None else start
    f = K @ a
    value = _objective(a, f, y)
    for _ in range(STEPS):
        slope, W = _curve(f, y)
        root, L = _factored(K, W)
        b = W * f + slope
        full = b - root * dpotrs(L, root * (K @ b), lower=1)[0]
        a, f, new = _damped(K, y, a, f, full, value)
        done = new - value < TOL * len(y)
        value = new
        if done:
            break
    _, W = _curve(f, y)
    _, L = _factored(K, W)
    return Mode(f, a, W, L, value - float(np.log(L.diagonal()).sum()))


def _objective(a: Array, f: Array, y: Array) -> float:
    return float(log_expit(y * f).sum() - 0.5 * a @ f)


def _curve(f: Array, y: Array) -> tuple[Array, Array]:
    """The slope of log p(y | f), and minus its curvature, never zero."""
    pi = expit(f)
    return (y + 1) / 2 - pi, np.maximum(pi * (1 - pi), 1e-12)


def _factored(K: Array, W: Array) -> tuple[Array, Array]:
    """W^1/2, and L with the least jitter that rounding asks for."""
    root, jitter = np.sqrt(W), 0.0
    while jitter <= MOST:
        B = K * root[:, None]
        B *= root
        B.flat[:: len(B) + 1] += 1 + jitter * np.abs(B.diagonal()).max()
        L, failed = dpotrf(B.T, lower=1, clean=0, overwrite_a=1)
        if not failed and np.isfinite(L.diagonal()).all():
            return root, L
        jitter = max(10 * jitter, LEAST)
    raise ValueError("the kernel matrix is not positive semidefinite, or too large for floating-point numbers; scale X first.")


def _damped(K: Array, y: Array, a: Array, f: Array, full: Array, value: float) -> tuple[Array, Array, float]:
    """A step towards `full` that does not lose."""
    step, move, moved = 1.0, full - a, K @ full - f
    while True:
        there = a + step * move, f + step * moved
        new = _objective(*there, y)
        if new >= value - 1e-12 * abs(value) or step < 1e-6:
            return *there, new
        step /= 2


def evidence(kernel: Kernel, rows: Table, Y: Array, noise: Any, scale: float | None = 1.0) -> Evidence:
    """log q(y) by Laplace, summed over the columns of labels Y, and its slopes by the log-parameters (that by the noise is 0)."""
    scale = scale or 1.0
    with few_threads(len(Y)):
        K = scale * kernel(rows)
        parts = [_one(kernel, rows, K, y, scale) for y in Y.T]
    return Evidence(sum(p[0] for p in parts), np.sum([p[1] for p in parts], axis=0), scale)


def _one(kernel: Kernel, rows: Table, K: Array, y: Array, scale: float) -> tuple[float, Array]:
    """Algorithm 5.1: the mode moves with the parameters, hence the third derivative of log p(y | f)."""
    m = mode(K, y)
    root, pi = np.sqrt(m.W), expit(m.f)
    inverse = dpotri(m.L, lower=1)[0]
    R = np.tril(inverse) + np.tril(inverse, -1).T
    R *= root[:, None]
    R *= root  # (K + W^-1)^-1
    variance = K.diagonal() - np.einsum("ij,ij->i", K @ R, K)
    third = -pi * (1 - pi) * (1 - 2 * pi)
    s = 0.5 * variance * third
    slope = (y + 1) / 2 - pi
    u = s - R @ (K @ s)
    U, V = np.column_stack([m.a, u, slope]), np.column_stack([m.a, slope, u])
    by_kernel = np.array([*kernel.parameters().values()]) * scale * pull(kernel, rows, U, V, R)
    by_scale = 0.5 * float(np.einsum("ij,ij->", U, K @ V) - np.vdot(R, K))
    return m.log, np.array([*by_kernel, 0.0, by_scale])


def probability(mean: Array, variance: Array) -> Array:
    """E sigmoid(f) for f ~ N(mean, variance).

    >>> probability(np.array([0.0, 2.0, 10.0]), np.array([1.0, 0.0, 1e4])).round(3)
    array([0.5  , 0.881, 0.54 ])
    """
    return np.exp(log_probability(mean, variance))


def log_probability(mean: Array, variance: Array) -> Array:
    """log E sigmoid(f) for f ~ N(mean, variance), to rounding however small: by quadrature.

    A narrow f is summed over f. For a wide one E sigmoid(f) = integral sigmoid'(l) Phi((mean + l) / sd) dl, by the trapezoidal rule.
    """
    out = np.empty(len(mean))
    for at in cuts(len(mean), PIECE):
        wide = variance[at] >= WIDE**2
        for rows, f in ((wide, _wide), (~wide, _narrow)):
            out[at][rows] = f(mean[at][rows, None], variance[at][rows, None])
    return out


def _narrow(mean: Array, variance: Array) -> Array:
    return np.asarray(logsumexp(log_expit(mean + np.sqrt(variance) * NODES), b=WEIGHTS / math.sqrt(2 * math.pi), axis=1))


def _wide(mean: Array, variance: Array) -> Array:
    """Far in the tail by E sigmoid(f) = exp(mean + variance / 2) E sigmoid(g), g ~ N(-mean - variance, variance), which is not small."""
    tail = mean < -variance / 2
    inner = np.where(tail, -mean - variance, mean)
    log = logsumexp(log_ndtr((inner + LOGITS) / np.sqrt(variance)), b=DENSITY, axis=1)
    return np.asarray(log + np.where(tail, mean + variance / 2, 0)[:, 0])


@register("gp.LaplaceProcess")
@dataclass(frozen=True, eq=False)
class LaplaceProcess(PointProcess):
    """The posterior of f given labels Y (n, 1) in {-1, 1}; coef = d log p(y | f), noise = 1 / W."""

    log: float = 0.0

    @classmethod
    def at_mode(cls, kernel: Kernel, X: Matrix, y: Array, scale: float) -> LaplaceProcess:
        with few_threads(len(y)):
            m = mode(scale * kernel(Table(X)), y)
        return cls(kernel, X, y[:, None], 1 / m.W, scale, _curve(m.f, y)[0][:, None], m.log)

    @cached_property
    def log_evidence(self) -> float:
        return self.log

    def logs(self, Z: Matrix) -> Array:
        """log p(y = -1) and log p(y = 1) at new rows, (m, 2)."""
        return _both(self.mean(Z)[:, 0], self.variance(Z))


@register("gp.LaplaceWeights")
@dataclass(frozen=True, eq=False)
class LaplaceWeights:
    """f = phi(x)'w, w ~ N(0, scale I), by Laplace about the mode of w; `root` is the factor of the precision of w."""

    coef: Array
    root: Array
    scale: float
    log_evidence: float

    must = dict(coef=Floats("D"), root=Floats("D", "D"), scale=Number(0))

    @classmethod
    def at_mode(cls, F: Array, y: Array, scale: float) -> LaplaceWeights:
        """Newton's method on the weights of features F (n, D), steps halved where they would lose."""
        with few_threads(F.shape[1]):
            return cls._at_mode(F, y, scale)

    @classmethod
    def _at_mode(cls, F: Array, y: Array, scale: float) -> LaplaceWeights:
        w = np.zeros(F.shape[1])
        value, root, step = _newton(F, y, w, scale)
        for _ in range(STEPS):
            size = 1.0
            while (new := _value(F, y, w + size * step, scale)) < value - 1e-9 * abs(value) and size > 1e-6:
                size /= 2
            gain, w = new - value, w + size * step
            value, root, step = _newton(F, y, w, scale)
            if gain < TOL * len(y):
                break
        log = value - float(np.log(root.diagonal()).sum()) - 0.5 * len(w) * math.log(scale)
        return cls(w, root, scale, log)

    def logs(self, F: Array, missing: Array) -> Array:
        """log p(y = -1) and log p(y = 1) at rows of features F, (m, 2), with the variance that the features leave out."""
        V = solve_triangular(self.root, F.T, lower=True, check_finite=False)
        return _both(F @ self.coef, np.square(V).sum(0) + self.scale * missing)


def _both(mean: Array, variance: Array) -> Array:
    return np.column_stack([log_probability(-mean, variance), log_probability(mean, variance)])


def _value(F: Array, y: Array, w: Array, scale: float) -> float:
    return float(log_expit(y * (F @ w)).sum() - 0.5 * w @ w / scale)


def _newton(F: Array, y: Array, w: Array, scale: float) -> tuple[float, Array, Array]:
    """log p(y, w) less a constant, the factor of its curvature, and the step to where that would end."""
    by_f, W = _curve(F @ w, y)
    H = F.T @ (F * W[:, None])
    H.flat[:: len(w) + 1] += 1 / scale
    root = np.linalg.cholesky(H)
    slope = F.T @ by_f - w / scale
    step = solve_triangular(root, solve_triangular(root, slope, lower=True), lower=True, trans=1)
    return _value(F, y, w, scale), root, step
