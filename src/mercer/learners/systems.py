"""The equations (K + diag(ridge)) x = b as they are: the kernel in float64, whatever a solver does inside."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.operators.kernel import KernelOperator
from mercer.operators.stored import GivenOperator

Operator = Any  # KernelOperator | GivenOperator: `@`, `block`, `diag`, `shape`, `dtype`


@dataclass(frozen=True, eq=False)
class System:
    """A = K + diag(ridge) as it is: the kernel in float64 at the rows given, whatever a solver does inside."""

    op: Operator
    ridge: Array

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.exact @ V + self.ridge[:, None] * V)

    @cached_property
    def exact(self) -> Operator:
        return recast(self.op, np.float64)


def recast(op: Operator, dtype: Any) -> Operator:
    """The same operator with its rows, and so its values, in another precision."""
    if isinstance(op, GivenOperator) or op.dtype == dtype or op.X.items:
        return op
    return KernelOperator(op.kernel, op.X.astype(dtype))


def restricted(op: Operator, rows: Array) -> Operator:
    """The operator of some of its rows and columns."""
    return GivenOperator(op.K[np.ix_(rows, rows)]) if isinstance(op, GivenOperator) else KernelOperator(op.kernel, op.X[rows])


def dense(op: Operator, dtype: Any) -> Array:
    """K as one new array."""
    return np.array(op.K, dtype) if isinstance(op, GivenOperator) else np.asarray(recast(op, dtype).block(), dtype)
