"""Functions of a kernel's own space: f = sum_i a_i k(x_i, .), with their norms and inner
products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array, Table, table
from mercer.invariants import Floats, Is
from mercer.kernels.base import Kernel
from mercer.store import register


@register("kernels.RKHSFunction")
@dataclass(frozen=True, eq=False)
class RKHSFunction:
    """f(x) = sum_i weights_i k(points_i, x)

    Parameters
    ----------
    kernel : Kernel
        The k of its space.
    points : array-like of shape (n, d), or list of items
        The points.
    weights : array-like of shape (n,)
        One weight a point.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> f = RKHSFunction(Linear(), [[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0])
    >>> f([[1.0, 1.0]]), f.norm(), (2 * f + f).norm()
    (array([7.]), 5.0, 15.0)
    """

    kernel: Kernel
    points: Any
    weights: Any

    must = dict(points=Is("Table"), weights=Floats("n"))

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"kernel must be a kernel, got {self.kernel!r}.")
        object.__setattr__(
            self, "points", table(self.points, "points", items=self.kernel.takes_items)
        )
        object.__setattr__(self, "kernel", self.kernel.settled(self.points))
        object.__setattr__(self, "weights", np.asarray(self.weights, dtype=np.float64).ravel())
        if len(self.weights) != len(self.points):
            raise ValueError(
                f"weights has {len(self.weights)} numbers for {len(self.points)} points; give one a point."
            )

    def __call__(self, X: Any) -> Array:
        """f(x_i), shape (n,)."""
        return np.asarray(self.kernel(X, self.points) @ self.weights)

    def gradient(self, X: Any) -> Array:
        """The gradient of f at every row, shape (n, d).

        0 is what a point adds where the kernel has a kink, as central differences give it.

        >>> from mercer.kernels import Polynomial
        >>> RKHSFunction(Polynomial(degree=2), [[1.0, 2.0]], [0.5]).gradient([[1.0, 0.0]])
        array([[2., 4.]])
        """
        K = self.kernel.operator(X, self.points)
        return np.asarray(K.input_gradients(self.weights)[:, 0])

    def __add__(self, other: RKHSFunction) -> RKHSFunction:
        self._check_same(other)
        return RKHSFunction(
            self.kernel,
            _stack(self.points, other.points),
            np.concatenate([self.weights, other.weights]),
        )

    def __mul__(self, by: float) -> RKHSFunction:
        return RKHSFunction(self.kernel, self.points, float(by) * self.weights)

    __rmul__ = __mul__

    def __radd__(self, other: Any) -> RKHSFunction:
        return self if other == 0 else NotImplemented  # as sum([f, g]) begins with 0

    def __neg__(self) -> RKHSFunction:
        return -1.0 * self

    def __sub__(self, other: RKHSFunction) -> RKHSFunction:
        return self + -other

    def inner(self, other: RKHSFunction) -> float:
        """<f, g> = sum_ij a_i b_j k(x_i, z_j)."""
        self._check_same(other)
        return float(self.weights @ self.kernel(self.points, other.points) @ other.weights)

    def norm(self) -> float:
        """sqrt(<f, f>)."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def _check_same(self, other: RKHSFunction) -> None:
        if not isinstance(other, RKHSFunction) or other.kernel != self.kernel:
            theirs = getattr(other, "kernel", other)
            raise ValueError(
                f"the functions live in the spaces of different kernels: {self.kernel!r} and {theirs!r}."
            )

    @classmethod
    def approximate(
        cls, kernel: Kernel, f: Callable[[Array], Array], X: Any, tol: float = 1e-2
    ) -> RKHSFunction:
        """A function of the space within `tol` of f on the points X.

        It has as few of them as a greedy choice finds. For a universal kernel (Gaussian,
        Matern, Laplace, ...) and f continuous on a compact set this succeeds for any tol, given
        X dense enough. Each step adds the points of the largest error and fits all of X by
        least squares.

        Parameters
        ----------
        kernel : Kernel
            Of the space.
        f : callable
            A function of rows (n, d) that gives (n,).
        X : array-like of shape (n, d)
            The points.
        tol : float, default=0.01
            The largest error.

        Examples
        --------
        >>> from mercer.kernels import Gaussian
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> def f(X): return np.abs(X[:, 0] - 0.5)
        >>> g = RKHSFunction.approximate(Gaussian(0.2), f, X, tol=0.02)
        >>> bool(np.abs(g(X) - f(X)).max() <= 0.02)
        True
        """
        rows = table(X, "X").astype(np.float64)
        target = np.asarray(f(rows.data), dtype=np.float64).ravel()
        if len(target) != len(rows):
            raise ValueError(
                f"f must return one number for each of {len(rows)} rows; it returned {len(target)}."
            )
        chosen: list[int] = []
        error = np.abs(target)
        while len(chosen) < len(rows):
            error[chosen] = -1
            chosen += np.argsort(-error, kind="stable")[: 1 + len(chosen) // 8].tolist()
            K = kernel(rows, rows[chosen])
            weights = np.linalg.lstsq(K, target, rcond=1e-15)[0]
            error = np.abs(target - K @ weights)
            if error.max() <= tol:
                return cls(kernel, rows[chosen], weights)
        raise ValueError(
            f"no function of {kernel!r} within tol={tol} was found on X (reached {error.max():.3g}); "
            "use a smaller bandwidth, a universal kernel, or a larger tol."
        )


def _stack(a: Table, b: Table) -> Table:
    if a.items:
        return Table(a.data + b.data)
    if a.width != b.width:
        raise ValueError(
            f"the functions are of {a.width} and of {b.width} columns; give points of the same width."
        )
    from scipy.sparse import vstack

    joined = (
        vstack([a.data, b.data]).tocsr()
        if a.sparse or b.sparse
        else np.concatenate([a.data, b.data])
    )
    return Table(joined, a.columns)
