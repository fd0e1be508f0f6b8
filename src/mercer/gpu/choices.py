"""How a formula is computed: the parts of its tile, the shape of a launch, and whether near pairs
need differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.gpu.contract import ColumnSums, Contraction, MatrixProducts, PieceProducts
from mercer.gpu.derivatives import TracedResults
from mercer.gpu.quantities import Geometry
from mercer.gpu.tile import RESIDENT, TilePart

NORMS = 6  # columns that norms take
MAX_DIRECT = 8  # columns up to which a kernel with a kink is computed by differences
NEAR_ZERO = 1e-4  # a distance, in bandwidths, beside which a formula is looked at


@dataclass(frozen=True)
class Shape:
    """Of a launch: rows and columns of a tile, warps, stages of loads."""

    rows: int
    cols: int
    warps: int
    stages: int


def shape_of(parts: list[TilePart], precision: str, contraction: Contraction) -> Shape:
    """By what was measured on an H200 (docs/design/0017); with many sides, or sums by columns, by
    the registers that the compiler reports."""
    plain = not parts or by_pieces(parts)
    if isinstance(contraction, PieceProducts):
        if contraction.sides > 32:
            return Shape(64, 128 if all(p.width <= RESIDENT for p in parts) else 64, 4, 2)
        narrow = all(p.pieces * p.width <= RESIDENT for p in parts)
        return Shape(64, 128, 4, 3) if narrow else Shape(64, 64, 4, 2)
    if isinstance(contraction, ColumnSums):
        return Shape(64 if plain else 32, 64, 4, 2)
    if precision == "float64":
        return Shape(64, 32, 4, 1)
    if isinstance(contraction, MatrixProducts):
        return Shape(64, 64 if plain and contraction.sides <= 32 else 32, 4, 2)
    if any(not p.pieces for p in parts):
        return Shape(128, 64, 4, 3)
    if any(p.width > RESIDENT for p in parts):
        return Shape(128, 128, 8, 3) if any(p.pieces > 1 for p in parts) else Shape(128, 256, 8, 3)
    if any(p.pieces > 1 and p.width == RESIDENT for p in parts):
        return Shape(128, 32, 4, 3)
    return Shape(128, 64, 4, 3) if any(p.width == RESIDENT for p in parts) else Shape(64, 128, 4, 3)


def by_pieces(parts: list[TilePart]) -> bool:
    """Whether all values of a tile lie as matrix units leave them."""
    return bool(parts) and all(p.pieces and not p.mended for p in parts)


def part_of(g: Geometry, d: int, precision: str, near: bool) -> TilePart:
    """How a geometry of d columns is computed."""
    loops = g.unit != "matrix"
    if loops or (near and g.distances and d <= MAX_DIRECT):
        return TilePart(g, d, d)
    mended = near and g.distances
    single, joined = (1 << max(4, (used - 1).bit_length()) for used in (d, 3 * d))
    alone = g.distances and not mended
    if precision == "tf32" and not mended:
        width = _blocks(single, d)
        return TilePart(g, d, width, 1, inside=alone and d + NORMS <= width <= RESIDENT)
    if joined <= min(3 * single, RESIDENT):
        inside = alone and 3 * d + NORMS <= joined
        return TilePart(g, d, joined, 1, joined=True, mended=mended, inside=inside)
    return TilePart(g, d, _blocks(single, d), 2, mended=mended)


def _blocks(power: int, d: int) -> int:
    """Columns with their padding: a power of two while rows stay on the chip, else whole chunks."""
    return power if power <= RESIDENT else -(-d // 64) * 64


def has_kink(source: TracedResults) -> bool:
    """Whether a result changes like r, not r^2, where a distance r goes to zero: by the formula at
    such distances, all else being at hand."""
    made, theta = source.formula(), source.parameters
    for i, asked in enumerate(source.quantities):
        if asked.kind not in ("dist", "sqdist"):
            continue

        def at(r: float, i: int = i, root: bool = asked.kind == "dist") -> list[float]:
            q = [np.array([1.0])] * len(source.quantities)
            q[i] = np.array([r if root else r * r])
            with np.errstate(all="ignore"):
                return [float(np.ravel(v)[0]) for v in made(np, *q, *theta)]

        for zero, near, one in zip(at(0.0), at(NEAR_ZERO), at(1.0), strict=True):
            if abs(near - zero) > 1e-6 * max(abs(zero), abs(one), 1e-30):
                return True
    return False
