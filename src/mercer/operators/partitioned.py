"""A symmetric kernel matrix whose products are made by the workers of the current Dask client, each
for blocks of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mercer.engines.scheduler import CLOSED, WorkerError, current_client, told
from mercer.inputs import Array
from mercer.kernels.base import Kernel
from mercer.operators.kernel import KernelOperator
from mercer.ops.threads import limit, single_blas
from mercer.ops.tiles import TILE_ROWS, cuts

BLOCK_ROWS = 1 << 12  # of a task: the number of rows alone decides what is added to what


class PartitionedOperator(KernelOperator):
    """K = k(X, X), never formed; every worker holds the rows, the client the vectors.

    Without a client it is `KernelOperator`.

    >>> from mercer.kernels import Linear
    >>> PartitionedOperator(Linear(), [[1.0], [2.0]]) @ np.ones(2)
    array([3., 6.])
    """

    def __init__(self, kernel: Kernel, X: Any) -> None:
        super().__init__(kernel, X)
        self._sent: dict[str, Any] = {}  # where the rows are, by client

    def __matmul__(self, V: ArrayLike) -> Array:
        client = current_client()
        if client is None:
            return super().__matmul__(V)
        W = self._vectors(V, self.shape[1], "V")
        with told(()):
            out = np.concatenate(self._blocks(client, W))
        return out if np.ndim(V) == 2 else out[:, 0]

    def _blocks(self, client: Any, W: Array) -> list[Array]:
        """The products of blocks of rows, in order."""
        if client.status != "running":
            raise WorkerError(CLOSED)
        if client.id not in self._sent:
            plain = KernelOperator(self.kernel, self.X)
            self._sent = {client.id: client.scatter(plain, broadcast=True, hash=False)}
        there = client.scatter(W, broadcast=True, hash=False)
        parts = [
            client.submit(rows_times, self._sent[client.id], there, s.start, s.stop, pure=False)
            for s in cuts(self.shape[0], BLOCK_ROWS)
        ]
        found: list[Array] = client.gather(parts)
        return found

    def astype(self, dtype: DTypeLike) -> PartitionedOperator:
        if self.dtype == dtype or self.X.items:
            return self
        return PartitionedOperator(self.kernel, self.X.astype(dtype))


def rows_times(K: KernelOperator, W: Array, start: int, stop: int) -> Array:
    """K[start:stop] @ W in one thread, as there are as many tasks as threads."""
    out = np.empty((stop - start, W.shape[1]), np.result_type(K.dtype, W.dtype))
    with limit(1), single_blas():
        for s in cuts(stop - start, K._step(TILE_ROWS)):
            total = np.zeros((s.stop - s.start, W.shape[1]))
            for cols, values in K.values(slice(start + s.start, start + s.stop), K._columns):
                total += values @ W[cols]
            out[s] = total
    return out
