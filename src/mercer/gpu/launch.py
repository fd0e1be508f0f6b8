"""DevicePairs: formulas over all pairs of two sets of rows on a device, contracted in one launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

from mercer.gpu import files
from mercer.gpu.backend import Tensor, torch
from mercer.gpu.choices import by_pieces, has_kink, part_of, shape_of
from mercer.gpu.contract import (
    MAGNIFIED,
    ColumnSums,
    Contraction,
    MatrixProducts,
    PieceProducts,
    Sums,
)
from mercer.gpu.derivatives import TracedResults
from mercer.gpu.operands import TileFrame, View, arrays
from mercer.gpu.quantities import Geometry, SeenRows, TileLayout
from mercer.gpu.reference import vector
from mercer.gpu.tile import TilePart, TileProgram, program

BLOCK = 256  # rows and columns are padded to a multiple of it
MAX_SUMS = 8  # right-hand sides in one launch of sums
MAX_SIDES = 64  # in one launch of products
MAX_BESIDE = 2  # beyond a power of two, which padding would double
WAVES = 8  # blocks of rows a multiprocessor, below which columns are shared out too
TINY = 1e-300  # of a column without numbers
GROUP = 16  # columns whose sums one program keeps
# of |x|^2 in squared bandwidths: beyond, near pairs are taken by differences, or by two pieces
MEAN_SPREAD, MOST_SPREAD, TF32_SPREAD = 8.0, 100.0, 64.0
DIGITS = {"float32": "tf32x3", "tf32": "tf32", "float64": "ieee"}  # of products with many sides
ONE = Lock()  # of launches: problems solved side by side compile a tile once; interpreters need it
Positions = Callable[[tuple[int | str, ...] | None], list[int] | None]


@dataclass(frozen=True, eq=False)
class DevicePairs:
    """Results of one trace at all pairs of rows of X (n, d) and Z (m, d), never formed."""

    source: TracedResults
    X: Tensor
    Z: Tensor
    positions: Positions  # of columns by name or number
    precision: str
    held: dict[Any, Any] = field(default_factory=dict)  # that other results of these rows share

    @property
    def device(self) -> str:
        return str(self.X.device)

    @cached_property
    def dtype(self) -> Any:
        return torch.float64 if self.precision == "float64" else torch.float32

    # how, found once
    @cached_property
    def layout(self) -> TileLayout:
        return TileLayout.of(self.source, "columns" if self.precision == "float64" else "matrix")

    @cached_property
    def views(self) -> list[View]:
        return [self.view(g.rows) for g in self.layout.geometries]

    def view(self, rows: SeenRows) -> View:
        return View(rows, self.positions(rows.columns), self.source.parameters)

    @cached_property
    def frames(self) -> list[TileFrame]:
        pairs = zip(self.layout.geometries, self.views, strict=True)
        return [self._frame(view, raw=g.unit == "raw") for g, view in pairs]

    def _frame(self, view: View, *, raw: bool) -> TileFrame:
        key = (view.rows, view.theta, raw)
        if key not in self.held:
            self.held[key] = TileFrame.of(view, self.sides, raw=raw)
        frame: TileFrame = self.held[key]
        return frame

    @property
    def sides(self) -> list[Tensor]:
        return [self.X] if self.Z is self.X else [self.X, self.Z]

    @cached_property
    def parts(self) -> list[TilePart]:
        kinked = self.precision != "float64" and has_kink(self.source)
        d, out = self.X.shape[1], []
        for g, view, frame in zip(self.layout.geometries, self.views, self.frames, strict=True):
            near = kinked or self.spread(g, frame)
            coarse = self.precision == "tf32" and not self._beyond(g, frame, TF32_SPREAD, math.inf)
            precision = "tf32" if coarse and not kinked else "float32"
            out.append(part_of(g, view.width(d), precision, near and precision == "float32"))
        return out

    def spread(self, g: Geometry, frame: TileFrame) -> bool:
        """Whether rows lie so many bandwidths from their centre that products lose the digits of
        near pairs."""
        return self._beyond(g, frame, MEAN_SPREAD, MOST_SPREAD)

    def _beyond(self, g: Geometry, frame: TileFrame, mean: float, most: float) -> bool:
        theta = self.source.parameters
        b = min((theta[w] if isinstance(w, int) else w for w in g.widths), default=math.inf)
        return frame.mean > mean * b * b or frame.most > most * b * b

    @cached_property
    def grid(self) -> LaunchGrid:
        """Programs for all multiprocessors, whatever the shape; one order of sums a device."""
        there = 4 if self.device == "cpu" else _multiprocessors(self.device)
        return LaunchGrid.of(len(self.X), len(self.Z), there, symmetric=self.X is self.Z)

    # what the tile takes, made once
    @cached_property
    def operands(self) -> dict[str, Tensor]:
        out: dict[str, Tensor] = {}
        for j, part in enumerate(self.parts):
            key = (part, self.source.parameters, self.dtype)
            if key not in self.held:
                self.held[key] = self._of_part(j, part)
            for side, held in self.held[key].items():
                out |= {f"{side}{j}{name}": value for name, value in held.items()}
        for i, asked in enumerate(self.layout.vectors):
            mine = asked.side == "rows"
            X, n = (self.X, self.grid.rows) if mine else (self.Z, self.grid.columns)
            view = self.view(SeenRows(asked.columns, asked.map))
            out[f"P{i}"] = vector(asked, view, X, n, self.dtype)
        return out

    def _of_part(self, j: int, part: TilePart) -> dict[str, dict[str, Tensor]]:
        """Of both sides; one and the same where they are alike."""
        alike = self.X is self.Z and not (part.joined or part.inside or part.geometry.products)
        view, frame = self.views[j], self.frames[j]
        A = arrays(part, view, frame, self.X, self.grid.rows, "A", self.dtype)
        if alike:
            return {"A": A, "B": A}
        B = arrays(part, view, frame, self.Z, self.grid.columns, "B", self.dtype)
        return {"A": A, "B": B}

    @cached_property
    def theta(self) -> Tensor:
        """Parameters, and the unit of each part."""
        roots = [math.sqrt(2) if part.inside else 1.0 for part in self.parts]
        units = [f.unit * root for f, root in zip(self.frames, roots, strict=True)]
        numbers = [*self.source.parameters, *units]
        return torch.tensor(numbers, dtype=self.dtype, device=self.X.device)

    # contractions
    def times(self, W: Tensor, *, normwise: bool = False) -> Tensor:
        """(results, n, q) in float64 for W (m, q); `normwise`: errors may be of the largest numbers
        of a column, as iterations allow, where that is quicker."""
        count, q = len(self.source.results), W.shape[1]
        pieces = normwise and self.precision == "float32" and by_pieces(self.parts)
        runs = [*self._runs(count, q, 0 if pieces else MAX_BESIDE)]
        if len(runs) == 1:
            return self._run(W, pieces).contiguous()
        out = torch.empty((count, len(self.X), q), dtype=torch.float64, device=self.X.device)
        for at in runs:
            out[:, :, at] = self._run(W[:, at], pieces)
        return out

    def _run(self, W: Tensor, pieces: bool) -> Tensor:
        many = W.shape[1] > MAX_SUMS and self.precision != "float64"
        return self._products(W, pieces) if many else self._sums(W)

    def _runs(self, count: int, q: int, beside: int) -> Iterator[slice]:
        """Columns that go in one launch: few by sums; as many as a power of two and a few more
        (`beside`) by products, and those few by sums."""
        at, few = 0, max(1, MAX_SUMS // count)
        while at < q:
            step = min(MAX_SIDES, q - at)
            if step <= MAX_SUMS or self.precision == "float64":
                step = few
            elif step - (whole := 1 << (step.bit_length() - 1)) <= beside:
                step = max(whole, MAX_SUMS + 1)
            yield slice(at, min(at + step, q))
            at += step

    def _sums(self, W: Tensor) -> Tensor:
        V, size = self._scaled(W)
        count, q = len(self.source.results), W.shape[1]
        found = self._launched(Sums(count, q), V.T.contiguous(), {})
        return found.reshape(count, q, -1)[:, :, : len(self.X)].transpose(1, 2) * size

    def _products(self, W: Tensor, pieces: bool) -> Tensor:
        """One result after the other."""
        if len(self.source.names) == 1:
            return self._product(W, pieces)[None]
        each = (self._alone[name] for name in self.source.names)
        return torch.stack([one._product(W, pieces) for one in each])

    def _product(self, W: Tensor, pieces: bool) -> Tensor:
        width = 1 << max(4, (W.shape[1] - 1).bit_length())
        V, size = self._scaled(W, width)
        if pieces:
            found = self._launched(PieceProducts(width), _pieces(V), {})
        else:
            found = self._launched(MatrixProducts(width, DIGITS[self.precision]), V, {})
        return found[: len(self.X), : W.shape[1]] * size

    @cached_property
    def _alone(self) -> dict[str, DevicePairs]:
        """Each result by its name."""
        return {name: self.some(name) for name in self.source.names}

    def some(self, *names: str) -> DevicePairs:
        """Of some of the results."""
        return replace(self, source=self.source.some(*names))

    def column_sums(self, W: Tensor, slope: str, x: Tensor, z: Tensor) -> Tensor:
        """sum_j f_ij W_jt s(x_ik, z_jk), (n, q, k) in float64, for columns x (n, k) and z (m, k) of
        the two sides."""
        V, size = self._scaled(W)
        group = min(GROUP, 1 << (x.shape[1] - 1).bit_length())
        columns = -(-x.shape[1] // group) * group
        how = ColumnSums(slope, columns, W.shape[1], group)
        sides = {"SA": (x, self.grid.rows), "SB": (z, self.grid.columns)}
        more = {name: self._columns(part, columns, n) for name, (part, n) in sides.items()}
        found = self._launched(how, V.T.contiguous(), more, how.groups * W.shape[1])
        found = found.reshape(W.shape[1], columns, -1)[:, : x.shape[1], : len(self.X)]
        return found.permute(2, 0, 1) * size[:, None]

    def _columns(self, part: Tensor, columns: int, n: int) -> Tensor:
        out = torch.zeros((columns, n), dtype=self.dtype, device=part.device)
        out[: part.shape[1], : len(part)] = part.T.to(self.dtype)
        return out

    def _scaled(self, W: Tensor, width: int | None = None) -> tuple[Tensor, Tensor]:
        """W with its padding, each column in units of its largest number; these."""
        q = W.shape[1]
        size = W.abs().amax(dim=0).double().clamp(min=TINY)
        V = torch.zeros((self.grid.columns, width or q), dtype=self.dtype, device=W.device)
        torch.div(W, size, out=V[: len(W), :q])
        return V, size

    def program(self, contraction: Contraction) -> TileProgram:
        """Its text, made once: at few rows, writing it takes longer than running it."""
        if contraction not in self._programs:
            dtype = "float64" if self.precision == "float64" else "float32"
            fast = self.device != "cpu" and dtype == "float32"
            self._programs[contraction] = program(
                self.source, self.layout, self.parts, contraction, dtype, fast=fast
            )
        return self._programs[contraction]

    @cached_property
    def _programs(self) -> dict[Contraction, TileProgram]:
        return {}

    @cached_property
    def value_programs(self) -> dict[bool, TileProgram]:
        """Those of `values`, by whether they are narrow."""
        return {}

    def _launched(
        self, contraction: Contraction, V: Tensor, more: dict[str, Tensor], third: int = 1
    ) -> Tensor:
        """What the runs of columns leave, added up; poisoned before."""
        at, shape = self.grid.fewer(third), shape_of(self.parts, self.precision, contraction)
        made, held = self.program(contraction), {**self.operands, **more}
        out = torch.full(
            (at.splits, *contraction.shape(at.rows)), float("nan"), dtype=torch.float64,
            device=self.X.device,
        )  # fmt: skip
        launch(
            made.text, (at.rows // shape.rows, at.splits, third),
            out, V, self.theta, *(held[name] for name in made.arrays), at.rows, at.columns, at.step,
            R=shape.rows, C=shape.cols, num_warps=shape.warps, num_stages=shape.stages,
            enable_fp_fusion=True,
        )  # fmt: skip
        return out.sum(dim=0)


@dataclass(frozen=True)
class LaunchGrid:
    """Rows and columns with their padding, and the runs of columns that programs share out."""

    rows: int
    columns: int
    splits: int

    @property
    def step(self) -> int:
        return self.columns // self.splits

    def fewer(self, times: int) -> LaunchGrid:
        """With fewer runs, where each is shared out so many times in another way.

        >>> LaunchGrid(512, 100096, 391).fewer(20).splits
        23
        """
        enough = (
            s for s in range(1, self.splits) if self.splits % s == 0 if s * times >= self.splits
        )
        return LaunchGrid(self.rows, self.columns, next(enough, self.splits))

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


def _pieces(V: Tensor) -> Tensor:
    """Two float16 pieces of numbers of at most 1, side by side; the second is magnified."""
    high = V.half()
    return torch.cat([high, ((V - high) * MAGNIFIED).half()], dim=1)


def launch(text: str, grid: tuple[int, ...], *arrays: Any, **settings: Any) -> None:
    """One of a text's function, on the device of its first array, which need not be the current
    one."""
    device = arrays[0].device
    with ONE, nullcontext() if device.type == "cpu" else torch.cuda.device(device):
        files.load(text)[grid](*arrays, **settings)


def _multiprocessors(device: str) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
