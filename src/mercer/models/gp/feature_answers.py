"""What a process over features answers: mean, variance and draws, none of them starved where that can be helped."""
from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.models.gp.features import STARVED, FeatureWay, Found, VarianceStarvationWarning
from mercer.inputs import Array, Matrix
from mercer.kernels import Kernel
from mercer.models.gp.linear import Posterior
from mercer.models.gp.space import times
from mercer.lifts.base import seed_of


class FeatureAnswers(FeatureWay):
    """The questions that a fitted process over features answers."""

    _flat: bool = True  # whether y had one axis

    @property
    def kernel_(self) -> Any:
        """The kernel of f, its scale included."""
        kernel, scale = self.lift_.kernel_, self._solved().scale
        return times(scale, kernel) if isinstance(kernel, Kernel) else kernel

    @property
    def noise_(self) -> Any:
        """The variance of e: given or learnt, or one a row of `fit`."""
        found = self._solved().noise
        if isinstance(self.noise, str):
            return found
        return np.asarray(self.noise, np.float64) if np.ndim(self.noise) else float(self.noise)

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
            out += root(p.scale * model._missing_pairs(X)) @ rng.standard_normal(out.shape)
        return np.asarray(out + math.sqrt(noise) * rng.standard_normal(out.shape), X.dtype)

    def _unfitted(self, X: Any) -> FeatureAnswers:
        model = clone(self)
        model._fit_lift(model._check_X(X, reset=True))
        noise = 0.0 if isinstance(self.noise, str) else float(np.mean(self.noise))
        mean = 0.0 if isinstance(self._prior(), str) else float(self._prior())
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
        whole, missing = self.lift_.kernel_.diag(X), self._left_of(X, F)
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

    def _missing_pairs(self, X: Matrix) -> Array:
        """k(X, X) - phi phi', in float64, no entry of its diagonal below zero."""
        X = X.astype(np.float64)
        F = self._features(X)
        M = self.lift_.kernel_(X) - F @ F.T
        np.fill_diagonal(M, np.maximum(np.diag(M), 0))
        return np.asarray(M)


def root(C: Array) -> Array:
    """R, R R' = C, with eigenvalues that rounding made negative at zero."""
    values, vectors = np.linalg.eigh(C)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
