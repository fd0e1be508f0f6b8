"""Features of bags: the mean, or the sum, of those of their members."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix, Table, table
from mercer.invariants import Is, Text
from mercer.kernels.bags import OverSets
from mercer.lifts.structure import Around
from mercer.ops.tiles import cuts
from mercer.pairs.bags import Bags
from mercer.store import register

PIECE = 1 << 14  # members whose features are held at once


@register("lifts.OverSetsLift")
class OverSetsLift(Around):
    """phi(x) = the mean, or the sum, of phi(a) over the members a of a bag x.

    Its kernel is k.over_sets(how).

    Parameters
    ----------
    lift : Lift or transformer with `kernel_` and `n_features_out_`
        The phi of members, which are rows of numbers or items.
    how : {"mean", "sum"}, default="mean"

    Examples
    --------
    >>> from mercer.lifts import Monomials
    >>> bags = [np.array([[1.0], [3.0]]), np.array([[2.0]])]
    >>> OverSetsLift(Monomials(2)).fit_transform(bags)
    array([[1., 2., 5.],
           [1., 2., 4.]])
    """

    sparse: ClassVar[bool] = False

    must = dict(
        lift_=Is("Lift", "TransformerMixin", n_features_out_="n_features_out_"),
        how=Text(),
    )

    def __init__(self, lift: Any, how: str = "mean") -> None:
        self.lift = lift
        self.how = how

    def fit(self, X: Any, y: Any = None) -> OverSetsLift:
        """Learn what the map of members needs of all of them."""
        if self.how not in ("mean", "sum"):
            raise ValueError(f"how must be 'mean' or 'sum', got {self.how!r:.40}.")
        bags = self._bags(X)
        if bags.members is None:
            raise ValueError("X has no bag with a member; give at least one.")
        self._learn_inner(_given(bags.members))
        self.n_features_in_ = getattr(self.lift_, "n_features_in_", 1)  # 1: items
        self.kernel_ = OverSets(self.lift_.kernel_, self.how)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the features of members."""
        check_is_fitted(self)
        return np.asarray(self.lift_.get_feature_names_out(input_features), dtype=object)

    def _check(self, X: Any, *, reset: bool) -> Any:
        return self._bags(X)

    def _bags(self, X: Any) -> Bags:
        rows = table(X, items=True)
        if not rows.items:
            raise ValueError(
                "X must list bags, such as lists of items or arrays of rows; it is a table of numbers."
            )
        return Bags.of(rows.data, self.how == "mean", items=True)

    def _map(self, X: Any) -> Matrix:
        if X.members is None:
            return np.zeros((len(X), self.n_features_out_))
        shape = len(X), int(X.starts[-1])
        A = sp.csr_array((X.weights, np.arange(shape[1]), X.starts), shape=shape).tocsc()
        out: Any = 0
        for c in cuts(shape[1], PIECE):
            F = self.lift_.transform(_given(X.members[c]))
            out = out + A[:, c].astype(F.dtype) @ F
        return out.tocsr() if sp.issparse(out) else out


def _given(members: Table) -> Any:
    """Members as a map takes them."""
    return members.data if members.items or members.columns is None else members
