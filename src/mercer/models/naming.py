"""Coefficients by name: the strongest features of a linear model, signed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.lifts import Identity
from mercer.models.settings import FittedLift, shown, whole

SHOWN = 3  # names of one hashed column
Named = dict[Any, list[tuple[str, float]]]


def strongest(
    coef: Array, labels: Sequence[Any], lift: FittedLift, names: Any, top: int | None
) -> Named:
    """The nonzero coefficients (k, D) of each label, the largest in size first, by name.

    >>> strongest(np.array([[0.5, -2.0, 0.0]]), ["yes"], Identity(), ["good", "bad", "so"], None)
    {'yes': [('bad', -2.0), ('good', 0.5)]}
    """
    most = None if top is None else whole(top, "top")
    of = _namer(names, lift, coef.shape[1])
    return {label: _sorted(row, most, of) for label, row in zip(labels, coef, strict=True)}


def scored(classes: Array, *, pairs: bool = False) -> list[Any]:
    """The classes that have a score of their own: the second of two, or all; or the pairs that have
    one, of which the first is where it is positive.

    >>> scored(np.array(["no", "yes"])), scored(np.array([0, 1, 2]), pairs=True)
    (['yes'], [(0, 1), (0, 2), (1, 2)])
    """
    if pairs:
        return list(combinations(classes.tolist(), 2))
    return list(classes.tolist()[1:] if len(classes) == 2 else classes.tolist())


Namer = Callable[[int], tuple[str, int]]  # of a place: its name, and the sign it was hashed with


def _sorted(row: Array, most: int | None, of: Namer) -> list[tuple[str, float]]:
    on = np.flatnonzero(row)
    if most is not None and most < len(on):  # those that may be among the first, ties and all
        size = np.abs(row[on])
        on = on[size >= np.partition(size, len(on) - most)[len(on) - most]]
    order = on[np.argsort(-np.abs(row[on]), kind="stable")][:most]
    named = [(of(int(j)), float(row[j])) for j in order]
    return [(name, sign * weight) for (name, sign), weight in named]


def _namer(names: Any, lift: FittedLift, D: int) -> Namer:
    """What tells the name of a feature by its place: names, or a transformer, mapping or function
    that has them; the lift where nothing is given."""
    if names is None and isinstance(lift, Identity) and not hasattr(lift, "feature_names_in_"):
        return lambda j: (f"x{j}", 1)  # a million names are not made for the few that are asked for
    if names is None:
        names = lift
    if callable(getattr(names, "names", None)) and not isinstance(names, Mapping):
        return lambda j: _hashed(names.names(j), j)
    if callable(getattr(names, "get_feature_names_out", None)):
        names = names.get_feature_names_out()
    if isinstance(names, Mapping):
        return lambda j: (str(names.get(j, f"x{j}")), 1)
    if callable(names):
        return lambda j: (str(names(j)), 1)
    if not hasattr(names, "__len__") or isinstance(names, str) or len(names) != D:
        raise ValueError(
            f"names must be {D:,} names, a transformer with names or get_feature_names_out, a mapping "
            f"from places, or a function of them, got {shown(names)!r}."
        )
    return lambda j: (str(names[j]), 1)


def _hashed(found: Sequence[tuple[str, int, int]], j: int) -> tuple[str, int]:
    """The names that share a hashed column, the most frequent first; its sign is that of the first.

    >>> _hashed([("film", 9, -1), ("ox", 1, 1)], 7), _hashed([], 7)
    (('film | ox', -1), ('x7', 1))
    """
    if not found:
        return f"x{j}", 1
    more = " | ..." if len(found) > SHOWN else ""
    return " | ".join(name for name, _, _ in found[:SHOWN]) + more, found[0][2]
