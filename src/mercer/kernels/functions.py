"""Plain functions as kernels: of two matrices, as scikit-learn's support vector machines call them,
or of two rows, as its kernel ridge does."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Said
from mercer.kernels.dot import Callable
from mercer.store import register


@register("kernels.OfRows")
@dataclass(frozen=True)
class OfRows:
    """A function of two rows (d,) as one of two matrices: f(x, z) of every pair.

    >>> OfRows(np.dot)(np.eye(2), np.ones((1, 2)))
    array([[1.],
           [1.]])
    """

    f: Function[[Any, Any], Any]

    must = dict(f=Said())

    def __call__(self, X: Matrix, Z: Matrix) -> Array:
        left, right = (np.asarray(R.toarray() if hasattr(R, "toarray") else R) for R in (X, Z))
        return np.array([[self.f(x, z) for z in right] for x in left], np.float64).reshape(
            len(left), len(right)
        )

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", repr(self.f))


def function_kernel(f: Function[[Any, Any], Any], rows: Table) -> Callable:
    """A kernel of a function of matrices (n, d) and (m, d) that gives (n, m), or of rows (d,) that
    gives a number: what it is is tried on a few rows, as matrices first.

    >>> X = Table(np.eye(3))
    >>> function_kernel(np.dot, X)(X).shape, function_kernel(lambda X, Z: X @ Z.T, X)(X).shape
    ((3, 3), (3, 3))
    """
    n, m = [size for size in (2, 3, 4) if size != rows.width][:2]  # lest np.dot(X, Z) have a shape
    X, Z = (rows[np.arange(size) % len(rows)] for size in (n, m))
    if _shape(f, X.data, Z.data) == (n, m):
        return Callable(f)
    try:
        found = f(*(Table(R.data.toarray()).data[0] if R.sparse else R.data[0] for R in (X, Z)))
    except Exception as e:
        raise _no_kernel(f, f"it failed on two rows: {e}") from e
    if isinstance(found, Real) or np.size(found) == 1:
        return Callable(OfRows(f))
    raise _no_kernel(f, f"of two rows it gives an array of shape {np.shape(found)}")


def _shape(f: Function[[Any, Any], Any], X: Matrix, Z: Matrix) -> tuple[int, ...] | None:
    """Of what it makes of two matrices; None where it cannot take them, as a function of rows."""
    try:
        return np.shape(f(X, Z))
    except Exception:  # whatever it raises: it may be meant for rows
        return None


def _no_kernel(f: Any, why: str) -> ValueError:
    name = getattr(f, "__name__", None) or type(f).__name__
    return ValueError(
        f"kernel={name} must be a function of two matrices of rows that gives all values, or of two rows "
        f"that gives a number, but {why}."
    )
