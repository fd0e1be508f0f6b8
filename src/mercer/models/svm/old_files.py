"""Support vector machines of files from before there was one fitted value: their attributes, put together to one."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from mercer.inputs import Table
from mercer.models.base import bytes_of
from mercer.models.maps import BATCH_BYTES, FittedMap
from mercer.models.svm.fit import WarmStart
from mercer.models.svm.machine import DualMachine, FeatureMachine, FitSummary

LEARNT = (
    "support_", "support_vectors_", "dual_coef_", "n_support_", "multiclass_", "compression_", "coef_", "lift_", "n_features_lifted_",
    "sigmoid_", "gap_", "intercept_", "offset_", "_size", "n_iter_", "objective_", "plan_", "kernel_", "_last",
)  # fmt: skip


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an estimator of support vectors as they are now."""
    if "machine_" in state or "intercept_" not in state:
        return state
    old, left = SimpleNamespace(**state), {name: value for name, value in state.items() if name not in LEARNT}
    machine = _over_rows(old) if "dual_coef_" in state else _over_features(old)
    items = isinstance(machine, DualMachine) and machine.vectors is not None and machine.vectors.items
    last = {"_last": _last(*old._last)} if "_last" in state else {}
    return left | last | {"machine_": machine, "_of_items": items}


def _summary(old: Any) -> FitSummary:
    return FitSummary(old.plan_, old.objective_, old.n_iter_, getattr(old, "gap_", None))


def _over_rows(old: Any) -> DualMachine:
    vectors = None if isinstance(old.kernel_, str) else Table(old.support_vectors_)
    multiclass = getattr(old, "multiclass_", "")
    return DualMachine(
        old.kernel_, vectors, old.support_, old.dual_coef_, np.asarray(old.intercept_), old.n_support_, _summary(old), multiclass,
        getattr(old, "_size", 0.0), getattr(old, "sigmoid_", None), getattr(old, "compression_", None),
    )  # fmt: skip


def _over_features(old: Any) -> FeatureMachine:
    phi = FittedMap(old.lift_, min(BATCH_BYTES, bytes_of(old.memory_limit) / 8))
    return FeatureMachine(phi, old.coef_, old.intercept_, _summary(old), getattr(old, "sigmoid_", None))


def _last(kind: tuple[str, bool, str], codes: Any, c: Any, rules: Any) -> WarmStart:
    loss, bias, multiclass = kind
    return WarmStart(loss, bias, multiclass, codes, c, tuple(rules))
