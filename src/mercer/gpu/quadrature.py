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
    the device; and where targets beside them went.
    """

    alphas: Array
    betas: Array
    solved: Tensor
    whitened: Tensor
    begun: Tensor


def normals(system: GPUSystem, probes: int, seed: int) -> Tensor:
    """Independent normals (rank + n, probes), drawn where the system is."""
    g = torch.Generator(system.d.device)
    g.manual_seed(seed)
    shape = (system.P.rank + len(system.d), probes)
    return torch.randn(shape, generator=g, dtype=torch.float64, device=system.d.device)


def jacobi(
    system: GPUSystem, E: Tensor, targets: Tensor, steps: int, tol: float
) -> JacobiCoefficients:
    """Of probes z ~ N(0, P) that independent normals E (rank + n, t) make, each with z'P^-1 z = n;
    until a residual is below `tol` of its first. Products of both in one cost little more than of
    one, so targets are solved for beside the probes, and by themselves from where these end."""
    P, n = system.P, len(system.d)
    Z = P.correlated(E)
    W = P.solve(Z)
    size = torch.sqrt(n / (Z * W).sum(dim=0))
    Z, W = Z * size, W * size
    t, norms = len(size), torch.linalg.vector_norm(targets, dim=0)
    goals = [torch.full_like(size, tol**2 * n), system.goal(norms, norms)]
    made = ConjugateGradients(system, B := torch.cat([Z, targets], dim=1), natural=t)
    made.start(B, torch.cat([W, system.P.solve(targets)], dim=1), torch.cat(goals))
    found = [Z.new_zeros((2, 0, t))]
    found += [
        torch.stack([made.step[:t], made.ratio[:t]])[:, None] for _ in made.steps(min(steps, n))
    ]
    rest = made.rest()
    for _ in rest.steps(system.of.max_steps):
        pass
    a, b = torch.cat(found, dim=1).cpu().numpy()
    ended = a == 0
    a[ended] = b[ended] = np.nan
    return JacobiCoefficients(a, b, made.X[:, :t], W, rest.X)
