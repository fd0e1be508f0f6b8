"""Kernel rows times the changes of duals, on the GPU by fused tiles: no row is kept, as making it
anew takes less than reading it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.derivatives import TracedResults
from mercer.gpu.launch import DevicePairs
from mercer.gpu.operator import GPUOperator
from mercer.inputs import Array, Table
from mercer.kernels.base import Kernel

NUMBER_BYTES, FIXED_BYTES = 64.0, float(1 << 30)  # of a number of the rows, and of all else


class RowProducts:
    """k(x_i, x_j) of all rows i and some rows j, times numbers. All rows lie on the device as tiles
    read them, on both sides; those of a block are picked there.

    Parameters
    ----------
    kernel : Kernel
        One that has a tile.
    X : Table
        The rows, dense.
    device : str
        The torch device.
    precision : {"float32", "float64"}
        Of the products, as in `GPUOperator`.
    """

    def __init__(self, kernel: Kernel, X: Table, device: str, precision: str) -> None:
        self.op = GPUOperator(kernel, X, precision=precision, device=device)

    @staticmethod
    def bytes(n: int, width: int) -> float:
        """Of the memory of the device, for n rows of so many columns."""
        return NUMBER_BYTES * n * (width + 8) + FIXED_BYTES

    def times(self, rows: Array, change: Array) -> Array:
        """K[:, rows] @ change, (n,) in float64; `change` is (m,)."""
        if not len(rows):
            return np.zeros(self.op.shape[0])
        at, W = (
            torch.from_numpy(np.ascontiguousarray(values, kind)).to(self.op.device)
            for values, kind in ((rows, np.int64), (change, np.float64))
        )
        return np.asarray(self._of(at).times(W[:, None])[0, :, 0].cpu().numpy())

    def square(self, rows: Array, out: Array, edge: Array | None = None) -> None:
        """out = K[rows, rows], with zeros in the columns beyond, less numbers of the rows and of the
        columns (`edge`) where values are about a point: taken in float64, and copied once."""
        to, at = torch.from_numpy(out), torch.from_numpy(np.array(rows, np.int64))
        at = at.to(self.op.device)
        K = self.op.block(at, at, to.dtype if edge is None else torch.float64)
        if edge is not None:
            e = torch.from_numpy(edge).to(self.op.device)
            K = K - (e + e[:, None])
        K = (K + K.T) / 2  # products of two sides may be rounded otherwise
        to.copy_(torch.nn.functional.pad(K, (0, out.shape[1] - len(rows))).to(to.dtype))

    def room(self, size: int, dtype: Any) -> Array:
        """Memory of the host that the device writes to by itself."""
        like = torch.from_numpy(np.empty(0, dtype)).dtype
        return np.asarray(torch.empty(size, dtype=like, pin_memory=self.op.X.is_cuda).numpy())

    @cached_property
    def _whole(self) -> DevicePairs:
        """All rows with all, on sides of their own."""
        op = self.op
        source = TracedResults.of(op.source)
        return DevicePairs(source, op.X, op.X.view_as(op.X), op.positions, op.precision)

    def _of(self, at: Tensor) -> DevicePairs:
        """All rows with those at some places, of whose side nothing is made anew."""
        every = self._whole
        some = DevicePairs(every.source, every.X, every.Z[at], every.positions, every.precision)
        held, m = dict(every.operands), some.grid.columns
        for name, axis in self._columns.items():
            held[name] = _picked(held[name], at, m, axis)
        alike = {name: getattr(every, name) for name in ("frames", "parts", "theta", "_programs")}
        some.__dict__.update(alike, operands=held)  # what is kept where it was found once
        return some

    @cached_property
    def _columns(self) -> dict[str, int]:
        """The arrays of the second side, and which of their axes is that of its rows."""
        parts, vectors = self._whole.parts, self._whole.layout.vectors
        names = [(j, name) for j, part in enumerate(parts) for name in part.names]
        found = {f"B{j}{name}": int(name == "c") for j, name in names}
        return found | {f"P{i}": 0 for i, asked in enumerate(vectors) if asked.side != "rows"}


def _picked(values: Tensor, at: Tensor, m: int, axis: int) -> Tensor:
    """Those at some places along an axis, filled up by zeros to m."""
    shape = list(values.shape)
    shape[axis] = m
    out = torch.zeros(shape, dtype=values.dtype, device=values.device)
    out.narrow(axis, 0, len(at)).copy_(values.index_select(axis, at))
    return out
