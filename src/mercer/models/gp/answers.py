"""What a fitted Gaussian process answers, whichever way it was fitted: predictions, draws, intervals, and how honest they are."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from mercer.models.gp.feature_answers import root
from mercer.models.gp.features import VarianceStarvationWarning
from mercer.models.gp.points import PointWay
from mercer.models.gp.problem import check_count, check_shares
from mercer.inputs import Array, Matrix, Table
from mercer.models.gp.linear import Posterior
from mercer.models.gp.gram import ALONE
from mercer.models.gp.iterative import IterativeProcess
from mercer.models.gp.outside import Beside, outside
from mercer.models.gp.samples import Functions, NoFeatures, drawn
from mercer.models.gp.space import times
from mercer.models.gp.starts import defaults
from mercer.lifts.base import seed_of
from mercer.models.intervals import Interval

MODEL = "{0:.3g} of new rows are covered if y is this Gaussian process at these hyper-parameters; see calibration(X, y)"


class PointAnswers(PointWay):
    """The questions, over points or over features."""

    @property
    def kernel_(self) -> Any:
        """The kernel of f, with its scale where there is one output."""
        if not self._has_points():
            return super().kernel_
        if self._pairwise:
            return "precomputed"
        p = self.process_
        scale = p.scale * float(self._units[1][0]) ** 2 if self._one() else 1.0
        return times(scale, p.kernel)

    @property
    def noise_(self) -> Any:
        """The variance of e: given or learnt; one a row of `fit` where so given, one an output where there are several."""
        if not self._has_points():
            return super().noise_
        if not isinstance(self.noise, str):
            return np.asarray(self.noise, np.float64) if np.ndim(self.noise) else float(self.noise)
        each = float(self.process_.noise[0]) * self._units[1] ** 2
        return float(each[0]) if self._one() else each

    @property
    def scale_(self) -> Any:
        """What multiplies the kernel; one an output where there are several."""
        if not self._has_points():
            return super().scale_
        each = self.process_.scale * self._units[1] ** 2
        return float(each[0]) if self._one() else each

    @property
    def prior_mean_(self) -> Any:
        if not self._has_points():
            return super().prior_mean_
        return float(self._units[0][0]) if self._one() else self._units[0]

    @property
    def log_marginal_likelihood_(self) -> float:
        """log p(y) at the hyper-parameters, summed over outputs."""
        if not self._has_points():
            return super().log_marginal_likelihood_
        return self.process_.log_evidence - len(self.process_.Y) * float(np.log(self._units[1]).sum())

    @property
    def log_marginal_likelihood_error_(self) -> float:
        """The standard error of `log_marginal_likelihood_`: zero but for the iterative way, whose determinant is estimated."""
        self._check_fitted()
        p = getattr(self, "process_", None)
        return 0.5 * len(self._units[0]) * p.determinant.error if isinstance(p, IterativeProcess) else 0.0

    def _has_points(self) -> bool:
        self._check_fitted()
        return hasattr(self, "process_")

    def _one(self) -> bool:
        return len(self._units[0]) == 1

    # predictions
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, of: str = "y") -> Any:
        """The posterior mean, and with it the standard deviation (n,) or covariance (n, n) of y, or of f with of="f".

        Of several outputs each is a column, or a slice of the last axis. Where noise was given for every row, that of a new y is
        their mean.
        """
        if not self._has_points():
            answer = super().predict(X, return_std, return_cov, of)
            return tuple(map(self._column, answer)) if isinstance(answer, tuple) else self._column(answer)
        if return_std and return_cov:
            raise ValueError("give return_std or return_cov, not both.")
        noise, X = self._noise_share(of), self._check_X(X, reset=False)
        Z, unit = X.astype(np.float64), self._units[1]
        mean = self._shaped(self._units[0] + unit * self.process_.mean(Z), X)
        if return_cov:
            return mean, self._shaped((self.process_.covariance(Z) + noise * np.eye(Z.shape[0]))[..., None] * unit**2, X)
        return (mean, self._shaped(np.sqrt(self.process_.variance(Z) + noise)[:, None] * unit, X)) if return_std else mean

    def _noise_share(self, of: str) -> float:
        """The variance of e in the units of the process."""
        if of not in ("y", "f"):
            raise ValueError(f"of must be 'y' or 'f' (without the noise), got {of!r}.")
        return float(self.process_.noise.mean()) if of == "y" else 0.0

    def _shaped(self, out: Array, X: Matrix) -> Array:
        """In the dtype of X."""
        return self._plain(out).astype(X.dtype)

    def _plain(self, out: Array) -> Array:
        """One output without an axis of its own."""
        return out[..., 0] if self._flat else out

    def _column(self, out: Array) -> Array:
        """One output with an axis of its own, where y had one."""
        return out if self._flat else out[..., None]

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95), of: str = "y") -> Array:
        """The quantiles of y (or f) at every row, (n, k): columns in the order of `quantiles`."""
        q = check_shares(quantiles, "quantiles")
        mean, std = self.predict(X, return_std=True, of=of)
        return np.asarray(mean[..., None] + std[..., None] * ndtri(q), mean.dtype)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Interval:
        """(lower, upper) of y at every row, the central interval of the predictive Gaussian; `.guarantee` says what that is worth."""
        (c,) = check_shares([coverage], "coverage").tolist()
        Q = self.predict_quantiles(X, [(1 - c) / 2, (1 + c) / 2])
        return Interval(Q[..., 0], Q[..., 1], MODEL.format(c))

    # draws
    def sample_y(self, X: Any, n_samples: int = 1, posterior: bool = True, random_state: Any = 0, of: str = "y") -> Array:
        """Draws of y (or f, with of="f") at the rows of X, (n, n_samples) or (n, q, n_samples): of the posterior, or of the prior.

        The prior can be asked before `fit`, with the kernel as given and noise still to be learnt none.
        """
        fitted, n_samples = self.__sklearn_is_fitted__(), check_count(n_samples, "n_samples")
        if hasattr(self, "lift_") or (not fitted and (posterior or not self._many())):
            self._check_fitted() if posterior else None
            return super().sample_y(X, n_samples, posterior, random_state, of)
        rows = self._check_X(X, reset=not fitted)
        mean, C, unit = self._moments_at(rows.astype(np.float64), posterior, of) if fitted else self._before(rows, of)
        rng = np.random.default_rng(seed_of(random_state))
        E = rng.standard_normal((len(C), mean.shape[1] * n_samples))
        draws = (root(C) @ E).reshape(len(C), mean.shape[1], n_samples)
        out = mean[..., None] + unit[:, None] * draws
        return np.asarray(out[:, 0] if mean.shape[1] == 1 else out, rows.dtype)

    def _moments_at(self, Z: Matrix, posterior: bool, of: str) -> tuple[Array, Array, Array]:
        p, (mean, unit) = self.process_, self._units
        noise = self._noise_share(of) * np.eye(Z.shape[0])
        if not posterior:
            return np.tile(mean, (Z.shape[0], 1)), p.scale * p.kernel(Table(Z)) + noise, unit
        return mean + unit * p.mean(Z), p.covariance(Z) + noise, unit

    def _before(self, X: Matrix, of: str) -> tuple[Array, Array, Array]:
        """The prior of a model that was not fitted."""
        kernel = self._kernel(X) or defaults(Table(X))[0]
        prior, noise = self._prior(), 0.0 if isinstance(self.noise, str) or of == "f" else float(np.mean(self.noise))
        mean = np.full((X.shape[0], 1), 0.0 if isinstance(prior, str) else prior)
        return mean, kernel(Table(X.astype(np.float64))) + noise * np.eye(X.shape[0]), np.ones(1)

    def sample_functions(
        self, n_samples: int = 1, posterior: bool = True, n_features: int = 4096, random_state: Any = 0
    ) -> Functions:
        """Functions drawn once and evaluated anywhere: F = m.sample_functions(3); F(X) is (n, 3), F(X)[:, j] always of one function.

        Of q outputs F(X) is (n, q, 3).

        A draw of the prior by random features of the kernel, then Matheron's update by the points, which is exact: the draws
        differ from the posterior only as the features differ from the kernel. A model over features draws its weights, one over
        landmarks also what these leave out (where `restore_variance` says so), from the prior.
        """
        n_samples, n_features = check_count(n_samples, "n_samples"), check_count(n_features, "n_features")
        if not self._has_points():
            return self._drawn_weights(n_samples, posterior, n_features, seed_of(random_state))
        p, (mean, unit) = self.process_, self._units
        if self._pairwise:
            raise ValueError(ALONE)
        try:
            f = drawn(p, n_samples, posterior=posterior, n_features=n_features, seed=seed_of(random_state))
        except NoFeatures as e:
            raise ValueError(f"no random features of {p.kernel!r} are known to draw functions by; use sample_y at the rows wanted.") from e
        return f.moved(mean, unit)

    def _drawn_weights(self, count: int, posterior: bool, n_features: int, seed: int) -> Functions:
        p = self._solved().posterior
        W = (p if posterior else Posterior.prior(len(p.coef), p.scale)).draw(count, np.random.default_rng(seed))
        within = Functions(self.lift_, W, None, (self.prior_mean_,))
        if not self._restores():
            return within
        try:
            psi, V, less = outside(getattr(self.lift_, "map_", self.lift_), p.scale, count, n_features=n_features, seed=seed)
        except ValueError as e:
            said = "these functions vary too little far from the landmarks (sample_y does not), for what is left out cannot be drawn: "
            warnings.warn(f"{said}{e}", VarianceStarvationWarning, stacklevel=3)
            return within
        return replace(within, lift=Beside(self.lift_, psi), weights=np.vstack([W - less, V]))
