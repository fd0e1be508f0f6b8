"""What rows weigh in the moments of a process: by noises that are given, or by what landmarks leave out of each row."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.base import bytes_of
from mercer.estimators.streams import OverMoments
from mercer.inputs import Array, Matrix, Table
from mercer.kernels import Kernel
from mercer.models.gp.residual import GROUPS, Groups, Shares
from mercer.models.gp.space import NOISE
from mercer.models.gp.starts import magnitude
from mercer.lifts import Nystrom

SAMPLE = 2048  # rows that tell how much is left out
NOTHING = 1e-6  # of k(x, x): where no row has more left out, all are told


class LeftOver(OverMoments):
    """Rows weigh 1 / (noise + scale left) with left = k(x, x) - |phi(x)|^2, the ratio of noise to scale by the evidence of all rows."""

    restore_variance: bool = False
    noise: Any
    _shares: Shares | None = None
    _candidate: Any = None  # a kernel that was learnt before the map was made

    def _held(self) -> tuple[float, float] | None:
        """Noise and scale in the units of y where these moments do not choose them: given, or learnt before under what was said."""
        held: tuple[float, float] | None = None if self._candidate is None else self._candidate.held
        if isinstance(self.noise, str):
            return held
        return float(np.exp(np.log(self.noise).mean())), 1.0 if held is None else held[1]

    def _landmarks(self) -> bool:
        """Whether phi is a projection of its kernel's features, so that k - phi phi' is known and a kernel."""
        phi = getattr(self.lift_, "map_", self.lift_)
        return isinstance(phi, Nystrom) and isinstance(phi.kernel_, Kernel)

    def _restores(self) -> bool:
        return self.restore_variance and self._landmarks()

    def _left_of(self, X: Matrix, F: Array) -> Array:
        """k(x, x) - |phi(x)|^2, never below zero."""
        whole = self.lift_.kernel_.diag(X).astype(np.float64)
        return np.maximum(whole - np.square(F, dtype=np.float64).sum(1), 0)

    def _left(self, X: Matrix) -> Array:
        return np.concatenate([self._left_of(X[rows], F) for rows, F in self._lifted(X)])

    def _precision(self, n: int) -> Array | None:
        """Weights for one noise a row that was given: the geometric mean of all noises over each, which leaves the determinant as it is."""
        if not np.ndim(self.noise):
            return None
        noise = np.asarray(self.noise, np.float64)
        if noise.shape != (n,):
            raise ValueError(f"noise has shape {noise.shape}, but X has {n} rows; give one number, or one a row.")
        return np.asarray(np.exp(np.log(noise).mean()) / noise)

    def _share(self, X: Matrix, y: Array, mean: float) -> Array | None:
        """The weights of the rows of a first fit, None where all weigh the same."""
        self._shares = None
        if not (self._restores() and isinstance(self.noise, str)) or X.shape[0] <= self.n_features_lifted_:
            return None
        some = X[:: -(-X.shape[0] // SAMPLE)]
        sample = self._left(some)
        if not (sample > NOTHING * self.lift_.kernel_.diag(some)).any():
            return None
        D, held = self.n_features_lifted_, self._held()
        groups = Groups.between(sample, D, int(np.clip(bytes_of(self.memory_limit) // (32 * D * D), 3, GROUPS)))
        left = np.empty(len(y))
        for rows, F in self._lifted(X):
            left[rows] = self._left_of(X[rows], F)
            groups.add(F, left[rows], y[rows] - mean)
        least, size = NOISE[0] * float(y.var()), magnitude(self.lift_.kernel_, Table(some))
        self._shares = Shares.of(groups.best(least, size) if held is None else held[0] / held[1], left, y)
        return self._shares.weights(left)

    def _share_more(self, X: Matrix, y: Array, sign: int = 1) -> Array | None:
        """The weights of rows that come later, or go, at the ratio that was found."""
        if self._shares is None:
            return None
        left = self._left(X)
        self._shares = self._shares.taking(left, y, sign)
        return self._shares.weights(left)
