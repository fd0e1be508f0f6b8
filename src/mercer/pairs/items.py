"""What a kernel of items (strings, trees) tells pairs: how a list of them is read, once a side, and
the values between two sides."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

from mercer.inputs import Array


class OfItems(Protocol):
    """A kernel that compares items by functions of its own; its formula is `p.between(self)`.

    Sides are read a few hundred items at a time, in several threads, and may be kept: `read` depends
    on the items and on `reading` alone, and values on two sides alone.
    """

    @property
    def reading(self) -> Hashable:
        """What `read` depends on besides the items: kernels that read alike share a side."""

    def read(self, items: list[Any]) -> Any:
        """Items as `values` takes them."""

    def values(self, x: Any, z: Any) -> Array:
        """k(x_i, z_j), shape (n, m)."""

    def own(self, x: Any) -> Array:
        """k(x_i, x_i), shape (n,)."""

    def slopes(self, x: Any, z: Any) -> Mapping[str, Array]:
        """The derivatives of `values` by the continuous parameters, by their names."""

    def own_slopes(self, x: Any) -> Mapping[str, Array]:
        """The derivatives of `own`."""
