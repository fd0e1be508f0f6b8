"""GPUOperator: a kernel matrix on the GPU, seen through products, by one fused tile made of the
kernel's traced formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.gpu import files
from mercer.gpu.backend import Tensor, torch
from mercer.gpu.operands import TileFrame, View, arrays
from mercer.gpu.quantities import Geometry, SeenRows, TileLayout
from mercer.gpu.reference import block, vector
from mercer.gpu.tile import RESIDENT, TilePart, program
from mercer.inputs import Table
from mercer.kernels.base import Kernel
from mercer.pairs import KernelSource

PRECISIONS = ("float32", "tf32", "float64")
BLOCK = 256  # rows and columns are padded to a multiple of it
MAX_OUTPUTS = 8  # columns of V in one launch
WAVES = 8  # blocks of rows a multiprocessor, below which columns are shared out too
# of |x|^2 in squared bandwidths: beyond, near pairs are taken by differences, or by two pieces
MEAN_SPREAD, MOST_SPREAD, TF32_SPREAD = 8.0, 100.0, 64.0
NORMS = 6  # columns that norms take
MAX_DIRECT = 8  # columns up to which a kernel with a kink is computed by differences


@dataclass(frozen=True)
class Shape:
    """Of a launch: rows and columns of a tile, warps, stages of loads."""

    rows: int
    cols: int
    warps: int
    stages: int


def shape_of(parts: list[TilePart], precision: str) -> Shape:
    """By what was measured on an H200 (docs/design/0017)."""
    if precision == "float64":
        return Shape(64, 32, 4, 1)
    if any(not p.pieces for p in parts):
        return Shape(128, 64, 4, 3)
    if any(p.width > RESIDENT for p in parts):
        return Shape(128, 128, 8, 3) if any(p.pieces > 1 for p in parts) else Shape(128, 256, 8, 3)
    if any(p.pieces > 1 and p.width == RESIDENT for p in parts):
        return Shape(128, 32, 4, 3)
    return Shape(128, 64, 4, 3) if any(p.width == RESIDENT for p in parts) else Shape(64, 128, 4, 3)


class GPUOperator:
    """K = k(X, Z) on the GPU, never formed: K @ V in one launch.

    Parameters
    ----------
    kernel : Kernel
        Any expression whose parts have a GPU source.
    X : array-like or tensor of shape (n, d)
        The rows.
    Z : as X, of shape (m, d), default=None
        The columns; None is X.
    precision : {"float32", "tf32", "float64"}, default="float32"
        "float32": products of pairs by two float16 pieces a number, K @ v to about 1e-6 of |K||v|.
        "tf32": by one, of 11 bits, to about 1e-3; kernels with a kink at distance zero take
        "float32" all the same. "float64": everything so, by a loop over columns.
    device : str, default=None
        The device's name; None is the GPU, or the CPU where Triton interprets.
    """

    __array_ufunc__ = None

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        Z: Any = None,
        *,
        precision: str = "float32",
        device: str | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}."
            )
        self.kernel, self.precision = kernel, precision
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.X = _tensor(X, self.device)
        self.Z = self.X if Z is None or Z is X else _tensor(Z, self.device)
        self._names = X.columns if isinstance(X, Table) else None
        self.shape = len(self.X), len(self.Z)
        self.source: KernelSource = kernel.source()
        self._launches: dict[int, Any] = {}

    # what the tile takes, made once
    @cached_property
    def dtype(self) -> Any:
        return torch.float64 if self.precision == "float64" else torch.float32

    @cached_property
    def layout(self) -> TileLayout:
        return TileLayout.of(self.source, "columns" if self.precision == "float64" else "matrix")

    @cached_property
    def _views(self) -> list[View]:
        made = [g.rows for g in self.layout.geometries]
        return [View(r, self._positions(r.columns), self.source.parameters) for r in made]

    def _positions(self, columns: tuple[int | str, ...] | None) -> list[int] | None:
        if columns is None:
            return None
        at = Table(np.empty((0, self.X.shape[1])), self._names)
        return [at.position(c) for c in columns]

    @cached_property
    def parts(self) -> list[TilePart]:
        kinked = self.precision != "float64" and has_kink(self.source)
        d, out = self.X.shape[1], []
        for g, view, frame in zip(self.layout.geometries, self._views, self._frames, strict=True):
            near = kinked or self._spread(g, frame, MEAN_SPREAD, MOST_SPREAD)
            coarse = self.precision == "tf32" and not self._spread(g, frame, TF32_SPREAD, math.inf)
            precision = "tf32" if coarse and not kinked else "float32"
            out.append(part_of(g, view.width(d), precision, near and precision == "float32"))
        return out

    def _spread(self, g: Geometry, frame: TileFrame, mean: float, most: float) -> bool:
        """Whether rows lie so many bandwidths from their centre that products lose the digits of
        near pairs."""
        theta = self.source.parameters
        b = min((theta[w] if isinstance(w, int) else w for w in g.widths), default=math.inf)
        return frame.mean > mean * b * b or frame.most > most * b * b

    @cached_property
    def _frames(self) -> list[TileFrame]:
        sides = [self.X] if self.Z is self.X else [self.X, self.Z]
        pairs = zip(self.layout.geometries, self._views, strict=True)
        return [TileFrame.of(view, sides, raw=g.unit == "raw") for g, view in pairs]

    @cached_property
    def _arrays(self) -> dict[str, Tensor]:
        sides = {"A": self.X, "B": self.Z}
        out: dict[str, Tensor] = {}
        for j, (part, view) in enumerate(zip(self.parts, self._views, strict=True)):
            frame = self._frames[j]
            self._units[j] = frame.unit * (math.sqrt(2) if part.inside else 1.0)
            made: dict[int, dict[str, Tensor]] = {}
            for side, X in sides.items():
                alike = self.X is self.Z and not (
                    part.joined or part.inside or part.geometry.products
                )
                key = 0 if alike else ord(side)
                if key not in made:
                    n = self.grid.rows if side == "A" else self.grid.columns
                    made[key] = arrays(part, view, frame, X, n, side, self.dtype)
                out |= {f"{side}{j}{name}": value for name, value in made[key].items()}
        for i, asked in enumerate(self.layout.vectors):
            mine = asked.side == "rows"
            X, n = (self.X, self.grid.rows) if mine else (self.Z, self.grid.columns)
            view = View(
                SeenRows(asked.columns, asked.map),
                self._positions(asked.columns),
                self.source.parameters,
            )
            out[f"P{i}"] = vector(asked, view, X, n, self.dtype)
        return out

    @cached_property
    def _units(self) -> dict[int, float]:
        return {}

    def as_precise(self, precision: str) -> GPUOperator:
        """The same matrix in another precision."""
        Z = None if self.Z is self.X else self.Z
        return GPUOperator(self.kernel, self.X, Z, precision=precision, device=self.device)

    # values
    def block(self, rows: Any = slice(None), cols: Any = slice(None), dtype: Any = None) -> Tensor:
        """K[rows, cols], formed, as a tensor; by the plain tile."""
        kind = dtype or self.dtype
        return block(self.source, self.X[rows], self.Z[cols], self._positions, kind)

    def diag(self) -> Tensor:
        """k(x_i, x_i) of the rows, in float64."""
        values = self.kernel.diag(Table(self.X.double().cpu().numpy(), self._names))
        return torch.from_numpy(values).to(self.device)

    # products
    def __matmul__(self, V: Any) -> Any:
        """K @ V for one vector (m,) or many (m, q): a tensor for a tensor, else an array."""
        given = torch.is_tensor(V)
        W = torch.as_tensor(V).to(self.device)
        if W.ndim not in (1, 2) or len(W) != self.shape[1]:
            raise ValueError(f"V must have {self.shape[1]} rows, got {tuple(W.shape)}.")
        columns = W.reshape(len(W), -1)
        out = torch.empty(
            (self.shape[0], columns.shape[1]), dtype=torch.float64, device=self.device
        )
        for at in range(0, columns.shape[1], MAX_OUTPUTS):
            out[:, at : at + MAX_OUTPUTS] = self._times(columns[:, at : at + MAX_OUTPUTS])
        out = (out if W.ndim == 2 else out[:, 0]).to(_wider(W.dtype))
        return out if given else out.cpu().numpy()

    def _times(self, W: Tensor) -> Tensor:
        """(n, q) in float64, for few columns; each in units of its largest number."""
        at, shape = self.grid, shape_of(self.parts, self.precision)
        top = W.abs().amax(dim=0).double()
        size = torch.where(top > 0, top, 1.0)
        V = torch.zeros((W.shape[1], at.columns), dtype=self.dtype, device=self.device)
        V[:, : len(W)] = (W / size).T.to(self.dtype)
        operands = self._arrays
        made = self._program(W.shape[1])
        out = torch.full(
            (at.splits, W.shape[1], at.rows), float("nan"), dtype=torch.float64, device=self.device
        )
        theta = [*self.source.parameters, *(self._units[j] for j in range(len(self.parts)))]
        numbers = torch.tensor(theta, dtype=self.dtype, device=self.device)
        kernel = files.load(made.text)
        kernel[(at.rows // shape.rows, at.splits)](
            out, V, numbers, *(operands[name] for name in made.arrays), at.rows, at.columns, at.step,
            R=shape.rows, C=shape.cols, num_warps=shape.warps, num_stages=shape.stages,
        )  # fmt: skip
        return out.sum(dim=0)[:, : self.shape[0]].T * size

    def _program(self, outputs: int) -> Any:
        if outputs not in self._launches:
            dtype = "float64" if self.precision == "float64" else "float32"
            fast = self.device != "cpu" and dtype == "float32"
            made = program(self.source, self.layout, self.parts, outputs, dtype, fast=fast)
            self._launches[outputs] = made
        return self._launches[outputs]

    @cached_property
    def grid(self) -> LaunchGrid:
        """Programs for all multiprocessors, whatever the shape; one order of sums a device."""
        there = 4 if self.device == "cpu" else _multiprocessors(self.device)
        return LaunchGrid.of(*self.shape, there, symmetric=self.X is self.Z)


@dataclass(frozen=True)
class LaunchGrid:
    """Rows and columns with their padding, and the runs of columns that programs share out."""

    rows: int
    columns: int
    splits: int

    @property
    def step(self) -> int:
        return self.columns // self.splits

    @classmethod
    def of(cls, n: int, m: int, processors: int, *, symmetric: bool) -> LaunchGrid:
        """For so many multiprocessors.

        >>> LaunchGrid.of(300, 100_000, 132, symmetric=False)
        LaunchGrid(rows=512, columns=100096, splits=391)
        """
        rows, blocks = -(-n // BLOCK), -(-m // BLOCK)
        step = -(-blocks // max(1, WAVES * processors // rows))
        columns = -(-blocks // step) * step
        rows = columns if symmetric else rows
        return cls(rows * BLOCK, columns * BLOCK, columns // step)


def _multiprocessors(device: str) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def part_of(g: Geometry, d: int, precision: str, near: bool) -> TilePart:
    """How a geometry of d columns is computed."""
    loops = g.unit != "matrix"
    if loops or (near and g.distances and d <= MAX_DIRECT):
        return TilePart(g, d, d)
    mended = near and g.distances
    single, joined = (1 << max(4, (used - 1).bit_length()) for used in (d, 3 * d))
    alone = g.distances and not g.products and not mended
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


def has_kink(source: KernelSource) -> bool:
    """Whether k changes like r, not r^2, where a distance r goes to zero: by the formula at such
    distances, all else being at hand."""
    base = {f"t{i}": v for i, v in enumerate(source.parameters)}
    scope: dict[str, Any] = {"xp": np}
    exec(str(source), scope)
    for i, asked in enumerate(source.quantities):
        if asked.kind not in ("dist", "sqdist"):
            continue
        q = {f"q{j}": np.array([1.0]) for j in range(len(source.quantities)) if j != i}
        with np.errstate(all="ignore"):
            values = [
                float(
                    scope["tile"](
                        **q, **{f"q{i}": np.array([r if asked.kind == "dist" else r * r])}, **base
                    )[0]
                )
                for r in (1e-4, 0.0)
            ]
        if abs(values[0] - values[1]) > 1e-6 * max(abs(values[1]), 1e-30):
            return True
    return False


def _tensor(X: Any, device: str) -> Tensor:
    if isinstance(X, Table):
        if X.items or X.sparse:
            raise ValueError("the GPU takes dense rows of numbers; use device='cpu' for these.")
        X = X.data
    out = X if torch.is_tensor(X) else torch.from_numpy(np.ascontiguousarray(X))
    if out.ndim != 2 or not len(out):
        raise ValueError(f"X must have two axes and a row, got shape {tuple(out.shape)}.")
    return out.to(device)


def _wider(dtype: Any) -> Any:
    return dtype if dtype in (torch.float32, torch.float64) else torch.float64
