"""Expansions of single columns: functions of them and jumps at thresholds; and columns as users name
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names_in

from mercer.inputs import Array
from mercer.invariants import By, Each, Floats, Said, Text, Whole
from mercer.kernels import Linear
from mercer.kernels.base import whole
from mercer.kernels.params import plain
from mercer.lifts.algebra import unique
from mercer.lifts.base import Lift
from mercer.store import register


def inputs_of(phi: Lift) -> list[str]:
    """The names of the columns that a lift was fitted on: those of the dataframe, or x0, x1, ..."""
    return list(_check_feature_names_in(phi))


def position(phi: Lift, column: object) -> int:
    """Where a column of the fitted rows stands."""
    names = inputs_of(phi)
    if isinstance(column, str) and column in names:
        return names.index(column)
    if (
        isinstance(column, Integral)
        and not isinstance(column, bool)
        and -len(names) <= int(column) < len(names)
    ):
        return int(column) % len(names)
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    raise ValueError(
        f"columns: {column!r} is not a column of X; give names or positions of {shown}."
    )


def positions(phi: Lift, columns: Iterable[object] | str | int | None) -> list[int]:
    """Where the chosen columns stand; None means all of them."""
    if columns is None:
        return list(range(phi.n_features_in_))
    chosen = [position(phi, c) for c in ([columns] if isinstance(columns, str | int) else columns)]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"columns must name one or more different columns, got {columns!r}.")
    return chosen


def identity(x: Array) -> Array:
    return x


def cube(x: Array) -> Array:
    return x * x * x


def sqrt_abs(x: Array) -> Array:
    return np.sqrt(np.abs(x))


def log1p_abs(x: Array) -> Array:
    return np.log1p(np.abs(x))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "x": identity,
    "square": np.square,
    "cube": cube,
    "abs": np.abs,
    "sqrt_abs": sqrt_abs,
    "log1p_abs": log1p_abs,
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sign": np.sign,
    "relu": relu,
}
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
        return (
            None
            if size == self.n_features_out_
            else f"has {size} functions of columns for {self.n_features_out_} features"
        )

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
                raise ValueError(
                    f"functions: {name} gave shape {values.shape} for {len(x)} rows; it must give one number a row."
                )
            values = values.astype(x.dtype)
        if not np.isfinite(values).all():
            name = pattern.format(inputs_of(self)[j])
            raise ValueError(
                f"{name} is not finite in some rows of X; scale that column first, or leave it out of columns."
            )
        return values

    def _names(self, inputs: list[str]) -> list[str]:
        return unique(
            [pattern.format(inputs[j]) for pattern, _ in self.functions_ for j in self.columns_]
        )


def named(functions: Any) -> list[tuple[str, Callable[[Array], Array]]]:
    """How each function writes its feature, and the function."""
    if isinstance(functions, Mapping):
        named = [(f"{name}({{}})", f) for name, f in functions.items()]
    else:
        given = [functions] if isinstance(functions, str) or callable(functions) else functions
        named = [
            _by_name(f) if isinstance(f, str) else (_pattern(f, i), f) for i, f in enumerate(given)
        ]
    if not named or not all(callable(f) for _, f in named):
        known = ", ".join(FUNCTIONS)
        raise ValueError(
            f"functions must be one or more functions of a column, got {functions!r}; known names are {known}."
        )
    return named


def _by_name(name: str) -> tuple[str, Callable[[Array], Array]]:
    if name not in FUNCTIONS:
        raise ValueError(
            f"functions: {name!r} is not known; give a function, or one of {', '.join(FUNCTIONS)}."
        )
    return PATTERNS.get(name, f"{name}({{}})"), FUNCTIONS[name]


def _pattern(f: Any, i: int) -> str:
    name = getattr(f, "__name__", "")
    return f"{name if name.isidentifier() else f'f{i}'}({{}})"


@register("lifts.Jumps")
class Jumps(Lift):
    """1{x_j < a} for every column j and each of its thresholds a.

    The kernel counts those above both x_j and z_j.

    Parameters
    ----------
    thresholds : str, array-like, or dict of array-like by column, default="quantile"
        "quantile" (`n` observed values a column, evenly ranked), "distinct" (all observed
        values but the smallest), thresholds for every column, or those of each.
    n : int, default=10
        The number of quantiles.
    limit : int, default=1000
        The largest number of thresholds of a column; "distinct" refuses more.

    Examples
    --------
    >>> phi = Jumps("distinct").fit([[1.0], [2.0], [3.5]])
    >>> phi.transform([[1.0], [2.0]]), list(phi.get_feature_names_out())
    (array([[1., 1.], [0., 1.]]), ['1{x0<2}', '1{x0<3.5}'])
    """

    must = dict(thresholds_=By(Whole(0, "n_features_in_"), Floats(None)))

    def _laws(self) -> str | None:
        size = sum(map(len, self.thresholds_.values()))
        return (
            None
            if size == self.n_features_out_
            else f"has {size} thresholds for {self.n_features_out_} features"
        )

    def __init__(self, thresholds: Any = "quantile", n: int = 10, limit: int = 1000) -> None:
        self.thresholds = thresholds
        self.n = n
        self.limit = limit

    def _learn(self, X: Array) -> None:
        with np.errstate(over="ignore"):
            self.thresholds_ = {j: np.unique(a.astype(X.dtype)) for j, a in self._chosen(X).items()}
        limit = whole(plain(self.limit), "limit", least=1)
        for j, a in self.thresholds_.items():
            if len(a) > limit:
                name = inputs_of(self)[j]
                raise ValueError(
                    f'thresholds: {name} has {len(a)}, more than limit={limit}; use "quantile", or raise the limit.'
                )
        self.n_features_out_ = sum(map(len, self.thresholds_.values()))
        if not self.n_features_out_:
            raise ValueError(f"thresholds must hold one or more numbers, got {self.thresholds!r}.")
        self.kernel_ = Linear().warped(self._map)

    def _chosen(self, X: Array) -> dict[int, Array]:
        given, columns = self.thresholds, range(X.shape[1])
        if isinstance(given, str) and given in ("quantile", "distinct"):
            at = _ranks(whole(plain(self.n), "n", least=1)) if given == "quantile" else None
            return {j: observed(X[:, j], at) for j in columns}
        if isinstance(given, str):
            raise ValueError(
                f'thresholds must be "quantile", "distinct", numbers or a dict of numbers by column, got {given!r}.'
            )
        by_column = given if isinstance(given, Mapping) else dict.fromkeys(columns, given)
        return {position(self, c): _numbers(a) for c, a in by_column.items()}

    def _map(self, X: Array) -> Array:
        blocks = [X[:, [j]] < a for j, a in self.thresholds_.items()]
        return np.concatenate(blocks, axis=1, dtype=X.dtype, casting="unsafe")

    def _names(self, inputs: list[str]) -> list[str]:
        return unique([f"1{{{inputs[j]}<{t:.6g}}}" for j, a in self.thresholds_.items() for t in a])


def observed(x: Array, ranks: Array | None = None) -> Array:
    """The distinct values of x at those ranks in (0, 1), or all; but the smallest, below which
    there is nothing.

    A constant column keeps its value, so that what is new and smaller later on shows.
    """
    values = np.unique(x) if ranks is None else np.unique(np.quantile(x, ranks, method="higher"))
    above = values[values > x.min()]
    return above if len(above) else values[:1]


def _ranks(n: int) -> Array:
    return np.arange(1, n + 1) / (n + 1)


def _numbers(a: Any) -> Array:
    out = np.ravel(np.asarray(a, np.float64))
    if not np.isfinite(out).all():
        raise ValueError(f"thresholds must be finite numbers, got {a!r}.")
    return out
