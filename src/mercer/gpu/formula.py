"""The traced formula of a kernel as lines for a fused tile: what depends on parameters alone is
taken out of the loop, factors are carried to where they cost least, and every exponential is one
power of two."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from mercer.gpu.derivatives import TracedResults
from mercer.pairs import KernelSource

LOG2_E, LOG_2 = 1.4426950408889634, 0.6931471805599453
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.NotEq: "!="}


@dataclass(frozen=True)
class Value:
    """factor * tile, as text; a number that is the same for all pairs has no tile.

    >>> str(Value("0.5", "q0")), str(Value("", "q0")), str(Value("0.5"))
    ('(0.5 * q0)', 'q0', '0.5')
    """

    factor: str = ""
    tile: str = ""

    def __str__(self) -> str:
        if not (self.factor and self.tile):
            return self.tile or self.factor
        return f"({self.factor} * {self.tile})"

    @property
    def scalar(self) -> bool:
        return not self.tile

    def times(self, factor: str) -> Value:
        return Value(f"({self.factor} * {factor})" if self.factor else factor, self.tile)


@dataclass(eq=False)
class TileFormula:
    """Lines of the loop (`body`) and before it (`scalars`), and the results by name.

    >>> from mercer.kernels import Gaussian
    >>> f = TileFormula.of(Gaussian(2.0).source(), {"q0": Value("w0", "sq0")})
    >>> f.scalars, f.body, f.results
    (['s0 = w0 * -0.5 * 1.4426950408889634'], ['v1 = xp.exp2((s0 * sq0))'], ['v1'])
    """

    scalars: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, source: KernelSource | TracedResults, quantities: dict[str, Value]) -> TileFormula:
        """Of a trace, whose quantities q0, q1, ... are these."""
        out = cls(values=dict(quantities))
        texts = (source.result,) if isinstance(source, KernelSource) else source.results
        for line in source.lines:
            out._line(ast.parse(line).body[0])
        out.results = [str(out._read(ast.parse(text, mode="eval").body)) for text in texts]
        return out

    def _line(self, line: ast.stmt) -> None:
        assert isinstance(line, ast.Assign)
        name, value = ast.unparse(line.targets[0]), self._read(line.value)
        simple = value.tile.isidentifier() or value.scalar
        if not simple:
            self.body.append(f"{name} = {value.tile}")
            value = Value(value.factor, name)
        self.values[name] = value

    def _read(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant():
                return Value(repr(float(str(node.value))))
            case ast.Name():
                return self.values.get(node.id, Value(node.id))
            case ast.UnaryOp(op=ast.USub()):
                inner = self._read(node.operand)
                return inner.times("(-1.0)") if inner.tile else Value(f"(-{inner})")
            case ast.BinOp():
                return self._binary(OPERATORS[type(node.op)], node.left, node.right)
            case ast.Compare():
                return self._binary(OPERATORS[type(node.ops[0])], node.left, node.comparators[0])
            case ast.Call():
                name = ast.unparse(node.func).removeprefix("xp.")
                return self._call(name, [self._read(a) for a in node.args])
        raise NotImplementedError(f"{ast.unparse(node)} has no GPU source.")

    def _binary(self, sign: str, left: ast.expr, right: ast.expr) -> Value:
        a, b = self._read(left), self._read(right)
        if a.scalar and b.scalar:
            return Value(f"({a} {sign} {b})")
        if sign == "*" and (a.scalar or b.scalar):
            return b.times(str(a)) if a.scalar else a.times(str(b))
        if sign == "/" and b.scalar:
            return a.times(f"(1.0 / {b})")
        if sign == "*":  # both factors leave the loop together
            tile = Value("", f"{a.tile} * {b.tile}")
            for factor in filter(None, (a.factor, b.factor)):
                tile = tile.times(factor)
            return tile
        return Value("", f"{self._hoisted(a)} {sign} {self._hoisted(b)}")

    def _call(self, name: str, args: list[Value]) -> Value:
        """By base two, which is what the hardware has; `log1p` is not in `triton.language`."""
        if name == "exp":
            args = [args[0].times(str(LOG2_E))]
        text = ", ".join(self._hoisted(a) if a.tile else str(a) for a in args)
        text = f"1.0 + {text}" if name == "log1p" else text
        name = {"exp": "exp2", "log": "log2", "log1p": "log2"}.get(name, name)
        value = f"xp.{name}({text})"
        out = Value(value) if all(a.scalar for a in args) else Value("", value)
        return out.times(str(LOG_2)) if name == "log2" else out

    def _hoisted(self, value: Value) -> str:
        """The value as an operand, its factor computed before the loop."""
        if not value.factor:
            return str(value)
        if (number := _number(value.factor)) is not None:  # a variable of it would be a float32
            return str(Value(repr(number), value.tile))
        known = {line.split(" = ", 1)[1]: line.split(" = ", 1)[0] for line in self.scalars}
        text = _bare(value.factor)
        if text not in known:
            known[text] = f"s{len(self.scalars)}"
            self.scalars.append(f"{known[text]} = {text}")
        return str(Value(known[text], value.tile))


def _number(text: str) -> float | None:
    """What a text without names comes to."""
    tree = ast.parse(text, mode="eval")
    if any(isinstance(node, ast.Name) for node in ast.walk(tree)):
        return None
    return float(eval(compile(tree, "factor", "eval"), {"__builtins__": {}}))


def _bare(text: str) -> str:
    """Without parentheses around all of it."""
    return ast.unparse(ast.parse(text, mode="eval").body)
