"""The columns of a kernel matrix with the largest values in each row, on the GPU: block by block,
of which only the best so far are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mercer.gpu.backend import Tensor, torch

if TYPE_CHECKING:
    from mercer.gpu.operator import GPUOperator

ROWS, COLS = 1 << 11, 1 << 14  # of a block that is formed


def nearest(op: GPUOperator, k: int) -> tuple[Tensor, Tensor]:
    """(index, values), (n, k) each, largest first; of equal values the first column first."""
    n, m = op.shape
    if not 1 <= k <= m:
        raise ValueError(f"k must be between 1 and the {m} columns, got {k}.")
    index = torch.empty((n, k), dtype=torch.long, device=op.device)
    values = torch.empty((n, k), dtype=op.dtype, device=op.device)
    for at in range(0, n, ROWS):
        rows = slice(at, min(n, at + ROWS))
        index[rows], values[rows] = _of_rows(op, rows, k)
    return index, values


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
