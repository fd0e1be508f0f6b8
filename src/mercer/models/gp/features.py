"""The way over features: Bayesian linear regression from moments that stream and merge."""
from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import methods
from mercer.estimators.base import asked, bytes_of, default_features
from mercer.models.gp.weights import LeftOver
from mercer.models.gp.problem import check_mean, check_noise
from mercer.estimators.streams import HEAD
from mercer.inputs import Array, Matrix
from mercer.invariants import Each, Is, Number
from mercer.kernels import Kernel
from mercer.models.gp.linear import Evidence, Posterior
from mercer.models.gp.residual import Shares
from mercer.models.gp.space import NOISE
from mercer.lifts import KernelLift
from mercer.linalg.decompose import ROUNDS, Spectrum, eigen, ritz
from mercer.stats import Moments
from mercer.store import register

PROBE = 64  # rows on which a map is compared with its kernel
STARVED = 0.5  # the share of the prior variance below which a variance is said to be starved


class VarianceStarvationWarning(UserWarning):
    """A finite map has no prior variance left for points far from the data, where the kernel's own process has all of it."""


@register("gp.FeatureSolution")
@dataclass(frozen=True, eq=False)
class Found:
    """What the moments tell, in the units of y."""

    posterior: Posterior
    noise: float
    scale: float
    prior_mean: float
    log_evidence: float


class FeatureWay(LeftOver):
    """y = prior_mean + phi(x)'w + e with w ~ N(0, scale I), e ~ N(0, noise), from the moments of [phi, y]."""

    prior_mean: Any
    _found: Found | None = None
    _approximate: bool
    _dtype: np.dtype[Any]
    _spread: float = 1.0  # the variance of y in its unit, as in fit: moments of weighted rows do not tell it
    _unit: tuple[float, float]  # moments are of (y - origin) / unit: no digits are lost in float32, at any size of y

    # fitting
    must = dict(moments_=Is("Moments"), _found=Is("features.Found") | None, _unit=Each(Number(), Number()))

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the map, then the moments of [phi, y] in one pass."""
        X, y = self._first(X, y)
        weight = self._precision(len(y))
        if self._too_wide():
            return self._fit_by_passes(X, y, weight)
        z = self._in_units(y)
        self._spread = float(z.var())
        weight = self._share(X, z, self._mean_in_units(float(z.mean()))) if weight is None else weight
        self.moments_ = self._gather(X, np.append(self._shift(X), 0.0), z, weight)
        why = f"{self.n_features_lifted_:,} features: their D x D moments fit, and tell mean, variance and evidence in one pass"
        self.plan_ = self._features_plan(len(y), "features", why, 1)
        self._solved()
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Take in a batch; the first one fixes the map. A batch that is refused leaves the model as it was."""
        if np.ndim(self.noise):
            raise ValueError("noise has one number a row, which is for fit; give one number, or 'learn', in a stream.")
        if self._found is not None and not hasattr(self, "moments_"):
            raise ValueError("partial_fit cannot continue a fit by passes; raise memory_limit.")
        first = not hasattr(self, "moments_")
        X, y = self._first(X, y, stream=True) if first else self._checked_one(X, y, reset=False)
        if self._too_wide():
            D = self.n_features_lifted_
            raise ValueError(f"{D:,} features exceed memory_limit in a stream; use fewer, raise it, or fit at once.")
        z, shift = self._in_units(y), np.append(self._shift(X), 0.0) if first else self.moments_.shift
        new = self._gather(X, shift, z, None if first else self._share_more(X, z))
        self.moments_, self._found = new if first else self.moments_ + new, None
        self._dtype = min(self._dtype, X.dtype)  # the coarser one says what is rounding
        why = f"a stream: {self.n_features_lifted_:,} features of a map that its first batch fixed"
        self.plan_ = self._features_plan(self.moments_.count, "features", why, 1)
        return self

    def merge(self, other: FeatureWay) -> Self:
        """Take in the rows that another model of the same map has seen."""
        check_is_fitted(self, "lift_")
        self._check_same_map(other)
        if np.ndim(self.noise) or np.ndim(other.noise):
            raise ValueError("noise has one number a row, whose weights do not add; give one number, or 'learn', to merge.")
        if self._shares is not None or other._shares is not None:
            raise ValueError("rows over landmarks weigh by the noise learnt in fit, which differs; give the rows to partial_fit.")
        self.moments_, self._found = self.moments_ + other._moments_in(self._unit), None
        return self

    def forget(self, X: Any, y: Any) -> Self:
        """Take out rows that were taken in: their moments are subtracted."""
        check_is_fitted(self, "lift_")
        if np.ndim(self.noise) or not hasattr(self, "moments_"):
            raise ValueError("forget needs moments that subtract: give one noise, or 'learn', and a larger memory_limit.")
        X, y = self._checked_one(X, y, reset=False)
        z = self._in_units(y)
        left = self.moments_ - self._gather(X, self.moments_.shift, z, self._share_more(X, z, -1))
        if left.count < 1 or not left.possible:
            raise ValueError(f"cannot forget {len(y)} rows of {self.moments_.count}; give rows that were seen, not all.")
        self.moments_, self._found = left, None
        return self

    def _first(self, X: Any, y: Any, *, stream: bool = False) -> tuple[Matrix, Array]:
        X, y = self._checked_one(X, y, reset=True)
        check_noise(self.noise, zero=False)
        check_mean(self.prior_mean)
        self.__dict__.pop("moments_", None)
        self._found = self._shares = None
        self._fit_lift(X, stream=stream)
        self._approximate, self._dtype = self._is_approximate(X), X.dtype
        origin = float(y[:HEAD].mean())
        self._unit = origin, float(y[:HEAD].std()) or abs(origin) or 1.0
        if not 1e-150 < self._unit[1] < 1e150:
            raise ValueError(f"y varies by {self._unit[1]:.1g}, whose square is no floating-point number; scale y first.")
        return X, y

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Matrix, Array]:
        X, y = self._check_Xy(X, y, reset=reset, y_numeric=True, multi_output=self._many())
        return X, np.asarray(y, np.float64)

    def _checked_one(self, X: Any, y: Any, *, reset: bool) -> tuple[Matrix, Array]:
        """Rows with one output."""
        X, y = self._checked(X, y, reset=reset)
        if y.size != len(y):
            raise ValueError(f"y has {y.shape[1]} columns, but features and landmarks take one; fit one model a column.")
        return X, y.reshape(len(y))

    def _many(self) -> bool:
        """Whether y may have several columns."""
        return False

    def _choose_lift(self, X: Matrix, weight: Array | None = None, *, stream: bool = False) -> Any:
        if self._candidate is None:
            return super()._choose_lift(X, weight, stream=stream)
        size = asked(self._method()) or default_features(X.shape[0])
        return KernelLift(self._candidate.kernel, size, method=self._method(), random_state=self.random_state)

    def _in_units(self, y: Array) -> Array:
        return (y - self._unit[0]) / self._unit[1]

    def _moments_in(self, unit: tuple[float, float]) -> Moments:
        """The moments with y in other units."""
        m, factor = self.moments_, np.ones(len(self.moments_.shift))
        factor[-1] = self._unit[1] / unit[1]
        shift = m.shift * factor
        shift[-1] += (self._unit[0] - unit[0]) / unit[1]
        return Moments(shift, m.n, m.s * factor, m.S * np.outer(factor, factor), m.count, m.peak * max(1, factor[-1] ** 2))

    def _is_approximate(self, X: Matrix) -> bool:
        """Whether phi phi' and the kernel differ on some of the rows."""
        rows = X[:: max(1, X.shape[0] // PROBE)][:PROBE]
        if self._landmarks() or not isinstance(self.lift_.kernel_, Kernel):
            return False
        F, K = self._features(rows), self.lift_.kernel_(rows)
        return bool(np.abs(F @ F.T - K).max() > 3 * np.sqrt(np.finfo(F.dtype).eps) * np.abs(K).max())

    # solving
    def _solved(self) -> Found:
        check_is_fitted(self, "lift_")
        if self._found is None:
            self._found = self._solve()
            self._warn_if_starved(self._found)
        return self._found

    def _solve(self) -> Found:
        """Eigenvectors of the moments about zero (features) and about the prior mean (y), then two numbers, then the posterior."""
        D = self.n_features_lifted_
        m = self.moments_
        mean = self._mean_in_units(float(m.mean[D]) if self._shares is None else self._shares.total / m.count)
        S = m.about(np.append(np.zeros(D), mean)).S
        s = eigen(S[:D, :D], m.count).above(self._rounding())
        return self._from(s, s.vectors.T @ S[:D, D], float(S[D, D]), m.count, mean)

    def _mean_in_units(self, seen: float) -> float:
        mean = self._prior()
        return seen if isinstance(mean, str) else (mean - self._unit[0]) / self._unit[1]

    def _prior(self) -> float | str:
        """The prior mean, or "y" where it is that of the y seen."""
        if isinstance(self.prior_mean, str) and self.prior_mean == "auto":
            return "y" if self._learns() and self.lift is None and isinstance(self._method(), methods.Landmarks) else 0.0
        return self.prior_mean if isinstance(self.prior_mean, str) else float(self.prior_mean)

    def _learns(self) -> bool:
        """Whether any hyper-parameter is learnt."""
        return isinstance(self.noise, str)

    def _rounding(self) -> float:
        return float(np.finfo(self._dtype).eps) * math.sqrt(self.n_features_lifted_)

    def _from(self, s: Spectrum, beta: Array, square: float, n: int, mean: float) -> Found:
        """Everything in the units of y again."""
        unit, held = self._unit[1], self._held()
        e = Evidence(n, s.values, beta, square)
        floor = NOISE[0] * self._variance_of_y() or np.finfo(float).eps * (square / n or mean**2 or 1.0)
        if self._shares is not None:
            return self._shared(self._shares, s, e, floor, mean)
        noise, scale = e.best(floor, 1 / self._rounding()) if held is None else (v / unit**2 for v in held)
        return self._told(Posterior.of(s, beta, noise, scale), noise, mean, e.log(noise, scale) - n * math.log(unit))

    def _shared(self, shares: Shares, s: Spectrum, e: Evidence, floor: float, mean: float) -> Found:
        """At the ratio of noise to scale that was found; the rows weigh what they are told."""
        held = self._held()
        floor *= shares.level / shares.ratio  # the noise is ratio / level of what is found here
        level = e.best_noise(1 / shares.level, floor) if held is None else held[1] / self._unit[1] ** 2 * shares.level
        scale = level / shares.level
        log = e.log(level, scale) + 0.5 * shares.logs - e.n * math.log(self._unit[1])
        return self._told(Posterior.of(s, e.beta, level, scale), shares.ratio * scale, mean, log)

    def _variance_of_y(self) -> float:
        """In its unit."""
        if self._shares is not None or not hasattr(self, "moments_"):
            return self._spread
        m = self.moments_
        return max(float(m.S[-1, -1] / m.n - (m.s[-1] / m.n) ** 2), 0.0)

    def _told(self, p: Posterior, noise: float, mean: float, log: float) -> Found:
        origin, unit = self._unit
        scaled = Posterior(p.vectors, p.coef * unit, p.spread * unit**2, p.scale * unit**2, p.effective)
        return Found(scaled, noise * unit**2, scaled.scale, mean * unit + origin, log)

    def _fit_by_passes(self, X: Matrix, y: Array, weight: Array | None) -> Self:
        D, n = self.n_features_lifted_, len(y)
        if weight is not None:
            raise ValueError("noise with one number a row needs moments, which exceed memory_limit; raise it, or give one number.")
        r = int(min(n, max(bytes_of(self.memory_limit) // (64 * D), 1)))
        s = ritz(lambda V: self._product(X, np.zeros(D), V), D, r).above(self._rounding())
        z = self._in_units(y)
        self._spread, mean = float(z.var()), self._mean_in_units(float(z.mean()))
        z -= mean
        b = sum((F.T @ z[rows] for rows, F in self._lifted(X)), np.zeros(D))
        self._found = self._from(s, s.vectors.T @ b, float(z @ z), n, mean)
        why = f"{D:,} features: D x D moments exceed the memory limit; the posterior is that along the {r} leading directions"
        self.plan_ = self._features_plan(n, "range finder", why, ROUNDS + 3)
        return self

    def _warn_if_starved(self, found: Found) -> None:
        left = 1 - found.posterior.effective / self.n_features_lifted_
        if self._approximate and left < STARVED:
            warnings.warn(
                f"the data tell {found.posterior.effective:.0f} of the map's {self.n_features_lifted_:,} directions, so that far "
                f"from the data the variance is about {left:.2g} of the right one; give more features, or use via='landmarks'.",
                VarianceStarvationWarning, stacklevel=3,
            )  # fmt: skip
