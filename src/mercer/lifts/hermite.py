"""Hermite features: the eigenfunctions of the Gaussian kernel under a Gaussian measure."""
from __future__ import annotations

import math
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Ints
from mercer.kernels import Gaussian
from mercer.kernels.base import positives, whole
from mercer.kernels.defaults import resolve
from mercer.kernels.params import plain
from mercer.lifts.base import Lift, by_rows
from mercer.ops.monomials import exponents, plan
from mercer.pairs.side import per_column, square_norms
from mercer.store import register

FAR = 1e100  # the eigenfunctions are zero long before, and the square is still finite


@register("lifts.Hermite")
class Hermite(Lift):
    """The Gaussian kernel's Mercer expansion under N(centre, scale^2): Hermite polynomials.

    In one column, for rows y = (x - centre) sqrt(1 + rho) / (scale sqrt(1 - rho)), the
    functions psi_k(x) = (1 - rho^2)^(1/4) rho^(k/2) h_k(y) exp(-rho y^2 / (2 (1 + rho))), with
    h_k the Hermite polynomial that is orthonormal under N(0, 1), are orthogonal under the
    measure, with eigenvalues (1 - rho) rho^k, and sum_k psi_k(x) psi_k(z) is the Gaussian
    kernel (Mehler's formula); rho / (1 - rho)^2 = (scale / bandwidth)^2. In d columns the
    features are all products prod_j psi_{a_j}(x_j) with sum_j a_j <= degree: with equal rho
    these are the largest eigenvalues, and no map with as many features leaves less of them out.

    Parameters
    ----------
    degree : int, default=4
        The highest total degree.
    bandwidth : float or tuple of float, default=None
        That of the Gaussian, one number or one a column; None scales it to the data.
    scale : float or tuple of float, default=None
        The standard deviation of the measure, one number or one a column; None takes it from
        the data.

    Attributes
    ----------
    mean_tail_ : float
        The mean over the measure of k(x, x) - |phi(x)|^2, the eigenvalues left out.

    Examples
    --------
    >>> phi = Hermite(degree=12, bandwidth=1.0, scale=1.0).fit([[-1.0], [1.0]])
    >>> F = phi.transform([[0.3], [1.0]])
    >>> (F @ F.T).round(4), phi.kernel_([[0.3], [1.0]]).round(4)
    (array([[1.    , 0.7827], [0.7827, 1.    ]]), array([[1.    , 0.7827], [0.7827, 1.    ]]))
    """

    must = dict(
        centre_=Floats("n_features_in_"), scale_=Floats("n_features_in_"), rho_=Floats("n_features_in_", low=0),
        exponents_=Ints("n_features_out_", "n_features_in_", below=1 << 16),
    )  # fmt: skip

    def __init__(self, degree: int = 4, bandwidth: Any = None, scale: Any = None) -> None:
        self.degree = degree
        self.bandwidth = bandwidth
        self.scale = scale

    def _learn(self, X: Array) -> None:
        d, degree = X.shape[1], whole(plain(self.degree), "degree")
        self.kernel_ = resolve(None, X) if self.bandwidth is None else Gaussian(self.bandwidth)
        self.centre_ = _mean(X)
        self.scale_ = _spread(X) if self.scale is None else per_column(positives(plain(self.scale), "scale"), d, "scale")
        q = (self.scale_ / per_column(self.kernel_.bandwidth, d)) ** 2
        self.rho_ = 2 * q / (2 * q + 1 + np.sqrt(4 * q + 1))
        self.exponents_ = exponents(plan(d, degree)).toarray()  # (D, d)
        self.n_features_out_ = len(self.exponents_)
        self.mean_tail_ = max(0.0, 1 - float(np.prod(1 - self.rho_) * np.prod(self.rho_**self.exponents_, axis=1).sum()))

    def _map(self, X: Array) -> Array:
        F = np.empty((len(X), self.n_features_out_), X.dtype)

        def fill(x: Array, rows: slice) -> None:
            F[rows] = reduce(mul, (T[:, a] for T, a in zip(self._tables(x), self.exponents_.T, strict=True)))

        by_rows(X, self.n_features_out_, fill)
        return F

    def _tables(self, X: Array) -> list[Array]:
        """psi_0, psi_1, ... of each column, (n, degree + 1)."""
        with np.errstate(over="ignore"):
            Y = (X - self.centre_) * np.sqrt((1 + self.rho_) / (1 - self.rho_)) / self.scale_
        Y = np.clip(Y, -FAR, FAR)
        return [eigenfunctions(y, rho, int(self.exponents_.max())) for y, rho in zip(Y.T, self.rho_, strict=True)]

    def _names(self, inputs: list[str]) -> list[str]:
        def name(a: Array) -> str:
            return "*".join(f"H{k}({column})" for k, column in zip(a, inputs, strict=True) if k) or "H0"

        return [name(a) for a in self.exponents_]

    def tail_bound(self, X: Any) -> float:
        """A bound of |phi(x)'phi(z) - k(x, z)| for all pairs of rows of X.

        It is the largest k(x, x) - |phi(x)|^2.
        """
        return max(0.0, 1 - float(square_norms(self.transform(X)).min()))


def eigenfunctions(y: Array, rho: float, degree: int) -> Array:
    """psi_0(y), ..., psi_degree(y), by the recurrence sqrt(k+1) h_{k+1} = y h_k - sqrt(k)
    h_{k-1}.
    """
    T = np.zeros((len(y), degree + 1))
    with np.errstate(over="ignore", under="ignore"):
        T[:, 0] = (1 - rho**2) ** 0.25 * np.exp(-rho / (2 * (1 + rho)) * y**2)
    for k in range(degree):
        before = math.sqrt(k * rho) * T[:, k - 1] if k else 0.0
        T[:, k + 1] = math.sqrt(rho / (k + 1)) * (y * T[:, k] - before)
    return T


def _mean(X: Array) -> Array:
    """The columns' means, 0 where the sum of a column overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = X.mean(0, dtype=np.float64)
    return np.where(np.isfinite(mean), mean, 0.0)


def _spread(X: Array) -> Array:
    """The columns' standard deviations, 1 where a column is constant."""
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = X.std(0, dtype=np.float64)
    return np.where((deviation > 0) & np.isfinite(deviation), deviation, 1.0)
