"""Deterministic features of the Gaussian kernel: Taylor and Hermite polynomials, cut at a
degree."""

from __future__ import annotations

import math
from functools import reduce
from itertools import pairwise
from operator import mul
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import gammainc, xlogy
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix
from mercer.invariants import Floats, Ints
from mercer.kernels import Exp, Gaussian, Kernel, Linear, Scale
from mercer.kernels.base import positives, whole
from mercer.kernels.defaults import kernel_of, resolve
from mercer.kernels.named import Gamma
from mercer.kernels.params import plain
from mercer.lifts.base import Lift, by_rows
from mercer.lifts.polynomial import Products
from mercer.ops.monomials import ends, exponents, inverse_factorials, plan
from mercer.pairs.side import per_column, square, square_norms
from mercer.store import register

MAX_RADIUS = 1e100  # the features are zero long before, and the square is still finite


@register("lifts.Taylor")
class Taylor(Products):
    """phi_a(x) = exp(-|y|^2 / 2) prod_j y_j^a_j / sqrt(a_j!), y = (x - centre) / bandwidth.

    For all a with sum_j a_j <= degree. The limit of high degrees is the Gaussian kernel, as
    exp(y'u) = sum_k (y'u)^k / k!, about any centre: dense rows have their mean there, CSR rows
    zero, to stay sparse. Without the factor exp(-|y|^2 / 2), and about zero, it is
    exp(Linear()). The cut at degree p is never above the kernel on the diagonal, and off it by
    at most `tail_bound`.

    Parameters
    ----------
    kernel : Kernel or "rbf", default=None
        A `Gaussian` (one bandwidth, or one a column), `exp(Linear())`, `exp(c * Linear())`, or
        None and "rbf": a Gaussian scaled to the data.
    degree : int, default=4
        The highest degree p.
    gamma : float or {"scale", "auto"}, default=None
        Of "rbf", exp(-gamma |x - z|^2).

    Attributes
    ----------
    centre_ : ndarray of shape (d,), or None
        The centre; None is zero.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> phi, x, z = Taylor(Gaussian(), degree=6).fit([[0.0]]), [[0.5]], [[1.0]]
    >>> float((phi.transform(x) @ phi.transform(z).T)[0, 0]), float(phi.kernel_(x, z)[0, 0])
    (0.882496..., 0.882496...)
    """

    centre_: Array | None = None  # as in files of before there was one
    gamma: Gamma = None  # likewise

    must = dict(
        centre_=Floats("n_features_in_") | None,
        scale_=Floats("n_features_in_") | Floats("n_features_in_", "n_features_in_"),
    )

    def __init__(
        self, kernel: Kernel | str | None = None, degree: int = 4, gamma: Gamma = None
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma

    def _learn(self, X: Matrix) -> None:
        named = SimpleNamespace(kernel=self.kernel, gamma=self.gamma)  # the degree is of the map
        self.kernel_ = resolve(kernel_of(named), X)
        self._scale(X.shape[1])
        self.centre_ = _mean(X) if self.damped_ and not sp.issparse(X) else None
        program = plan(X.shape[1], whole(plain(self.degree), "degree"))
        self._take(program, weights=np.sqrt(inverse_factorials(program)))

    def _scale(self, d: int) -> None:
        """A matrix, or one number a column, that takes x to y; and whether the features fall
        off with |y|.
        """
        k = self.kernel_
        self.damped_, linear = isinstance(k, Gaussian), k.kernel if isinstance(k, Exp) else None
        factor, linear = (
            (linear.factor, linear.kernel) if isinstance(linear, Scale) else (1.0, linear)
        )
        if isinstance(k, Gaussian):
            self.scale_ = 1 / per_column(k.bandwidth, d)
        elif isinstance(linear, Linear):
            self.scale_ = np.sqrt(factor) * (
                np.ones(d) if linear.metric is None else _root(linear.metric, d)
            )
        else:
            raise ValueError(
                f"kernel must be a Gaussian or exp(Linear()), got {k!r}; use k.lift() for others."
            )

    def _scaled(self, X: Matrix) -> Matrix:
        scale = self.scale_.astype(X.dtype)
        if scale.ndim == 2:
            return X @ scale
        with np.errstate(over="ignore"):
            if self.centre_ is not None:
                return (
                    ((X.toarray() if sp.issparse(X) else X) - self.centre_) * self.scale_
                ).astype(X.dtype)
            return X.multiply(scale).tocsr() if sp.issparse(X) else X * scale

    def _map(self, X: Matrix) -> Matrix:
        Y = self._scaled(X)
        if not self.damped_:
            return super()._map(Y)
        r = np.minimum(np.sqrt(square_norms(Y)), MAX_RADIUS)
        return self._times(super()._map(_directions(Y, r)), self._sizes(r))

    def _sizes(self, r: Array) -> Array:
        """(n, degree + 1): r^k exp(-r^2 / 2), by logarithms, as the first factor may overflow
        where the product is small.
        """
        with np.errstate(divide="ignore", under="ignore"):
            return np.exp(
                xlogy(np.arange(self.program_.degree + 1), r[:, None]) - (r**2 / 2)[:, None]
            )

    def _times(self, F: Matrix, sizes: Array) -> Matrix:
        """The monomials of each degree times the size of that degree."""
        sizes, bounds = sizes.astype(F.dtype), ends(self.program_)
        if sp.issparse(F):
            row, k = (
                np.repeat(np.arange(F.shape[0]), np.diff(F.indptr)),
                np.searchsorted(bounds, F.indices, side="right") - 1,
            )
            F.data *= sizes[row, k]
        else:
            for k, (start, stop) in enumerate(pairwise(bounds)):
                F[:, start:stop] *= sizes[:, [k]]
        return F

    def _names(self, inputs: list[str]) -> list[str]:
        names = super()._names(inputs)
        return ["gauss", *(f"gauss*{name}" for name in names[1:])] if self.damped_ else names

    def tail_bound(self, X: Any) -> float:
        """The largest |phi(x)'phi(z) - k(x, z)| of points no farther from the centre than X.

        It is attained at x = z.

        With t the largest |y|^2 it is sum_{k > p} t^k / k!, times exp(-t) for the Gaussian: at
        most t^(p+1) / (p+1)!.

        >>> from mercer.kernels import Gaussian
        >>> Taylor(Gaussian(), degree=3).fit([[0.0]]).tail_bound([[1.0]])
        0.0189...
        """
        check_is_fitted(self)
        t = float(square_norms(self._scaled(self._check(X, reset=False))).max())
        with np.errstate(over="ignore"):
            return float(
                gammainc(self.program_.degree + 1, min(t, MAX_RADIUS))
                * (1 if self.damped_ else np.exp(t))
            )


def _directions(Y: Matrix, r: Array) -> Matrix:
    """u = y / r, whose monomials never overflow; 0 where y is 0 or too far away to matter."""
    inverse = np.divide(1, r, out=np.zeros_like(r), where=(r > 0) & (r < MAX_RADIUS)).astype(
        Y.dtype
    )[:, None]
    with np.errstate(invalid="ignore"):
        U = Y.multiply(inverse).tocsr() if sp.issparse(Y) else Y * inverse
    values = U.data if sp.issparse(U) else U
    values[~np.isfinite(values)] = 0
    return U


def _root(metric: ArrayLike, d: int) -> Array:
    """R with R R' = A."""
    values, vectors = np.linalg.eigh(square(np.asarray(metric), d, np.float64))
    return vectors * np.sqrt(np.maximum(values, 0))


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
        centre_=Floats("n_features_in_"),
        scale_=Floats("n_features_in_"),
        rho_=Floats("n_features_in_", low=0),
        exponents_=Ints("n_features_out_", "n_features_in_", below=1 << 16),
    )

    def __init__(self, degree: int = 4, bandwidth: Any = None, scale: Any = None) -> None:
        self.degree = degree
        self.bandwidth = bandwidth
        self.scale = scale

    def _learn(self, X: Array) -> None:
        d, degree = X.shape[1], whole(plain(self.degree), "degree")
        self.kernel_ = resolve(None, X) if self.bandwidth is None else Gaussian(self.bandwidth)
        self.centre_ = _mean(X)
        self.scale_ = (
            _spread(X)
            if self.scale is None
            else per_column(positives(plain(self.scale), "scale"), d, "scale")
        )
        q = (self.scale_ / per_column(self.kernel_.bandwidth, d)) ** 2
        self.rho_ = 2 * q / (2 * q + 1 + np.sqrt(4 * q + 1))
        self.exponents_ = exponents(plan(d, degree)).toarray()  # (D, d)
        self.n_features_out_ = len(self.exponents_)
        self.mean_tail_ = max(
            0.0,
            1 - float(np.prod(1 - self.rho_) * np.prod(self.rho_**self.exponents_, axis=1).sum()),
        )

    def _map(self, X: Array) -> Array:
        F = np.empty((len(X), self.n_features_out_), X.dtype)

        def fill(x: Array, rows: slice) -> None:
            F[rows] = reduce(
                mul, (T[:, a] for T, a in zip(self._tables(x), self.exponents_.T, strict=True))
            )

        by_rows(X, self.n_features_out_, fill)
        return F

    def _tables(self, X: Array) -> list[Array]:
        """psi_0, psi_1, ... of each column, (n, degree + 1)."""
        with np.errstate(over="ignore"):
            Y = (X - self.centre_) * np.sqrt((1 + self.rho_) / (1 - self.rho_)) / self.scale_
        Y = np.clip(Y, -MAX_RADIUS, MAX_RADIUS)
        return [
            eigenfunctions(y, rho, int(self.exponents_.max()))
            for y, rho in zip(Y.T, self.rho_, strict=True)
        ]

    def _names(self, inputs: list[str]) -> list[str]:
        def name(a: Array) -> str:
            return (
                "*".join(f"H{k}({column})" for k, column in zip(a, inputs, strict=True) if k)
                or "H0"
            )

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
