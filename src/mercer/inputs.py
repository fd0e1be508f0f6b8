"""The rules for what comes in: one place that turns a user's data into rows that kernels and lifts
can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.invariants import Each, Said, Samples, Text
from mercer.listed import column_of, is_numbers, listed, refuse_lazy
from mercer.store import register
from mercer.tensors import to_host as on_host

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a dense array or a CSR matrix: SciPy gives the two no common type
FINITE_PART = 1 << 16  # numbers that are looked at at a time
Rows: TypeAlias = "int | slice | Array | Sequence[int]"


@register("inputs.Items")
@dataclass(frozen=True, eq=False)
class Items:
    """Items (strings, trees, ...) where an estimator holds an array of rows: what it asks of rows,
    and nothing of columns.

    >>> X = Items(["a", "b", "c"])
    >>> X.shape, X[np.array([2, 0])].values
    ((3, 0), ['c', 'a'])
    """

    values: list[Any]
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.float64)  # of what is computed of them
    nbytes: ClassVar[int] = 0  # not known

    must = dict(values=Each(Said()))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Rows) -> Items:
        return Items(_pick(self.values, rows))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), 0

    def astype(self, dtype: Any, copy: bool = True) -> Items:
        return self

    def copy(self) -> Items:
        return Items(list(self.values))


@register("inputs.Table")
@dataclass(frozen=True, eq=False)
class Table:
    """Rows to compare: a dense array or CSR matrix of floats, or a list of items; column names
    where they are known."""

    data: Matrix
    columns: tuple[str, ...] | None = None

    must = dict(data=Samples("n", "d"), columns=Each(Text(), size="d") | None)

    def __post_init__(self) -> None:
        """Sparse rows are looked at here, whoever made them: loops read at their places without a
        look."""
        if isinstance(self.data, Items):
            object.__setattr__(self, "data", self.data.values)
        elif sp.issparse(self.data):
            object.__setattr__(self, "data", sound(self.data))

    @classmethod
    def looked_at(cls, data: Matrix, columns: tuple[str, ...] | None = None) -> Table:
        """Of rows that were looked at before, as those of a table were."""
        t = object.__new__(cls)
        object.__setattr__(t, "data", data)
        object.__setattr__(t, "columns", columns)
        return t

    def __len__(self) -> int:
        return len(self.data) if isinstance(self.data, list) else int(self.data.shape[0])

    def __getitem__(self, rows: Rows) -> Table:
        return Table.looked_at(
            self.data[rows] if not isinstance(self.data, list) else _pick(self.data, rows),
            self.columns,
        )

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.data)

    @property
    def items(self) -> bool:
        """Whether these are list-like items (strings, trees, ...) instead of rows of numbers."""
        return isinstance(self.data, list)

    @property
    def width(self) -> int:
        return 0 if self.items else int(self.data.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(float) if self.items else np.dtype(self.data.dtype)

    def astype(self, dtype: Any) -> Table:
        return (
            self
            if self.items or self.data.dtype == dtype
            else Table.looked_at(self.data.astype(dtype), self.columns)
        )

    def in_order_of(self, other: Table) -> Table:
        """With the columns in the order of another table's, where both have the same names."""
        if self.columns is None or other.columns is None or self.columns == other.columns:
            return self
        return self.pick(other.columns) if set(self.columns) == set(other.columns) else self

    def pick(self, columns: Sequence[int | str]) -> Table:
        """The chosen columns, by position or by name; of records, one of strings is items."""
        if self.items:
            values = column_of(self.data, columns)
            return Table(values) if isinstance(values, list) else _numeric(values, "X")
        index = [self.position(c) for c in columns]
        return Table(
            self.data[:, index],
            None if self.columns is None else tuple(self.columns[i] for i in index),
        )

    def position(self, column: int | str) -> int:
        """Where a column stands, given by position or name."""
        if isinstance(column, str):
            if self.columns is None:
                raise ValueError(
                    f"column {column!r} is given by name, but X has no column names; give a dataframe or positions."
                )
            if column not in self.columns:
                raise ValueError(
                    f"column {column!r} is not in X; X has {', '.join(self.columns[:20])}."
                )
            return self.columns.index(column)
        if not -self.width <= column < self.width:
            raise ValueError(f"column {column} is out of range; X has {self.width} columns.")
        return int(column) % self.width


def _pick(items: list[Any], rows: Any) -> list[Any]:
    if isinstance(rows, slice):
        return items[rows]
    index = np.atleast_1d(np.asarray(rows))
    return [items[i] for i in (np.flatnonzero(index) if index.dtype == bool else index)]


def table(
    X: Any, name: str = "X", *, width: int | None = None, items: bool = False, finite: bool = True
) -> Table:
    """Check `X` and return it as a Table: float32 and float64 stay, other numbers become float64,
    input is never changed.

    >>> table([[1, 2], [3, 4]]).data.dtype
    dtype('float64')
    """
    if isinstance(X, Table | Items):
        return _wide_enough(X if isinstance(X, Table) else Table(X), name, width)
    X = on_host(X)
    found = listed(X) if items else None
    if found is None and items and (isinstance(X, str | bytes | Iterator | Set) or _empty(X)):
        raise ValueError(
            f"{name} must list items, such as strings, at least one of them; got {X!r:.40}."
        )
    out = _numeric(X, name) if found is None else Table(found)
    if len(out) == 0:
        raise ValueError(f"{name} has 0 rows (Found array with 0 sample(s)); give at least one.")
    _wide_enough(out, name, width)
    if finite and not out.items:
        _check_finite(out, name)
    return out


def _empty(X: Any) -> bool:
    return isinstance(X, list | tuple) and not X


def _wide_enough(t: Table, name: str, width: int | None) -> Table:
    if width is not None and not t.items and t.width != width:
        raise ValueError(
            f"{name} has {t.width} columns, {width} expected; give the same columns on both sides."
        )
    return t


def is_vector(x: Any) -> bool:
    """Whether x is one row of numbers, as scikit-learn hands a kernel two at a time."""
    return (
        x.ndim == 1 and x.dtype.kind in "fiub"
        if isinstance(x, np.ndarray)
        else bool(is_numbers(x) and len(x))
    )


def _numeric(X: Any, name: str) -> Table:
    if sp.issparse(X):
        if X.ndim != 2 or X.shape[1] == 0:
            raise ValueError(
                f"{name} must have rows and columns, got a sparse array of shape {X.shape}; give at least one column."
            )
        return Table.looked_at(_floats(sound(X, name), name), None)
    if (frame := _frame(X, name)) is None:
        return Table(_dense(X, name))
    return Table(_dense(frame.to_numpy(), name), tuple(map(str, frame.columns)))


def validate_data(estimator: Any, X: Any, *parts: Any, **options: Any) -> Any:
    """scikit-learn's `validate_data`, which does not look at the places in sparse rows, behind
    `sound`, which does; and columns of a frame that are no numbers are named."""
    from sklearn.utils.validation import validate_data

    X, *given = (on_host(part) for part in (X, *parts))
    _frame(X)
    return validate_data(
        estimator,
        sound(X) if sp.issparse(X) and options.get("accept_sparse") else X,
        *given,
        **options,
    )


def sample_weights(w: Any, X: Any) -> Array:
    """The weights of rows, >= 0 and not all 0, as scikit-learn reads them."""
    from sklearn.utils.validation import _check_sample_weight

    out = _check_sample_weight(on_host(w), X, dtype=np.float64, ensure_non_negative=True)
    if not out.any():  # scikit-learn says so from 1.8 on
        raise ValueError("sample_weight is 0 in every row; give at least one non-zero weight.")
    return np.asarray(out)


def sound(X: Any, name: str = "X") -> Any:
    """A sparse matrix as CSR rows with places that exist, in ascending order and none twice; the
    caller's arrays stay as they are.

    SciPy's loops and ours read and write at these places without a look: here is the one look,
    O(nonzeros).

    >>> sound(sp.csr_array((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))).toarray()
    array([[1., 0., 2.]])
    """
    if len(X.shape) != 2:
        return X  # whoever asked says so
    if X.format in ("csr", "csc"):
        _check_compressed(X, name)
    else:
        X = X.tocoo()
        _check_places(X.row, X.shape[0], name, "row")
        _check_places(X.col, X.shape[1], name, "column")
    rows = X.tocsr()
    nnz, largest = int(rows.indptr[-1]), max(*rows.shape, len(rows.data))
    index = np.int32 if largest <= np.iinfo(np.int32).max else np.int64  # as SciPy chooses
    indptr, indices = (
        rows.indptr.astype(index, copy=False),
        rows.indices[:nnz].astype(index, copy=False),
    )
    fresh = (sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix)(
        (rows.data[:nnz], indices, indptr), shape=rows.shape
    )
    if _ascending(indptr, indices):
        fresh.has_canonical_format = True  # known, so that SciPy need not look
        return fresh
    fresh = fresh.copy()
    fresh.has_sorted_indices = fresh.has_canonical_format = False  # whatever the caller's said
    fresh.sum_duplicates()
    return fresh


def _check_compressed(X: Any, name: str) -> None:
    major, minor = X.shape if X.format == "csr" else X.shape[::-1]
    p, what = X.indptr, "column" if X.format == "csr" else "row"
    if any(a.ndim != 1 for a in (X.data, X.indices, p)) or p.dtype.kind not in "iu":
        raise ValueError(
            f"{name} is no sound sparse matrix: its data, indices and indptr must be vectors, the last two of whole numbers."
        )
    if len(p) != major + 1 or p[0] != 0 or (p[1:] < p[:-1]).any():
        raise ValueError(
            f"{name} is no sound sparse matrix: indptr must ascend from 0 in {major + 1} steps; make it anew from its parts."
        )
    if int(p[-1]) > min(len(X.indices), len(X.data)):
        raise ValueError(
            f"{name} is no sound sparse matrix: indptr ends at {p[-1]}, beyond its {len(X.data)} values; make it anew."
        )
    _check_places(X.indices[: int(p[-1])], minor, name, what)


def _check_places(at: Array, size: int, name: str, what: str) -> None:
    if at.dtype.kind not in "iu" or (len(at) and not (at.min() >= 0 and at.max() < size)):
        wrong = at.dtype if at.dtype.kind not in "iu" else at.min() if at.min() < 0 else at.max()
        raise ValueError(
            f"{name} is no sound sparse matrix: it has a value in {what} {wrong}, but {size} {what}s; make it anew."
        )


def _ascending(indptr: Array, indices: Array) -> bool:
    """Whether the places of every row ascend strictly."""
    falls = indices[1:] <= indices[:-1]
    starts = indptr[1:-1]
    falls[starts[(starts > 0) & (starts < len(indices))] - 1] = False
    return not falls.any()


def _frame(X: Any, name: str = "X") -> Any:
    """Any dataframe that narwhals knows, whose columns are numbers; None of anything else."""
    refuse_lazy(X, name)
    if not (hasattr(X, "columns") or hasattr(X, "__narwhals_dataframe__")):
        return None
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as e:
        raise ValueError(f"{name} has two columns of the same name; rename one.") from e
    if not isinstance(frame, nw.DataFrame):
        return None
    for column, kind in frame.schema.items():
        if not kind.is_numeric() and kind != nw.Boolean:
            _check_column(frame[column].to_numpy(), column, kind.is_temporal(), name)
    return frame


def _check_column(values: Array, column: str, of_time: bool, name: str) -> None:
    """Refuse dates, and texts or categories that do not read as numbers, in a column of a frame."""
    what, remedy = f"column {column!r} of {name}", "or let mercer.fit_table read the table"
    if of_time:
        raise ValueError(
            f"{what} holds dates or times; turn them into numbers first, such as days since some day, {remedy}."
        )
    try:
        _floats(values, what)
    except ValueError as e:
        raise ValueError(f"{str(e).removesuffix('.')}, {remedy}.") from e


def _dense(X: Any, name: str) -> Array:
    try:
        A = np.asarray(X)
    except ValueError as e:
        raise ValueError(
            f"{name} has rows of unequal length; give a table with the same number of columns in every row."
        ) from e
    if A.ndim == 0 and not isinstance(X, int | float | np.number):
        raise ValueError(
            f"{name} must be a table of numbers (an array, CSR matrix or dataframe), got {type(X).__name__}."
        )
    if A.ndim != 2:
        raise ValueError(
            f"{name} must have rows and columns, but it has {A.ndim} dimension(s) (Expected 2D array); "
            f"use {name}.reshape(-1, 1) for one column or {name}.reshape(1, -1) for one row."
        )
    if A.shape[1] == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={A.shape}) while a minimum of 1 is required; give at least one column."
        )
    return np.ascontiguousarray(_floats(A, name))


def _floats(A: Any, name: str) -> Any:
    """float32 and float64 as they are, float16 as float32, other numbers as float64."""
    if A.dtype in (np.float32, np.float64) and A.dtype.isnative:
        return A
    if A.dtype.kind in "mM":
        raise ValueError(
            f"{name} holds dates or times ({A.dtype}); turn them into numbers first, such as days since some day."
        )
    if A.dtype.kind == "c":
        raise ValueError(
            f"{name} is complex (Complex data not supported); give its real and imaginary parts as columns."
        )
    try:
        return A.astype(np.float32 if A.dtype == np.float16 else np.float64)
    except (TypeError, ValueError) as e:
        raise ValueError(
            f"{name} must hold numbers, but has dtype {A.dtype} ({e}); encode text and categories first."
        ) from e


def _check_finite(t: Table, name: str) -> None:
    values = t.data.data if t.sparse else t.data
    flat = values.reshape(-1) if values.flags.c_contiguous else values
    step = max(1, FINITE_PART // max(1, flat[:1].size))  # parts that stay in a core's cache
    if all(np.isfinite(flat[i : i + step]).all() for i in range(0, len(flat), step)):
        return
    if np.isnan(values).any():
        raise ValueError(f"{name} contains NaN (missing values); fill or drop them first.")
    if np.isinf(values).any():
        raise ValueError(f"{name} contains infinity; clip or drop such values first.")
