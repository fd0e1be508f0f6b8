"""pyarrow, or one sentence that says how to get it."""
from __future__ import annotations

from typing import Any, TypeAlias

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:  # pragma: no cover - the test blocks the import in a process of its own
    raise ImportError("reading tables needs pyarrow, which comes with the command line: pip install mercer[cli]") from error

Column: TypeAlias = Any  # a pyarrow.Array
Batch: TypeAlias = Any  # a pyarrow.RecordBatch

__all__ = ["Batch", "Column", "flat", "pa", "pc"]


def flat(column: Any) -> Column:
    """One plain array: chunks joined, dictionaries, runs and views decoded, extension types as they are stored."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(found.type, pa.BaseExtensionType):
        found = found.storage
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    if pa.types.is_run_end_encoded(found.type):
        found = pc.run_end_decode(found)
    return found.cast(pa.string()) if pa.types.is_string_view(found.type) else found
