"""Pre-images: rows whose features are near a given sum of features."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import Gaussian, Linear
from mercer.kernels.base import Kernel
from mercer.kernels.defaults import spread
from mercer.learners.kernel_ridge import exact
from mercer.operators.kernel import KernelOperator
from mercer.ops.tiles import cuts

STEPS, TOL = 200, 1e-7  # of the fixed point
MOST = 3000  # rows that a regression learns from
PIECE_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Regression:
    """x from scores: kernel ridge regression of rows on their scores (Bakir, Weston and Scholkopf, 2003)."""

    kernel: Gaussian
    scores: Array
    coef: Array
    intercept: Array

    @classmethod
    def of(cls, scores: Array, rows: Array) -> Regression:
        """From at most 3,000 of the rows, evenly spaced."""
        some = np.unique(np.linspace(0, len(scores) - 1, min(len(scores), MOST)).astype(int))
        S = scores[some]
        kernel = Gaussian(float(np.sqrt(spread(S))))
        s = exact(KernelOperator(kernel, S), np.asarray(rows[some], np.float64), 1e-6 * len(some))
        return cls(kernel, S, s.coef, s.intercept)

    def __call__(self, Z: Array) -> Array:
        return np.asarray(KernelOperator(self.kernel, Z, self.scores) @ self.coef + self.intercept)


def preimages(kernel: Kernel, rows: Table, gamma: Array, start: Array) -> Array:
    """x with k(x, .) near sum_i gamma_i k(x_i, .), for each row of gamma (m, n); `start` (m, d) where there is no formula.

    Linear kernels: sum_i gamma_i x_i. Gaussian ones: the fixed point x = sum_i g_i x_i / sum_i g_i, g_i = gamma_i k(x, x_i)
    (Mika, Scholkopf, Smola, Muller, Scholz and Ratsch, 1999), begun at `start` and left there where it has no weight.
    """
    if isinstance(kernel, Linear) and kernel.metric is None:
        return np.asarray(gamma @ rows.data)
    if not isinstance(kernel, Gaussian):
        return start
    step = max(1, PIECE_BYTES // (8 * len(rows)))
    return np.vstack([_fixed_point(kernel, rows, gamma[at], start[at]) for at in cuts(len(gamma), step)])


def _fixed_point(kernel: Kernel, rows: Table, gamma: Array, x: Array) -> Array:
    x, on = np.array(x, np.float64), np.arange(len(gamma))
    rows = rows.astype(np.float64)
    for _ in range(STEPS):
        G = gamma[on] * kernel(Table(x[on]) if not rows.sparse else _csr(x[on]), rows)
        total, size = G.sum(1), np.abs(G).sum(1)
        fine = total > 1e-3 * size  # else x would leave the rows
        new = np.where(fine[:, None], np.asarray(G @ rows.data) / np.where(fine, total, 1)[:, None], x[on])
        moved = np.linalg.norm(new - x[on], axis=1) > TOL * (1 + np.linalg.norm(new, axis=1))
        x[on] = new
        on = on[moved]
        if not len(on):
            break
    return x


def _csr(x: Array) -> Any:
    from scipy.sparse import csr_array

    return csr_array(x)
