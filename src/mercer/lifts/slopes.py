"""Derivatives of functions of features by the inputs: of cosines and of landmarks, which have
formulas, and of what is made of such."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.lifts.algebra import Concatenate, Scaled
from mercer.lifts.fourier import RandomFourier
from mercer.lifts.kernel import KernelLift
from mercer.lifts.nystrom import Nystrom
from mercer.lifts.structure import Identity, MappedLift, OnColumnsLift, One
from mercer.operators import KernelOperator
from mercer.ops.philox import uniforms
from mercer.ops.tiles import cuts
from mercer.pairs.linear import full, mapped_rows

ANGLES_BYTES = 16 << 20  # of the cosines of a piece of rows
ROWS = 256  # of a piece at most


def feature_gradients(phi: Any, X: Table, coef: Array) -> Array:
    """d phi(x)'coef / dx at every row, (n, q, d) for coef (D, q); refused where phi has no formula
    for it.

    >>> from mercer.kernels import Gaussian
    >>> phi = Nystrom(Gaussian(), landmarks=[[0.0]]).fit([[0.0]])
    >>> feature_gradients(phi, Table(np.array([[1.0]])), np.ones((1, 1))).round(6)
    array([[[-0.606531]]])
    """
    d = X.width
    match phi:
        case KernelLift():
            return feature_gradients(phi.map_, X, coef)
        case Scaled():
            return float(phi.by) * feature_gradients(phi.lift_, X, coef)
        case Concatenate():
            ends = np.cumsum([0, *(part.n_features_out_ for part in phi.lifts_)])
            parts = zip(phi.lifts_, ends, ends[1:], strict=False)
            found = [feature_gradients(part, X, coef[a:b]) for part, a, b in parts]
            return np.sum(found, axis=0)
        case OnColumnsLift():
            out = np.zeros((len(X), coef.shape[1], d), X.dtype)
            G = feature_gradients(phi.lift_, Table(X.data[:, phi.positions_]), coef)
            for at, k in enumerate(phi.positions_):
                out[..., k] += G[..., at]
            return out
        case MappedLift():
            G = feature_gradients(phi.lift_, mapped_rows(X, phi.matrix_), coef)
            return np.asarray(G @ full(phi.matrix_), X.dtype)
        case One():
            return np.zeros((len(X), coef.shape[1], d), X.dtype)
        case Identity():
            slope = coef if phi.root_ is None else phi.root_ @ coef
            return np.broadcast_to(slope.T.astype(X.dtype), (len(X), coef.shape[1], d)).copy()
        case RandomFourier():
            return _of_cosines(phi, X, coef)
        case Nystrom(kernel_=Kernel()):
            K = KernelOperator(phi.kernel_, Table(X.data), phi.landmarks_)
            return np.asarray(K.input_gradients(phi.components_ @ coef), X.dtype)
    raise ValueError(
        f"features of {type(phi).__name__} have no derivative by the inputs here; "
        "use via='exact', 'landmarks' or methods.Fourier()."
    )


def _of_cosines(phi: RandomFourier, X: Table, coef: Array) -> Array:
    """sqrt(a/m) (cos w'x, sin w'x), or sqrt(2a/m) cos(w'x + b): sums of slopes times w."""
    m, W = phi.n_frequencies_, phi.draw()
    coef = coef.astype(np.float64) * np.sqrt(phi.spectrum_.amplitude / m)
    out = np.empty((len(X), coef.shape[1], X.width))
    if phi.form == "pairs":
        by_cos, by_sin, shift = coef[:m], coef[m:], np.zeros(m)
    else:
        by_cos, by_sin = np.sqrt(2) * coef, np.zeros_like(coef)
        shift = 2 * np.pi * uniforms(phi.stream_.child(-1 % 2**32), 0, m, 1)[:, 0]
    for rows in cuts(len(X), max(1, min(ROWS, ANGLES_BYTES // (8 * m)))):
        x = X.data[rows]
        angle = (x.toarray() if sp.issparse(x) else x).astype(np.float64) @ W.T + shift
        cos, sin = np.cos(angle), np.sin(angle)
        for t in range(coef.shape[1]):
            out[rows, t] = (cos * by_sin[:, t] - sin * by_cos[:, t]) @ W
    return out.astype(X.dtype)
