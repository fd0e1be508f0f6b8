"""Probes of A = K + diag(d) on the GPU: conjugate gradients for all of them at once, with every
vector on the device; what they tell of log det A is `models.gp.quadrature`'s."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.solve import GPUSystem
from mercer.inputs import Array


@dataclass(frozen=True, eq=False)
class JacobiCoefficients:
    """Of each probe, (steps, t), nan after its end; where it ended, A^-1 z, and P^-1 z, (n, t), on
    the device."""

    alphas: Array
    betas: Array
    solved: Tensor
    whitened: Tensor


def normals(system: GPUSystem, probes: int, seed: int) -> Tensor:
    """Independent normals (rank + n, probes), drawn where the system is."""
    g = torch.Generator(system.d.device)
    g.manual_seed(seed)
    shape = (system.P.rank + len(system.d), probes)
    return torch.randn(shape, generator=g, dtype=torch.float64, device=system.d.device)


def jacobi(system: GPUSystem, E: Tensor, steps: int, tol: float) -> JacobiCoefficients:
    """Of probes z ~ N(0, P) that independent normals E (rank + n, t) make, each with z'P^-1 z = n;
    until a residual is below `tol` of its first."""
    P, n = system.P, len(system.d)
    Z = P.correlated(E)
    W = P.solve(Z)
    size = torch.sqrt(n / (Z * W).sum(dim=0))
    return _iterated(system, Z * size, W * size, min(steps, n), tol)


def _iterated(
    system: GPUSystem, Z: Tensor, W: Tensor, steps: int, tol: float
) -> JacobiCoefficients:
    R, D, X = Z.clone(), W, torch.zeros_like(Z)
    gamma = (R * D).sum(dim=0)
    first, on = gamma.clone(), torch.ones_like(gamma, dtype=torch.bool)
    alphas, betas = [Z[:0]], [Z[:0]]
    for _ in range(steps):
        AD = system.times(D)
        curve = (D * AD).sum(dim=0)
        on = on & (curve > 0) & (gamma > tol**2 * first)
        if not bool(on.any()):
            break
        step = torch.where(on, gamma / torch.where(on, curve, 1.0), 0.0)
        R, X = R - step * AD, X + step * D
        V = system.P.solve(R)
        new = (R * V).sum(dim=0)
        ratio = torch.where(on, new / gamma, 0.0)
        D, gamma = V + ratio * D, torch.where(on, new, gamma)
        alphas.append(torch.where(on, step, torch.nan)[None])
        betas.append(torch.where(on, ratio, torch.nan)[None])
    a, b = (np.asarray(torch.cat(part).cpu().numpy()) for part in (alphas, betas))
    return JacobiCoefficients(a, b, X, W)
