"""OverSets: a kernel of bags, by a kernel of their members."""

from __future__ import annotations

from collections.abc import Hashable
from importlib import import_module
from typing import Any, Self

from mercer.inputs import Table
from mercer.kernels.base import Kernel
from mercer.pairs.bags import Bags
from mercer.store import register


@register("kernels.OverSets")
class OverSets(Kernel):
    """The mean, or the sum, of k(a, b) over all members a of bag x and b of bag z

    A bag is a list of items, or an array (m, d) of rows of numbers; bags may differ in size.
    The mean is the inner product of the mean embeddings of the two bags. Of an empty bag it
    is 0.

    Gärtner, Flach, Kowalczyk and Smola, Multi-instance kernels (2002).

    Parameters
    ----------
    kernel : Kernel
        Of the members.
    how : {"mean", "sum"}, default="mean"

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> bags = [np.array([[1.0], [2.0]]), np.array([[4.0]])]
    >>> Linear().over_sets()(bags)
    array([[ 2.25,  6.  ],
           [ 6.  , 16.  ]])
    """

    kernel: Kernel
    how: str = "mean"

    def check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"over_sets takes a kernel of the members, got {self.kernel!r:.60}.")
        if self.how not in ("mean", "sum"):
            raise ValueError(f"how must be 'mean' or 'sum', got {self.how!r:.40}.")

    def on(self, p: Any) -> Any:
        return p.over_bags(self)

    @property
    def takes_items(self) -> bool:
        return True

    @property
    def reading(self) -> Hashable:
        """What `read` depends on besides the bags."""
        return OverSets, self.how, self.kernel.takes_items

    def read(self, items: list[Any]) -> Bags:
        """The members of bags, one after another."""
        return Bags.of(items, self.how == "mean", self.kernel.takes_items)

    def lift(self, n_features: Any = None, **options: Any) -> Any:
        """The mean, or the sum, of the features of members; see `mercer.lifts.OverSetsLift`."""
        inner = self.kernel.lift(n_features, **options)
        return import_module("mercer.lifts").OverSetsLift(inner, self.how)

    def settle(self, *rows: Table) -> Self:
        """The kernel with what is open of its members' learnt from them."""
        members = [self.read(r.data).members for r in rows if r.items]
        found = self.kernel.settled(*(m for m in members if m is not None))
        return self if found is self.kernel else type(self)(found, self.how)

    def __repr__(self) -> str:
        how = "" if self.how == "mean" else repr(self.how)
        return f"{self.kernel.inside(5)}.over_sets({how})"
