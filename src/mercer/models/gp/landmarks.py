"""What landmarks add to a posterior over features (FITC): what they leave out of a row, k(x, x) -
|phi(x)|^2, is noise of its own, and variance of f.

Snelson and Ghahramani, Sparse Gaussian processes using pseudo-inputs (2006).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize_scalar

from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.kernels import Kernel
from mercer.lifts import Nystrom
from mercer.models.gp.factor import best_scale
from mercer.models.gp.linear import FeatureTargets, LinearLikelihood
from mercer.models.gp.posterior import VarianceStarvationWarning
from mercer.models.gp.problem import ProcessSettings
from mercer.models.gp.samples import Beside, SampledFunctions, residual_functions, square_root
from mercer.models.gp.space import NOISE
from mercer.models.gp.starts import magnitude
from mercer.models.maps import FittedMap
from mercer.store import register

SAMPLE = 2048  # rows that tell how much is left out
NOTHING = 1e-6  # of k(x, x): where no row has more left out, all are told
STARVED = 0.5  # the share of the prior variance below which a variance is said to be starved

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

    def best(
        self, e: LinearLikelihood, floor: float, scale: float | None
    ) -> tuple[float, float, float]:
        """The noise of a row of weight 1 and the scale of the largest likelihood at the ratio, or at
        a scale that is given; and log p(y)."""
        floor *= self.level / self.ratio  # the noise is ratio / level of what is found here
        level = e.best_noise(1 / self.level, floor) if scale is None else scale * self.level
        scale = level / self.level
        return level, scale, e.log(level, scale) + 0.5 * self.logs


def is_projection(phi: FittedMap) -> bool:
    """Whether phi is a projection of its kernel's features, so that k - phi phi' is known and a
    kernel."""
    nystrom = getattr(phi.lift, "map_", phi.lift)
    return isinstance(nystrom, Nystrom) and isinstance(nystrom.kernel_, Kernel)


@register("gp.LandmarkResidual")
@dataclass(frozen=True, eq=False)
class LandmarkResidual:
    """What a projection phi on landmarks leaves out of its kernel, k - phi phi'; rows weigh 1 /
    (noise + scale left) where their noise was learnt in fit.

    restore : whether what is left out is put back into variances and draws
    row_weights : what rows weigh, at the ratio of noise to scale of the best likelihood of all rows
    """

    restore: bool = True
    row_weights: RowWeights | None = None

    must = dict(row_weights=Is("RowWeights") | None)

    # what rows weigh
    def weighing(
        self, s: ProcessSettings, phi: FittedMap, targets: FeatureTargets, X: Table, z: Array
    ) -> tuple[LandmarkResidual, Array | None]:
        """Itself with what the rows of a first fit weigh; None where all weigh the same."""
        D, held, kernel = phi.width, targets.held, kernel_of(phi)
        if not self.restore or s.noise is not None or len(X) <= D:
            return self, None
        some = X[:: -(-len(X) // SAMPLE)]
        sample = left_by(phi, some)
        if not (sample > NOTHING * kernel.diag(some)).any():
            return self, None
        groups = ResidualGroups.between(
            sample, D, int(np.clip(s.memory // (32 * D * D), 3, GROUPS))
        )
        left, mean = np.empty(len(z)), targets.mean_in_units(float(z.mean()))
        for at, F in phi.batches(X):
            left[at] = left_of(kernel, X[at], F)
            groups.add(F, left[at], z[at] - mean)
        least, size = NOISE[0] * float(z.var()), magnitude(kernel, some)
        row_weights = RowWeights.of(
            groups.best(least, size) if held is None else held[0] / held[1], left, z
        )
        return replace(self, row_weights=row_weights), row_weights.weights(left)

    def taking(
        self, phi: FittedMap, X: Table, z: Array, sign: int
    ) -> tuple[LandmarkResidual, Array | None]:
        """Itself with rows that come later, or go, and what they weigh at the ratio that was
        found."""
        if self.row_weights is None:
            return self, None
        left = left_by(phi, X)
        row_weights = self.row_weights.taking(left, z, sign)
        return replace(self, row_weights=row_weights), self.row_weights.weights(left)

    # asking
    def add_variance(self, out: Array, phi: FittedMap, X: Table, F: Array, scale: float) -> None:
        """k(x, x) - |phi(x)|^2 where it is to be put back, else a warning where it is more than
        half."""
        kernel = kernel_of(phi)
        whole, missing = kernel.diag(X), left_of(kernel, X, F)
        if self.restore:
            out += scale * missing
        elif (missing > STARVED * whole).any():
            share = f"{np.mean(missing > STARVED * whole):.0%}"
            warnings.warn(
                f"at {share} of the points most of the prior variance is outside the landmarks; set restore_variance=True.",
                VarianceStarvationWarning,
                stacklevel=4,
            )

    def add_covariance(self, out: Array, phi: FittedMap, X: Table, scale: float) -> None:
        """At all pairs of rows."""
        if self.restore:
            out += scale * left_pairs(phi, X)

    def add_draws(
        self, out: Array, phi: FittedMap, X: Table, scale: float, rng: np.random.Generator
    ) -> None:
        """From the prior, for every column."""
        if self.restore:
            out += square_root(scale * left_pairs(phi, X)) @ rng.standard_normal(out.shape)

    def beside(
        self, within: SampledFunctions, phi: FittedMap, scale: float, *, n_features: int, seed: int
    ) -> SampledFunctions:
        """Functions with what the landmarks leave out of them, from the prior."""
        if not self.restore:
            return within
        lift, count = phi.lift, within.weights.shape[1]
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
            warnings.warn(f"{said}{e}", VarianceStarvationWarning, stacklevel=4)
            return within
        return replace(
            within, lift=Beside(lift, psi), weights=np.vstack([within.weights - less, V])
        )


def kernel_of(phi: FittedMap) -> Kernel:
    return phi.lift.kernel_


def left_of(kernel: Kernel, X: Table, F: Array) -> Array:
    """k(x, x) - |phi(x)|^2, never below zero."""
    whole = kernel.diag(X).astype(np.float64)
    return np.maximum(whole - np.square(F, dtype=np.float64).sum(1), 0)


def left_by(phi: FittedMap, X: Table) -> Array:
    """`left_of` all rows."""
    return np.concatenate([left_of(kernel_of(phi), X[at], F) for at, F in phi.batches(X)])


def left_pairs(phi: FittedMap, X: Table) -> Array:
    """k(X, X) - phi phi', in float64, no entry of its diagonal below zero."""
    Z = X.astype(np.float64)
    F = phi.features(Z)
    M = kernel_of(phi)(Z) - F @ F.T
    np.fill_diagonal(M, np.maximum(np.diag(M), 0))
    return np.asarray(M)
