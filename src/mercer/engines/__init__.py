"""Engines: one fold of statistics over partitions of rows, on the current Dask client, in threads,
or one after another; with checkpoints of what is done."""

from mercer.engines.checkpoint import checkpointed
from mercer.engines.lazy import is_dask

__all__ = ["checkpointed", "is_dask"]
