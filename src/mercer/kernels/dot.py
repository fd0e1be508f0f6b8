"""Kernels of inner products: constant, linear, cosine, polynomial, all subsets, ANOVA, arc-cosine, and a
user's own function."""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from typing import Any, ClassVar

import numpy as np

from mercer.invariants import Said
from mercer.kernels.base import Kernel, positive, whole
from mercer.kernels.params import FrozenArray
from mercer.store import register


@register("kernels.Constant")
class Constant(Kernel):
    """1

    Examples
    --------
    >>> Constant()([[0.0], [1.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    items: ClassVar[bool] = True

    def on(self, p: Any) -> Any:
        return p.one


@register("kernels.Linear")
class Linear(Kernel):
    """x'z, or x'Az for a symmetric positive semidefinite metric A

    Parameters
    ----------
    metric : array of shape (d, d), default=None
        A; None is the identity.

    Examples
    --------
    >>> Linear(metric=[[2.0, 0.0], [0.0, 1.0]])([[1.0, 1.0]], [[3.0, 5.0]])
    array([[11.]])
    """

    metric: FrozenArray | None = None
    static: ClassVar[tuple[str, ...]] = ("metric",)

    def check(self) -> None:
        if self.metric is None:
            return
        A = _matrix(self.metric)
        if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.isfinite(A).all():
            raise ValueError(
                f"metric must be a square matrix of finite numbers, got shape {A.shape}."
            )
        self.metric = FrozenArray.of(self.metric)
        if not np.allclose(A, A.T, rtol=1e-10, atol=1e-12 * np.abs(A).max()):
            raise ValueError("metric must be symmetric; use (A + A.T) / 2.")
        low = float(np.linalg.eigvalsh(A)[0])
        if low < -1e-10 * np.abs(A).max():
            raise ValueError(
                f"metric must be positive semidefinite, its smallest eigenvalue is {low:.3g}; use A @ A.T of some A."
            )

    def on(self, p: Any) -> Any:
        return p.dot if self.metric is None else p.bilinear(self.metric.values)


def _matrix(metric: Any) -> Any:
    try:
        return np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError) as e:
        raise ValueError(f"metric must be a square matrix of numbers, got {metric!r}.") from e


@register("kernels.Cosine")
class Cosine(Kernel):
    """x'z / (|x| |z|), and 0 where a row is zero: that of Linear().normalized()

    Examples
    --------
    >>> Cosine()([[3.0, 4.0], [0.0, 0.0]], [[8.0, 6.0]])
    array([[0.96],
           [0.  ]])
    """

    def on(self, p: Any) -> Any:
        return p.xp.ratio(p.dot, p.xp.sqrt(p.rows.dot) * p.xp.sqrt(p.cols.dot))


@register("kernels.Polynomial")
class Polynomial(Kernel):
    """(bias + x'z)^degree

    Parameters
    ----------
    degree : int, default=3
        The power, >= 0.
    bias : float, default=1.0
        What is added to x'z, >= 0.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 3
    bias: float = 1.0

    def check(self) -> None:
        self.degree, self.bias = (
            whole(self.degree, "degree"),
            positive(self.bias, "bias", zero=True),
        )

    def on(self, p: Any) -> Any:
        return (self.bias + p.dot) ** self.degree


@register("kernels.AllSubsets")
class AllSubsets(Kernel):
    """prod_j (1 + x_j z_j): all 2^d products of columns, in O(d)


    Examples
    --------
    >>> AllSubsets()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[36.]])
    """

    def on(self, p: Any) -> Any:
        return p.prod1p


@register("kernels.Anova")
class Anova(Kernel):
    """sum over j1 < ... < j_order of prod x_j z_j: all interactions of an order, in O(d order)

    Parameters
    ----------
    order : int, default=2
        How many different columns are in every product, >= 1.

    Examples
    --------
    >>> Anova(order=2)([[1.0, 1.0, 1.0]])
    array([[3.]])
    """

    order: int = 2

    def check(self) -> None:
        self.order = whole(self.order, "order", least=1)

    def on(self, p: Any) -> Any:
        return p.elementary(self.order)


@register("kernels.ArcCosine")
class ArcCosine(Kernel):
    """|x|^n |z|^n J_n(angle) / pi for n = 0, 1, 2

    It is an infinitely wide layer of step, ramp or squared-ramp units.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        The n.

    References
    ----------
    Cho and Saul, Kernel methods for deep learning (2009).

    Examples
    --------
    >>> ArcCosine(order=1)([[3.0, 4.0]])
    array([[25.]])
    """

    order: int = 1

    def check(self) -> None:
        if self.order not in (0, 1, 2):
            raise ValueError(f"order must be 0, 1 or 2, got {self.order!r}.")
        self.order = int(self.order)

    def on(self, p: Any) -> Any:
        if hasattr(p, "arc"):  # a reading that keeps digits which the formula would lose
            return p.arc(self.order)
        t = p.angle
        if self.order == 0:
            return 1 - t / math.pi
        sin, cos, size = p.xp.sin(t), p.xp.cos(t), p.xp.sqrt(p.rows.dot) * p.xp.sqrt(p.cols.dot)
        if self.order == 1:
            return size * (sin + (math.pi - t) * cos) / math.pi
        return size * size * (3 * sin * cos + (math.pi - t) * (1 + 2 * cos * cos)) / math.pi


@register("kernels.Callable")
class Callable(Kernel):
    """f(X, Z) -> (n, m): a symmetric function of your own; rows may be numbers or any list

    f sees a few rows at a time, from several threads: what it returns for a pair may depend on
    that pair only.

    Parameters
    ----------
    f : callable
        f(X, Z) of rows (n, d) and (m, d) gives values (n, m).

    Examples
    --------
    >>> Callable(lambda X, Z: X @ Z.T + 1)([[1.0]], [[2.0]])
    array([[3.]])
    """

    f: Function[[Any, Any], Any]
    items: ClassVar[bool] = True

    must = dict(f=Said())

    def check(self) -> None:
        if not callable(self.f):
            raise ValueError(f"Callable takes a function f(X, Z), got {self.f!r}.")

    def on(self, p: Any) -> Any:
        return p.call(self.f)

    def __repr__(self) -> str:
        return f"Callable({getattr(self.f, '__name__', None) or self.f!r})"
