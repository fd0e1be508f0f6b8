"""Fewer support vectors: functions of an RKHS projected onto the span of a few of their own points, with the measured cost."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from mercer.inputs import Array, Table
from mercer.kernels.base import Kernel
from mercer.lifts.landmarks import Gram, rpcholesky
from mercer.models.svm.machine import Compression, DualMachine, Machine
from mercer.ops.philox import Stream

CUT = 1e-10  # of a residual, relative to the diagonal: vectors that others tell up to it add nothing


def compress(machine: Machine, budget: int, X: Table | None, seed: int) -> DualMachine:
    """The same over at most `budget` vectors; the cost is measured on rows X, or else on the support vectors."""
    if not isinstance(machine, DualMachine):
        raise ValueError("compress needs support vectors, and a model over features has none; fit with via='exact'.")
    if machine.vectors is None:
        raise ValueError("compress needs a kernel; a model of kernel='precomputed' does not have the values between its vectors.")
    if not len(machine.support):
        raise ValueError("compress needs support vectors, and this model, a constant, has none; use it as it is.")
    vectors, rows = machine.vectors, machine.vectors if X is None else X
    before = machine.raw(rows)
    keep, coef, error = project(machine.kernel, vectors, machine.functions, budget, seed)
    of = np.repeat(np.arange(len(machine.counts)), machine.counts)[keep]
    counts = np.bincount(of, minlength=len(machine.counts)).astype(np.int32)
    small = replace(machine, support=machine.support[keep], vectors=vectors[keep], coef=coef, counts=counts)
    after = small.raw(rows)
    rms = float(np.sqrt(np.mean(np.square(after - before))))
    return replace(small, compression=Compression(len(vectors), len(keep), error, rms, machine.changed(before, after)))


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
