"""Probes of A = K + diag(d) on the GPU: conjugate gradients for all of them at once, with every
vector on the device; what they tell of log det A is `models.gp.quadrature`'s."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.conjugate import ConjugateGradients
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
    Z, W = Z * size, W * size
    made = ConjugateGradients(system, Z, by_residual=False)
    made.start(Z, W, torch.full_like(size, tol**2 * n))
    found = [Z.new_zeros((2, 0, len(size)))]
    found += [torch.stack([made.step, made.ratio])[:, None] for _ in made.steps(min(steps, n))]
    a, b = torch.cat(found, dim=1).cpu().numpy()
    ended = a == 0
    a[ended] = b[ended] = np.nan
    return JacobiCoefficients(a, b, made.X, W)
