"""What landmarks leave out of a process, as noise of its own at every row: the best ratio of noise to scale from all rows."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize_scalar

from mercer.inputs import Array
from mercer.models.gp.likelihood import best_scale
from mercer.store import register

GROUPS = 8  # of rows by what is left out of them, in the search for the ratio
NONE = 1e-4, 1e-2  # of the most that is left out: landmarks and rows beside them are groups of their own
RATIOS = 1e-8, 1e4  # that are tried
GRID = 13


@dataclass(frozen=True, eq=False)
class Groups:
    """y = phi'w + e, w ~ N(0, scale I), e ~ N(0, noise + scale left): sums over rows that are left out about as much.

    Snelson and Ghahramani, Sparse Gaussian processes using pseudo-inputs (2006), where the rows of a group share its mean left.
    """

    edges: Array  # between the groups
    count: Array  # (g,)
    left: Array  # sums
    A: Array  # Phi'Phi, (g, D, D)
    b: Array  # Phi'y, (g, D)
    square: Array  # y'y

    @classmethod
    def between(cls, left: Array, D: int, most: int = GROUPS) -> Groups:
        """Empty ones, with edges at the quantiles of some rows."""
        spread = np.quantile(left, np.linspace(0, 1, most - 1)[1:-1])
        edges = np.unique([*(np.array(NONE) * left.max(initial=0)), *spread])
        g = len(edges) + 1
        return cls(edges, np.zeros(g), np.zeros(g), np.zeros((g, D, D)), np.zeros((g, D)), np.zeros(g))

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
        """log p(y) at a ratio of noise to scale, at the best scale with a noise of `least` or more."""
        d = ratio + self.left / np.maximum(self.count, 1)
        H = np.tensordot(1 / d, self.A, 1)
        H.flat[:: len(H) + 1] += 1
        root, b = cholesky(H, lower=True, overwrite_a=True, check_finite=False), (1 / d) @ self.b
        n, fit = self.count.sum(), float(self.square @ (1 / d)) - float(b @ cho_solve((root, True), b, check_finite=False))
        det = 2 * float(np.log(root.diagonal()).sum()) + float(self.count @ np.log(d))
        s = best_scale(fit, n, ratio, least)
        return float(-0.5 * (n * math.log(2 * math.pi * s) + fit / s + det))

    def best(self, least: float = 0.0, size: float = 1.0) -> float:
        """The ratio of the largest evidence; size : of k(x, x), in units of which ratios are tried.

        >>> rng = np.random.default_rng(0)
        >>> F, left = rng.normal(size=(4000, 3)), rng.choice([0.0, 1.0], size=4000)
        >>> groups = Groups.between(left, 3)
        >>> groups.add(F, left, F @ [1.0, -1.0, 0.5] + np.sqrt(0.1 + left) * rng.normal(size=4000))
        >>> bool(0.05 < groups.best() < 0.25)
        True
        """
        grid = np.linspace(math.log(RATIOS[0]), math.log(RATIOS[1]), GRID) + math.log(size)
        i = int(np.argmax([self.log(math.exp(g), least) for g in grid]))
        around = grid[max(i - 1, 0)], grid[min(i + 1, GRID - 1)]
        found = minimize_scalar(lambda g: -self.log(math.exp(g), least), bounds=around, method="bounded", options={"xatol": 1e-2})
        return math.exp(found.x)


@register("gp.Shares")
@dataclass(frozen=True)
class Shares:
    """Rows weigh level / (ratio + left): `logs` sums the logarithms of the weights, `total` their y, over all rows seen."""

    ratio: float
    level: float
    logs: float
    total: float

    @classmethod
    def of(cls, ratio: float, left: Array, y: Array) -> Shares:
        """With weights whose geometric mean is one."""
        return cls(ratio, float(np.exp(np.log(ratio + left).mean())), 0.0, float(y.sum()))

    def weights(self, left: Array) -> Array:
        return np.asarray(self.level / (self.ratio + left))

    def taking(self, left: Array, y: Array, sign: int = 1) -> Shares:
        """With these rows too, or without them."""
        logs = float(np.log(self.weights(left)).sum())
        return replace(self, logs=self.logs + sign * logs, total=self.total + sign * float(y.sum()))
