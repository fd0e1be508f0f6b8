"""From settings and rows to a fitted ridge regression, by the way that the plan chooses."""

from __future__ import annotations

from dataclasses import replace

from mercer.models.folds import Folds
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.ridge import dual, landmarks, moments, passes
from mercer.models.ridge.dual import DualRidge
from mercer.models.ridge.moments import MomentRidge
from mercer.models.ridge.passes import FeatureRidge
from mercer.models.ridge.problem import RidgeSettings, TrainingRows, choose, moments_fit

Solution = DualRidge | MomentRidge | FeatureRidge


def fit(s: RidgeSettings, rows: TrainingRows, flat: bool) -> Solution:
    """One of the fitted values, which answer the same questions."""
    rows = replace(rows, folds=Folds(1)) if s.cv is None else rows
    plan = choose(len(rows), s)

    def refit(settings: RidgeSettings, some: TrainingRows) -> Solution:
        return fit(settings, some, flat)

    if plan.way == "features":
        return over_features(s, rows, flat)
    return (landmarks if plan.way == "landmarks" else dual).fit(s, rows, plan, flat, refit)


def over_features(s: RidgeSettings, rows: TrainingRows, flat: bool) -> MomentRidge | FeatureRidge:
    """By moments where they fit, else by passes."""
    if s.bandwidths is not None:
        raise ValueError(
            "bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them."
        )
    phi = map_of(s, rows)
    if moments_fit(phi.width, rows.folds.k, s.memory):
        found = moments.fit(s, rows, phi, flat)
        found.weights  # noqa: B018 (a penalty that cannot be chosen is refused in `fit`)
        return found
    return passes.fit(s, rows, phi, flat)


def map_of(s: RidgeSettings, rows: TrainingRows, *, stream: bool = False) -> FittedMap:
    """The map that was asked for, fitted to these rows."""
    return fitted_map(
        s.kernel,
        s.lift,
        s.method,
        rows.X,
        rows.weight,
        seed=s.random_state,
        memory=s.memory,
        stream=stream,
    )
