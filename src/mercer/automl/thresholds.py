"""Thresholds of jumps as short numbers: any between the values of the rows is as good, so the
shortest in the middle is taken."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np

from mercer.automl.units import ColumnUnits
from mercer.inputs import Array
from mercer.lifts import Jumps, KitchenSink
from mercer.models.sparse.fit import SparseModel
from mercer.models.sparse.stored import LiftedFeatures
from mercer.models.sparse.terms import worded

INSIDE = 0.1  # of the way between two values that is left free at both ends
DIGITS = 15  # that float64 holds


def short_thresholds(m: SparseModel, units: ColumnUnits, X: Array) -> SparseModel:
    """The same model of rows X, in these units, its thresholds short numbers of the columns."""
    features = m.map.features
    if not isinstance(features, LiftedFeatures) or features.phi is None:
        return m
    lift = deepcopy(features.phi.lift)
    if not isinstance(lift, KitchenSink) or not isinstance(lift.parts_.get("jumps"), Jumps):
        return m
    jumps = lift.parts_["jumps"]
    for j, i in _places(lift, m.ids):
        shift, scale = (0.0, 1.0) if m.map.frame is None else _framed(m, j)
        inside = (X[:, j] - shift) / scale < jumps.thresholds_[j][i]
        low, high = X[inside, j].max(initial=-np.inf), X[~inside, j].min(initial=np.inf)
        told = short_between(units.told(j, low), units.told(j, high))
        moved = np.nan if told is None else units.bent(j, told)
        if low < moved < high:
            jumps.thresholds_[j][i] = (moved - shift) / scale
    phi = replace(m.map, features=replace(features, phi=replace(features.phi, lift=lift)))
    return replace(m, map=phi, names=worded(phi, m.ids))


def _framed(m: SparseModel, j: int) -> tuple[float, float]:
    assert m.map.frame is not None
    return float(m.map.frame.shift[j]), float(m.map.frame.scale[j])


def _places(lift: KitchenSink, ids: Array) -> list[tuple[int, int]]:
    """Of those features that are jumps: the column, and the number of the threshold."""
    names = list(lift.parts_)
    before = names[: names.index("jumps")]
    first = sum(lift.parts_[name].n_features_out_ for name in before)
    jumps = lift.parts_["jumps"]
    assert isinstance(jumps, Jumps)
    all_of = [(j, i) for j, a in jumps.thresholds_.items() for i in range(len(a))]
    return [all_of[k - first] for k in lift.kept_[ids].tolist() if 0 <= k - first < len(all_of)]


def short_between(low: float, high: float) -> float | None:
    """The number of the fewest digits well between two; None where there is none.

    >>> short_between(4.6250, 4.6347), short_between(-3.0, 8.0), short_between(1013.0, 1014.0)
    (4.63, 2.0, 1013.5)
    """
    free = INSIDE * (high - low)
    if not np.isfinite(free) or free <= 0:
        return None
    middle = low / 2 + high / 2
    for digits in range(1, DIGITS + 1):
        value = float(f"{middle:.{digits - 1}e}")
        if low + free < value < high - free:
            return value
    return None
