"""Newton rounds for losses that are not quadratic: value, gradient and Hessian at a fixed point
merge within a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mercer.inputs import Array


@dataclass(eq=False)
class Newton:
    """A sum of losses at a fixed point: its value, gradient (D,) and Hessian (D, D). Models do not
    add; these do.

    >>> at = np.zeros(2)
    >>> F, y = np.eye(2), np.array([1.0, -1.0])
    >>> (logistic(at, F[:1], y[:1]) + logistic(at, F[1:], y[1:])).gradient
    array([-0.5,  0.5])
    """

    value: float
    gradient: Array
    hessian: Array

    @classmethod
    def zero(cls, D: int) -> Newton:
        return cls(0.0, np.zeros(D), np.zeros((D, D)))

    def __add__(self, o: Newton) -> Newton:
        return Newton(self.value + o.value, self.gradient + o.gradient, self.hessian + o.hessian)


def logistic(at: Array, F: Array, y: Array, weight: Array | None = None) -> Newton:
    """sum w log(1 + exp(-y f)), y in {-1, 1}, f = F at.

    >>> found = logistic(np.zeros(1), np.array([[1.0], [2.0]]), np.array([1.0, -1.0]))
    >>> round(found.value, 4), found.gradient, found.hessian
    (1.3863, array([0.5]), array([[1.25]]))
    """
    w = np.ones(len(y)) if weight is None else weight
    f = y * (F @ at)
    p = expit(-f)
    return Newton(float(w @ np.logaddexp(0, -f)), -F.T @ (w * y * p), _gram(F, w * p * (1 - p)))


def squared_hinge(at: Array, F: Array, y: Array, weight: Array | None = None) -> Newton:
    """sum w max(0, 1 - y f)^2, y in {-1, 1}, f = F at; the Hessian is that of the rows inside the
    margin.

    >>> found = squared_hinge(np.zeros(1), np.array([[1.0], [2.0]]), np.array([1.0, -1.0]))
    >>> found.value, found.gradient, found.hessian
    (2.0, array([2.]), array([[10.]]))
    """
    w = np.ones(len(y)) if weight is None else weight
    gap = 1 - y * (F @ at)
    inside = gap > 0
    A, v = F[inside], (w * gap)[inside]
    return Newton(float(v @ gap[inside]), -2 * A.T @ (v * y[inside]), 2 * _gram(A, w[inside]))


def _gram(F: Array, w: Array) -> Array:
    """F' diag(w) F in float64, from products in F's own precision."""
    Z = F * np.sqrt(w, dtype=F.dtype)[:, None]
    return (Z.T @ Z).astype(np.float64)
