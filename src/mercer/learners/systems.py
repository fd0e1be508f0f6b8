"""The equations (K + diag(ridge)) x = b as they are: the kernel in float64, whatever a solver does inside."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.inputs import Array
from mercer.operators import Operator


@dataclass(frozen=True, eq=False)
class System:
    """A = K + diag(ridge) as it is: the kernel in float64 at the rows given, whatever a solver does inside."""

    op: Operator
    ridge: Array

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.exact @ V + self.ridge[:, None] * V)

    @cached_property
    def exact(self) -> Operator:
        return self.op.astype(np.float64)
