"""The kernel meant by None or a name, a Gaussian scaled to the data among them; and kernels with
all bandwidths changed by a factor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.inputs import Array, table
from mercer.kernels.base import Kernel
from mercer.kernels.dot import Linear, Polynomial
from mercer.kernels.params import substitute
from mercer.kernels.stationary import Gaussian, Laplace
from mercer.pairs.side import square_norms

NAMES = ("rbf", "linear", "poly", "laplacian")


def is_precomputed(kernel: object) -> bool:
    """Whether rows are those of a kernel matrix.

    >>> is_precomputed("precomputed"), is_precomputed("rbf"), is_precomputed(np.ones(2))
    (True, False, False)
    """
    return isinstance(kernel, str) and kernel == "precomputed"


def spread(X: Any, weight: Array | None = None) -> float:
    """Half the mean squared distance between rows: the sum of the columns' variances (1 where that
    is zero)."""
    rows = table(X)
    w = np.full(len(rows), 1 / len(rows)) if weight is None else weight / weight.sum()
    with np.errstate(over="ignore"):
        mean = w @ rows.data.astype(np.float64)
        squares = square_norms(rows.data if rows.sparse else rows.data - mean)
    total = float(w @ squares) - (float(mean @ mean) if rows.sparse else 0.0)
    return total if math.isfinite(total) and total > 1e-300 else 1.0


def _half_distance(X: Any, weight: Array | None) -> float:
    """The root of half the spread, in the unit of the rows: their squares may be no floating-point
    numbers."""
    rows = table(X)
    values = rows.data.data if rows.sparse else rows.data
    size = float(np.abs(values).max(initial=0))
    if 1e-100 < size < 1e100 or size == 0:
        return math.sqrt(spread(X, weight) / 2)
    return size * math.sqrt(spread(rows.data / size, weight) / 2)


def resolve(
    kernel: Kernel | str | None, X: Any, weight: Array | None = None, *, given: bool = False
) -> Kernel:
    """The kernel itself, or the one that None ("rbf") or a name stands for, scaled to the rows X
    and their weights.

    given : whether "precomputed" would do as well, for the sentence where it is none of them

    >>> resolve("rbf", np.eye(2) * 2)
    Gaussian()
    """
    if isinstance(kernel, Kernel):
        return kernel
    if kernel is None or kernel == "rbf":
        return Gaussian(bandwidth=_half_distance(X, weight))
    if kernel == "linear":
        return Linear()
    if kernel == "poly":
        return Polynomial(degree=3)
    if kernel == "laplacian":
        return Laplace(bandwidth=float(table(X).width), norm=1)
    names = ", ".join((*NAMES, "precomputed") if given else NAMES)
    raise ValueError(f"kernel must be a kernel, None or one of {names}, got {what_came(kernel)}.")


def what_came(kernel: object) -> str:
    """In a sentence, in place of a kernel.

    >>> what_came(Gaussian), what_came("gauss")
    ('the class Gaussian: write Gaussian()', "'gauss'")
    """
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        return f"the class {kernel.__name__}: write {kernel.__name__}()"
    return repr(kernel)


def bandwidths(kernel: Any) -> list[str]:
    """The paths of the bandwidths in an expression.

    >>> from mercer.kernels import Gaussian, Linear
    >>> bandwidths(2 * Gaussian((1.0, 2.0)) + Linear())
    ['terms__0__kernel__bandwidth__0', 'terms__0__kernel__bandwidth__1']
    """
    return (
        [p for p in kernel.parameters() if "bandwidth" in p.split("__")[-2:]]
        if isinstance(kernel, Kernel)
        else []
    )


def scaled(kernel: Kernel, factor: float) -> Any:
    """The expression with every bandwidth multiplied.

    >>> from mercer.kernels import Gaussian, Linear
    >>> scaled(2 * Gaussian(3.0) + Linear(), 2.0)
    2.0 * Gaussian(bandwidth=6.0) + Linear()
    """
    paths = set(bandwidths(kernel))
    return substitute(kernel, lambda path, v: v * factor if path in paths else v)
