"""Arrays as values: what kernels hold of matrices, and formulas hand to pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats
from mercer.store import register

MAX_SHOWN = 16  # numbers of an array that are printed


_known: WeakValueDictionary[tuple[tuple[int, ...], bytes], Array] = WeakValueDictionary()


def _shared(values: Array) -> Array:
    """Equal arrays are one in memory, and so in files, however often they were made."""
    return _known.setdefault((values.shape, blake2b(values.tobytes()).digest()), values)


@register("kernels.FrozenArray")
@dataclass(frozen=True, eq=False, repr=False)
class FrozenArray:
    """A vector or matrix of finite numbers that never changes: equal where all numbers are, hashed,
    and printed shortly.

    >>> A = FrozenArray([[1, 0], [0, 2]])
    >>> A, A == FrozenArray(np.diag([1.0, 2.0])), np.asarray(A)[1, 1]
    ([[1.0, 0.0], [0.0, 2.0]], True, np.float64(2.0))
    >>> FrozenArray(np.eye(100))
    <100 x 100 numbers>
    """

    values: Array

    must = dict(values=Floats("n") | Floats("n", "m"))

    def __post_init__(self) -> None:
        values = (
            np.array(self.values, np.float64, order="C") + 0.0
        )  # a copy; -0 is 0, so that equal arrays have equal bytes
        if values.ndim not in (1, 2) or not np.isfinite(values).all():
            raise ValueError(
                f"an array of a kernel must be a vector or a matrix of finite numbers, got shape {values.shape}."
            )
        values.setflags(write=False)
        object.__setattr__(self, "values", _shared(values))

    @classmethod
    def of(cls, value: Any) -> Self:
        """Of anything that NumPy reads as numbers; itself, if it is one."""
        return value if isinstance(value, cls) else cls(value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenArray):
            return NotImplemented
        return self.shape == other.shape and bool((self.values == other.values).all())

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.shape, self.values.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenArray, (self.values,)  # so that copies cannot be written to either

    def __repr__(self) -> str:
        if self.values.size <= MAX_SHOWN:
            return repr(self.values.tolist())
        return f"<{' x '.join(map(str, self.shape))} numbers>"
