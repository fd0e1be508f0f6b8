"""Kernels by their names in scikit-learn, with its parameters, scaled to rows where they say so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mercer.inputs import Array, Table, table
from mercer.kernels.base import Kernel
from mercer.kernels.checks import positive, whole
from mercer.kernels.dot import Cosine, Linear, Polynomial
from mercer.kernels.histograms import AdditiveChi2, Chi2
from mercer.kernels.stationary import Gaussian, Laplace
from mercer.pairs.side import square_norms

Gamma: TypeAlias = float | str | None  # a number, "scale", "auto", or the default of a name
GAUSSIAN, POLYNOMIAL = ("rbf", "gaussian"), ("poly", "polynomial")
NAMES = (*GAUSSIAN, "linear", *POLYNOMIAL, "cosine", "chi2", "additive_chi2", "laplacian")
PARAMETERS = ("gamma", "degree", "coef0")
EPS = float(np.finfo(np.float64).eps)


def spread(X: Any, weight: Array | None = None) -> float:
    """Half the mean squared distance between rows: the sum of the columns' variances (1 where that
    is zero)."""
    rows = table(X)
    w = np.full(len(rows), 1 / len(rows)) if weight is None else weight / weight.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sparse_spread(rows, w) if rows.sparse else _dense_spread(rows.data, w)
    return total if math.isfinite(total) and total > 1e-300 else 1.0


def _dense_spread(X: Array, w: Array) -> float:
    """About a row, which equal rows leave nothing of, then about the mean."""
    A = X.astype(np.float64) - X[int(w.argmax())]
    return float(w @ square_norms(A - w @ A))


def _sparse_spread(rows: Table, w: Array) -> float:
    """Of the entries of every column about their mean, and of that about the zeros: no large numbers
    are subtracted from each other."""
    A = rows.data.astype(np.float64)
    heavy, one = np.repeat(w, np.diff(A.indptr)), np.zeros(rows.width)
    counts = heavy > 0
    one[A.indices[counts]] = A.data[counts]  # an entry a column, of which equal ones leave nothing
    left = A.data - one[A.indices]
    share = np.bincount(A.indices, heavy, minlength=rows.width)
    total = np.bincount(A.indices, heavy * left, minlength=rows.width)
    mean = total / np.where(share > 0, share, 1.0)
    gaps = np.where(1 - share > EPS * len(rows), 1 - share, 0.0)  # the share of zeros
    inside = heavy @ np.square(left - mean[A.indices])
    return float(inside + (share * gaps) @ np.square(one + mean))


def _half_distance(X: Any, weight: Array | None) -> float:
    """The root of half the spread, in the unit of the rows: their squares may be no floating-point
    numbers."""
    rows = table(X)
    values = rows.data.data if rows.sparse else rows.data
    size = float(np.abs(values).max(initial=0))
    if 1e-100 < size < 1e100 or size == 0:
        return math.sqrt(spread(X, weight) / 2)
    return size * math.sqrt(spread(rows.data / size, weight) / 2)


@dataclass(frozen=True)
class NamedKernel:
    """A kernel by its name in scikit-learn, with its parameters there; None are our defaults.

    "rbf" is exp(-gamma |x - z|^2), "laplacian" exp(-gamma |x - z|_1), "poly" (gamma x'z +
    coef0)^degree, "chi2" exp(-gamma sum (x - z)^2 / (x + z)). gamma may be "scale", 1 / (d Var X),
    or "auto", 1 / d. Others have no parameters, and look at none, as in scikit-learn.

    >>> NamedKernel("rbf", gamma=0.5).at(np.eye(2)), NamedKernel("poly", gamma="auto").at(np.eye(2))
    (Gaussian(), 0.125 * Polynomial(bias=2.0))
    """

    name: str
    gamma: Gamma = None
    degree: int | None = None
    coef0: float | None = None

    def __post_init__(self) -> None:
        if self.name == "sigmoid":
            raise ValueError(
                "kernel='sigmoid', tanh(gamma x'z + coef0), is not positive semidefinite, so it is no kernel; "
                "use 'rbf', or ArcCosine(), the kernel of a wide layer of units."
            )

    def at(self, X: Any, weight: Array | None = None) -> Kernel:
        """For these rows and their weights."""
        gamma = None if self.gamma is None else self._rate(table(X))
        match self.name:
            case "rbf" | "gaussian":
                open_ = gamma is None
                return Gaussian(_half_distance(X, weight)) if open_ else Gaussian.of(gamma=gamma)
            case "laplacian":
                return Laplace(float(table(X).width) if gamma is None else 1 / gamma, norm=1)
            case "poly" | "polynomial":
                return self._polynomial(1.0 if gamma is None else gamma)
            case "chi2":
                return Chi2(1.0 if gamma is None else gamma)
        return {"linear": Linear(), "cosine": Cosine(), "additive_chi2": AdditiveChi2()}[self.name]

    def _rate(self, rows: Table) -> float:
        """gamma as a number."""
        if isinstance(self.gamma, str):
            if self.gamma not in ("scale", "auto"):
                raise ValueError(
                    f"gamma must be a number > 0, 'scale', 'auto' or None, got {self.gamma!r}."
                )
            return 1 / rows.width if self.gamma == "auto" else _by_variance(rows)
        return positive(self.gamma, "gamma, where it is not 'scale', 'auto' or None,")

    def _polynomial(self, gamma: float) -> Kernel:
        degree = whole(3 if self.degree is None else self.degree, "degree")
        bias = positive(1.0 if self.coef0 is None else self.coef0, "coef0", zero=True)
        k = Polynomial(degree, bias / gamma)
        return k if gamma == 1 else gamma**degree * k


def _by_variance(rows: Table) -> float:
    """1 / (d Var X) over all numbers of X, and 1 where they are all equal."""
    with np.errstate(over="ignore", invalid="ignore"):
        if rows.sparse:
            values, share = (
                rows.data.data.astype(np.float64),
                rows.data.nnz / math.prod(rows.data.shape),
            )
            inside = values.mean() if len(values) else 0.0  # of the entries that are there
            apart = float(np.square(values - inside).mean()) if len(values) else 0.0
            variance = share * apart + share * (1 - share) * inside**2
        else:
            variance = float(rows.data.var(dtype=np.float64))
    if not math.isfinite(variance):
        raise ValueError("X is too large to square, so there is no gamma='scale'; scale X first.")
    return 1 / (rows.width * variance) if variance > 0 else 1.0


def beside(kernel: Any, given: dict[str, Any]) -> str:
    """Why parameters of names are refused beside a kernel that is an object, and what to write.

    >>> beside(Gaussian(), {"gamma": 2.0})
    'gamma is of kernels given by name; beside kernel=Gaussian() write Gaussian(bandwidth=0.5), as bandwidth is 1/sqrt(2*gamma).'
    >>> beside(Gaussian(), {"degree": 2})
    'degree is of kernels given by name; beside kernel=Gaussian() leave it out.'
    """
    told = f"{', '.join(given)} is of kernels given by name; beside kernel={kernel!r:.80}"
    if "gamma" not in given and not isinstance(kernel, Polynomial):
        return f"{told} leave {'them' if len(given) > 1 else 'it'} out."
    gamma = given.get("gamma")
    width, length, rate = "1/sqrt(2*gamma)", "1/gamma", "gamma"
    if isinstance(gamma, int | float) and gamma > 0:
        width, length = f"{1 / math.sqrt(2 * gamma):.6g}", f"{1 / gamma:.6g}"
        rate = f"{gamma:.6g}"
    remedy = {
        Gaussian: f"write Gaussian(bandwidth={width}), as bandwidth is 1/sqrt(2*gamma)",
        Laplace: f"write Laplace(bandwidth={length}, norm=1), as bandwidth is 1/gamma",
        Polynomial: "write gamma**degree * Polynomial(degree, coef0/gamma)",
        Chi2: f"write Chi2(gamma={rate})",
    }.get(type(kernel), "set the parameters of that kernel, or give the name of one")
    return f"{told} {remedy}."
