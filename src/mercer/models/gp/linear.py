"""Bayesian linear regression from moments: the marginal likelihood, its maximum over noise and
scale, and the posterior of the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.inputs import Array
from mercer.invariants import Each, Floats, Is, Number, Text
from mercer.linalg.decompose import Eigenpairs, eigen
from mercer.models.gp.problem import ProcessSettings
from mercer.models.gp.space import NOISE
from mercer.models.maps import HEAD
from mercer.plans import quantity
from mercer.store import register

MOST_UNTOLD = 0.02  # of y, that directions without room may move the mean by
MOMENT_BYTES = 24.0  # an entry of D x D moments, a batch's and the workspace of their eigenvectors
GRID = 81  # ratios of scale to noise that are tried before the best is refined


@dataclass(frozen=True, eq=False)
class LinearLikelihood:
    """All that p(y) needs, for y = Phi w + e with w ~ N(0, scale I), e ~ N(0, noise I).

    Phi'Phi = V diag(values) V', beta = V'Phi'y, square = y'y. In these terms -2 log p(y) = n log(2
    pi noise) + sum log(1 + g values) + (rest + sum known / (1 + g values)) / noise, g = scale /
    noise, where known = beta^2 / values is what of y'y lies along V, and rest what lies outside.

    >>> e = LinearLikelihood(n=1, values=np.array([1.0]), beta=np.array([2.0]), square=4.0)  # phi = 1, y = 2: y ~ N(0, scale + noise)
    >>> math.isclose(e.log(noise=1.0, scale=3.0), -0.5 * (math.log(2 * math.pi * 4) + 4 / 4))
    True
    """

    n: int
    values: Array
    beta: Array
    square: float

    @property
    def known(self) -> Array:
        return self.beta**2 / self.values

    @property
    def rest(self) -> float:
        return max(self.square - float(self.known.sum()), 0.0)

    def log(self, noise: float, scale: float) -> float:
        """log p(y)."""
        shrunk = 1 + scale / noise * self.values
        misfit = (self.rest + float((self.known / shrunk).sum())) / noise
        return -0.5 * (
            self.n * math.log(2 * math.pi * noise) + float(np.log(shrunk).sum()) + misfit
        )

    def best(self, floor: float, most: float) -> tuple[float, float]:
        """(noise, scale) of the largest likelihood: the best noise for a ratio is a formula, the
        ratio a smooth 1-d search.

        floor: the least noise; most: the largest ratio of scale times the largest eigenvalue to
        noise.
        """
        if len(self.values) == 0:
            return max(self.square / self.n, floor), 1.0
        grid = np.linspace(math.log(1e-6), math.log(most), GRID) - math.log(self.values[0])
        loss = np.array([self._loss(g, floor) for g in grid])
        ties = np.flatnonzero(loss <= loss.min() + 1e-9 * self.n)
        i = int(ties[len(ties) // 2])  # one row cannot tell signal from noise: half and half
        around = grid[max(i - 1, 0)], grid[min(i + 1, GRID - 1)]
        found = minimize_scalar(
            self._loss, bounds=around, args=(floor,), method="bounded", options={"xatol": 1e-6}
        )
        ratio = float(found.x if len(ties) == 1 and found.fun < loss[i] else grid[i])
        noise = self.best_noise(math.exp(ratio), floor)
        return noise, math.exp(ratio) * noise

    def best_noise(self, ratio: float, floor: float) -> float:
        """The noise of the largest likelihood where scale / noise is given."""
        return max(
            (self.rest + float((self.known / (1 + ratio * self.values)).sum())) / self.n, floor
        )

    def _loss(self, ratio: float, floor: float) -> float:
        noise = self.best_noise(math.exp(ratio), floor)
        return -self.log(noise, math.exp(ratio) * noise)


@register("gp.WeightPosterior")
@dataclass(frozen=True, eq=False)
class WeightPosterior:
    """w | y ~ N(coef, V diag(spread) V' + scale (I - V V')): in no direction below zero, in unseen
    ones the prior's."""

    vectors: Array  # V (D, r)
    coef: Array  # (D,)
    spread: Array  # (r,)
    scale: float
    effective: float  # directions that the data tell: sum scale values / (scale values + noise)

    must = dict(vectors=Floats("D", "r"), coef=Floats("D"), spread=Floats("r"), scale=Number(0))

    @classmethod
    def of(cls, s: Eigenpairs, beta: Array, noise: float, scale: float) -> WeightPosterior:
        total = scale * s.values + noise
        coef = s.vectors @ (scale * beta / total)
        return cls(
            s.vectors, coef, scale * noise / total, scale, float((scale * s.values / total).sum())
        )

    @classmethod
    def prior(cls, D: int, scale: float) -> WeightPosterior:
        """Before any data."""
        return cls(np.zeros((D, 0)), np.zeros(D), np.zeros(0), scale, 0.0)

    def in_units(self, unit: float) -> WeightPosterior:
        """Of weights that are so many times as large."""
        square = unit**2
        return WeightPosterior(
            self.vectors,
            self.coef * unit,
            self.spread * square,
            self.scale * square,
            self.effective,
        )

    def _split(self, F: Array) -> tuple[Array, Array]:
        """Features along V, and what is left of them."""
        F = F.astype(np.float64, copy=False)
        P = F @ self.vectors
        full = self.vectors.shape[0] == self.vectors.shape[1]
        return P, np.zeros((len(F), 0)) if full else F - P @ self.vectors.T

    def variance(self, F: Array) -> Array:
        """Of phi'w, (n,)."""
        P, R = self._split(F)
        return np.asarray(np.square(P) @ self.spread + self.scale * np.square(R).sum(1))

    def covariance(self, F: Array) -> Array:
        """Of phi'w at all pairs of rows, (n, n)."""
        P, R = self._split(F)
        return np.asarray((P * self.spread) @ P.T + self.scale * (R @ R.T))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n weight vectors, (D, n)."""
        free = math.sqrt(self.scale) * rng.standard_normal((len(self.coef), n))
        along = np.sqrt(self.spread)[:, None] * rng.standard_normal((len(self.spread), n))
        return self.coef[:, None] + free + self.vectors @ (along - self.vectors.T @ free)


@register("gp.FeatureSolution")
@dataclass(frozen=True, eq=False)
class FeatureSolution:
    """What the moments tell, in the units of y."""

    posterior: WeightPosterior
    noise: float
    scale: float
    prior_mean: float
    log_marginal_likelihood: float

    must = dict(
        posterior=Is("WeightPosterior"),
        noise=Number(0),
        scale=Number(0),
        prior_mean=Number(),
        log_marginal_likelihood=Number(finite=False),
    )

    @classmethod
    def _upgraded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """From files with another word for the likelihood."""
        return {
            {"log_evidence": "log_marginal_likelihood"}.get(name, name): value
            for name, value in values.items()
        }


@register("gp.FeatureTargets")
@dataclass(frozen=True, eq=False)
class FeatureTargets:
    """y as moments sum it, (y - origin) / unit, so that no digits are lost in float32 at any size
    of y; and what is given of its law.

    mean : the prior's, or "y" where it is that of the y seen
    noise : as given, None where it is learnt
    held : noise and scale where the moments do not choose them: given, or learnt before under what
    was said
    spread : the variance of y in its unit, as in fit: moments of weighted rows do not tell it
    """

    origin: float
    unit: float
    mean: float | str = 0.0
    noise: float | Array | None = None
    held: tuple[float, float] | None = None
    flat: bool = True
    spread: float = 1.0

    must = dict(
        origin=Number(),
        unit=Number(0),
        mean=Number() | Text("y"),
        noise=Number(0, whole=False) | Floats(None, low=0) | None,
        held=Each(Number(0), Number(0)) | None,
        spread=Number(0),
    )

    @classmethod
    def of(cls, s: ProcessSettings, y: Array, held: tuple[float, float] | None, flat: bool) -> Self:
        """In units of the first y."""
        origin = float(y[:HEAD].mean())
        unit = float(y[:HEAD].std()) or abs(origin) or 1.0
        if not 1e-150 < unit < 1e150:
            raise ValueError(
                f"y varies by {unit:.1g}, whose square is no floating-point number; scale y first."
            )
        return cls(origin, unit, s.prior, s.noise, cls.held_by(s, held), flat)

    @staticmethod
    def held_by(
        s: ProcessSettings, found: tuple[float, float] | None
    ) -> tuple[float, float] | None:
        """A noise that was given holds, whatever a search has found."""
        if s.noise is None:
            return found
        return float(np.exp(np.log(s.noise).mean())), 1.0 if found is None else found[1]

    def in_units(self, y: Array) -> Array:
        return (y - self.origin) / self.unit

    def mean_in_units(self, seen: float) -> float:
        return seen if isinstance(self.mean, str) else (self.mean - self.origin) / self.unit


def noise_and_scale(K: Array, Y: Array) -> tuple[float, float]:
    """The (noise, scale) of the largest likelihood of N(0, scale K + noise I), the same for all
    columns of Y, whose variance is 1.

    >>> K = np.kron(np.eye(100), np.ones((4, 4)))  # rows in fours, equal but for their noise
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(2 * rng.normal(size=100), 4) + 0.5 * rng.normal(size=400)
    >>> noise, scale = noise_and_scale(K, y[:, None])
    >>> 0.2 < noise < 0.3, 3 < scale < 5
    (True, True)
    """
    s = eigen((K + K.T) / 2).above(np.finfo(float).eps * len(K))
    along = np.square(s.vectors.T @ Y).mean(1)
    square = float(np.square(Y).sum(0).mean())
    e = LinearLikelihood(len(K), s.values, np.sqrt(s.values * along), square)
    return e.best(NOISE[0], 1 / (np.finfo(float).eps * math.sqrt(len(K))))


def moments_fit(D: int, memory: float) -> bool:
    """Whether D x D moments, a batch's and the workspace of their eigenvectors do."""
    return memory >= MOMENT_BYTES * D**2


def check_told(s: Eigenpairs, b: Array, ratio: float, square: float, memory_limit: Any) -> None:
    """Raise a ValueError where directions that were left out for want of memory would move the mean
    at the rows by more than a share of y.

    With Phi'y = b, noise of this ratio to scale and an eigenvalue l they move it by
    sqrt(l) |b| / (l + ratio), which is largest at l = ratio; l is at most the least that was kept.
    """
    D, r = s.vectors.shape
    if r == D or not r or square == 0:
        return
    least = float(s.values.min())
    outside = float(np.linalg.norm(b - s.vectors @ (s.vectors.T @ b)))
    most = min(least, ratio)
    size = math.sqrt(most) / (most + ratio or 1e-300)
    if size * outside > MOST_UNTOLD * math.sqrt(square):
        raise ValueError(
            f"{D:,} features need their D x D moments ({quantity(MOMENT_BYTES * D * D, 'B')}), and the {r:,} directions "
            f"that memory_limit={memory_limit!r} has room for miss too much of y; raise it, or use fewer features."
        )
