"""The reading by symbols: a kernel formula run once without data leaves the source of a fused tile
behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.frozen import FrozenArray
from mercer.pairs.linear import after, picked
from mercer.pairs.side import Side
from mercer.pairs.tile import Tile


@dataclass(frozen=True)
class Asked:
    """A pairwise quantity that the source needs as an argument: its name, parameters, columns,
    side (rows, cols, both), and the linear map of those columns before it is taken."""

    kind: str
    params: tuple[Any, ...] = ()
    columns: tuple[int | str, ...] | None = None
    side: str = "both"
    map: FrozenArray | None = None


@dataclass(frozen=True)
class KernelSource:
    """A kernel as straight-line source over pairwise quantities q0, q1, ... and parameters t0, t1,
    ...

    The text reads `xp.exp` and the like: with `xp` as NumPy it computes a tile here, as
    `triton.language` on a GPU.
    """

    lines: tuple[str, ...]
    result: str
    quantities: tuple[Asked, ...]
    parameters: tuple[float, ...]

    def __str__(self) -> str:
        names = [f"q{i}" for i in range(len(self.quantities))] + [
            f"t{i}" for i in range(len(self.parameters))
        ]
        return "\n    ".join(
            [f"def tile({', '.join(names)}):", *self.lines, f"return {self.result}"]
        )

    def evaluate(self, X: Side, Z: Side) -> Array:
        """The tile by this source, as a check of the trace."""
        tile, values = Tile(X, Z), {f"t{i}": v for i, v in enumerate(self.parameters)}
        q = {f"q{i}": self._quantity(a, tile) for i, a in enumerate(self.quantities)}
        scope: dict[str, Any] = {"xp": np}
        exec(str(self), scope)
        return np.broadcast_to(
            np.asarray(scope["tile"](**q, **values), tile.dtype), (len(X), len(Z))
        )

    def _quantity(self, asked: Asked, tile: Tile) -> Any:
        pairs: Any = tile if asked.columns is None else tile.pick(asked.columns)
        pairs = pairs if asked.map is None else pairs.map(asked.map)
        pairs = pairs if asked.side == "both" else getattr(pairs, asked.side)
        value = getattr(pairs, asked.kind)
        return value(*(self._value(p) for p in asked.params)) if asked.params else value

    def _value(self, param: Any) -> Any:
        if isinstance(param, tuple):
            return tuple(map(self._value, param))
        return self.parameters[int(param.name[1:])] if isinstance(param, Symbol) else param


class Symbol:
    """Enough of a number to record what a formula does with it."""

    __array_ufunc__ = None

    def __init__(self, trace: Trace, name: str) -> None:
        self.trace, self.name = trace, name

    def _op(self, text: str) -> Symbol:
        return self.trace.let(text)

    def __add__(self, o: Any) -> Symbol:
        return self._op(f"{self} + {o}")

    def __radd__(self, o: Any) -> Symbol:
        return self._op(f"{o} + {self}")

    def __sub__(self, o: Any) -> Symbol:
        return self._op(f"{self} - {o}")

    def __rsub__(self, o: Any) -> Symbol:
        return self._op(f"{o} - {self}")

    def __mul__(self, o: Any) -> Symbol:
        return self._op(f"{self} * {o}")

    def __rmul__(self, o: Any) -> Symbol:
        return self._op(f"{o} * {self}")

    def __truediv__(self, o: Any) -> Symbol:
        return self._op(f"{self} / {o}")

    def __rtruediv__(self, o: Any) -> Symbol:
        return self._op(f"{o} / {self}")

    def __neg__(self) -> Symbol:
        return self._op(f"-{self}")

    def __pow__(self, n: Any) -> Any:
        """By squaring: the GPU has no integer power."""
        if not isinstance(n, int):
            raise NotImplementedError(
                f"a power {n} has no GPU source; write p.xp.exp({n} * p.xp.log(...))."
            )
        if n < 0:
            return 1.0 / self**-n
        if n < 2:
            return self if n else 1.0
        half = self ** (n // 2)
        return half * half * self if n % 2 else half * half

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__
    __hash__ = object.__hash__


@dataclass(eq=False)
class Trace:
    """The lines recorded so far; equal lines are kept once."""

    lines: dict[str, str] = field(default_factory=dict)
    asked: dict[Asked, str] = field(default_factory=dict)

    def let(self, text: str) -> Symbol:
        return Symbol(self, self.lines.setdefault(text, f"v{len(self.lines)}"))

    def ask(self, asked: Asked) -> Symbol:
        return Symbol(self, self.asked.setdefault(asked, f"q{len(self.asked)}"))

    def source(self, result: Any, parameters: tuple[float, ...]) -> KernelSource:
        lines = tuple(f"{name} = {text}" for text, name in self.lines.items())
        return KernelSource(lines, str(result), tuple(self.asked), parameters)


class TracedFunctions:
    """The functions of `Numbers` as text, in names that NumPy and Triton share."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def _call(self, name: str, *args: Any) -> Any:
        if all(isinstance(a, float) for a in args):
            return float(getattr(np, name)(*args))  # of constants, as at distance zero
        return self.trace.let(f"xp.{name}({', '.join(map(str, args))})")

    def exp(self, a: Any) -> Any:
        return self._call("exp", a)

    def log(self, a: Any) -> Any:
        return self._call("log", a)

    def log1p(self, a: Any) -> Any:
        return self._call("log1p", a)

    def sqrt(self, a: Any) -> Any:
        return self._call("sqrt", a)

    def sin(self, a: Any) -> Any:
        return self._call("sin", a)

    def cos(self, a: Any) -> Any:
        return self._call("cos", a)

    def power(self, a: Any, q: float) -> Any:
        if isinstance(a, float):
            return a**q
        nonzero = self.trace.let(f"{a} != 0")
        safe = self._call("where", nonzero, a, 1.0)
        return self._call("where", nonzero, f"xp.exp({q!r} * xp.log({safe}))", 0.0)

    def ratio(self, a: Any, b: Any) -> Any:
        nonzero = self.trace.let(f"{b} != 0")
        safe = self._call("where", nonzero, b, 1.0)
        return self._call("where", nonzero, f"{a} / {safe}", 0.0)

    def sinc(self, a: Any) -> Any:
        nonzero = self.trace.let(f"{a} != 0")
        safe = self._call("where", nonzero, a, 1.0)
        return self._call("where", nonzero, f"xp.sin({safe}) / {safe}", 1.0)

    def bessel(self, nu: float, r: Any) -> Symbol:
        raise NotImplementedError(
            f"Matern(nu={nu}) has no GPU source, as it needs a Bessel function; use nu = 0.5, 1.5 or 2.5."
        )


class Traced:
    """Pairs without data: every quantity is a symbol."""

    one: Any = 1.0

    def __init__(
        self,
        trace: Trace,
        columns: tuple[int | str, ...] | None = None,
        side: str = "both",
        through: FrozenArray | None = None,
    ) -> None:
        self.trace, self.columns, self.side, self.through = trace, columns, side, through
        self.xp: Any = TracedFunctions(trace)

    def _ask(self, kind: str, *params: Any) -> Symbol:
        return self.trace.ask(Asked(kind, params, self.columns, self.side, self.through))

    @property
    def rows(self) -> Traced:
        return self._sided("rows")

    @property
    def cols(self) -> Traced:
        return self._sided("cols")

    def _sided(self, side: str) -> Traced:
        """Each row of one side with itself, which is both sides of such pairs."""
        return Traced(self.trace, self.columns, side, self.through) if self.side == "both" else self

    @property
    def dot(self) -> Any:
        return self._ask("dot")

    @property
    def prod1p(self) -> Any:
        return self._ask("prod1p")

    @property
    def angle(self) -> Any:
        return self._ask("angle")

    @property
    def chisq(self) -> Any:
        return self._ask("chisq") if self.side == "both" else 0.0

    @property
    def harmonic(self) -> Any:
        return self._ask("harmonic")

    def elementary(self, order: int) -> Any:
        return self._ask("elementary", order)

    def sqdist(self, bandwidth: Any = 1.0) -> Any:
        return self._ask("sqdist", bandwidth) if self.side == "both" else 0.0

    def dist(self, bandwidth: Any = 1.0) -> Any:
        return self._ask("dist", bandwidth) if self.side == "both" else 0.0

    def absdist(self, bandwidth: Any = 1.0) -> Any:
        return self._ask("absdist", bandwidth) if self.side == "both" else 0.0

    def sinsq(self, period: Any, bandwidth: Any) -> Any:
        return self._ask("sinsq", period, bandwidth) if self.side == "both" else 0.0

    def map(self, matrix: FrozenArray) -> Traced:
        S = matrix if self.through is None else after(matrix, self.through)
        return Traced(self.trace, self.columns, self.side, S)

    def pick(self, columns: Any) -> Traced:
        if self.through is not None:
            return Traced(self.trace, self.columns, self.side, picked(self.through, columns))
        if self.columns is not None and any(isinstance(c, str) for c in columns):
            raise NotImplementedError(
                "columns by name inside other columns have no GPU source; give the inner ones by position."
            )
        chosen = tuple(columns) if self.columns is None else tuple(self.columns[i] for i in columns)
        return Traced(self.trace, chosen, self.side)

    def _none(self, what: str) -> Any:
        raise NotImplementedError(
            f"{what} has no GPU source, as it runs Python code; compute this kernel on the CPU."
        )

    def bilinear(self, A: Array) -> Any:
        raise NotImplementedError(
            "Linear(metric=A) has no GPU source; multiply X by a root of A first."
        )

    def warp(self, f: Any) -> Any:
        return self._none("warped(f)")

    def of(self, f: Any) -> Any:
        return self._none("weighted(f)")

    def call(self, f: Any) -> Any:
        return self._none("Callable(f)")

    def between(self, kernel: Any) -> Any:
        return self._none(type(kernel).__name__)

    def over_bags(self, sets: Any) -> Any:
        return self._none("over_sets()")
