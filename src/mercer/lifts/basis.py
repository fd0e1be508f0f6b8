"""Basis expansions: functions of single columns."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Each, Said, Text, Whole
from mercer.kernels import Linear
from mercer.lifts.algebra import unique
from mercer.lifts.base import Lift
from mercer.lifts.columns import inputs_of, positions
from mercer.store import register


def identity(x: Array) -> Array: return x
def cube(x: Array) -> Array: return x * x * x
def sqrt_abs(x: Array) -> Array: return np.sqrt(np.abs(x))
def log1p_abs(x: Array) -> Array: return np.log1p(np.abs(x))
def relu(x: Array) -> Array: return np.maximum(x, 0)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "x": identity, "square": np.square, "cube": cube, "abs": np.abs, "sqrt_abs": sqrt_abs, "log1p_abs": log1p_abs, "exp": np.exp,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sign": np.sign, "relu": relu,
}  # fmt: skip
PATTERNS = {"x": "{}", "square": "{}^2", "cube": "{}^3"}


@register("lifts.Basis")
class Basis(Lift):
    """f(x_j) for every function f and every chosen column j.

    The kernel is sum_j sum_f f(x_j) f(z_j).

    Parameters
    ----------
    functions : list of str or callable, or dict of callables by name, default=("x", "cos")
        Functions of a column (n,) that give (n,). The names are x, square, cube, abs, sqrt_abs,
        log1p_abs, exp, sin, cos, tanh, sign and relu.
    columns : list of int or str, default=None
        Names or positions; None is all.

    Examples
    --------
    >>> phi = Basis(["x", "cos"]).fit([[0.0, 1.0]])
    >>> phi.transform([[0.0, 1.0]]).round(2), list(phi.get_feature_names_out())
    (array([[0.  , 1.  , 1.  , 0.54]]), ['x0', 'x1', 'cos(x0)', 'cos(x1)'])
    """

    must = dict(columns_=Each(Whole(0, "n_features_in_")), functions_=Each(Each(Text(), Said())))

    def _laws(self) -> str | None:
        size = len(self.columns_) * len(self.functions_)
        return None if size == self.n_features_out_ else f"has {size} functions of columns for {self.n_features_out_} features"

    def __init__(self, functions: Any = ("x", "cos"), columns: Any = None) -> None:
        self.functions = functions
        self.columns = columns

    def _learn(self, X: Array) -> None:
        self.columns_, self.functions_ = positions(self, self.columns), named(self.functions)
        self.n_features_out_ = len(self.columns_) * len(self.functions_)
        self.kernel_ = Linear().warped(self._map)

    def _map(self, X: Array) -> Array:
        F = np.empty((len(X), self.n_features_out_), X.dtype)
        pairs = ((pattern, f, j) for pattern, f in self.functions_ for j in self.columns_)
        for i, (pattern, f, j) in enumerate(pairs):
            F[:, i] = self._values(f, X[:, j], pattern, j)
        return F

    def _values(self, f: Callable[[Array], Array], x: Array, pattern: str, j: int) -> Array:
        with np.errstate(all="ignore"):
            values = np.asarray(f(x))
            if values.shape != x.shape:
                name = pattern.format("x")
                raise ValueError(f"functions: {name} gave shape {values.shape} for {len(x)} rows; it must give one number a row.")
            values = values.astype(x.dtype)
        if not np.isfinite(values).all():
            name = pattern.format(inputs_of(self)[j])
            raise ValueError(f"{name} is not finite in some rows of X; scale that column first, or leave it out of columns.")
        return values

    def _names(self, inputs: list[str]) -> list[str]:
        return unique([pattern.format(inputs[j]) for pattern, _ in self.functions_ for j in self.columns_])


def named(functions: Any) -> list[tuple[str, Callable[[Array], Array]]]:
    """How each function writes its feature, and the function."""
    if isinstance(functions, Mapping):
        named = [(f"{name}({{}})", f) for name, f in functions.items()]
    else:
        given = [functions] if isinstance(functions, str) or callable(functions) else functions
        named = [_by_name(f) if isinstance(f, str) else (_pattern(f, i), f) for i, f in enumerate(given)]
    if not named or not all(callable(f) for _, f in named):
        known = ", ".join(FUNCTIONS)
        raise ValueError(f"functions must be one or more functions of a column, got {functions!r}; known names are {known}.")
    return named


def _by_name(name: str) -> tuple[str, Callable[[Array], Array]]:
    if name not in FUNCTIONS:
        raise ValueError(f"functions: {name!r} is not known; give a function, or one of {', '.join(FUNCTIONS)}.")
    return PATTERNS.get(name, f"{name}({{}})"), FUNCTIONS[name]


def _pattern(f: Any, i: int) -> str:
    name = getattr(f, "__name__", "")
    return f"{name if name.isidentifier() else f'f{i}'}({{}})"
