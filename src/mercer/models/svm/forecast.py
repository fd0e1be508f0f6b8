"""What the exact dual of many rows would take, told by those of two samples of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array, Table
from mercer.operators.products import stays_sparse
from mercer.ops.philox import Stream, permutation

SMALLEST, LARGEST = 512, 4096  # rows of the larger sample
PRODUCTS = 1 << 32  # of two numbers, that its kernel values may take
PART = 4  # how many times it has the rows of the smaller
EACH = 64  # what a kernel value costs beside its columns, in products of two numbers
SPARSE, SHARED = 256, 48  # what it costs more where rows stay sparse, and each entry that two share
SWEEPS = 1600  # products that a feature of a row may cost: twice what sweeps take, as it is less


@dataclass(frozen=True)
class Forecast:
    """The support vectors that are expected of the exact dual, and its products of two numbers a
    row, against those that features would take.

    Of several rules each counts by the share of the rows that it is of.

    >>> print(Forecast(4_200, 1e6, 3e6))
    about 4,200 support vectors expected
    """

    support: int
    exact: float
    features: float

    def __str__(self) -> str:
        return f"about {self.support:,} support vectors expected"

    @property
    def affordable(self) -> bool:
        """Whether the exact dual is worth its price."""
        return self.exact <= self.features


def forecast(
    n: int, of: int, met: tuple[float, float], columns: float, features: float
) -> Forecast:
    """Of n rows of so many columns, from the support vectors that a row `met` in a sample and in
    one of `of` rows, four times as many: their number grows as a power of that of the rows.

    >>> forecast(65_536, 4096, (200.0, 400.0), 36.0, 2048.0).support
    1600
    """
    small, large = (max(v, 1.0) for v in met)
    power = min(max(math.log(large / small, PART), 0.0), 1.0)
    support = large * (n / of) ** power
    return Forecast(round(support), support * (EACH + columns), SWEEPS * features)


def samples(codes: Array, columns: float) -> tuple[Array, Array]:
    """Places of the rows of both samples, the smaller in the larger; the first row of every class
    is in both."""
    most = int(np.clip(math.sqrt(PRODUCTS / (EACH + columns)), SMALLEST, LARGEST))
    order = permutation(Stream(0), len(codes))
    first = np.zeros(len(codes), bool)
    first[np.unique(codes[order], return_index=True)[1]] = True
    order = np.concatenate([order[first], order[~first]])[:most]
    return np.sort(order[: len(order) // PART]), np.sort(order)


def columns_of(X: Table, memory: float) -> float:
    """The products of two numbers that a kernel value of these rows takes: their columns, or of
    sparse rows that stay so what two rows share.

    >>> import scipy.sparse as sp
    >>> X = Table(sp.csr_array(np.eye(4)))
    >>> columns_of(X, 1e9), columns_of(X, 1.0)
    (4.0, 268.0)
    """
    if not stays_sparse(X, memory):
        return float(X.width)
    share = np.bincount(X.data.indices, minlength=X.width) / len(X)
    return SPARSE + SHARED * float(share @ share)
