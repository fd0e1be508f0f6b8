"""What a tile computes of pairs before the formula: products and distances over some columns,
perhaps of mapped or scaled rows, each once however many quantities share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.gpu.derivatives import TracedResults
from mercer.gpu.formula import Value
from mercer.ops.frozen import FrozenArray
from mercer.pairs.traced import Asked, KernelSource

POLYNOMIAL = (  # of arccos(h) / sqrt(1 - h) in h, to 2e-8
    1.5707963050, -0.2145988016, 0.0889789874, -0.0501743046,
    0.0308918810, -0.0170881256, 0.0066700901, -0.0012624911,
)  # fmt: skip


@dataclass(frozen=True)
class SeenRows:
    """Rows as a quantity sees them: some columns, mapped, each over a bandwidth or on the circle of
    a period, or of unit length; parameters by their place, or None."""

    columns: tuple[int | str, ...] | None = None
    map: FrozenArray | None = None
    bandwidths: tuple[int | float, ...] | None = None
    periods: tuple[int | float, ...] | None = None
    unit: bool = False


@dataclass(frozen=True)
class Geometry:
    """What is computed of such rows, and how: "matrix" units on centred rows, a loop over their
    "columns", or over those of "raw" rows."""

    rows: SeenRows
    unit: str
    products: bool = False  # x'z of the rows themselves is asked for
    distances: bool = False  # |x - z|^2 is
    loops: tuple[tuple[str, int], ...] = ()  # ("absdist", 0), ("elementary", 3), ...
    widths: tuple[int | float, ...] = ()  # bandwidths that its distances are over: places, numbers


@dataclass(frozen=True)
class TileLayout:
    """What a kernel's quantities q0, q1, ... are in the tile: geometries g0, g1, ..., vectors of
    one side p0, p1, ..., and the value of each quantity over these."""

    geometries: tuple[Geometry, ...]
    vectors: tuple[Asked, ...]
    values: tuple[tuple[str, Value], ...]
    scalars: tuple[str, ...]  # lines before the loop: factors of distances
    lines: tuple[str, ...]  # lines of the loop: roots, angles

    @classmethod
    def of(cls, source: KernelSource | TracedResults, unit: str) -> TileLayout:
        """Of a trace, with products by this unit."""
        return _Builder(source, unit).layout()


class _Builder:
    """One pass over the quantities."""

    def __init__(self, source: KernelSource | TracedResults, unit: str) -> None:
        self.source, self.unit = source, unit
        self.found: dict[tuple[SeenRows, str], dict[str, Any]] = {}
        self.vectors: dict[Asked, str] = {}
        self.scalars: dict[str, str] = {}
        self.lines: dict[str, str] = {}

    def layout(self) -> TileLayout:
        values = tuple((f"q{i}", self._value(a)) for i, a in enumerate(self.source.quantities))
        made = tuple(
            Geometry(
                rows,
                unit,
                "dot" in asked,
                "sq" in asked,
                tuple(asked.get("loops", ())),
                tuple(asked.get("widths", ())),
            )
            for (rows, unit), asked in self.found.items()
        )
        scalars = tuple(f"{name} = {text}" for text, name in self.scalars.items())
        lines = tuple(f"{name} = {text}" for text, name in self.lines.items())
        return TileLayout(made, tuple(self.vectors), values, scalars, lines)

    def _geometry(self, rows: SeenRows, unit: str, asked: str, order: int | None = None) -> int:
        """Its number, with what is asked of it."""
        mine = self.found.setdefault((rows, unit), {})
        if order is None:
            mine[asked] = True
        elif (asked, order) not in mine.setdefault("loops", []):
            mine["loops"].append((asked, order))
        return list(self.found).index((rows, unit))

    def _value(self, a: Asked) -> Value:
        if a.side != "both":
            return Value("", self._vector(a))
        rows = SeenRows(a.columns, a.map)
        match a.kind:
            case "dot":
                j = self._geometry(rows, self.unit, "dot")
                return Value(self._let(f"u{j} * u{j}"), f"dot{j}")
            case "sqdist" | "dist":
                return self._distance(rows, a.params[0], root=a.kind == "dist")
            case "sinsq":
                return self._circles(rows, *a.params)
            case "absdist":
                return self._city(rows, a.params[0])
            case "prod1p" | "chisq" | "harmonic":
                return Value("", f"{a.kind}{self._geometry(rows, 'raw', a.kind, 0)}")
            case "elementary":
                j = self._geometry(rows, "raw", "elementary", int(a.params[0]))
                return Value("", f"elementary{j}_{int(a.params[0])}")
            case "angle":
                return self._angle(SeenRows(a.columns, a.map, unit=True))
        raise NotImplementedError(f"{a.kind} has no GPU tile; compute this kernel on the CPU.")

    def _distance(self, rows: SeenRows, bandwidth: Any, *, root: bool) -> Value:
        scaled, _ = _scaled(rows, bandwidth)
        j = self._geometry(scaled, self.unit, "sq")
        width = self._width(scaled, j, bandwidth)
        if root:
            return Value(width, self._line(f"xp.sqrt(xp.maximum(sq{j}, 0.0))"))
        return Value(self._let(f"{width} * {width}"), f"sq{j}")

    def _circles(self, rows: SeenRows, period: Any, bandwidth: Any) -> Value:
        scaled, _ = _scaled(rows, bandwidth)
        on = SeenRows(scaled.columns, scaled.map, scaled.bandwidths, _places(period))
        j = self._geometry(on, self.unit, "sq")
        width = self._width(on, j, bandwidth)
        return Value(self._let(f"0.25 * {width} * {width}"), f"sq{j}")

    def _width(self, rows: SeenRows, j: int, bandwidth: Any) -> str:
        """What |x - z| of the geometry is multiplied by, before the loop."""
        one = not isinstance(bandwidth, tuple)
        self.found[rows, self.unit].setdefault("widths", []).extend(
            _places(bandwidth) if one else (1.0,)
        )
        return self._let(f"u{j} / {bandwidth}" if one else f"u{j}")

    def _city(self, rows: SeenRows, bandwidth: Any) -> Value:
        scaled, b = _scaled(rows, bandwidth)
        j = self._geometry(scaled, "columns", "absdist", 0)
        return Value(self._let(f"u{j}" if b is None else f"u{j} / {b}"), f"absdist{j}")

    def _angle(self, rows: SeenRows) -> Value:
        """2 arcsin(|u - v| / 2) of unit rows; a right angle where one of them is zero."""
        j = self._geometry(rows, self.unit, "sq")
        half = self._line(f"xp.minimum(0.5 * u{j} * xp.sqrt(xp.maximum(sq{j}, 0.0)), 1.0)")
        series = repr(POLYNOMIAL[-1])
        for c in POLYNOMIAL[-2::-1]:
            series = f"({series} * {half} + {c!r})"
        angle = self._line(f"3.141592653589793 - 2.0 * xp.sqrt(1.0 - {half}) * {series}")
        x, z = (
            self._vector(Asked("dot", (), rows.columns, side, rows.map))
            for side in ("rows", "cols")
        )
        return Value("", self._line(f"xp.where({x} * {z} == 0.0, 1.5707963267948966, {angle})"))

    def _vector(self, asked: Asked) -> str:
        return self.vectors.setdefault(asked, f"p{len(self.vectors)}")

    def _let(self, text: str) -> str:
        return self.scalars.setdefault(text, f"w{len(self.scalars)}")

    def _line(self, text: str) -> str:
        return self.lines.setdefault(text, f"r{len(self.lines)}")


def _places(params: Any) -> tuple[int | float, ...]:
    """Parameters by their place in the trace, or constants; one for all columns is one."""
    many = params if isinstance(params, tuple) else (params,)
    return tuple(int(p.name[1:]) if hasattr(p, "name") else float(p) for p in many)


def _scaled(rows: SeenRows, bandwidth: Any) -> tuple[SeenRows, str | None]:
    """Rows over one bandwidth a column, or as they are and the one bandwidth as text."""
    if isinstance(bandwidth, tuple):
        return SeenRows(rows.columns, rows.map, _places(bandwidth)), None
    return rows, str(bandwidth)
