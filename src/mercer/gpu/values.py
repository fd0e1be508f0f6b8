"""Blocks of a kernel matrix on the GPU, formed: the tile itself, stored. What it is of pairs is summed
over columns in float64, of rows about their centre, so that offsets and near-copies cost no digits;
the formula is in the precision that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.contract import Values
from mercer.gpu.launch import DevicePairs, launch
from mercer.gpu.tile import TileProgram, program

if TYPE_CHECKING:
    from mercer.gpu.operator import GPUOperator

ROWS, COLS = 64, 32  # of a tile, as products in float64 have
WARPS, STAGES = 4, 1


def block(op: GPUOperator, rows: Any, cols: Any, dtype: Any) -> Tensor:
    """K[rows, cols]; rows and columns as slices or positions."""
    tiles = op.exact.tiles
    device = tiles.X.device
    (at, n), (to, m) = _places(rows, tiles.X, ROWS), _places(cols, tiles.Z, COLS)
    out = torch.full((len(at), len(to)), float("nan"), dtype=dtype, device=device)
    if not n or not m:
        return out[:n, :m]
    made = _program(tiles, dtype)
    held = _operands(tiles, at, to, dtype)
    launch(
        made.text, (len(at) // ROWS, len(to) // COLS),
        out, out, tiles.theta.to(dtype), *(held[name] for name in made.arrays), len(at), len(to),
        COLS, R=ROWS, C=COLS, num_warps=WARPS, num_stages=STAGES, enable_fp_fusion=True,
    )  # fmt: skip
    return out[:n, :m]


def _program(tiles: DevicePairs, dtype: Any) -> TileProgram:
    """Its text, made once for a precision."""
    narrow = dtype == torch.float32
    if (known := tiles.value_programs.get(narrow)) is None:
        known = tiles.value_programs[narrow] = program(
            tiles.source, tiles.layout, tiles.parts, Values(), "float64",
            fast=narrow and tiles.device != "cpu", narrow=narrow,
        )  # fmt: skip
    return known


def _operands(tiles: DevicePairs, at: Tensor, to: Tensor, dtype: Any) -> dict[str, Tensor]:
    """What the tile takes, of these rows and columns."""
    out = {}
    for name, value in tiles.operands.items():
        if name[0] == "P":
            side, value = tiles.layout.vectors[int(name[1:])].side, value.to(dtype)
        else:
            side = "rows" if name[0] == "A" else "cols"
        out[name] = value[..., at if side == "rows" else to].contiguous()
    return out


def _places(part: Any, of: Tensor, whole: int) -> tuple[Tensor, int]:
    """Positions, with some of the first to fill a block; how many were asked for."""
    if isinstance(part, slice):
        found = torch.arange(*part.indices(len(of)), device=of.device)
    else:
        found = torch.as_tensor(part, device=of.device)
        found = torch.nonzero(found)[:, 0] if found.dtype == torch.bool else found.long() % len(of)
    padding = torch.zeros(-len(found) % whole, dtype=torch.long, device=of.device)
    return torch.cat([found, padding]), len(found)
