"""The names that files may use: classes and functions of Mercer, and what was registered; nothing else is ever looked up."""
from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from mercer.invariants import declared
from mercer.store.outside import OUTSIDE

# Packages whose dataclasses and named tuples are values that cost nothing to make, and packages of which only estimators are found unasked.
VALUES = ("kernels", "lifts", "methods", "plan", "inputs", "stats", "ops", "learners", "estimators", "models")
OTHERS = ("operators", "planner", "engines", "tables", "automl")
NAME = re.compile(r"([a-z_]+)(\.[a-z0-9_]+)?\.([A-Za-z_][A-Za-z0-9_]*)")  # the module only where a package has the class twice

_ARRAYS = re.compile(r"\b(Array|Matrix|Any|NDArray|ndarray)\b")  # in the annotation of a field that may hold some

_NUMPY = ("square", "absolute", "exp", "sin", "cos", "tanh", "sign", "sqrt", "log", "log1p", "expm1", "arctan", "arcsinh")
FUNCTIONS = {
    **{f"numpy.{name}": ("numpy", name) for name in _NUMPY},
    **{f"lifts.{name}": ("mercer.lifts.basis", name) for name in ("identity", "cube", "sqrt_abs", "log1p_abs", "relu")},
    "pairs.square_norms": ("mercer.pairs.side", "square_norms"),
}
METHODS = ("_map", "transform")  # of maps, as kernels know them

C = TypeVar("C", bound=type[Any])
_registered: dict[str, type[Any]] = {}


def register(cls: C) -> C:
    """Let files hold objects of this class; a decorator.

    A class of your own must be registered before `load`, which never imports it. It is saved by its `state()` and
    `from_state(state)` where it has them, a dataclass or named tuple by its fields, others by their attributes.

    >>> from dataclasses import dataclass
    >>> from mercer.store import decode, encode
    >>> @register
    ... @dataclass
    ... class Point:
    ...     x: float
    >>> decode(*encode(Point(2.0)))
    Point(x=2.0)
    """
    _registered[_spelled(cls)] = cls
    return cls


def name_of(cls: type[Any]) -> str:
    """The name of a class in files; KeyError where it has none.

    >>> from mercer.kernels import Gaussian
    >>> name_of(Gaussian)
    'kernels.Gaussian'
    """
    for name in (_spelled(cls), f"{cls.__module__.removeprefix('mercer.')}.{cls.__qualname__}"):
        if _is_called(cls, name):
            return name
    raise KeyError(cls)


def _is_called(cls: type[Any], name: str) -> bool:
    try:
        return find(name) is cls
    except KeyError:
        return False


def _spelled(cls: type[Any]) -> str:
    top, *rest = cls.__module__.split(".")
    if top == "mercer" and rest:
        return f"{rest[0]}.{cls.__qualname__}"
    return f"sklearn.{cls.__qualname__}" if top == "sklearn" else f"{cls.__module__}:{cls.__qualname__}"  # a user's never hides ours


def find(name: Any) -> type[Any]:
    """The class that a file names; KeyError where there is none."""
    match = NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None or name in _registered:
        return _registered[str(name)]
    package, inner, short = match.groups()
    if package in VALUES + OTHERS:
        among = [m for m in modules(package) if inner is None or m.__name__ == f"mercer.{package}{inner}"]
        found: list[Any] = [c for m in among if _ours(c := vars(m).get(short), m, package)]
        return found[0] if len(found) == 1 else _registered[name]  # modules register theirs when they are imported
    return getattr(importlib.import_module(OUTSIDE[name]), short)


def _ours(cls: Any, module: ModuleType, package: str) -> bool:
    if not isinstance(cls, type) or cls.__module__ != module.__name__:
        return False
    return issubclass(cls, BaseEstimator) or (package in VALUES and field_names(cls) is not None and not unsaid(cls))


def unsaid(cls: Any) -> list[str]:
    """The fields of a value that may hold arrays, of which its class does not say what they must be: no file may make such a value."""
    said = declared(cls)
    return [name for name in field_names(cls) or [] if name not in said and _ARRAYS.search(_annotation(cls, name))]


def _annotation(cls: type[Any], name: str) -> str:
    found = [str(getattr(a, "__forward_arg__", a)) for c in cls.__mro__ if (a := vars(c).get("__annotations__", {}).get(name))]
    return found[0] if found else "Any"


def field_names(cls: type[Any]) -> list[str] | None:
    """What the constructor of a dataclass or a named tuple takes; None for other classes."""
    if is_dataclass(cls):
        return [f.name for f in fields(cls) if f.init]
    return list(cls._fields) if issubclass(cls, tuple) and hasattr(cls, "_fields") else None


@lru_cache
def modules(package: str) -> tuple[ModuleType, ...]:
    """A package of Mercer and the modules in it; those that need an extra which is not installed are left out."""
    top = _imported(f"mercer.{package}")
    inner = [_imported(f"mercer.{package}.{m.name}") for m in pkgutil.iter_modules(getattr(top, "__path__", []))]
    return tuple(m for m in (top, *inner) if m is not None)


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def function_name(f: Any) -> str:
    """The name of a function in files; KeyError where it has none."""
    found = [name for name in FUNCTIONS if _is(name, f)]
    if not found:
        raise KeyError(f)
    return found[0]


def _is(name: str, f: Any) -> bool:
    return name.endswith(f".{getattr(f, '__name__', '')}") and find_function(name) is f


def find_function(name: str) -> Any:
    """The function that a file names; KeyError where there is none."""
    module, attribute = FUNCTIONS[name]
    return getattr(importlib.import_module(module), attribute)
