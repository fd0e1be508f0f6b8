"""Rows of random shapes: drawn from a generator, so that they are the same on every machine, and
given up (`TooLarge`) before they are made where a peer would take too long with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from mercer.kernels import Gaussian

ROWS, COLUMNS = (100, 50_000), (1, 2_000)
MOST_BYTES = 4e9
NUMBERS = 2e7  # in the rows, at most, for every second that the peer may take
FLOPS, VALUE = 2.5e10, 1.2e-8  # of a core: products a second, and seconds of one kernel value


class TooLarge(Exception):
    """The peer would take too long, or too much memory."""


@dataclass(frozen=True)
class Draw:
    """Where a problem comes from, and the seconds that the peer may take."""

    rng: np.random.Generator
    seconds: float

    def size(self, low: float, high: float) -> int:
        """Log-uniform."""
        return round(float(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def power(self, low: float, high: float) -> float:
        """10 to a uniform power."""
        return float(10 ** self.rng.uniform(low, high))

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def afford(self, seconds: float, size: float) -> None:
        if seconds > self.seconds or size > MOST_BYTES:
            raise TooLarge

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape)


# rows
@dataclass(frozen=True)
class Shape:
    """Of rows X (n, d), near a subspace of some dimension or not, perhaps sparse."""

    draw: Draw
    n: int
    d: int
    dtype: Any
    density: float | None
    rank: int | None

    @classmethod
    def of(cls, draw: Draw, most: int = ROWS[1], columns=COLUMNS, *, sparse=True) -> Self:
        n, d = draw.size(ROWS[0], most), draw.size(*columns)
        draw.afford(n * d / NUMBERS, 24.0 * n * d)
        dtype = np.dtype(np.float32 if draw.chance(0.5) else np.float64)
        density = draw.power(-2.3, -1) if sparse and d >= 50 and draw.chance(0.25) else None
        rank = draw.size(4, d) if d >= 20 and draw.chance(0.5) else None  # as images are
        return cls(draw, n, d, dtype, density, rank)

    @property
    def told(self) -> str:
        kind = "" if self.density is None else ", sparse"
        return f"n={self.n:,}, d={self.d:,}, {self.dtype}{kind}"

    def values(self, m: int | None = None) -> float:
        """Seconds of a kernel matrix of as many columns."""
        return self.n * (m or self.n) * (2 * self.d / FLOPS + VALUE)

    def rows(self) -> Rows:
        X = self._dense() if self.density is None else self._sparse()
        spread = 1.0 if self.density is None else self.density
        return Rows(X, float(np.sqrt(self.d * spread) * self.draw.rng.uniform(0.5, 2)))

    def _dense(self) -> np.ndarray:
        X = self.draw.normal(self.n, self.d)
        if self.rank is not None:
            r = self.rank
            X = self.draw.normal(self.n, r) @ self.draw.normal(r, self.d) / np.sqrt(r) + 0.1 * X
        return (X / X.std(0)).astype(self.dtype)

    def _sparse(self) -> Any:
        rng, shape = self.draw.rng, (self.n, self.d)
        X = sp.csr_matrix(
            sp.random_array(shape, density=self.density, random_state=rng, dtype=self.dtype)
        )
        X.data[:] = rng.normal(size=X.nnz)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X


@dataclass(frozen=True)
class Rows:
    """X (n, d) of columns of deviation 1; `width` is a bandwidth of the order of the distances."""

    X: Any
    width: float

    @property
    def gamma(self) -> float:
        return 1 / (2 * self.width**2)

    @property
    def kernel(self) -> Gaussian:
        return Gaussian(self.width)

    def made(self, n: int, rng: np.random.Generator) -> Any:
        """As many other rows, from the neighbourhood of these."""
        some = self.X[rng.integers(0, self.X.shape[0], n)]
        if sp.issparse(some):
            return some
        return (some + 0.1 * rng.normal(size=some.shape)).astype(self.X.dtype)


def response(rng: np.random.Generator, X: Any) -> np.ndarray:
    """A smooth function of two directions, and noise: mean 0, deviation 1."""
    W = rng.normal(size=(X.shape[1], 2)) / np.sqrt(X.shape[1])
    a, b = np.asarray(X @ W).T
    f = np.sin(2 * a) + b * np.tanh(a)
    y = f / max(f.std(), 1e-12) + 0.3 * rng.normal(size=len(f))
    return (y - y.mean()) / y.std()


def labels(rng: np.random.Generator, X: Any, classes: int) -> np.ndarray:
    y = response(rng, X)
    return np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)
