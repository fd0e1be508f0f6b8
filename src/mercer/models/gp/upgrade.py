"""Files of before: what an estimator had of its posterior one by one, as attributes, becomes the posterior."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer import methods
from mercer.models.gp.features import FeaturePosterior
from mercer.models.gp.landmarks import LandmarkPosterior, is_projection
from mercer.models.gp.linear import FeatureTargets
from mercer.models.gp.points import PointPosterior
from mercer.models.gp.posterior import Outputs
from mercer.models.gp.problem import ProcessSettings
from mercer.models.maps import BATCH_BYTES, FittedMap

PARTS = (
    "process_", "plan_", "_units", "_flat", "_dtype", "_found", "_candidate", "_shares", "_large", "_unit", "_spread", "_approximate",
    "moments_", "lift_", "n_features_lifted_",
)  # fmt: skip


def upgraded(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes as they are now; model : an unfitted one of the same parameters."""
    old = {name: state.pop(name) for name in PARTS if name in state}
    if "plan_" not in old:
        return state
    s = ProcessSettings.of(model)
    return {**state, "posterior_": _of_points(s, old) if "process_" in old else _over_features(s, old)}


def _of_points(s: ProcessSettings, old: dict[str, Any]) -> PointPosterior:
    mean, unit = old["_units"]
    outputs = Outputs(mean, unit, old.get("_flat", True), s.noise)
    return replace(old["process_"], outputs=outputs, plan=old["plan_"])


def _over_features(s: ProcessSettings, old: dict[str, Any]) -> FeaturePosterior:
    if old.get("_large", False):  # there were too many rows to factor
        s = replace(s, method=methods.Landmarks())
    candidate, found = old.get("_candidate"), old.get("_found")
    origin, unit = old["_unit"]
    held = FeatureTargets.held_by(s, None if candidate is None else candidate.held)
    targets = FeatureTargets(origin, unit, s.prior, s.noise, held, old.get("_flat", True), old.get("_spread", 1.0))
    phi, eps = FittedMap(old["lift_"], min(BATCH_BYTES, s.memory / 8)), float(np.finfo(old["_dtype"]).eps)
    parts = dict(plan=old["plan_"], phi=phi, targets=targets, moments=old.get("moments_"), approximate=old["_approximate"], eps=eps)
    if is_projection(phi):
        return LandmarkPosterior(**parts, solved=found, restore=s.restore_variance, row_weights=old.get("_shares"))
    return FeaturePosterior(**parts, solved=found)
