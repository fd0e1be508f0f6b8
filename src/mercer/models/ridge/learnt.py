"""Folds of ridge regression over maps that learn from targets: each fold has a map of its own,
which has not seen it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.models.folds import Folds
from mercer.models.maps import FittedMap
from mercer.models.ridge import passes
from mercer.models.ridge.cross_validation import FoldErrors, moment_fold_errors, spread
from mercer.models.ridge.moments import origin
from mercer.models.ridge.problem import RidgeSettings, TrainingRows, moments_fit

LOO = (
    "{} learns from y, so leave-one-out over one map of all rows would know every row; give cv as a number "
    "of folds, in each of which the map is learnt anew, or cross_fit, where it has one."
)


def leaks(phi: FittedMap) -> bool:
    """Whether rows of `fit` are mapped by what their own targets told: not where the map is
    cross-fitted."""
    return phi.learns and getattr(phi.lift, "cross_fit", None) is None


def targets_of(rows: TrainingRows) -> Array:
    """Targets as maps learn from them: of one output (n,)."""
    return rows.Y[:, 0] if rows.Y.shape[1] == 1 else rows.Y


def without(phi: FittedMap, rows: TrainingRows, held: Array) -> FittedMap:
    """The map learnt anew without the rows held out."""
    on = rows.some(np.flatnonzero(~held))
    return phi.anew(on.X, targets_of(on))


def fold_errors(s: RidgeSettings, rows: TrainingRows, phi: FittedMap, alphas: Array) -> FoldErrors:
    """Of every fold and penalty, over a map that was learnt from the other folds."""
    fold, k, q = rows.fold(), rows.folds.k, rows.Y.shape[1]
    error, each = np.full((len(alphas), k, q), np.nan), np.full((k, q), np.nan)
    for j in range(k):
        if (held := fold == j).any() and not held.all():
            two = replace(rows, folds=Folds(2, held.astype(np.int64)))
            found = _of_two(s, two, without(phi, rows, held), alphas)
            error[:, j], each[j] = found.error[:, 1], found.spread[1]
    return FoldErrors(error, each, spread(rows.Y, rows.weight))


def _of_two(s: RidgeSettings, rows: TrainingRows, phi: FittedMap, alphas: Array) -> FoldErrors:
    """Those of a fold and of all others, by moments where they fit."""
    if phi.sparse_features(rows.X) is None and moments_fit(phi.width, 2, s.memory):
        shift = origin(phi, rows.X, rows.Y)
        moments = phi.fold_moments(rows.X, shift, rows.Y, rows.weight, rows.fold(), 2)
        return moment_fold_errors(moments, phi.width, alphas, intercept=s.intercept)
    p, _ = passes.passes(s, rows, phi)
    return passes.errors(s, p, alphas)
