"""The hashing trick: columns of numbers by their position; dicts, pairs and frames by their
names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Each, Is, Text
from mercer.kernels.base import whole
from mercer.kernels.params import plain
from mercer.lifts.base import Seed
from mercer.lifts.projections import Projection, dense_product, hashed, sparse_product
from mercer.ops.projections import Hashed
from mercer.store import register
from mercer.text.frames import category_columns, frame_of, of_frame
from mercer.text.items import item_rows, of_items, refuse_ragged
from mercer.text.named import ANY_WIDTH, NamedRows, Places
from mercer.text.names import MEMORY, Collisions, ColumnNames

MAX_DENSE_FEATURES = 1 << 13  # hashed features beyond this come as CSR rows, also of dense ones


@register("lifts.HashedFeatures")
class HashedFeatures(Projection):
    """The hashing trick: column j is added to feature h(j) with sign sigma(j).

    It is the case s = 1 of `SparseProjection`. Rows of numbers (arrays, CSR, frames of numbers
    alone) are hashed by the position of their columns. All others are hashed by name, where
    scikit-learn's `FeatureHasher` puts them (MurmurHash3, with `random_state` as its seed):

    - dicts and lists of (name, value) pairs: a number or truth value counts for its name, a
      string for "name=string" once, a list of strings for each of them. Values of 0 add
      nothing, equal names of a row are summed, and what is missing is left out: None and NaN
      are refused.
    - frames with categories (strings, of digits too, categories, truth values): a level counts
      for "column=level" once, a number for its column. A missing category adds nothing, a
      missing number is refused.

    A cross is one name more: "city=Oslo & job=cook" where a row has both levels, "age &
    job=cook" with the age as its value, and the product where both are numbers.

    More than 8,192 features come as CSR rows, canonical and without zeros. With `signed=False`
    values are added as they are, which keeps counts >= 0, and inner products have the bias (sum
    x sum z - x'z)/m.

    Parameters
    ----------
    n_features : int, default=262144
        The number m of features; at most 2**31 - 1 for rows of names.
    s : int, default=1
        Entries a column; more than 1 only with signs.
    signed : bool, default=True
        Whether values are added with random signs, which makes inner products unbiased.
    crosses : sequence of tuple of str, default=()
        Names whose products are hashed as well, two or more in each.
    memory_limit : int, default=67108864
        The bytes that names may take for `names`, exact up to there; 0 keeps none.
    random_state : int, RandomState, Generator or None, default=0
        The map is its seed, by default 0, so that maps made apart agree.

    Attributes
    ----------
    names_ : ColumnNames
        The names of `fit` by feature, where rows have names.
    categories_ : tuple of str or None
        The columns of the frame of `fit` that are categories; None where it was no frame.

    References
    ----------
    Weinberger et al., Feature hashing for large scale multitask learning (2009).

    Examples
    --------
    >>> phi = HashedFeatures(8, crosses=[("city", "age")])
    >>> phi.fit_transform([{"city": "Oslo", "age": 3}, {"city": "Oslo"}])
    array([[0., 4., 0., 0., 0., 0., 0., 3.],
           [0., 1., 0., 0., 0., 0., 0., 0.]])
    >>> phi.names(1)
    [('city=Oslo', 2, 1), ('age', 1, 1)]
    """

    projection_: Hashed
    names_: ColumnNames
    categories_: tuple[str, ...] | None

    must = dict(
        names_=Is("ColumnNames", n_features="n_features_out_"),
        categories_=Each(Text(), fixed=True) | None,
    )

    def __init__(
        self,
        n_features: int = 2**18,
        s: int = 1,
        signed: bool = True,
        *,
        crosses: Sequence[tuple[str, ...]] = (),
        memory_limit: int = MEMORY,
        random_state: Seed = 0,
    ) -> None:
        self.n_features = n_features
        self.s = s
        self.signed = signed
        self.crosses = crosses
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit_transform(self, X: Any, y: Any = None) -> Matrix:
        """The features of the rows that are learnt from; they are read once."""
        rows = self._check(X, reset=True)
        self._learn(rows)
        return self._map(rows)

    def names(self, column: int) -> list[tuple[str, int, int]]:
        """(name, count, sign) of the names of `fit` that lie in a feature, the most frequent first.

        A count is the number of values other than 0; beyond `memory_limit` it may be too small by
        `names_.error_bound`.
        """
        return self._known_names().names(whole(plain(column), "column", least=0))

    @property
    def collisions_(self) -> Collisions:
        """The shares of distinct names, and of their occurrences, that share their feature."""
        return self._known_names().collisions

    def _known_names(self) -> ColumnNames:
        check_is_fitted(self)
        if not hasattr(self, "names_"):
            raise AttributeError(
                "names are known of rows with names alone; fit dicts, pairs or a frame with categories."
            )
        if self.names_.memory_limit == 0:
            raise AttributeError("memory_limit=0 kept no names; raise it and fit again.")
        return self.names_

    def _draw(self, n: int) -> Hashed:
        if not self.signed and self.s != 1:
            raise ValueError(
                f"signed=False adds a bias that grows with s, here s={self.s}; use s=1, or SparseProjection."
            )
        return hashed(self.n_features, self.s, self.signed, self.random_state)

    def _learn(self, X: Any) -> None:
        limit = whole(plain(self.memory_limit), "memory_limit", least=0)
        super()._learn(X)
        if isinstance(X, NamedRows):
            places = self._places(X)
            self.names_ = ColumnNames(self.n_features_out_, limit)
            if limit:
                self.names_ = self.names_.add(X.distinct(places))

    def _places(self, X: NamedRows) -> Places:
        A = self.projection_
        return X.places(A.m, A.s, A.signed, A.stream.seed % 2**32)

    def _map(self, X: Any) -> Matrix:
        many = self.n_features_out_ > MAX_DENSE_FEATURES
        if isinstance(X, NamedRows):
            F = X.hashed(self._places(X), self.n_features_out_)
            return F if many else F.toarray()
        return (sparse_product if many else dense_product)(self.projection_, X)

    def _inner(self, X: Any, w: Array) -> Array:
        if isinstance(X, NamedRows):
            return X.hashed(self._places(X), self.n_features_out_) @ w
        return self.projection_.inner(X, w) if sp.issparse(X) else super()._inner(X, w)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """A name for every feature."""
        check_is_fitted(self, "n_features_in_")
        return (
            np.asarray(self._names([]), object)
            if self.n_features_in_ == ANY_WIDTH
            else super().get_feature_names_out(input_features)
        )

    def _check(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, Table):
            return super()._check(X, reset=reset)
        X = list(X) if isinstance(X, Iterator) else X
        crosses = _checked_crosses(self.crosses)
        if reset:
            for name in ("names_", "categories_"):
                self.__dict__.pop(name, None)
        rows = self._items(X, crosses, reset=reset)
        rows = self._frame(X, crosses, reset=reset) if rows is None else rows
        if rows is None:
            self._refuse_numbers(crosses, reset=reset)
            refuse_ragged(X)
            return super()._check(X, reset=reset)
        return rows.crossed(crosses) if isinstance(rows, NamedRows) else rows

    def _refuse_numbers(self, crosses: list[tuple[str, ...]], *, reset: bool) -> None:
        if crosses:
            raise ValueError(
                f"crosses={crosses} needs rows with names, but X has none; give dicts, pairs or a frame."
            )
        if not reset and hasattr(self, "names_"):
            raise ValueError(
                "X has no names, but HashedFeatures was fitted to rows with names; give dicts, pairs or a frame."
            )

    def _items(self, X: Any, crosses: list[tuple[str, ...]], *, reset: bool) -> Any:
        """The named rows of dicts or pairs, or None where X holds none."""
        items = item_rows(X)
        if items is None:
            return None
        if not reset and not hasattr(self, "names_"):
            if self.n_features_in_ == ANY_WIDTH:
                return _digested(items)
            raise ValueError(
                f"X has names, but HashedFeatures was fitted to {self.n_features_in_} columns of numbers; give these."
            )
        rows = of_items(items)
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            self.categories_ = None
            _check_crossed(crosses, rows.names, "no row of X has")
        return rows

    def _frame(self, X: Any, crosses: list[tuple[str, ...]], *, reset: bool) -> NamedRows | None:
        """The named rows of a frame, or None where X is none, or one of numbers alone."""
        frame = frame_of(X)
        if frame is None or not (reset or hasattr(self, "names_")):
            return None
        columns = tuple(map(str, frame.columns))
        _check_crossed(crosses, columns, "is no column of X")
        if reset or self.categories_ is None:
            categories = category_columns(frame)
            if reset and not categories and not crosses:
                return None
            if reset:
                self.categories_ = categories
                self.feature_names_in_ = np.array(columns, object)
            return of_frame(frame, categories)
        if set(columns) != set(self.feature_names_in_):
            strange = sorted(set(columns) ^ set(self.feature_names_in_))
            raise ValueError(
                f"X must have the columns of `fit`, but {strange[0]!r} is in one of them alone; give the same columns."
            )
        return of_frame(frame, self.categories_)


def _checked_crosses(crosses: Any) -> list[tuple[str, ...]]:
    listed = isinstance(crosses, Iterable) and not isinstance(crosses, str)
    found = list(crosses) if listed else []
    fine = listed and all(
        isinstance(c, tuple | list)
        and all(isinstance(name, str) for name in c)
        and len(set(c)) == len(c) > 1
        for c in found
    )
    if not fine:
        raise ValueError(
            f"crosses must be tuples of two or more different names, such as [('city', 'job')], got {crosses!r:.60}."
        )
    return [tuple(c) for c in found]


def _check_crossed(crosses: list[tuple[str, ...]], names: Sequence[str], what: str) -> None:
    for name in (name for cross in crosses for name in cross):
        if name not in names:
            raise ValueError(f"crosses names {name!r}, which {what}; give names of X.")


# rows of dicts as maps of before hashed them, which files may hold
def _digested(rows: Iterable[Mapping[object, object]]) -> Matrix:
    """CSR rows of dicts; a name is a column by 63 bits of its digest."""
    seen: dict[str, int] = {}
    pairs = [[_item(name, value, seen) for name, value in row.items()] for row in rows]
    indptr = np.cumsum([0, *map(len, pairs)])
    flat = [pair for row in pairs for pair in row]
    indices = np.array([j for j, _ in flat], np.int64)
    return sp.csr_array(
        (np.array([v for _, v in flat], float), indices, indptr), shape=(len(pairs), ANY_WIDTH)
    )


def _item(name: object, value: object, seen: dict[str, int]) -> tuple[int, float]:
    token, number = (
        (f"{name}={value}", 1.0) if isinstance(value, str) else (str(name), _number(name, value))
    )
    if token not in seen:
        seen[token] = int.from_bytes(blake2b(token.encode(), digest_size=8).digest(), "little") >> 1
    return seen[token], number


def _number(name: object, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(
            f"The item {name!r} must be a finite number or a string, got {value!r}; leave it out where it is missing."
        )
    return number
