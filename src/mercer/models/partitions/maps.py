"""A map over rows in partitions: learnt from some of them, and sent as its seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from mercer.engines.lazy import LazyColumns
from mercer.engines.partitions import Partitions
from mercer.engines.reader import PartitionReader
from mercer.engines.sample import PartitionSample, head, sampled
from mercer.inputs import Array, Table
from mercer.lifts import Lift
from mercer.lifts.base import needs_target
from mercer.models.maps import FittedMap
from mercer.models.settings import FittedLift
from mercer.store import fingerprint


@dataclass(frozen=True, eq=False)
class MapRecipe:
    """A map as it travels: not fitted, where any row of these columns fits it to the same, so that a
    worker makes it anew from its seed; else as it is."""

    lift: FittedLift
    columns: LazyColumns
    batch: float
    size: int | None
    fingerprint: str
    anew: bool

    @classmethod
    def of(cls, phi: FittedMap, columns: LazyColumns) -> Self:
        plain = clone(phi.lift)
        anew = (
            not columns.texts
            and not needs_target(plain)
            and _print(plain, columns) == phi.fingerprint
        )
        lift = clone(phi.lift) if anew else phi.lift
        return cls(lift, columns, phi.batch, phi.size, phi.fingerprint, anew)

    def map(self) -> FittedMap:
        """Made once in a process."""
        with _LOCK:
            return self._made()

    def _made(self) -> FittedMap:
        if (found := _MADE.get(self.fingerprint)) is None:
            lift = (
                clone(self.lift).fit(of_columns(self.lift, self.columns))
                if self.anew
                else self.lift
            )
            found = FittedMap(lift, self.batch, self.size)
            while len(_MADE) >= 4:
                _MADE.pop(next(iter(_MADE)), None)
            _MADE[self.fingerprint] = found
        return found


_MADE: dict[str, FittedMap] = {}
_LOCK = Lock()


def of_columns(lift: FittedLift, columns: LazyColumns) -> Any:
    return columns.table() if isinstance(lift, Lift) else columns.table().data


def _print(plain: FittedLift, columns: LazyColumns) -> str | None:
    """The fingerprint of a map that has seen one row of ones; None where that does not fit it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fingerprint(plain.fit(of_columns(plain, columns)))
    except Exception:
        return None


def learnt_map(
    data: Partitions,
    reader: PartitionReader,
    seed: int,
    make: Callable[[Table, Array | None, Array | None], FittedMap],
    *,
    sample: bool = False,
) -> tuple[FittedMap, PartitionSample]:
    """The map, and rows about whose mean sums are taken: of the first rows where it is the same for
    any rows, else, and where a sample is asked for, of a sample of all."""
    first = head(data, reader)
    some = Table(["a"]) if data.columns.texts else data.columns.table()
    one = None if first.Y is None else np.zeros_like(first.Y[:1])
    maps = (
        _made(make, first.table(data.columns), first.Y, first.weight),
        _made(make, some, one, None),
    )
    if maps[0] is not None and maps[1] is not None and maps[0].fingerprint == maps[1].fingerprint:
        return maps[0], sampled(data, reader, seed) if sample else first
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
