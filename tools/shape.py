"""The shape of the package, in numbers: sizes of modules and functions, inheritance, slivers, Any,
names that mean two things.

python tools/shape.py [FOLDER]
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module:
    """A source file: its tree, lines of code, functions, classes and what it imports."""

    def __init__(self, path: Path, name: str) -> None:
        text = path.read_text()
        self.name, self.lines, self.tree = name, text.count("\n"), ast.parse(text)
        self.package = path.name == "__init__.py"
        nodes = list(ast.walk(self.tree))
        self.functions = [n for n in nodes if isinstance(n, DEFS)]
        self.classes = [n for n in self.tree.body if isinstance(n, ast.ClassDef)]
        self.anys = sum(isinstance(n, ast.Name) and n.id == "Any" for n in nodes)
        self.imports = set(self._imported(nodes))

    def _imported(self, nodes: list[ast.AST]) -> Iterator[str]:
        for n in nodes:
            if isinstance(n, ast.Import):
                yield from (a.name for a in n.names)
            elif isinstance(n, ast.ImportFrom) and n.module:
                yield from (n.module, *(f"{n.module}.{a.name}" for a in n.names))


def modules(folder: Path) -> dict[str, Module]:
    found = {}
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        )
        found[name] = Module(path, name)
    return found


def code_lines(f: ast.AST) -> int:
    """Lines of a function without its docstring."""
    body = f.body  # type: ignore[attr-defined]
    first = body[0]
    said = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return f.end_lineno - f.lineno + 1 - (first.end_lineno - first.lineno + 1 if said else 0)  # type: ignore[attr-defined]


def depths(found: dict[str, Module]) -> dict[str, int]:
    """Own classes in the line of each class, by the names of bases; mixins counted."""
    bases = {
        c.name: [getattr(b, "id", getattr(b, "attr", "")) for b in c.bases]
        for m in found.values()
        for c in m.classes
    }

    def line(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        if name not in bases or name in seen:
            return set()
        return {name}.union(*(line(b, seen | {name}) for b in bases[name]))

    return {name: len(line(name)) for name in bases}


def single_importers(found: dict[str, Module]) -> list[str]:
    """Modules that one other module imports, packages and their re-exports aside."""
    users = defaultdict(set)
    for m in found.values():
        for name in m.imports & found.keys() - {m.name}:
            if not m.package:
                users[name].add(m.name)
    return sorted(name for name, by in users.items() if len(by) == 1 and not found[name].package)


def clashes(found: dict[str, Module]) -> dict[str, int]:
    counts = Counter(
        c.name for m in found.values() for c in m.classes if not c.name.startswith("_")
    )
    return {name: n for name, n in counts.most_common() if n > 1}


def shape(folder: Path) -> str:
    found = modules(folder)
    sizes, functions = (
        [m.lines for m in found.values()],
        [code_lines(f) for m in found.values() for f in m.functions],
    )
    own, alone, twice = depths(found), single_importers(found), clashes(found)
    deepest = max(own, key=lambda name: own[name])
    small = [m.name for m in found.values() if m.lines < 40 and not m.package]
    many = [
        f.name
        for m in found.values()
        for f in m.functions
        if len(f.args.args) + len(f.args.posonlyargs) > 8
    ]
    rows = {
        "modules": f"{len(sizes)}, {sum(sizes):,} lines",
        "lines of a module": f"{spread(sizes)}; below 40: {len(small)}, above 400: {sum(s > 400 for s in sizes)}",
        "lines of a function": f"{spread(functions)}; above 60: {sum(f > 60 for f in functions)}",
        "deepest own inheritance": f"{own[deepest]} ({deepest}); above four: {sum(v > 4 for v in own.values())}",
        "modules with a single importer": f"{len(alone)}",
        "Any": f"{sum(m.anys for m in found.values()):,}",
        "functions with more than eight positional arguments": f"{len(many)}",
        "class names that clash": f"{len(twice)} ({', '.join(f'{n} {c}' for n, c in list(twice.items())[:5])})"
        if twice
        else "0",
    }
    return "\n".join(f"  {name}: {value}" for name, value in rows.items())


def spread(values: list[int]) -> str:
    return f"median {median(values):.0f}, p90 {sorted(values)[int(0.9 * len(values))]}, most {max(values)}"


if __name__ == "__main__":
    arguments = sys.argv[1:]
    print(
        shape(Path(arguments[0] if arguments else Path(__file__).parent.parent / "src" / "mercer"))
    )
