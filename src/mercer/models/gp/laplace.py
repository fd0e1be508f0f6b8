"""Laplace's approximation: the mode of p(f | labels), the likelihood there with its gradient, and
probabilities of classes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import expit, log_expit, log_ndtr, logsumexp

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.models.gp.factor import LEAST_JITTER, MOST_JITTER, few_threads, inverse
from mercer.models.gp.likelihood import MarginalLikelihood, pull
from mercer.ops.tiles import cuts

STEPS, TOL = 60, 1e-10
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
LOGITS = np.arange(-40, 40.25, 0.5)
DENSITY = 0.5 * expit(LOGITS) * expit(-LOGITS)
WIDE = 0.5  # the deviation of f from which a sum over logits is more exact than one over f
BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Mode:
    """Where p(f | y) is largest: f = K a; slope and curvature of log p(y | f) there; L L' = I +
    W^1/2 K W^1/2."""

    f: Array
    a: Array
    W: Array
    L: Array
    log: float  # the marginal likelihood


def mode(K: Array, y: Array, start: Array | None = None) -> Mode:
    """Newton's method on log p(y | f) - f'K^-1 f / 2 for labels y in {-1, 1}.

    Rasmussen and Williams (2006), algorithm 3.1.
    """
    a = np.zeros(len(y)) if start is None else start
    f = K @ a
    value = _objective(a, f, y)
    for _ in range(STEPS):
        slope, W = curvature(f, y)
        root, L = _factored(K, W)
        b = W * f + slope
        full = b - root * dpotrs(L, root * (K @ b), lower=1)[0]
        a, f, new = _damped(K, y, a, f, full, value)
        done = new - value < TOL * len(y)
        value = new
        if done:
            break
    _, W = curvature(f, y)
    _, L = _factored(K, W)
    return Mode(f, a, W, L, value - float(np.log(L.diagonal()).sum()))


def _objective(a: Array, f: Array, y: Array) -> float:
    return float(log_expit(y * f).sum() - 0.5 * a @ f)


def curvature(f: Array, y: Array) -> tuple[Array, Array]:
    """The slope of log p(y | f), and minus its curvature, never zero."""
    pi = expit(f)
    return (y + 1) / 2 - pi, np.maximum(pi * (1 - pi), 1e-12)


def _factored(K: Array, W: Array) -> tuple[Array, Array]:
    """W^1/2, and L with the least jitter that rounding asks for."""
    root, jitter = np.sqrt(W), 0.0
    while jitter <= MOST_JITTER:
        B = K * root[:, None]
        B *= root
        B.flat[:: len(B) + 1] += 1 + jitter * np.abs(B.diagonal()).max()
        L, failed = dpotrf(B.T, lower=1, clean=0, overwrite_a=1)
        if not failed and np.isfinite(L.diagonal()).all():
            return root, L
        jitter = max(10 * jitter, LEAST_JITTER)
    raise ValueError(
        "the kernel matrix is not positive semidefinite, or too large for floating-point numbers; scale X first."
    )


def _damped(
    K: Array, y: Array, a: Array, f: Array, full: Array, value: float
) -> tuple[Array, Array, float]:
    """A step towards `full` that does not lose."""
    step, move, moved = 1.0, full - a, K @ full - f
    while True:
        there = a + step * move, f + step * moved
        new = _objective(*there, y)
        if new >= value - 1e-12 * abs(value) or step < 1e-6:
            return *there, new
        step /= 2


def laplace_likelihood(
    kernel: Kernel, rows: Table, Y: Array, noise: float | Array, scale: float | None = 1.0
) -> MarginalLikelihood:
    """log q(y) by Laplace, summed over the columns of labels Y, and its slopes by the
    log-parameters (that by the noise is 0)."""
    scale = scale or 1.0
    with few_threads(len(Y)):
        K = scale * kernel(rows)
        parts = [_one(kernel, rows, K, y, scale) for y in Y.T]
    return MarginalLikelihood(
        sum(p[0] for p in parts), np.sum([p[1] for p in parts], axis=0), scale
    )


def _one(kernel: Kernel, rows: Table, K: Array, y: Array, scale: float) -> tuple[float, Array]:
    """Algorithm 5.1: the mode moves with the parameters, hence the third derivative of log p(y |
    f)."""
    m = mode(K, y)
    root, pi = np.sqrt(m.W), expit(m.f)
    B = np.tril(inverse(np.array(m.L, order="F")))
    R = B + np.tril(B, -1).T
    R *= root[:, None]
    R *= root  # (K + W^-1)^-1
    variance = K.diagonal() - np.einsum("ij,ij->i", K @ R, K)
    third = -pi * (1 - pi) * (1 - 2 * pi)
    s = 0.5 * variance * third
    slope = (y + 1) / 2 - pi
    u = s - R @ (K @ s)
    U, V = np.column_stack([m.a, u, slope]), np.column_stack([m.a, slope, u])
    slopes = scale * pull(kernel, rows, U, V, np.triu(R))
    by_kernel = np.array([*kernel.parameters().values()]) * slopes
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

    A narrow f is summed over f. For a wide one E sigmoid(f) = integral sigmoid'(l) Phi((mean + l) /
    sd) dl, by the trapezoidal rule.
    """
    out = np.empty(len(mean))
    for at in cuts(len(mean), BLOCK_ROWS):
        wide = variance[at] >= WIDE**2
        for rows, f in ((wide, _wide), (~wide, _narrow)):
            out[at][rows] = f(mean[at][rows, None], variance[at][rows, None])
    return out


def _narrow(mean: Array, variance: Array) -> Array:
    return np.asarray(
        logsumexp(
            log_expit(mean + np.sqrt(variance) * NODES), b=WEIGHTS / math.sqrt(2 * math.pi), axis=1
        )
    )


def _wide(mean: Array, variance: Array) -> Array:
    """Far in the tail by E sigmoid(f) = exp(mean + variance / 2) E sigmoid(g), g ~ N(-mean -
    variance, variance), which is not small."""
    tail = mean < -variance / 2
    inner = np.where(tail, -mean - variance, mean)
    log = logsumexp(log_ndtr((inner + LOGITS) / np.sqrt(variance)), b=DENSITY, axis=1)
    return np.asarray(log + np.where(tail, mean + variance / 2, 0)[:, 0])
