"""The hashing trick: columns, or the named items of dicts, added up in a fixed number of features."""
from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix
from mercer.lifts.projections import SparseProjection
from mercer.ops.projections import Hashed
from mercer.store import register

LARGE = 1 << 13  # features beyond this come as CSR rows, also of dense ones
OPEN = 2**63 - 1  # the width of rows of dicts, whose names may be any


@register("lifts.HashedFeatures")
class HashedFeatures(SparseProjection):
    """The hashing trick: column j is added to feature h(j) with sign sigma(j).

    It is the case s = 1 of `SparseProjection`. Rows are numbers, then a column is hashed by its
    position, or dicts: a number counts for its name, a string for "name=string" once. More than
    8,192 features come as CSR rows. With `signed=False` values are added as they are, which
    keeps counts >= 0, and inner products have the bias (sum x sum z - x'z)/m.

    Parameters
    ----------
    n_features : int, default=262144
        The number m of features.
    s : int, default=1
        Entries a column; more than 1 only with signs.
    signed : bool, default=True
        Whether values are added with random signs, which makes inner products unbiased.
    random_state : int, RandomState, Generator or None, default=0
        The map is its seed, by default 0, so that maps made apart agree.

    References
    ----------
    Weinberger et al., Feature hashing for large scale multitask learning (2009).

    Examples
    --------
    >>> phi = HashedFeatures(8, random_state=0)
    >>> phi.fit_transform([{"city": "Oslo", "age": 3}, {"city": "Oslo"}]).shape
    (2, 8)
    """

    def __init__(self, n_features: int = 2**18, s: int = 1, signed: bool = True, *, random_state: Any = 0) -> None:
        self.n_features = n_features
        self.s = s
        self.signed = signed
        self.random_state = random_state

    @property
    def _debiased(self) -> bool:
        return False

    def _draw(self, n: int) -> Hashed:
        if not self.signed and self.s != 1:
            raise ValueError(f"signed=False adds a bias that grows with s, here s={self.s}; use s=1, or SparseProjection.")
        return super()._draw(n)

    def _stays_sparse(self, X: Matrix) -> bool:
        return self.n_features_out_ > LARGE

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """A name for every feature."""
        check_is_fitted(self, "n_features_in_")
        return np.asarray(self._names([]), object) if self.n_features_in_ == OPEN else super().get_feature_names_out(input_features)

    def _check(self, X: Any, *, reset: bool) -> Matrix:
        items = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)
        return _rows_of_items(X) if items else super()._check(X, reset=reset)


def _rows_of_items(rows: Any) -> Any:
    """CSR rows of dicts; a name is a column by 63 bits of its digest, so the width is never
    known.
    """
    seen: dict[str, int] = {}
    pairs = [[_item(name, value, seen) for name, value in row.items()] for row in rows]
    indptr = np.cumsum([0, *map(len, pairs)])
    flat = [pair for row in pairs for pair in row]
    indices = np.array([j for j, _ in flat], np.int64)
    return sp.csr_array((np.array([v for _, v in flat], float), indices, indptr), shape=(len(pairs), OPEN))


def _item(name: Any, value: Any, seen: dict[str, int]) -> tuple[int, float]:
    token, number = (f"{name}={value}", 1.0) if isinstance(value, str) else (str(name), _number(name, value))
    if token not in seen:
        seen[token] = int.from_bytes(blake2b(token.encode(), digest_size=8).digest(), "little") >> 1
    return seen[token], number


def _number(name: Any, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(f"The item {name!r} must be a finite number or a string, got {value!r}; leave it out where it is missing.")
    return number
