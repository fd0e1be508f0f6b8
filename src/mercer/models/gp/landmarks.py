"""The posterior over landmarks (FITC): what they leave out of a row, k(x, x) - |phi(x)|^2, is noise
of its own, and variance of f.

Snelson and Ghahramani, Sparse Gaussian processes using pseudo-inputs (2006).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize_scalar

from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.kernels import Kernel
from mercer.lifts import Nystrom
from mercer.linalg.decompose import Eigenpairs
from mercer.models.gp.factor import best_scale
from mercer.models.gp.features import STARVED, FeaturePosterior
from mercer.models.gp.linear import (
    FeatureSolution,
    FeatureTargets,
    LinearLikelihood,
    WeightPosterior,
)
from mercer.models.gp.posterior import VarianceStarvationWarning
from mercer.models.gp.problem import ProcessSettings
from mercer.models.gp.samples import Beside, SampledFunctions, residual_functions, square_root
from mercer.models.gp.space import NOISE
from mercer.models.gp.starts import magnitude
from mercer.models.maps import FittedMap
from mercer.plans import Plan
from mercer.store import register

SAMPLE = 2048  # rows that tell how much is left out
NOTHING = 1e-6  # of k(x, x): where no row has more left out, all are told

GROUPS = 8  # of rows by what is left out of them, in the search for the ratio
NONE = (
    1e-4,
    1e-2,
)  # of the most that is left out: landmarks and rows beside them are groups of their own
RATIOS = 1e-8, 1e4  # that are tried
GRID = 13


@dataclass(frozen=True, eq=False)
class ResidualGroups:
    """y = phi'w + e, w ~ N(0, scale I), e ~ N(0, noise + scale left): sums over rows that are left
    out about as much.

    Snelson and Ghahramani, Sparse Gaussian processes using pseudo-inputs (2006), where the rows of
    a group share its mean left.
    """

    edges: Array  # between the groups
    count: Array  # (g,)
    left: Array  # sums
    A: Array  # Phi'Phi, (g, D, D)
    b: Array  # Phi'y, (g, D)
    square: Array  # y'y

    @classmethod
    def between(cls, left: Array, D: int, most: int = GROUPS) -> ResidualGroups:
        """Empty ones, with edges at the quantiles of some rows."""
        spread = np.quantile(left, np.linspace(0, 1, most - 1)[1:-1])
        edges = np.unique([*(np.array(NONE) * left.max(initial=0)), *spread])
        g = len(edges) + 1
        return cls(
            edges, np.zeros(g), np.zeros(g), np.zeros((g, D, D)), np.zeros((g, D)), np.zeros(g)
        )

    def add(self, F: Array, left: Array, y: Array) -> None:
        """Take in rows, in place."""
        group = np.searchsorted(self.edges, left)
        for j in np.unique(group):
            at = group == j
            G = F[at]
            self.A[j] += G.T @ G
            self.b[j] += y[at] @ G
            self.count[j] += len(G)
            self.left[j] += left[at].sum()
            self.square[j] += float(y[at] @ y[at])

    def log(self, ratio: float, least: float = 0.0) -> float:
        """log p(y) at a ratio of noise to scale, at the best scale with a noise of `least` or
        more."""
        d = ratio + self.left / np.maximum(self.count, 1)
        H = np.tensordot(1 / d, self.A, 1)
        H.flat[:: len(H) + 1] += 1
        root, b = cholesky(H, lower=True, overwrite_a=True, check_finite=False), (1 / d) @ self.b
        n, fit = (
            self.count.sum(),
            float(self.square @ (1 / d))
            - float(b @ cho_solve((root, True), b, check_finite=False)),
        )
        det = 2 * float(np.log(root.diagonal()).sum()) + float(self.count @ np.log(d))
        s = best_scale(fit, n, ratio, least)
        return float(-0.5 * (n * math.log(2 * math.pi * s) + fit / s + det))

    def best(self, least: float = 0.0, size: float = 1.0) -> float:
        """The ratio of the largest likelihood; size : of k(x, x), in units of which ratios are
        tried.

        >>> rng = np.random.default_rng(0)
        >>> F, left = rng.normal(size=(4000, 3)), rng.choice([0.0, 1.0], size=4000)
        >>> groups = ResidualGroups.between(left, 3)
        >>> groups.add(F, left, F @ [1.0, -1.0, 0.5] + np.sqrt(0.1 + left) * rng.normal(size=4000))
        >>> bool(0.05 < groups.best() < 0.25)
        True
        """
        grid = np.linspace(math.log(RATIOS[0]), math.log(RATIOS[1]), GRID) + math.log(size)
        i = int(np.argmax([self.log(math.exp(g), least) for g in grid]))
        around = grid[max(i - 1, 0)], grid[min(i + 1, GRID - 1)]
        found = minimize_scalar(
            lambda g: -self.log(math.exp(g), least),
            bounds=around,
            method="bounded",
            options={"xatol": 1e-2},
        )
        return math.exp(found.x)


@register("gp.RowWeights")
@dataclass(frozen=True)
class RowWeights:
    """Rows weigh level / (ratio + left): `logs` sums the logarithms of the weights, `total` their
    y, over all rows seen."""

    ratio: float
    level: float
    logs: float
    total: float

    @classmethod
    def of(cls, ratio: float, left: Array, y: Array) -> RowWeights:
        """With weights whose geometric mean is one."""
        return cls(ratio, float(np.exp(np.log(ratio + left).mean())), 0.0, float(y.sum()))

    def weights(self, left: Array) -> Array:
        return np.asarray(self.level / (self.ratio + left))

    def taking(self, left: Array, y: Array, sign: int = 1) -> RowWeights:
        """With these rows too, or without them."""
        logs = float(np.log(self.weights(left)).sum())
        return replace(self, logs=self.logs + sign * logs, total=self.total + sign * float(y.sum()))


def is_projection(phi: FittedMap) -> bool:
    """Whether phi is a projection of its kernel's features, so that k - phi phi' is known and a
    kernel."""
    nystrom = getattr(phi.lift, "map_", phi.lift)
    return isinstance(nystrom, Nystrom) and isinstance(nystrom.kernel_, Kernel)


@register("gp.LandmarkPosterior")
@dataclass(frozen=True, eq=False)
class LandmarkPosterior(FeaturePosterior):
    """phi is a projection of the kernel's features on landmarks; rows weigh 1 / (noise + scale
    left) where their noise was learnt in fit.

    restore : whether what is left out is put back into variances and draws
    row_weights : what rows weigh, at the ratio of noise to scale of the best likelihood of all rows
    """

    restore: bool = True
    row_weights: RowWeights | None = None

    must = dict(row_weights=Is("RowWeights") | None)

    @classmethod
    def begun(cls, s: ProcessSettings, phi: FittedMap, X: Table, targets: FeatureTargets) -> Self:
        return cls(
            Plan("features", ""),
            phi,
            targets,
            None,
            False,
            float(np.finfo(X.dtype).eps),
            restore=s.restore_variance,
        )

    @property
    def _kernel(self) -> Kernel:
        return self.phi.lift.kernel_

    def _left_of(self, X: Table, F: Array) -> Array:
        """k(x, x) - |phi(x)|^2, never below zero."""
        whole = self._kernel.diag(X).astype(np.float64)
        return np.maximum(whole - np.square(F, dtype=np.float64).sum(1), 0)

    def _left(self, X: Table) -> Array:
        return np.concatenate([self._left_of(X[at], F) for at, F in self.phi.batches(X)])

    # what rows weigh
    def _weighing(self, s: ProcessSettings, X: Table, z: Array) -> tuple[Self, Array | None]:
        D, held = self.phi.width, self.targets.held
        if not self.restore or s.noise is not None or len(X) <= D:
            return self, None
        some = X[:: -(-len(X) // SAMPLE)]
        sample = self._left(some)
        if not (sample > NOTHING * self._kernel.diag(some)).any():
            return self, None
        groups = ResidualGroups.between(
            sample, D, int(np.clip(s.memory // (32 * D * D), 3, GROUPS))
        )
        left, mean = np.empty(len(z)), self.targets.mean_in_units(float(z.mean()))
        for at, F in self.phi.batches(X):
            left[at] = self._left_of(X[at], F)
            groups.add(F, left[at], z[at] - mean)
        least, size = NOISE[0] * float(z.var()), magnitude(self._kernel, some)
        row_weights = RowWeights.of(
            groups.best(least, size) if held is None else held[0] / held[1], left, z
        )
        return replace(self, row_weights=row_weights), row_weights.weights(left)

    def _taking(self, X: Table, z: Array, sign: int) -> tuple[Self, Array | None]:
        """At the ratio that was found."""
        if self.row_weights is None:
            return self, None
        left = self._left(X)
        return replace(
            self, row_weights=self.row_weights.taking(left, z, sign)
        ), self.row_weights.weights(left)

    def _check_mergeable(self) -> None:
        if self.row_weights is not None:
            raise ValueError(
                "rows over landmarks weigh by the noise learnt in fit, which differs; give the rows to partial_fit."
            )

    # solving
    def _mean_of_y(self) -> float:
        if self.row_weights is None or self.moments is None:
            return super()._mean_of_y()
        return self.row_weights.total / self.moments.count

    def _variance_of_y(self) -> float:
        return super()._variance_of_y() if self.row_weights is None else self.targets.spread

    def _best(
        self, s: Eigenpairs, e: LinearLikelihood, floor: float, mean: float
    ) -> FeatureSolution:
        """At the ratio of noise to scale that was found; the rows weigh what they are told."""
        if self.row_weights is None:
            return super()._best(s, e, floor, mean)
        t, w = self.targets, self.row_weights
        floor *= w.level / w.ratio  # the noise is ratio / level of what is found here
        level = (
            e.best_noise(1 / w.level, floor) if t.held is None else t.held[1] / t.unit**2 * w.level
        )
        scale = level / w.level
        log = e.log(level, scale) + 0.5 * w.logs - e.n * math.log(t.unit)
        return self._told(WeightPosterior.of(s, e.beta, level, scale), w.ratio * scale, mean, log)

    # asking
    def _add_residual(self, out: Array, at: slice, X: Table, F: Array) -> None:
        """k(x, x) - |phi(x)|^2 where it is to be put back, else a warning where it is more than
        half."""
        whole, missing = self._kernel.diag(X[at]), self._left_of(X[at], F)
        if self.restore:
            out[at] += self.solution.posterior.scale * missing
        elif (missing > STARVED * whole).any():
            share = f"{np.mean(missing > STARVED * whole):.0%}"
            warnings.warn(
                f"at {share} of the points most of the prior variance is outside the landmarks; set restore_variance=True.",
                VarianceStarvationWarning,
                stacklevel=4,
            )

    def covariance(self, X: Table, noise: float = 0.0) -> Array:
        C = super().covariance(X, noise)
        return C + self.solution.posterior.scale * self._left_pairs(X) if self.restore else C

    def _left_pairs(self, X: Table) -> Array:
        """k(X, X) - phi phi', in float64, no entry of its diagonal below zero."""
        Z = X.astype(np.float64)
        F = self.phi.features(Z)
        M = self._kernel(Z) - F @ F.T
        np.fill_diagonal(M, np.maximum(np.diag(M), 0))
        return np.asarray(M)

    def _add_residual_draws(self, out: Array, X: Table, rng: np.random.Generator) -> None:
        if self.restore:
            out += square_root(
                self.solution.posterior.scale * self._left_pairs(X)
            ) @ rng.standard_normal(out.shape)

    def functions(
        self, count: int, *, posterior: bool, n_features: int, seed: int
    ) -> SampledFunctions:
        """With what the landmarks leave out, from the prior."""
        within, lift, scale = (
            super().functions(count, posterior=posterior, n_features=n_features, seed=seed),
            self.phi.lift,
            self.scale,
        )
        if not self.restore:
            return within
        try:
            psi, V, less = residual_functions(
                cast(Nystrom, getattr(lift, "map_", lift)),
                scale,
                count,
                n_features=n_features,
                seed=seed,
            )
        except ValueError as e:
            said = "these functions vary too little far from the landmarks (sample_y does not), for what is left out cannot be drawn: "
            warnings.warn(f"{said}{e}", VarianceStarvationWarning, stacklevel=3)
            return within
        return replace(
            within, lift=Beside(lift, psi), weights=np.vstack([within.weights - less, V])
        )
