"""The evidence and its gradient from products with the kernel matrix alone: conjugate gradients, Lanczos quadrature, probes of traces."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.models.gp.iterative import PROBES, probed
from mercer.models.gp.likelihood import Evidence, best_scale
from mercer.linalg.solvers import CG
from mercer.operators.kernel import KernelOperator


def evidence(
    kernel: Kernel, rows: Table, Y: Array, noise: Any, scale: float | None = 1.0, *, least: float = 0.0, memory: float = 1e9,
    tol: float = 1e-4, probes: int = PROBES, seed: int = 0,
) -> Evidence:
    """`likelihood.evidence` where the matrix is not formed; noise, scale and least as there.

    tr(A^-1 dA) is the mean of (A^-1 z)' dA (P^-1 z) over probes z ~ N(0, P), P the preconditioner of A. The standard error of a
    slope is of the size of sqrt(2 n / probes); one seed keeps the probes, so that a search is not led about by them.

    Gardner, Pleiss, Bindel, Weinberger and Wilson, GPyTorch: blackbox matrix-matrix Gaussian process inference (2018).

    >>> from mercer.kernels import Gaussian
    >>> from mercer.models.gp import likelihood
    >>> X = Table(np.linspace(0, 3, 40)[:, None])
    >>> ours = evidence(Gaussian(), X, np.sin(X.data), 0.1, probes=256)
    >>> exact = likelihood.evidence(Gaussian(), X, np.sin(X.data), 0.1)
    >>> bool(abs(ours.log - exact.log) < 0.01), bool(np.allclose(ours.gradient, exact.gradient, atol=1))
    (True, True)
    """
    n, q = Y.shape
    d = np.array(np.broadcast_to(np.asarray(noise, np.float64) / (scale or 1.0), (n,)))
    op = KernelOperator(kernel, rows)
    handle = CG(tol=tol, memory=memory).init(op, d)
    coef = handle.solve(Y).x
    product = handle.system.__matmul__ if handle.cheap is None else handle._times32
    found = probed(product, handle.preconditioner, probes, seed)
    fit = max(float(np.vdot(Y, coef)), 0.0)
    s = best_scale(fit, n * q, noise, least) if scale is None else scale
    log = -0.5 * (fit / s + q * float(found.logs.mean()) + n * q * math.log(2 * math.pi * s))
    U, V = np.hstack([coef / s, -q / probes * found.solved]), np.hstack([coef, found.whitened])
    by_kernel = 0.5 * np.array([*kernel.parameters().values()]) * op.pullback(U, V)
    by_noise = 0.5 * float(d @ np.einsum("ij,ij->i", U, V))
    free = 0.5 * (fit / s - n * q)
    by_noise, by_scale = (by_noise - free, 0.0) if scale is None else (by_noise, free - by_noise)
    return Evidence(log, np.array([*by_kernel, by_noise, by_scale]), s)
