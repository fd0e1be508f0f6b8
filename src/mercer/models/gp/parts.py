"""Parts of a posterior: the terms of a sum, the likelihood at other hyper-parameters, and slopes,
the mean and the variance of df/dx at new rows."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.kernels.algebra import terms_of
from mercer.models.expansion import Expansion
from mercer.models.gp.factor import few_threads
from mercer.models.gp.features import FeaturePosterior
from mercer.models.gp.points import EXACT_ALONE, PointPosterior
from mercer.models.gp.posterior import Posterior
from mercer.models.gp.systems import CholeskySystem, PointSystem, explained
from mercer.ops.tiles import cuts
from mercer.pairs.mixed import slope_variances

SLOPE_BYTES = 32 << 20  # of the covariances between slopes at some rows and f at the points
SLOPE_WITHIN = 1e-6  # of the largest prior variance: how far one by conjugate gradients may be off
NO_VARIANCE = "the variance of slopes is that of a model of points; fit with via='exact' or 'iterative' and a kernel."
MAX_LOG = 700  # e to that is still a number


def of_points(p: Posterior, asked: str) -> PointPosterior:
    if not isinstance(p, PointPosterior):
        raise ValueError(EXACT_ALONE.format(asked))
    return p


def all_logs(known: dict[str, float], theta: Any) -> dict[str, float]:
    """All logarithms: those given, by name or in order, and else the known ones."""
    if theta is None:
        return known
    if isinstance(theta, Mapping):
        if other := sorted(theta.keys() - known.keys(), key=str):
            raise ValueError(f"theta names {other[0]!r}; there are {', '.join(known)}.")
        found = {**known, **theta}
    else:
        values = _floats(theta)
        if values is None or values.shape != (len(known),):
            came = repr(theta)[:60] if values is None else f"shape {values.shape}"
            raise ValueError(
                f"theta must have {len(known)} numbers, the logarithms of {', '.join(known)}, got {came}."
            )
        found = dict(zip(known, values.tolist(), strict=True))
    if not all(isinstance(v, Real) and abs(float(v)) < MAX_LOG for v in found.values()):
        raise ValueError(
            f"theta must be logarithms between -{MAX_LOG} and {MAX_LOG}, got {theta!r}."
        )
    return {name: float(v) for name, v in found.items()}


def _floats(given: Any) -> Array | None:
    """As numbers, or None where they are none."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        return None


def term_of(p: Posterior, term: object) -> PointPosterior:
    """Of one term of a kernel that is a sum, by its place."""
    kernel = of_points(p, "term").kernel
    terms = terms_of(kernel) if isinstance(kernel, Kernel) else ()
    if len(terms) < 2:
        raise ValueError(f"term takes a kernel that is a sum, got {kernel!r}.")
    if (
        isinstance(term, bool)
        or not isinstance(term, int | np.integer)
        or not 0 <= term < len(terms)
    ):
        raise ValueError(f"term must be a whole number from 0 to {len(terms) - 1}, got {term!r}.")
    return of_points(p, "term").of_term(terms[int(term)])


# slopes
def mean_slopes(p: Posterior, X: Table) -> Array:
    """Of the posterior mean, (n, q, d), in the units of y."""
    if isinstance(p, FeaturePosterior):
        return p.phi.gradient(X, p.solution.posterior.coef[:, None])
    assert isinstance(p, PointPosterior)
    over = Expansion(p.kernel, None if isinstance(p.kernel, str) else p.system.points.X)
    return over.gradient(X, p.scale * p.coef * p.outputs.unit)


def slope_variance(p: Posterior, X: Table) -> Array:
    """Of df/dx_k at every row, (n, d), in squares of `outputs.unit`: d^2 k / dx_k dz_k less what
    the points tell of it; never below zero."""
    if not isinstance(p, PointPosterior) or not isinstance(p.kernel, Kernel):
        raise ValueError(NO_VARIANCE)
    Z, points = X.astype(np.float64), p.system.points.X
    prior = p.scale * slope_variances(p.kernel.on, Z, repr(p.kernel))
    out, most = prior.copy(), float(np.abs(prior).max(initial=0))
    d = prior.shape[1]
    for at in cuts(len(Z), max(1, SLOPE_BYTES // max(1, 8 * len(points) * d))):
        C = p.scale * p.kernel.input_gradient(Z[at], points)  # (rows, m, d)
        across = C.transpose(1, 0, 2).reshape(len(points), -1)
        out[at] -= _told(p.system, across, most).reshape(-1, d)
    return np.maximum(out, 0)


def _told(system: PointSystem, C: Array, most: float) -> Array:
    """c'A^-1 c of every column c."""
    if isinstance(system, CholeskySystem):
        with few_threads(len(C)):
            V = solve_triangular(system.L, C, lower=True, check_finite=False)
        return np.asarray(np.square(V).sum(0))
    return explained(system.handle.product, C, system.handle.preconditioner, SLOPE_WITHIN * most)
