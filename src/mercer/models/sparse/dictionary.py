"""The seam between a sparse learner and its features: a dictionary of columns, some of them built,
some found by a sweep over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercer.inputs import Array, Matrix, Table


@dataclass(frozen=True, eq=False)
class Found:
    """What a sweep over all features found.

    The features `ids` have the products `values` = (x_j - mean_j)'r, largest magnitude first;
    no other feature's magnitude exceeds `bound`, a number that is true in float64 (rounding of a
    sweep in float32 is counted in).
    """

    ids: Array  # (k,) int64
    values: Array  # (k,) float64, with their signs
    bound: float

    @property
    def largest(self) -> float:
        """No smaller than max_j |x_j'r| over all features."""
        return max(float(np.abs(self.values).max(initial=0.0)), self.bound)


class Features(Protocol):
    """What a fitted model keeps of a dictionary: the features of any rows, a few at a time.

    A registered value of the store. Rows come as the dictionary's did: columns in [-1, 1]
    where the model scales them.
    """

    @property
    def width(self) -> int: ...
    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns."""
        ...

    def columns(self, rows: Table, ids: Array) -> Array:
        """The features `ids` of rows, (m, k) in float64, raw: not divided by `scales`."""
        ...

    def names(self, ids: Array) -> list[str]:
        """Their names."""
        ...


class Dictionary(Protocol):
    """The p features of n rows of weights w, each > 0, that sum to 1.

    x_j is a raw feature divided by `scales`: 1, or its weighted standard deviation. Centring is
    implicit: columns come as they are, `means` tell what to subtract. Features that are constant
    in the rows, or copies of one before, are never found by `largest`.
    """

    @property
    def n(self) -> int: ...
    @property
    def p(self) -> int: ...
    @property
    def width(self) -> int:
        """The features that may enter: p less constants and copies where these are known, else p."""
        ...

    @property
    def features(self) -> Features:
        """What is kept for other rows."""
        ...

    def columns(self, ids: Array) -> Matrix:
        """x_j of these features, (n, k) in float64: an array, or CSC where rows are sparse."""
        ...

    def scales(self, ids: Array) -> Array:
        """What the raw features are divided by, (k,)."""
        ...

    def means(self, ids: Array) -> Array:
        """sum_i w_i x_ij, (k,)."""
        ...

    def norms(self, ids: Array) -> Array:
        """sqrt(sum_i w_i (x_ij - mean_j)^2), (k,)."""
        ...

    def largest(self, r: Array, k: int, above: float) -> Found:
        """The k features of the largest |x_j'r| among those above a number, and a bound on all
        others. r (n,) has the weights in it, and sums to zero up to rounding."""
        ...

    def names(self, ids: Array) -> list[str]:
        """Their names, as the lift gives them."""
        ...
