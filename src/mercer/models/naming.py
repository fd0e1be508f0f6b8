"""Coefficients by name: the strongest features of a linear model, signed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.lifts import Identity
from mercer.models.settings import FittedLift, shown, whole

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


def scored(classes: Array) -> list[Any]:
    """The classes that have a score of their own: the second of two, or all.

    >>> scored(np.array(["no", "yes"]))
    ['yes']
    """
    return list(classes.tolist()[1:] if len(classes) == 2 else classes.tolist())


def _sorted(row: Array, most: int | None, of: Callable[[int], str]) -> list[tuple[str, float]]:
    on = np.flatnonzero(row)
    if most is not None and most < len(on):  # those that may be among the first, ties and all
        size = np.abs(row[on])
        on = on[size >= np.partition(size, len(on) - most)[len(on) - most]]
    order = on[np.argsort(-np.abs(row[on]), kind="stable")][:most]
    return [(of(int(j)), float(row[j])) for j in order]


def _namer(names: Any, lift: FittedLift, D: int) -> Callable[[int], str]:
    """What tells the name of a feature by its place: names, or a transformer, mapping or function
    that has them; the lift where nothing is given."""
    if names is None and isinstance(lift, Identity) and not hasattr(lift, "feature_names_in_"):
        return lambda j: f"x{j}"  # a million names are not made for the few that are asked for
    if names is None:
        names = lift
    if callable(getattr(names, "get_feature_names_out", None)):
        names = names.get_feature_names_out()
    if isinstance(names, Mapping):
        return lambda j: str(names.get(j, f"x{j}"))
    if callable(names):
        return lambda j: str(names(j))
    if not hasattr(names, "__len__") or isinstance(names, str) or len(names) != D:
        raise ValueError(
            f"names must be {D:,} names, a transformer with get_feature_names_out, a mapping from "
            f"places, or a function of them, got {shown(names)!r}."
        )
    return lambda j: str(names[j])
