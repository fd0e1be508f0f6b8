"""The names that files may use: of classes that were registered under one, and of functions;
nothing else is ever looked up."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar, overload

from scipy.interpolate import BSpline

from mercer.invariants import Broken, Each, Floats, Sizes, Spec, Text, Whole, declare, declared
from mercer.store.old_names import OLD

GROWERS = {  # of trees: their settings alone
    **{
        f"sklearn.{kind}{task}": "sklearn.ensemble"
        for kind in ("RandomForest", "ExtraTrees", "GradientBoosting", "HistGradientBoosting")
        for task in ("Classifier", "Regressor")
    },
    **{
        f"sklearn.{kind}Tree{task}": "sklearn.tree"
        for kind in ("Decision", "Extra")
        for task in ("Classifier", "Regressor")
    },
}
# what files may hold, and where it is
OUTSIDE = {"sklearn.SplineTransformer": "sklearn.preprocessing", **GROWERS}
# Where the classes of each family are registered: imported when a file names one of them.
ROOMS = {
    **{
        name: f"mercer.{name}"
        for name in (
            "kernels",
            "lifts",
            "methods",
            "plans",
            "inputs",
            "stats",
            "ops",
            "linalg",
            "models",
            "text",
            "strings",
        )
    },
    **{
        name: f"mercer.models.{name}"
        for name in ("ridge", "gp", "svm", "pca", "kmeans", "logistic", "perceptron")
    },
    **{
        name: f"mercer.models.{name}"
        for name in ("feature_machine", "smoothing", "sparse", "two_sample")
    },
    "automl": "mercer.automl",
    "tables": "mercer.tables",
}
_ARRAYS = re.compile(
    r"\b(Array|Matrix|Any|NDArray|ndarray)\b"
)  # in the annotation of a field that may hold some

_NUMPY = (
    "square",
    "absolute",
    "exp",
    "sin",
    "cos",
    "tanh",
    "sign",
    "sqrt",
    "log",
    "log1p",
    "expm1",
    "arctan",
    "arcsinh",
)
FUNCTIONS = {
    **{f"numpy.{name}": ("numpy", name) for name in _NUMPY},
    **{
        f"lifts.{name}": ("mercer.lifts.columnwise", name)
        for name in ("identity", "cube", "sqrt_abs", "log1p_abs", "relu")
    },
    "pairs.square_norms": ("mercer.pairs.side", "square_norms"),
}
METHODS = ("_map", "transform")  # of maps, as kernels know them

C = TypeVar("C", bound=type[Any])
_registered: dict[str, type[Any]] = {}
_names: dict[type[Any], str] = {}


@overload
def register(cls: C) -> C: ...
@overload
def register(cls: str) -> Callable[[C], C]: ...
def register(cls: Any) -> Any:
    """Let files hold objects of this class; a decorator, bare or with the name that files use.

    A class of your own must be registered before `load`, which never imports it; without a name it
    is called by its module and its own name. It is saved by its `state()` and `from_state(state)`
    where it has them, a dataclass or named tuple by its fields, others by their attributes.

    >>> from dataclasses import dataclass
    >>> from mercer.store import decode, encode
    >>> @register("mine.Point")
    ... @dataclass
    ... class Point:
    ...     x: float
    >>> decode(*encode(Point(2.0)))
    Point(x=2.0)
    """
    if isinstance(cls, str):
        return lambda c: _put(cls, c)
    return _put(f"{cls.__module__}:{cls.__qualname__}", cls)


def _put(name: str, cls: C) -> C:
    if name.partition(".")[0] in ROOMS and cls.__module__.partition(".")[0] != "mercer":
        raise ValueError(
            f"{name!r} cannot be the name of {cls.__qualname__} in files; names of {', '.join(ROOMS)} are those of Mercer."
        )
    known = _registered.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise ValueError(
            f"{name!r} is the name of {known.__module__}.{known.__qualname__} in files already; choose another."
        )
    _registered[name], _names[cls] = cls, name
    return cls


def name_of(cls: type[Any]) -> str:
    """The name of a class in files; KeyError where it has none.

    >>> from mercer.kernels import Gaussian
    >>> name_of(Gaussian)
    'kernels.Gaussian'
    """
    name = _names.get(
        cls, f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"
    )  # the latter of another package
    if find(name) is not cls:
        raise KeyError(cls)
    return name


def find(name: Any) -> type[Any]:
    """The class that a file names; KeyError where there is none."""
    name = OLD.get(name, name) if isinstance(name, str) else str(name)
    if name in OUTSIDE:
        return getattr(importlib.import_module(OUTSIDE[name]), name.partition(".")[2])
    family = name.partition(".")[0]
    if name not in _registered and family in ROOMS:
        modules(ROOMS[family])  # register theirs when they are imported
    cls = _registered[name]
    if family in ROOMS and _silent(cls):  # type: ignore[arg-type]
        raise KeyError(name)
    return cls


@lru_cache(maxsize=1024)
def _silent(cls: Any) -> bool:
    return field_names(cls) is not None and bool(unsaid(cls))


def unsaid(cls: Any) -> list[str]:
    """The fields of a value that may hold arrays, of which its class does not say what they must
    be: no file may make such a value."""
    said = declared(cls)
    return [
        name
        for name in field_names(cls) or []
        if name not in said and _ARRAYS.search(_annotation(cls, name))
    ]


def _annotation(cls: type[Any], name: str) -> str:
    found = [
        str(getattr(a, "__forward_arg__", a))
        for c in cls.__mro__
        if (a := vars(c).get("__annotations__", {}).get(name))
    ]
    return found[0] if found else "Any"


def field_names(cls: type[Any]) -> list[str] | None:
    """What the constructor of a dataclass or a named tuple takes; None for other classes."""
    if is_dataclass(cls):
        return [f.name for f in fields(cls) if f.init]
    return list(cls._fields) if issubclass(cls, tuple) and hasattr(cls, "_fields") else None


@lru_cache
def modules(package: str) -> tuple[ModuleType, ...]:
    """A module or package and those in it; those that need an extra which is not installed are left
    out."""
    top = _imported(package)
    inner = [
        modules(f"{package}.{m.name}") for m in pkgutil.iter_modules(getattr(top, "__path__", []))
    ]
    return tuple(m for m in (top, *(m for some in inner for m in some)) if m is not None)


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


class Spline(Spec):
    """One of SciPy's, whose coefficients are those of a whole basis: (knots - degree - 1,
    splines)."""

    def shape(self, v: Any, sizes: Sizes) -> None:
        if type(v) is not BSpline or not sizes.meet("degree", int(v.k)) or v.axis != 0:
            raise Broken(f"should be a spline of its degree, but is {type(v).__name__}")
        Floats(len(v.t) - v.k - 1, "splines").shape(v.c, sizes)

    def range(self, v: Any, sizes: Sizes) -> None:
        for part in (v.t, v.c):
            Floats(*part.shape).range(part, sizes)


def _splines(s: Any) -> str | None:
    size = s.n_features_in_ * (s.bsplines_[0].c.shape[1] - 1 + bool(s.include_bias))
    return (
        None
        if size == s.n_features_out_
        else f"has {size} splines for {s.n_features_out_} features"
    )


declare(
    "sklearn.SplineTransformer",
    _splines,
    bsplines_=Each(Spline(), size="n_features_in_"),
    degree=Whole(0, 1 << 16),
    n_features_in_=Whole(1),
    n_features_out_=Whole(1),
    order=Text("C", "F"),
    extrapolation=Text("error", "constant", "linear", "continue", "periodic"),
)


def _settings(grower: Any) -> str | None:
    return (
        "is fitted, and files hold its settings alone; give a clone of it"
        if any(name.endswith("_") for name in vars(grower))
        else None
    )


for _grower in GROWERS:
    declare(_grower, _settings)
