"""The columns of a kernel matrix with the largest values in each row, on the GPU: kept by the tile
in one launch; where many are asked for, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.contract import Largest
from mercer.gpu.launch import LaunchGrid, launch
from mercer.gpu.tile import program

if TYPE_CHECKING:
    from mercer.gpu.operator import GPUOperator

ROWS, COLS = 1 << 11, 1 << 14  # of a block that is formed
MAX_KEPT = 32  # that a tile keeps of a row
TILE_ROWS, TILE_COLS, WARPS = 64, 32, 4


def nearest(op: GPUOperator, k: int) -> tuple[Tensor, Tensor]:
    """(index, values), (n, k) each, largest first; of equal values the first column first."""
    n, m = op.shape
    if not 1 <= k <= m:
        raise ValueError(f"k must be between 1 and the {m} columns, got {k}.")
    if k <= MAX_KEPT:
        return _kept(op, k)
    index = torch.empty((n, k), dtype=torch.long, device=op.device)
    values = torch.empty((n, k), dtype=op.dtype, device=op.device)
    for at in range(0, n, ROWS):
        rows = slice(at, min(n, at + ROWS))
        index[rows], values[rows] = _of_rows(op, rows, k)
    return index, values


def _kept(op: GPUOperator, k: int) -> tuple[Tensor, Tensor]:
    """By the tile; what the runs of columns kept is put in order."""
    tiles, narrow = op.exact.tiles, op.dtype == torch.float32
    grid: LaunchGrid = tiles.grid
    how = Largest(1 << (k - 1).bit_length(), k, "float32" if narrow else "float64")
    made = program(
        tiles.source, tiles.layout, tiles.parts, how, "float64",
        fast=narrow and tiles.device != "cpu", narrow=narrow,
    )  # fmt: skip
    shape = (grid.splits, *how.shape(grid.rows))
    best = torch.full(shape, float("nan"), dtype=op.dtype, device=op.device)
    held: dict[str, Any] = {
        name: value.to(op.dtype) if name[0] == "P" else value
        for name, value in tiles.operands.items()
    }
    held["NAMES"] = torch.full(shape, -1, dtype=torch.int32, device=op.device)
    held["MOST"] = torch.tensor([op.shape[1]], dtype=torch.int32, device=op.device)
    launch(
        made.text, (grid.rows // TILE_ROWS, grid.splits),
        best, best, tiles.theta.to(op.dtype), *(held[name] for name in made.arrays),
        grid.rows, grid.columns, grid.step, R=TILE_ROWS, C=TILE_COLS, num_warps=WARPS,
        num_stages=1, enable_fp_fusion=True,
    )  # fmt: skip
    n = op.shape[0]
    values, names = (T.transpose(0, 1).flatten(1)[:n] for T in (best, held["NAMES"]))
    values = torch.where(names < 0, -torch.inf, values)  # slots that nothing came to
    by_column = torch.argsort(names, dim=1)
    values, names = values.gather(1, by_column), names.gather(1, by_column)
    order = torch.argsort(values, dim=1, descending=True, stable=True)[:, :k]
    return names.gather(1, order).long(), values.gather(1, order)


def _of_rows(op: GPUOperator, rows: slice, k: int) -> tuple[Tensor, Tensor]:
    best = torch.empty((rows.stop - rows.start, 0), dtype=op.dtype, device=op.device)
    names = best.long()
    for at in range(0, op.shape[1], COLS):
        B = op.block(rows, slice(at, at + COLS))
        new = torch.arange(at, at + B.shape[1], device=op.device).expand(B.shape)
        both, named = torch.cat([best, B], dim=1), torch.cat([names, new], dim=1)
        order = both.argsort(dim=1, descending=True, stable=True)[:, :k]
        best, names = both.gather(1, order), named.gather(1, order)
    return names, best
