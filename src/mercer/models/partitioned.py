"""Rows in partitions as learners read them: checked where they are, sampled by the numbers of rows,
and lifted by a map that travels as its seed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from mercer.engines.lazy import Columns
from mercer.engines.partitions import Partitions, Place
from mercer.engines.tree import fold
from mercer.inputs import Array, Table, sample_weights, table
from mercer.kernels.defaults import check_domain
from mercer.lifts import Lift
from mercer.lifts.base import needs_target
from mercer.models.base import documents_of
from mercer.models.maps import HEAD, FittedMap
from mercer.models.settings import FittedLift, KernelSetting
from mercer.stats.sample import mix
from mercer.store import fingerprint

SAMPLE_ROWS = 1 << 16  # of which maps learn what they learn from rows
SAMPLE_BYTES = 64 << 20
FEWEST = 1 << 12  # rows, however wide
SLACK = 6.0  # deviations of the number of rows below a threshold, of which the least are kept


@dataclass(frozen=True, eq=False)
class Reader:
    """What a partition must be: the columns of the metadata, their type, targets of numbers or of
    known classes, weights >= 0; rows of weight 0 are as absent."""

    columns: Columns
    kernel: KernelSetting = None  # whose domain is looked at
    outputs: int | None = None  # of y; None: as they come
    classes: Array | None = None  # of y, where it is not numbers
    supervised: bool = True

    @property
    def identity(self) -> str:
        classes = None if self.classes is None else self.classes.tolist()
        return repr((self.columns, repr(self.kernel), self.outputs, classes, self.supervised))

    def __call__(self, X: Any, y: Any, weight: Any) -> tuple[Table, Array | None, Array | None]:
        rows = self.rows(X)
        Y = self.targets(y, len(rows)) if self.supervised else None
        if weight is None:
            return rows, Y, None
        w = _weights(weight, len(rows))
        on = np.flatnonzero(w)
        return rows[on], None if Y is None else Y[on], w[on]

    def rows(self, X: Any) -> Table:
        if self.columns.texts:
            return Table(documents_of(np.asarray(X, object)))
        found = table(self._in_order(X), width=self.columns.width)
        if found.data.dtype != self.columns.dtype:
            raise ValueError(
                f"X holds {found.data.dtype} here and {self.columns.dtype} elsewhere; convert all partitions to one type, as by X.astype('{self.columns.dtype}')."
            )
        check_domain(self.kernel, found)
        return Table(found.data, self.columns.names)

    def _in_order(self, X: Any) -> Any:
        """The columns that the metadata names."""
        names = getattr(X, "columns", None)
        if names is None or self.columns.names is None:
            return X
        gone = [c for c in self.columns.names if c not in names]
        if gone or len(names) != len(self.columns.names):
            told = (
                f"has no column {gone[0]!r}"
                if gone
                else f"has {len(names)} columns, {self.columns.width} expected"
            )
            raise ValueError(f"X {told}; give all files the same columns.")
        return X[list(self.columns.names)]

    def targets(self, y: Any, n: int) -> Array:
        """(n, q) numbers, or the places (n,) of classes."""
        values = np.asarray(y)
        if len(values) != n:
            raise ValueError(
                f"X has {n:,} rows and y {len(values):,} (inconsistent numbers of samples); cut both alike."
            )
        if self.classes is not None:
            return np.searchsorted(self.classes, values.reshape(n))
        try:
            Y = values.reshape(n, -1).astype(np.float64)
        except (TypeError, ValueError) as e:
            raise ValueError(f"y must hold numbers, but has dtype {values.dtype}.") from e
        if not np.isfinite(Y).all():
            raise ValueError("y contains NaN or infinity; fill or drop such rows first.")
        return Y


def _weights(w: Any, n: int) -> Array:
    values = np.asarray(w, np.float64)
    if values.shape != (n,):
        raise ValueError(f"sample_weight has shape {values.shape}, but X has {n:,} rows.")
    return values if not values.any() else sample_weights(values, np.empty((n, 1)))


# some of the rows
@dataclass(frozen=True, eq=False)
class SampledRows:
    """Rows with their numbers among all, in order."""

    number: Array
    X: Array
    Y: Array | None
    weight: Array | None

    def __add__(self, o: SampledRows) -> SampledRows:
        return SampledRows(
            *(
                None if a is None else np.concatenate([a, b])
                for a, b in zip(vars(self).values(), vars(o).values(), strict=True)
            )  # type: ignore[arg-type]
        )

    def arrays(self) -> dict[str, Array]:
        text = self.X.dtype == object
        return {
            name: v.astype(str) if name == "X" and text else v
            for name, v in vars(self).items()
            if v is not None
        }

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Self:
        return cls(arrays["number"], arrays["X"], arrays.get("Y"), arrays.get("weight"))

    def least(self, k: int, seed: int) -> SampledRows:
        """The k rows of least priority, in their order."""
        if len(self.number) <= k:
            return self
        at = np.sort(np.argsort(priorities(self.number, seed), kind="stable")[:k])
        return SampledRows(*(None if v is None else v[at] for v in vars(self).values()))  # type: ignore[arg-type]

    def table(self, columns: Columns) -> Table:
        return Table(list(self.X)) if columns.texts else Table(self.X, columns.names)


@dataclass(frozen=True, eq=False)
class Sampler:
    """The rows of a partition before row `stop`, or of a priority below `most`."""

    reader: Reader
    seed: int
    most: int
    stop: int | None = None

    kind = SampledRows

    @property
    def identity(self) -> str:
        return repr(("sample", self.reader.identity, self.seed, self.most, self.stop))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> SampledRows:
        number = np.arange(place.start, place.start + len(X))
        if self.stop is None:
            at = np.flatnonzero(priorities(number, self.seed) <= np.uint64(self.most))
        else:
            at = np.arange(max(0, min(len(X), self.stop - place.start)))
        some = self.reader(*(None if v is None else picked(v, at) for v in (X, y, weight))) if len(
            at
        ) else self._none()
        on = np.flatnonzero(np.asarray(picked(weight, at))) if weight is not None else slice(None)
        return SampledRows(number[at][on], _data(some[0]), some[1], some[2])

    def _none(self) -> tuple[Table, Array | None, Array | None]:
        """No rows of what others have."""
        c = self.reader.columns
        rows = Table([]) if c.texts else Table(np.empty((0, c.width), c.dtype))
        q = (0,) if self.reader.classes is not None else (0, self.reader.outputs or 1)
        return rows, np.empty(q) if self.reader.supervised else None, None


def _data(rows: Table) -> Array:
    return np.asarray(rows.data, object) if rows.items else np.asarray(rows.data)


def picked(v: Any, at: Array) -> Any:
    return v.iloc[at] if hasattr(v, "iloc") else v[at]


def priorities(number: Array, seed: int) -> Array:
    """A hash of each row's number: which rows are sampled depends on neither order nor partitions."""
    return mix(mix(number.astype(np.uint64)) ^ np.uint64(seed % (1 << 64)))


def head(data: Partitions, reader: Reader) -> SampledRows:
    """The first rows, of as few partitions as hold them."""
    return fold(data.first(HEAD), Sampler(reader, 0, 0, stop=HEAD))


def sampled(data: Partitions, reader: Reader, seed: int) -> SampledRows:
    """A uniform sample, by one pass: all rows where they are few."""
    k = max(FEWEST, min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * data.columns.width)))
    share = min(1.0, (k + SLACK * math.sqrt(k)) / data.rows)
    most = (1 << 64) - 1 if share >= 1 else int(share * (1 << 64))
    return fold(data, Sampler(reader, seed, most)).least(k, seed)


# the map
@dataclass(frozen=True, eq=False)
class MapRecipe:
    """A map as it travels: not fitted, where any row of these columns fits it to the same, so that a
    worker makes it anew from its seed; else as it is."""

    lift: FittedLift
    columns: Columns
    batch: float
    size: int | None
    fingerprint: str
    anew: bool

    @classmethod
    def of(cls, phi: FittedMap, columns: Columns) -> Self:
        plain = clone(phi.lift)
        anew = not columns.texts and not needs_target(plain) and _print(plain, columns) == phi.fingerprint
        lift = clone(phi.lift) if anew else phi.lift
        return cls(lift, columns, phi.batch, phi.size, phi.fingerprint, anew)

    def map(self) -> FittedMap:
        """Made once in a process."""
        if (found := _MADE.get(self.fingerprint)) is None:
            lift = clone(self.lift).fit(of_columns(self.lift, self.columns)) if self.anew else self.lift
            found = FittedMap(lift, self.batch, self.size)
            while len(_MADE) >= 4:
                _MADE.pop(next(iter(_MADE)), None)
            _MADE[self.fingerprint] = found
        return found


_MADE: dict[str, FittedMap] = {}


def of_columns(lift: FittedLift, columns: Columns) -> Any:
    return columns.table() if isinstance(lift, Lift) else columns.table().data


def _print(plain: FittedLift, columns: Columns) -> str | None:
    """The fingerprint of a map that has seen one row of ones; None where that does not fit it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fingerprint(plain.fit(of_columns(plain, columns)))
    except Exception:
        return None


def learnt_map(
    data: Partitions,
    reader: Reader,
    seed: int,
    make: Callable[[Table, Array | None, Array | None], FittedMap],
) -> tuple[FittedMap, SampledRows]:
    """The map, and rows about whose mean sums are taken: of the first rows where it is the same for
    any rows, else of a sample of all."""
    first = head(data, reader)
    some = Table(["a"]) if data.columns.texts else data.columns.table()
    one = None if first.Y is None else np.zeros_like(first.Y[:1])
    maps = _made(make, first.table(data.columns), first.Y, first.weight), _made(make, some, one, None)
    if maps[0] is not None and maps[1] is not None and maps[0].fingerprint == maps[1].fingerprint:
        return maps[0], first
    rows = sampled(data, reader, seed)
    if not len(rows.X):
        raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
    return make(rows.table(data.columns), rows.Y, rows.weight), rows


def _made(
    make: Callable[..., FittedMap], X: Table, Y: Array | None, w: Array | None
) -> FittedMap | None:
    """None where these rows do not do."""
    if not len(X):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(X, Y, w)
    except ValueError:
        return None
