"""Derivatives of a traced formula by its quantities and parameters, as source again: what input
gradients and the pullback to parameters need of a fused tile."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercer.pairs.traced import Asked, KernelSource, Symbol, Trace

Slopes = dict[str, Any]  # of q0, q1, ... and t0, t1, ...: symbols or numbers, none where zero
Start = Callable[[Symbol, Asked | None], Slopes]
POWERS = {"sqdist": -2.0, "dist": -1.0, "absdist": -1.0, "sinsq": -2.0}  # of bandwidths


@dataclass(frozen=True)
class TracedResults:
    """Several results over the same lines: what one tile computes at once.

    >>> from mercer.kernels import Gaussian
    >>> derivatives(Gaussian(2.0).source()).results
    ('v1', 'v2')
    """

    lines: tuple[str, ...]
    results: tuple[str, ...]
    quantities: tuple[Asked, ...]
    parameters: tuple[float, ...]
    names: tuple[str, ...] = ("",)  # what each is the derivative by; "" is the value itself

    @classmethod
    def of(cls, source: KernelSource) -> TracedResults:
        """The value alone."""
        return cls(source.lines, (source.result,), source.quantities, source.parameters)

    def some(self, *names: str) -> TracedResults:
        """Those by these names, without lines and quantities that they do not need."""
        kept = tuple(self.results[self.names.index(name)] for name in names)
        return TracedResults(self.lines, kept, self.quantities, self.parameters, names)._pruned()

    def formula(self) -> Callable[..., tuple[Any, ...]]:
        """tile(q0, ..., t0, ...) of all results, with `xp` as its first argument."""
        names = [f"q{i}" for i in range(len(self.quantities))]
        names += [f"t{i}" for i in range(len(self.parameters))]
        head = f"def tile({', '.join(['xp', *names])}):"
        scope: dict[str, Any] = {}
        exec("\n    ".join([head, *self.lines, f"return ({', '.join(self.results)},)"]), scope)
        made: Callable[..., tuple[Any, ...]] = scope["tile"]
        return made

    def _pruned(self) -> TracedResults:
        live, kept = set(_names(" ".join(self.results))), []
        for line in reversed(self.lines):
            name, text = line.split(" = ", 1)
            if name in live:
                kept.append(line)
                live |= set(_names(text))
        used = [i for i in range(len(self.quantities)) if f"q{i}" in live]
        place = {f"q{i}": f"q{at}" for at, i in enumerate(used)}

        def renamed(text: str) -> str:
            return re.sub(r"\bq\d+\b", lambda m: place[m[0]], text)

        return TracedResults(
            tuple(map(renamed, reversed(kept))),
            tuple(map(renamed, self.results)),
            tuple(self.quantities[i] for i in used),
            self.parameters,
            self.names,
        )


def _names(text: str) -> list[str]:
    return re.findall(r"\b[qtv]\d+\b", text)


def derivatives(source: KernelSource, start: Start | None = None) -> TracedResults:
    """The value and its derivatives by all quantities and parameters that it depends on; or by what
    `start` says the slopes of quantities and parameters are.

    >>> from mercer.kernels import Laplace
    >>> d = derivatives(Laplace(3.0).source())
    >>> d.names, d.lines
    (('', 'q0'), ('v0 = -q0', 'v1 = xp.exp(v0)', 'v2 = -v1'))
    """
    trace = Trace()
    args = {}
    for name, asked in _arguments(source).items():
        own = Symbol(trace, name)
        slopes = {name: 1.0} if start is None else start(own, asked)
        args[name] = DualSymbol(trace, own, slopes)
    scope: dict[str, Any] = {"xp": DualTracedFunctions()}
    exec(str(source), scope)
    value = scope["tile"](**args)
    slopes = _slopes(value)
    lines = tuple(f"{name} = {text}" for text, name in trace.lines.items())
    texts = tuple(str(part) for part in (_plain(value), *slopes.values()))
    return TracedResults(lines, texts, source.quantities, source.parameters, ("", *slopes))


def by_inputs(own: Symbol, asked: Asked | None) -> Slopes:
    """Quantities of pairs move with the left row, parameters do not; distances by half their
    square, whose slopes are differences of rows."""
    if asked is None or asked.side == "cols":
        return {}
    return {own.name: ratio(own.trace, 1.0, own) if asked.kind == "dist" else 1.0}


def by_parameters(own: Symbol, asked: Asked | None) -> Slopes:
    """A distance over one bandwidth moves with it in proportion to itself; over one a column, and
    by periods, as its columns say (slot q0, q1, ...)."""
    if asked is None:
        return {own.name: 1.0}
    if asked.side != "both" or asked.kind not in POWERS:
        return {}
    *periods, bandwidth = asked.params
    one = isinstance(bandwidth, Symbol)
    out: Slopes = {}
    if one:
        b = Symbol(own.trace, bandwidth.name)
        out[b.name] = (POWERS[asked.kind] / b) * own
    if not one or any(isinstance(p, Symbol | tuple) for p in periods):
        inner = ratio(own.trace, 1.0, own) if asked.kind == "dist" else 1.0
        out[own.name] = inner
    return out


def _arguments(source: KernelSource) -> dict[str, Asked | None]:
    """Quantities by name, and parameters, which are None."""
    out: dict[str, Asked | None] = {f"q{i}": a for i, a in enumerate(source.quantities)}
    return out | {f"t{i}": None for i in range(len(source.parameters))}


class DualSymbol:
    """A symbol and its slopes: the source of a kernel, run on these, leaves that of its derivatives
    behind."""

    __hash__ = object.__hash__

    def __init__(self, trace: Trace, value: Any, slopes: Slopes) -> None:
        self.trace, self.value, self.slopes = trace, value, slopes

    def _made(self, value: Any, *parts: tuple[Slopes, Any]) -> DualSymbol:
        """A value whose slopes are sums of these, each times a factor."""
        out: Slopes = {}
        for slopes, factor in parts:
            for name, slope in slopes.items():
                more = _times(slope, factor)
                out[name] = out[name] + more if name in out else more
        return DualSymbol(self.trace, value, out)

    def through(self, value: Any, slope: Any) -> DualSymbol:
        return self._made(value, (self.slopes, slope))

    def call(self, name: str, *args: Any) -> Symbol:
        return self.trace.let(f"xp.{name}({', '.join(str(_plain(a)) for a in args)})")

    def __neg__(self) -> DualSymbol:
        return self.through(-self.value, -1.0)

    def __add__(self, o: Any) -> DualSymbol:
        return self._made(self.value + _plain(o), (self.slopes, 1.0), (_slopes(o), 1.0))

    def __radd__(self, o: Any) -> DualSymbol:
        return self.through(o + self.value, 1.0)

    def __sub__(self, o: Any) -> DualSymbol:
        return self._made(self.value - _plain(o), (self.slopes, 1.0), (_slopes(o), -1.0))

    def __rsub__(self, o: Any) -> DualSymbol:
        return self.through(o - self.value, -1.0)

    def __mul__(self, o: Any) -> DualSymbol:
        b = _plain(o)
        return self._made(_times(self.value, b), (self.slopes, b), (_slopes(o), self.value))

    def __rmul__(self, o: Any) -> DualSymbol:
        return self.through(_times(o, self.value), o)

    def __truediv__(self, o: Any) -> DualSymbol:
        b = _plain(o)
        value, inverse = self.value / b, 1.0 / b
        slopes = _slopes(o)
        by_b = -_times(value, inverse) if slopes else None
        return self._made(value, (self.slopes, inverse), (slopes, by_b))

    def __rtruediv__(self, o: Any) -> DualSymbol:
        value = o / self.value
        return self.through(value, -(value / self.value))

    def __ne__(self, o: object) -> Any:
        return self.trace.let(f"{self.value} != {o}")


class DualTracedFunctions:
    """The functions that sources call, with their slopes; that of a root at zero is taken as 0."""

    def exp(self, a: DualSymbol) -> DualSymbol:
        return a.through(y := a.call("exp", a), y)

    def log(self, a: DualSymbol) -> DualSymbol:
        return a.through(a.call("log", a), 1.0 / a.value)

    def log1p(self, a: DualSymbol) -> DualSymbol:
        return a.through(a.call("log1p", a), 1.0 / (1.0 + a.value))

    def sin(self, a: DualSymbol) -> DualSymbol:
        return a.through(a.call("sin", a), a.call("cos", a))

    def cos(self, a: DualSymbol) -> DualSymbol:
        return a.through(a.call("cos", a), -a.call("sin", a))

    def sqrt(self, a: DualSymbol) -> DualSymbol:
        y = a.call("sqrt", a)
        return a.through(y, ratio(a.trace, 0.5, y))

    def where(self, test: Symbol, a: Any, b: Any) -> DualSymbol:
        trace, both = test.trace, {**_slopes(a), **_slopes(b)}
        value = trace.let(f"xp.where({test}, {_plain(a)}, {_plain(b)})")
        slopes = {
            name: trace.let(
                f"xp.where({test}, {_slopes(a).get(name, 0.0)}, {_slopes(b).get(name, 0.0)})"
            )
            for name in both
        }
        return DualSymbol(trace, value, slopes)


def ratio(trace: Trace, a: Any, b: Any) -> Symbol:
    """a / b, and 0 where b = 0."""
    test = trace.let(f"{b} != 0")
    safe = trace.let(f"xp.where({test}, {b}, 1.0)")
    return trace.let(f"xp.where({test}, {trace.let(f'{a} / {safe}')}, 0.0)")


def _plain(x: Any) -> Any:
    return x.value if isinstance(x, DualSymbol) else x


def _slopes(x: Any) -> Slopes:
    return x.slopes if isinstance(x, DualSymbol) else {}


def _times(a: Any, b: Any) -> Any:
    """a b without lines that multiply by one."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        return a * b
    if isinstance(a, float | int) and abs(a) == 1:
        return b if a > 0 else -b
    if isinstance(b, float | int) and abs(b) == 1:
        return a if b > 0 else -a
    return a * b
