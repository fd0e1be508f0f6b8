"""log det A and the marginal likelihood from products with A alone: Lanczos quadrature along
probes, and their traces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.linalg.precondition import Woodbury
from mercer.linalg.solvers import CG
from mercer.models.gp.factor import best_scale
from mercer.models.gp.likelihood import MarginalLikelihood
from mercer.operators.kernel import KernelOperator
from mercer.ops.philox import Stream, normals
from mercer.store import register

PROBES, STEPS = 16, 100
MAX_PROBES = 512
SOLVED = 1e-3  # of a probe's residual, where its quadrature is exact beside the probes' own spread


@register("gp.Determinant")
@dataclass(frozen=True, eq=False)
class Determinant:
    """log det A, and the standard error of the estimate."""

    log: float
    error: float


def log_determinant(
    product: Callable[[Array], Array], P: Woodbury, seed: int = 0, error: float = math.inf
) -> Determinant:
    """log det A = log det P + tr log(P^-1/2 A P^-1/2), the trace by Gauss quadrature along probes z
    ~ N(0, P), z'P^-1 z = n.

    Conjugate gradients on A x = z make the Jacobi matrix T of each quadrature: n e1' log(T) e1.
    There are 16 probes, and as many again, up to 512, until the standard error is no larger than
    `error`.

    Ubaru, Chen and Saad, Fast estimation of tr f(A) via stochastic Lanczos quadrature (2017).

    >>> A = np.diag(np.arange(1.0, 101.0))
    >>> d = log_determinant(lambda V: A @ V, Woodbury.of(np.zeros((100, 0)), np.full(100, 50.0)))
    >>> bool(abs(d.log - np.log(np.arange(1.0, 101.0)).sum()) < 4 * d.error)
    True
    """
    logs = probed(product, P, PROBES, seed).logs
    while len(logs) < MAX_PROBES and _error(logs) > error:
        logs = np.append(logs, probed(product, P, PROBES, seed, first=len(logs)).logs)
    return Determinant(float(logs.mean()), _error(logs))


def _error(logs: Array) -> float:
    """The standard error of a mean."""
    return float(logs.std(ddof=1) / math.sqrt(len(logs)))


@dataclass(frozen=True, eq=False)
class Probed:
    """What probes z, (n, t), tell: log det A by each, A^-1 z and P^-1 z."""

    logs: Array
    solved: Any
    whitened: Any


def probed(
    product: Callable[[Array], Array],
    P: Woodbury,
    probes: int = PROBES,
    seed: int = 0,
    first: int = 0,
) -> Probed:
    """`log_determinant` by each of some probes, from number `first` on, and the solutions that were
    found on the way."""
    n = len(P.s)
    E = normals(Stream(seed), first, first + probes, P.rank + n).T  # (r + n, t)
    Z = P.correlated(E)
    W = P.solve(Z)
    size = np.sqrt(
        n / np.einsum("ij,ij->j", Z, W)
    )  # a length tells nothing of A, and would only add its own spread
    Z, W = Z * size, W * size
    alphas, betas, X = _jacobi(product, Z, W, P)
    return Probed(P.logdet + _logs(alphas, betas, n), X, W)


def _probed_there(handle: Any, Y: Any, probes: int, seed: int) -> tuple[Probed, Any]:
    """The same of a system on a GPU, where its vectors stay; and A^-1 Y."""
    there = import_module("mercer.gpu.quadrature")
    found = there.jacobi(handle, there.normals(handle, probes, seed), Y, STEPS, SOLVED)
    logs = handle.P.logdet + _logs(found.alphas, found.betas, len(handle.d))
    return Probed(logs, found.solved, found.whitened), handle.solve_there(Y, found.begun)[0]


def _logs(alphas: Sequence[Array], betas: Sequence[Array], n: int) -> Array:
    """n e1' log(T) e1 of every probe; T goes on as the identity where a probe has ended."""
    a, b = np.array(alphas).T, np.array(betas).T
    if not a.size:
        return np.zeros(len(a))
    on = ~np.isnan(a)
    a, b = np.where(on, a, 1.0), np.where(on, b, 0.0)[:, :-1] * on[:, 1:]
    diagonal = 1 / a
    diagonal[:, 1:] += b / a[:, :-1]
    T, at = np.zeros((*a.shape, a.shape[1])), np.arange(a.shape[1])
    T[:, at, at] = diagonal
    T[:, at[1:], at[:-1]] = np.sqrt(b) / a[:, :-1]
    values, vectors = np.linalg.eigh(T)
    return n * np.asarray((vectors[:, 0] ** 2 * np.log(np.maximum(values, 1e-300))).sum(axis=1))


def _jacobi(
    product: Callable[[Array], Array], Z: Array, W: Array, P: Woodbury
) -> tuple[list[Array], list[Array], Array]:
    """The coefficients of preconditioned conjugate gradients (nan after a probe's end), and where
    they ended."""
    R, D, alphas, betas, X = Z.copy(), W, list[Array](), list[Array](), np.zeros_like(Z)
    gamma = np.einsum("ij,ij->j", R, D)
    first, on = gamma.copy(), np.ones(Z.shape[1], bool)
    for _ in range(min(STEPS, len(Z))):
        AD = product(D)
        curve = np.einsum("ij,ij->j", D, AD)
        on = on & (curve > 0) & (gamma > SOLVED**2 * first)
        if not on.any():
            break
        alpha = np.where(on, gamma / np.where(on, curve, 1), np.nan)
        R -= np.where(on, alpha, 0) * AD
        X += np.where(on, alpha, 0) * D
        W = P.solve(R)
        new = np.einsum("ij,ij->j", R, W)
        beta = np.where(on, new / gamma, np.nan)
        D = W + np.where(on, beta, 0) * D
        gamma = np.where(on, new, gamma)
        alphas.append(alpha)
        betas.append(beta)
    return alphas, betas, X


# the search
def estimated_likelihood(
    kernel: Kernel,
    rows: Table,
    Y: Array,
    noise: float | Array,
    scale: float | None = 1.0,
    *,
    least: float = 0.0,
    memory: float = 1e9,
    tol: float = 1e-4,
    probes: int = PROBES,
    seed: int = 0,
    gpu: str | None = None,
) -> MarginalLikelihood:
    """`likelihood.marginal_likelihood` where the matrix is not formed; noise, scale and least as
    there.

    tr(A^-1 dA) is the mean of (A^-1 z)' dA (P^-1 z) over probes z ~ N(0, P), P the preconditioner
    of A. The standard error of a slope is of the size of sqrt(2 n / probes); one seed keeps the
    probes, so that a search is not led about by them. With a torch device, `gpu`, products and
    probes are computed there.

    Gardner, Pleiss, Bindel, Weinberger and Wilson, GPyTorch: blackbox matrix-matrix Gaussian
    process inference (2018).

    >>> from mercer.kernels import Gaussian
    >>> from mercer.models.gp import likelihood
    >>> X = Table(np.linspace(0, 3, 40)[:, None])
    >>> ours = estimated_likelihood(Gaussian(), X, np.sin(X.data), 0.1, probes=256)
    >>> exact = likelihood.marginal_likelihood(Gaussian(), X, np.sin(X.data), 0.1)
    >>> bool(abs(ours.log - exact.log) < 0.01), bool(np.allclose(ours.gradient, exact.gradient, atol=1))
    (True, True)
    """
    n, q = Y.shape
    d = np.array(np.broadcast_to(np.asarray(noise, np.float64) / (scale or 1.0), (n,)))
    op: Any = KernelOperator(kernel, rows)
    if gpu is None:
        handle: Any = CG(tol=tol, memory=memory).init(op, d)
        found = probed(handle.product, handle.preconditioner, probes, seed)
        T: Any = Y
        coef, beside = handle.solve(Y).x, np.hstack
    else:
        made = import_module("mercer.gpu.solve").GPUSolver(tol=tol, device=gpu)
        handle = made.init(op, d, probes + q)
        op, T, d, beside = handle.op, handle.on_device(Y), handle.d, handle.beside
        found, coef = _probed_there(handle, T, probes, seed)
    fit = max(float((T * coef).sum()), 0.0)
    s = best_scale(fit, n * q, noise, least) if scale is None else scale
    log = -0.5 * (fit / s + q * float(found.logs.mean()) + n * q * math.log(2 * math.pi * s))
    U = beside([coef / s, -q / probes * found.solved])
    V = beside([coef, found.whitened])
    by_kernel = 0.5 * np.array([*kernel.parameters().values()]) * op.pullback(U, V)
    by_noise = 0.5 * float(d @ (U * V).sum(1))
    free = 0.5 * (fit / s - n * q)
    by_noise, by_scale = (by_noise - free, 0.0) if scale is None else (by_noise, free - by_noise)
    return MarginalLikelihood(log, np.array([*by_kernel, by_noise, by_scale]), s)
