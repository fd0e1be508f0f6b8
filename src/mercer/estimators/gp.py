"""GaussianProcessRegressor over features: Bayesian linear regression from moments that stream and merge."""
from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimators.base import bytes_of
from mercer.estimators.streams import HEAD, OverMoments
from mercer.inputs import Array, Matrix
from mercer.kernels import Kernel
from mercer.learners.bayes import Evidence, Posterior
from mercer.learners.decompose import ROUNDS, Spectrum, eigen, ritz
from mercer.lifts import Nystrom
from mercer.lifts.base import seed_of
from mercer.stats import Moments

PROBE = 64  # rows on which a map is compared with its kernel
STARVED = 0.5  # the share of the prior variance below which a variance is said to be starved


class VarianceStarvationWarning(UserWarning):
    """A finite map has no prior variance left for points far from the data, where the kernel's own process has all of it."""


@dataclass(frozen=True, eq=False)
class Found:
    """What the moments tell, in the units of y."""

    posterior: Posterior
    noise: float
    scale: float
    prior_mean: float
    log_evidence: float


class GaussianProcessRegressor(RegressorMixin, OverMoments):
    """y = prior_mean + f(x) + e, f = phi(x)'w with w ~ N(0, scale I), e ~ N(0, noise): f is a GP with kernel scale phi'phi.

    Parameters
    ----------
    kernel, via, lift : the features, as in `KernelRidge`.
    noise : the variance of e: a number, one number a row (in `fit` only), or "learn": noise and scale at the maximum of the
        evidence, from the moments alone. With a given noise the scale is 1: the kernel says it.
    prior_mean : a number, or "y": the mean of the y seen.
    restore_variance : with landmarks, add scale (k(x, x) - |phi(x)|^2), which they leave out, to every variance: far from the
        data it is then the prior's (the deterministic training conditional).
    memory_limit : of D x D statistics; beyond it only the leading directions are found, in a few passes, and the variance in
        all others stays the prior's.

    A map of finitely many features has no prior variance left once the data tell all its directions. Where the map is an
    approximation of its kernel and the data tell more than half of its D directions (`effective_dimension_`), a
    `VarianceStarvationWarning` says so: far from the data its variance is then about 1 - effective_dimension_ / D of the right
    one. Landmarks without `restore_variance` warn in `predict`, at points where |phi(x)|^2 < k(x, x) / 2.

    Attributes: `noise_`, `scale_`, `prior_mean_`, `kernel_` (scale included), `coef_`, `log_marginal_likelihood_`,
    `effective_dimension_`, `lift_`, `plan_`, `moments_`.

    Rasmussen and Williams, Gaussian processes for machine learning (2006), chapter 2; MacKay, Bayesian interpolation (1992);
    Quinonero-Candela and Rasmussen, A unifying view of sparse approximate GP regression (2005).

    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> m = GaussianProcessRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> mean, std = m.predict([[3.0], [30.0]], return_std=True)
    >>> round(float(mean[0]), 2), bool(std[0] < 0.01 < std[1])
    (0.14, True)
    """

    def __init__(
        self, kernel: Any = None, noise: Any = "learn", via: Any = "auto", *, lift: Any = None, prior_mean: Any = 0.0,
        restore_variance: bool = True, memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.via = via
        self.lift = lift
        self.prior_mean = prior_mean
        self.restore_variance = restore_variance
        self.memory_limit = memory_limit
        self.random_state = random_state

    _found: Found | None = None
    _approximate: bool
    _dtype: np.dtype[Any]
    _unit: tuple[float, float]  # moments are of (y - origin) / unit: no digits are lost in float32, at any size of y

    # fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the map, then the moments of [phi, y] in one pass."""
        X, y = self._first(X, y)
        weight = self._precision(len(y))
        if self._too_wide():
            return self._fit_by_passes(X, y, weight)
        self.moments_ = self._gather(X, np.append(self._shift(X), 0.0), self._in_units(y), weight)
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
        X, y = self._first(X, y) if first else self._checked(X, y, reset=False)
        if self._too_wide():
            D = self.n_features_lifted_
            raise ValueError(f"{D:,} features exceed memory_limit in a stream; use fewer, raise it, or fit at once.")
        new = self._gather(X, np.append(self._shift(X), 0.0) if first else self.moments_.shift, self._in_units(y))
        self.moments_, self._found = new if first else self.moments_ + new, None
        self._dtype = min(self._dtype, X.dtype)  # the coarser one says what is rounding
        why = f"a stream: {self.n_features_lifted_:,} features of a map that its first batch fixed"
        self.plan_ = self._features_plan(self.moments_.count, "features", why, 1)
        return self

    def merge(self, other: GaussianProcessRegressor) -> Self:
        """Take in the rows that another model of the same map has seen."""
        check_is_fitted(self, "lift_")
        self._check_same_map(other)
        if np.ndim(self.noise) or np.ndim(other.noise):
            raise ValueError("noise has one number a row, whose weights do not add; give one number, or 'learn', to merge.")
        self.moments_, self._found = self.moments_ + other._moments_in(self._unit), None
        return self

    def _first(self, X: Any, y: Any) -> tuple[Matrix, Array]:
        X, y = self._checked(X, y, reset=True)
        _check_noise(self.noise)
        _check_mean(self.prior_mean)
        self.__dict__.pop("moments_", None)
        self._found = None
        self._fit_lift(X)
        self._approximate, self._dtype = self._is_approximate(X), X.dtype
        origin = float(y[:HEAD].mean())
        self._unit = origin, float(y[:HEAD].std()) or abs(origin) or 1.0
        if not 1e-150 < self._unit[1] < 1e150:
            raise ValueError(f"y varies by {self._unit[1]:.1g}, whose square is no floating-point number; scale y first.")
        return X, y

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Matrix, Array]:
        sparse = "csr" if self._takes_sparse() else False
        X, y = validate_data(
            self, X, y, reset=reset, dtype=[np.float64, np.float32], accept_sparse=sparse, order="C", y_numeric=True,
        )
        return X, np.asarray(y, np.float64)

    def _precision(self, n: int) -> Array | None:
        """Weights for one noise a row: the geometric mean of all noises over each, which leaves the determinant as it is."""
        if not np.ndim(self.noise):
            return None
        noise = np.asarray(self.noise, np.float64)
        if noise.shape != (n,):
            raise ValueError(f"noise has shape {noise.shape}, but X has {n} rows; give one number, or one a row.")
        return np.asarray(np.exp(np.log(noise).mean()) / noise)

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

    def _landmarks(self) -> bool:
        """Whether phi is a projection of its kernel's features, so that k - phi phi' is known and a kernel."""
        phi = getattr(self.lift_, "map_", self.lift_)
        return isinstance(phi, Nystrom) and isinstance(phi.kernel_, Kernel)

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
        mean = self._mean_in_units(float(m.mean[D]))
        S = m.about(np.append(np.zeros(D), mean)).S
        s = eigen(S[:D, :D], m.count).above(self._rounding())
        return self._from(s, s.vectors.T @ S[:D, D], float(S[D, D]), m.count, mean)

    def _mean_in_units(self, seen: float) -> float:
        return seen if self.prior_mean == "y" else (float(self.prior_mean) - self._unit[0]) / self._unit[1]

    def _rounding(self) -> float:
        return float(np.finfo(self._dtype).eps) * math.sqrt(self.n_features_lifted_)

    def _from(self, s: Spectrum, beta: Array, square: float, n: int, mean: float) -> Found:
        """Everything in the units of y again."""
        origin, unit = self._unit
        e = Evidence(n, s.values, beta, square)
        floor = np.finfo(float).eps * (square / n or mean**2 or 1.0)
        if isinstance(self.noise, str):
            noise, scale = e.best(floor, 1 / self._rounding())
        else:
            noise, scale = float(np.exp(np.log(self.noise).mean())) / unit**2, 1 / unit**2
        p = Posterior.of(s, beta, noise, scale)
        scaled = Posterior(p.vectors, p.coef * unit, p.spread * unit**2, scale * unit**2, p.effective)
        return Found(scaled, noise * unit**2, scale * unit**2, mean * unit + origin, e.log(noise, scale) - n * math.log(unit))

    def _fit_by_passes(self, X: Matrix, y: Array, weight: Array | None) -> Self:
        D, n = self.n_features_lifted_, len(y)
        if weight is not None:
            raise ValueError("noise with one number a row needs moments, which exceed memory_limit; raise it, or give one number.")
        r = int(min(n, max(bytes_of(self.memory_limit) // (64 * D), 1)))
        s = ritz(lambda V: self._product(X, np.zeros(D), V), D, r).above(self._rounding())
        z = self._in_units(y)
        mean = self._mean_in_units(float(z.mean()))
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

    # asking
    @property
    def kernel_(self) -> Any:
        """The kernel of f, its scale included."""
        kernel, scale = self.lift_.kernel_, self._solved().scale
        return kernel if scale == 1 or not isinstance(kernel, Kernel) else scale * kernel

    @property
    def noise_(self) -> Any:
        """The variance of e: given or learnt, or one a row of `fit`."""
        return np.asarray(self.noise, np.float64) if np.ndim(self.noise) else self._solved().noise

    @property
    def scale_(self) -> float: return self._solved().scale

    @property
    def prior_mean_(self) -> float: return self._solved().prior_mean

    @property
    def coef_(self) -> Array: return self._solved().posterior.coef

    @property
    def log_marginal_likelihood_(self) -> float: return self._solved().log_evidence

    @property
    def effective_dimension_(self) -> float: return self._solved().posterior.effective

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, of: str = "y") -> Any:
        """The posterior mean, and with it the standard deviation (n,) or covariance (n, n) of y, or of f with of="f".

        Where noise was given for every row, that of a new y is their mean.
        """
        check_is_fitted(self, "lift_")
        if return_std and return_cov:
            raise ValueError("give return_std or return_cov, not both.")
        noise, X, p = self._noise_of(of), self._check_X(X, reset=False), self._solved().posterior
        mean = self._linear(X, p.coef, self.prior_mean_)
        if return_cov:
            return mean, self._covariance(X, p, noise).astype(X.dtype)
        return (mean, np.sqrt(self._variance(X, p, noise)).astype(X.dtype)) if return_std else mean

    def sample_y(self, X: Any, n_samples: int = 1, posterior: bool = True, random_state: Any = 0, of: str = "y") -> Array:
        """Draws of y (or f, with of="f") at the rows of X, (n, n_samples): of the posterior, or of the prior.

        The prior can be asked before `fit`; the map is then that of these rows, the scale 1, and noise still to be learnt none.
        """
        model = self if posterior or hasattr(self, "lift_") else self._unfitted(X)
        check_is_fitted(model, "lift_")
        noise, X, p = model._noise_of(of), model._check_X(X, reset=False), model._solved().posterior
        rng = np.random.default_rng(seed_of(random_state))
        W = (p if posterior else Posterior.prior(len(p.coef), p.scale)).draw(n_samples, rng)
        out = model._linear(X, W, model.prior_mean_)
        if model._restores():
            out += _root(p.scale * model._missing_pairs(X)) @ rng.standard_normal(out.shape)
        return np.asarray(out + math.sqrt(noise) * rng.standard_normal(out.shape), X.dtype)

    def _unfitted(self, X: Any) -> GaussianProcessRegressor:
        model = clone(self)
        model._fit_lift(model._check_X(X, reset=True))
        noise = 0.0 if isinstance(self.noise, str) else float(np.mean(self.noise))
        mean = 0.0 if self.prior_mean == "y" else float(self.prior_mean)
        model._found = Found(Posterior.prior(model.n_features_lifted_, 1.0), noise, 1.0, mean, 0.0)
        return model

    def _fit_lift(self, X: Matrix, weight: Array | None = None, *, stream: bool = False) -> None:
        self._set_lift(self._choose_lift(X, weight, stream=stream), X)

    def _noise_of(self, of: str) -> float:
        if of not in ("y", "f"):
            raise ValueError(f"of must be 'y' or 'f' (without the noise), got {of!r}.")
        return float(np.mean(self.noise_)) if of == "y" else 0.0

    def _variance(self, X: Matrix, p: Posterior, noise: float) -> Array:
        out = np.full(X.shape[0], noise)
        for rows, F in self._lifted(X):
            out[rows] += p.variance(F)
            if self._landmarks():
                out[rows] += p.scale * self._missing(X[rows], F)
        return out

    def _missing(self, X: Matrix, F: Array) -> Array:
        """k(x, x) - |phi(x)|^2 where it is to be put back, else a warning where it is more than half."""
        whole = self.lift_.kernel_.diag(X).astype(np.float64)
        missing = np.maximum(whole - np.square(F, dtype=np.float64).sum(1), 0)
        if not self.restore_variance and (missing > STARVED * whole).any():
            share = f"{np.mean(missing > STARVED * whole):.0%}"
            warnings.warn(
                f"at {share} of the points most of the prior variance is outside the landmarks; set restore_variance=True.",
                VarianceStarvationWarning, stacklevel=4,
            )  # fmt: skip
        return missing if self.restore_variance else np.zeros_like(missing)

    def _covariance(self, X: Matrix, p: Posterior, noise: float) -> Array:
        F = self._features(X)
        C = p.covariance(F) + noise * np.eye(len(F))
        return C + p.scale * self._missing_pairs(X) if self._restores() else C

    def _restores(self) -> bool:
        return self.restore_variance and self._landmarks()

    def _missing_pairs(self, X: Matrix) -> Array:
        """k(X, X) - phi phi', in float64, no entry of its diagonal below zero."""
        X = X.astype(np.float64)
        F = self._features(X)
        M = self.lift_.kernel_(X) - F @ F.T
        np.fill_diagonal(M, np.maximum(np.diag(M), 0))
        return np.asarray(M)


def _root(C: Array) -> Array:
    values, vectors = np.linalg.eigh(C)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def _check_noise(noise: Any) -> None:
    if isinstance(noise, str) and noise == "learn":
        return
    try:
        v = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError):
        v = np.array(-1.0)
    if v.ndim > 1 or not (np.isfinite(v) & (v > 0)).all():
        raise ValueError(f"noise must be a variance > 0, one a row, or 'learn', got {noise!r}.")


def _check_mean(mean: Any) -> None:
    if not (isinstance(mean, str) and mean == "y") and not (isinstance(mean, int | float | np.number) and np.isfinite(mean)):
        raise ValueError(f"prior_mean must be a number or 'y', got {mean!r}.")
