"""Ridge regressions of files from before there was one fitted value: their attributes, put together to one."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mercer.inputs import Table
from mercer.models.expansion import Expansion
from mercer.models.maps import BATCH_BYTES, FittedMap
from mercer.models.ridge.dual import DualRidge
from mercer.models.ridge.moments import MomentRidge
from mercer.models.ridge.passes import FeatureRidge
from mercer.models.ridge.problem import RidgeSettings

LEARNT = (
    "X_fit_", "_flat", "_folds", "_found", "_idle", "_n_outputs", "_rows", "kernel_", "lift_", "loo_scores_", "moments_",
    "n_features_lifted_", "n_iter_", "plan_", "residual_",
)  # fmt: skip


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a `KernelRidge` as they are now."""
    if "solution_" in state or not any(name in state for name in ("X_fit_", "lift_")):
        return state
    old, left = SimpleNamespace(**state), {name: value for name, value in state.items() if name not in LEARNT}
    return left | {"solution_": _over_rows(old) if "X_fit_" in state else _over_features(old)}


def _over_rows(old: Any) -> DualRidge:
    given = isinstance(old.kernel_, str)
    over = Expansion(old.kernel_, None if given else Table(old.X_fit_))
    return DualRidge(old.plan_, over, old._found, old._flat, old.residual_, old.n_iter_, getattr(old, "loo_scores_", None))


def _over_features(old: Any) -> MomentRidge | FeatureRidge:
    s = RidgeSettings.of(old)
    phi = FittedMap(old.lift_, min(BATCH_BYTES, s.memory / 8))
    if not hasattr(old, "moments_"):
        return FeatureRidge(old.plan_, phi, old._found, old._flat, old.residual_, old.n_iter_)
    why = old.plan_.why.partition("features: ")[2]
    chosen = float(old._found.alpha) if s.loo and old._found is not None else None
    scores = getattr(old, "loo_scores_", None)
    return MomentRidge(s.penalties(old._n_outputs), phi, old._folds, old._n_outputs, old._flat, old.moments_, why, chosen, scores)
