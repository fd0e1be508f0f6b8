"""The exact way of a Gaussian process whose kernel matrix is given."""
from __future__ import annotations

import warnings
from typing import Any, Self, cast

import numpy as np
from scipy.linalg import LinAlgWarning

from mercer.models.gp.learning import Learning
from mercer.inputs import Array, Matrix
from mercer.kernels import Kernel
from mercer.models.gp.gram import Given, GramProcess, noise_and_scale
from mercer.models.gp.posterior import PointProcess
from mercer.plan import Plan

MISSED = 1e-6  # of the largest y: what an interpolation may miss by rounding


def streams(model: Any) -> bool:
    """Whether rows may come and go."""
    if model._pairwise:
        raise AttributeError("kernel='precomputed' names points by their place in one matrix, so it has no stream; give a kernel.")
    return True


class GramWay(Learning):
    """With kernel="precomputed" X is the Gram matrix: (n, n) in `fit`, (m, n) afterwards."""

    process_: PointProcess

    @property
    def _pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _learns(self) -> bool:
        return isinstance(self.noise, str) if self._pairwise else super()._learns()

    def _takes_sparse(self) -> bool:
        return super()._takes_sparse() and not self._pairwise

    def _check_gram(self, K: Matrix) -> None:
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"X must be a square Gram matrix with kernel='precomputed', got shape {K.shape}.")
        if self.lift is not None or not (isinstance(self.via, str) and self.via in ("auto", "exact")):
            raise ValueError("a Gram matrix has no features or landmarks; use via='exact' with kernel='precomputed'.")
        if self.tied or self.bounds or self.priors or self.fixed not in (None, (), [], "all"):
            raise ValueError("fixed, tied, bounds and priors are for a kernel, and a Gram matrix has no parameters; leave them out.")
        if not np.allclose(K, K.T, rtol=1e-4, atol=1e-5 * float(np.abs(K).max())):
            raise ValueError("X must be a symmetric Gram matrix with kernel='precomputed'; use (K + K.T) / 2 if that is rounding.")

    def _fit_gram(self, K: Matrix, Y: Array) -> Self:
        self._check_gram(K)
        self._flat, self._dtype = Y.ndim == 1, K.dtype
        K, Y = K.astype(np.float64), Y.reshape(len(Y), -1)
        self._units = mean, unit = self._units_of(Y, None)
        Z, noise, scale = (Y - mean) / unit, self._given_noise(len(Y)), 1.0
        if noise is None:
            level, scale = noise_and_scale(K, Z) if np.any(Z) else (1 / (len(Z) + 1),) * 2
            noise = np.full(len(Z), level)
        self.process_ = GramProcess.of(cast(Kernel, Given()), K, Z, noise, scale)
        n = len(Z)
        self.plan_ = Plan("exact", "a Gram matrix was given", {"rows": n, "learnt from": n}, bytes=8.0 * n * n, flops=n**3 / 3)
        self._warn_if_singular()
        return self

    def _warn_if_singular(self) -> None:
        """Where there is to be no noise, or none to speak of, the mean at the rows should be y."""
        p, given = self.process_, self._given_noise(len(self.process_.Y))
        if given is None or not (none := (given == 0) | (given < p.noise)).any():
            return
        apart = float(np.abs(p.mean(p.X) - p.Y)[none].max(initial=0))
        if apart > MISSED * np.abs(p.Y).max():
            warnings.warn(
                f"noise is {np.min(self.noise):g}, but the kernel is singular at the rows to rounding: f is a least-squares fit "
                f"that misses y by up to {apart * float(self._units[1].max()):.2g}, and the likelihood means nothing; "
                "give a noise > 0, or noise='learn'.",
                LinAlgWarning, stacklevel=5,
            )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        return tags
