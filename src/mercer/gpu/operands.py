"""Rows as tiles read them: some columns, mapped, scaled, centred, in units of their largest number,
split into float16 pieces, and padded to whole blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.quantities import SeenRows
from mercer.gpu.tile import TilePart
from mercer.pairs.linear import full

LARGEST = 4096.0  # of numbers in float16, so that what they leave is none of its small ones
CONSTANT = 32768.0  # that pieces of norms meet: these then fit float16 up to 255 columns
SAMPLE = 1 << 15  # rows that a centre is found from
PIECE = 1 << 20  # rows that are made ready at a time


@dataclass(frozen=True, eq=False)
class View:
    """Rows as a quantity sees them, in float64: a function of the columns of X."""

    rows: SeenRows
    columns: list[int] | None
    theta: tuple[float, ...]

    def __call__(self, X: Tensor) -> Tensor:
        Y = X.double() if self.columns is None else X[:, self.columns].double()
        r = self.rows
        if r.map is not None:
            Y = Y @ torch.from_numpy(np.ascontiguousarray(full(r.map).T)).to(Y.device)
        if r.periods is not None:
            angle = Y * (2 * np.pi / self._numbers(r.periods, Y))
            Y = torch.cat([torch.cos(angle), torch.sin(angle)], dim=1)
        if r.bandwidths is not None:
            b = self._numbers(r.bandwidths, Y)
            Y = Y / (torch.cat([b, b]) if r.periods is not None else b)
        if r.unit:
            size = torch.linalg.vector_norm(Y, dim=1, keepdim=True)
            Y = Y / torch.where(size > 0, size, 1.0)
        return Y

    def _numbers(self, places: tuple[int | float, ...], like: Tensor) -> Tensor:
        values = [self.theta[p] if isinstance(p, int) else p for p in places]
        return torch.tensor(values, dtype=torch.float64, device=like.device)

    def width(self, d: int) -> int:
        """Its columns, of rows with d."""
        r = self.rows
        inner = d if self.columns is None else len(self.columns)
        inner = inner if r.map is None else len(full(r.map))
        return 2 * inner if r.periods is not None else inner


@dataclass(frozen=True, eq=False)
class TileFrame:
    """Where a geometry is computed: rows less `centre`, over `unit`; raw rows have neither.

    mean, most : of |x - centre|^2
    """

    centre: Tensor
    unit: float
    mean: float = 0.0
    most: float = 0.0

    @classmethod
    def of(cls, view: View, sides: list[Tensor], *, raw: bool) -> TileFrame:
        """About the median of both sides, which a few far rows do not move; the largest number
        becomes `LARGEST`."""
        if raw:
            return cls(torch.zeros((), dtype=torch.float64, device=sides[0].device), 1.0)
        centre = torch.cat([view(X[:: -(-len(X) // SAMPLE)]) for X in sides]).median(dim=0).values
        top, most, total = 0.0, 0.0, 0.0
        for X in sides:
            for at in range(0, len(X), PIECE):
                U = view(X[at : at + PIECE]) - centre
                squares = (U * U).sum(dim=1)
                told = torch.stack([U.abs().max(), squares.max(), squares.sum()]).tolist()
                top, most, total = max(top, told[0]), max(most, told[1]), total + told[2]
        return cls(centre, (top or 1.0) / LARGEST, total / sum(map(len, sides)), most)


def arrays(
    part: TilePart, view: View, frame: TileFrame, X: Tensor, n: int, side: str, dtype: Any
) -> dict[str, Tensor]:
    """What the tile takes of one side, by name, for n rows with padding: "A" of rows, "B" of
    columns."""
    out: dict[str, Tensor] = {}
    for name in part.names:
        kind = torch.float16 if name.startswith("h") else dtype
        shape = {"h": (n, part.width), "c": (part.columns, n)}.get(name[0], (n,))
        out[name] = torch.zeros(shape, dtype=kind, device=X.device)
    for at in range(0, len(X), PIECE):
        Y = view(X[at : at + PIECE])
        U = (Y - frame.centre) / frame.unit
        rows = slice(at, at + len(Y))
        if part.pieces:
            U = _split(part, out, rows, U, side)
        if part.inside:
            _put_norms(part, out["h0"][rows], U, side)
        if "c" in out:
            out["c"][:, rows] = U.T.to(dtype)
        if "n" in out:
            out["n"][rows] = (U * U).sum(dim=1).to(dtype)
        if "e" in out:  # x'z = (x - c)'(z - c) + c'(x - c) + c'z
            other = Y / frame.unit if side == "B" else U
            found = other @ (frame.centre / frame.unit)
            if part.inside:  # g is |x - z|^2 / 2, and units are larger by a root of two
                found = 0.5 * found + 0.25 * (U * U).sum(dim=1)
            out["e"][rows] = found.to(dtype)
    return out


def _split(part: TilePart, out: dict[str, Tensor], rows: slice, U: Tensor, side: str) -> Tensor:
    """Store the float16 pieces of U; what they add up to."""
    d, high = part.columns, U.half()
    if part.pieces == 1 and not part.joined:
        out["h0"][rows, :d] = high
        return high.double()
    low = (U - high.double()).half()
    if part.joined:
        second, third = (high, low) if side == "A" else (low, high)
        out["h0"][rows, : 3 * d] = torch.cat([high, second, third], dim=1)
    else:
        out["h0"][rows, :d], out["h1"][rows, :d] = high, low
    return high.double() + low.double()


def _put_norms(part: TilePart, H: Tensor, U: Tensor, side: str) -> None:
    """Half of |x|^2 as a sum of three pieces beside the columns, each to meet a constant of the
    other side; rows of the left side change their sign: the product is |x - z|^2 / 2."""
    used = part.columns * (3 if part.joined else 1)
    own, other = (used, used + 3) if side == "A" else (used + 3, used)
    rest = (U * U).sum(dim=1) / (2 * CONSTANT)
    if side == "A":
        H[:, :used] *= -1
    for i in range(3):
        piece = rest.half()
        H[:, own + i], H[:, other + i] = piece, CONSTANT
        rest = rest - piece.double()
