"""Taylor features: the Gaussian as infinitely many polynomials, cut at a degree, with the error of the cut."""
from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammainc, xlogy
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix
from mercer.invariants import Floats
from mercer.kernels import Exp, Gaussian, Kernel, Linear, Scale
from mercer.kernels.base import whole
from mercer.kernels.defaults import resolve
from mercer.kernels.params import plain
from mercer.lifts.hermite import _mean
from mercer.lifts.products import Products, ends, inverse_factorials
from mercer.ops.monomials import plan
from mercer.pairs.side import per_column, square, square_norms
from mercer.store import register

FAR = 1e100  # radii: the Gaussian is zero long before, and the square is still finite


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
    kernel : Kernel, default=None
        A `Gaussian` (one bandwidth, or one a column), `exp(Linear())`, `exp(c * Linear())`, or
        None: a Gaussian scaled to the data.
    degree : int, default=4
        The highest degree p.

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

    must = dict(centre_=Floats("n_features_in_") | None, scale_=Floats("n_features_in_") | Floats("n_features_in_", "n_features_in_"))

    def __init__(self, kernel: Kernel | None = None, degree: int = 4) -> None:
        self.kernel = kernel
        self.degree = degree

    def _learn(self, X: Matrix) -> None:
        self.kernel_ = resolve(self.kernel, X)
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
        by, linear = (linear.by, linear.kernel) if isinstance(linear, Scale) else (1.0, linear)
        if isinstance(k, Gaussian):
            self.scale_ = 1 / per_column(k.bandwidth, d)
        elif isinstance(linear, Linear):
            self.scale_ = np.sqrt(by) * (np.ones(d) if linear.metric is None else _root(linear.metric, d))
        else:
            raise ValueError(f"kernel must be a Gaussian or exp(Linear()), got {k!r}; use k.lift() for others.")

    def _scaled(self, X: Matrix) -> Matrix:
        scale = self.scale_.astype(X.dtype)
        if scale.ndim == 2:
            return X @ scale
        with np.errstate(over="ignore"):
            if self.centre_ is not None:
                return (((X.toarray() if sp.issparse(X) else X) - self.centre_) * self.scale_).astype(X.dtype)
            return X.multiply(scale).tocsr() if sp.issparse(X) else X * scale

    def _map(self, X: Matrix) -> Matrix:
        Y = self._scaled(X)
        if not self.damped_:
            return super()._map(Y)
        r = np.minimum(np.sqrt(square_norms(Y)), FAR)
        return self._times(super()._map(_directions(Y, r)), self._sizes(r))

    def _sizes(self, r: Array) -> Array:
        """(n, degree + 1): r^k exp(-r^2 / 2), by logarithms, as the first factor may overflow
        where the product is small.
        """
        with np.errstate(divide="ignore", under="ignore"):
            return np.exp(xlogy(np.arange(self.program_.degree + 1), r[:, None]) - (r**2 / 2)[:, None])

    def _times(self, F: Matrix, sizes: Array) -> Matrix:
        """The monomials of each degree times the size of that degree."""
        sizes, bounds = sizes.astype(F.dtype), ends(self.program_)
        if sp.issparse(F):
            row, k = np.repeat(np.arange(F.shape[0]), np.diff(F.indptr)), np.searchsorted(bounds, F.indices, side="right") - 1
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
            return float(gammainc(self.program_.degree + 1, min(t, FAR)) * (1 if self.damped_ else np.exp(t)))


def _directions(Y: Matrix, r: Array) -> Matrix:
    """u = y / r, whose monomials never overflow; 0 where y is 0 or too far away to matter."""
    inverse = np.divide(1, r, out=np.zeros_like(r), where=(r > 0) & (r < FAR)).astype(Y.dtype)[:, None]
    with np.errstate(invalid="ignore"):
        U = Y.multiply(inverse).tocsr() if sp.issparse(Y) else Y * inverse
    values = U.data if sp.issparse(U) else U
    values[~np.isfinite(values)] = 0
    return U


def _root(metric: Any, d: int) -> Array:
    """R with R R' = A."""
    values, vectors = np.linalg.eigh(square(np.asarray(metric), d, np.float64))
    return vectors * np.sqrt(np.maximum(values, 0))
