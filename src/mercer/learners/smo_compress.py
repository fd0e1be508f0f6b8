"""Fewer support vectors: functions of an RKHS projected onto the span of a few of their own points, with the measured cost."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from mercer.inputs import Array, Table
from mercer.kernels.base import Kernel
from mercer.lifts.landmarks import Gram, rpcholesky
from mercer.ops.philox import Stream
from mercer.store import register

CUT = 1e-10  # of a residual, relative to the diagonal: vectors that others tell up to it add nothing


@register("svm.Compression")
@dataclass(frozen=True)
class Compression:
    """What was left out: vectors before and after, |f - g| / |f| in the RKHS, and on rows: rms of f - g, share of decisions that changed.

    >>> print(Compression(900, 100, 0.02, 0.01, 0.001))
    100 of 900 support vectors: relative error 0.02, scores moved by 0.01 (rms), 0.1% of decisions changed
    """

    before: int
    after: int
    error: float
    rms: float
    changed: float

    def __str__(self) -> str:
        cost = f"relative error {self.error:.3g}, scores moved by {self.rms:.3g} (rms), {100 * self.changed:.3g}% of decisions changed"
        return f"{self.after} of {self.before} support vectors: {cost}"


def project(kernel: Kernel | None, vectors: Table, coef: Array, budget: int, seed: int) -> tuple[Array, Array, float]:
    """Places of the vectors that stay, their coefficients (k, m), and |f - g| / |f| of the worst function.

    Pivots of a randomly pivoted Cholesky factorisation, weighted by the coefficients; then the least squares in the RKHS.
    """
    gram = Gram(vectors, kernel)
    weight = np.abs(coef).max(0)
    keep = np.sort(rpcholesky(gram, budget, Stream(seed), weight / weight.max(), CUT))
    across = gram.block(keep, slice(None)) @ coef.T  # (m, k): values of f at the vectors that stay
    K = gram.block(keep, keep)
    K[np.diag_indices(len(K))] += 1e-10 * np.trace(K) / len(K)
    new = scipy.linalg.solve(K, across, assume_a="pos").T
    square = np.array([c @ _times(gram, c) for c in coef])
    left = square - np.einsum("ij,ji->i", new, across)  # |f|^2 - |g|^2 for a projection
    return keep, new, float(np.sqrt(np.max(np.maximum(left, 0) / np.maximum(square, 1e-300))))


def _times(gram: Gram, c: Array) -> Any:
    step = 1024
    return np.concatenate([gram.block(slice(i, i + step), slice(None)) @ c for i in range(0, len(gram), step)])
