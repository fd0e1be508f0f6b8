"""pyarrow, or one sentence that says how to get it."""

from __future__ import annotations

from typing import Any, TypeAlias

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except (
    ImportError
) as error:  # pragma: no cover - the test blocks the import in a process of its own
    raise ImportError(
        "reading tables needs pyarrow, which comes with the command line: pip install mercer[cli]"
    ) from error

Column: TypeAlias = Any  # a pyarrow.Array
Batch: TypeAlias = Any  # a pyarrow.RecordBatch
Schema: TypeAlias = Any  # a pyarrow.Schema
ArrowTable: TypeAlias = Any  # a pyarrow.Table
Kind: TypeAlias = Any  # a pyarrow.DataType

__all__ = ["ArrowTable", "Batch", "Column", "Kind", "Schema", "flat", "pa", "pc"]


_DAY = 86_400
# the years 1 to 9999, in seconds since 1970
_FIRST = -62_135_596_800
_LAST = 253_402_300_799
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def dated(batch: Batch) -> Batch:
    """Without dates beyond the years 1 to 9999, which no calendar of Python's or Arrow's can write:
    they count as missing."""
    columns = [_dated(c) for c in batch.columns]
    same = all(new is old for new, old in zip(columns, batch.columns, strict=True))
    return batch if same else pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _dated(column: Column) -> Column:
    kind = column.type
    if pa.types.is_timestamp(kind):
        ticks, unit = column.cast(pa.timestamp(kind.unit)).cast(pa.int64()), _TICKS[kind.unit]
    elif pa.types.is_date64(kind):
        ticks, unit = column.cast(pa.int64()), 1000
    elif pa.types.is_date32(kind):
        ticks, unit = column.cast(pa.int32()).cast(pa.int64()), 0
    else:
        return column
    low, high = (_FIRST * unit, _LAST * unit) if unit else (_FIRST // _DAY, _LAST // _DAY)
    if kind == pa.timestamp("ns", getattr(kind, "tz", None)):
        return column  # 64 bits of nanoseconds end before
    found = pc.min_max(ticks).as_py()
    if found["min"] is None or (found["min"] >= low and found["max"] <= high):
        return column
    return pc.if_else(
        pc.and_(pc.greater_equal(ticks, low), pc.less_equal(ticks, high)),
        column,
        pa.scalar(None, kind),
    )


def flat(column: Column) -> Column:
    """One plain array: chunks joined, dictionaries, runs and views decoded, extension types as they
    are stored."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(found.type, pa.BaseExtensionType):
        found = found.storage
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    if pa.types.is_run_end_encoded(found.type):
        found = pc.run_end_decode(found)
    return found.cast(pa.string()) if pa.types.is_string_view(found.type) else found
