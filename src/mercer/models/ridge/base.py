"""What a fitted ridge regression shows and what must hold of it; files from before there was one
fitted value are put together to it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Items, Matrix, Table
from mercer.invariants import Ints, Is
from mercer.models.base import KernelEstimator, bytes_of, part
from mercer.models.expansion import Expansion
from mercer.models.maps import BATCH_BYTES, FittedMap
from mercer.models.ridge.dual import DualRidge
from mercer.models.ridge.fit import Solution
from mercer.models.ridge.leave_one_out import Calibration
from mercer.models.ridge.moments import MomentRidge
from mercer.models.ridge.passes import FeatureRidge
from mercer.models.ridge.problem import RidgeSettings, TrainingRows
from mercer.models.settings import FittedKernel, FittedLift, MemoryLimit
from mercer.plans import Plan
from mercer.stats import Moments

LEARNT = (
    "X_fit_",
    "_flat",
    "_folds",
    "_found",
    "_idle",
    "_n_outputs",
    "_rows",
    "kernel_",
    "lift_",
    "loo_scores_",
    "moments_",
    "n_features_lifted_",
    "n_iter_",
    "plan_",
    "residual_",
)


class RidgeEstimator(KernelEstimator):
    """An estimator that holds one solution: `solution_`, over rows, landmarks or features."""

    memory_limit: MemoryLimit
    solution_: Solution
    _training: TrainingRows | None = None  # the rows of `fit`, while they are at hand
    _settings: RidgeSettings | None = (
        None  # what they were fitted by, whatever was set since; None in files of before
    )
    _split: Calibration | None = None  # what `predict_interval` needs, found when first asked for
    _kept: Array | None = (
        None  # columns of kernel matrices to come that belong to rows of positive weight
    )

    must = dict(
        solution_=Is("DualRidge", "MomentRidge", "FeatureRidge"),
        _training=Is("TrainingRows") | None,
        _settings=Is("RidgeSettings") | None,
        _split=Is("Calibration") | None,
        _kept=Ints("kept", below="n_features_in_", distinct=True) | None,
    )

    def _laws(self) -> str | None:
        """Rows, targets and coefficients are of the same sizes, whichever of them is asked."""
        model, rows, kept, reads = self.solution_, self._training, self._kept, self.solution_.reads
        if reads is not None and reads != (self.n_features_in_ if kept is None else len(kept)):
            return f"has a solution over {reads} columns, which are not those that it takes"
        if rows is not None and rows.Y.shape[1] != _outputs(model):
            return f"has targets of {rows.Y.shape[1]} outputs and a solution of {_outputs(model)}"
        if rows is not None and rows.idle is not None and reads not in (None, rows.idle[1].width):
            return f"has rows of weight zero with {rows.idle[1].width} columns"
        return None if self._split is None else self._split.misfit(reads)

    @staticmethod
    def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
        return upgraded(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._training is not None:
            points = self.solution_.over.points if isinstance(self.solution_, DualRidge) else None
            if points is None or len(points) != len(self._training):
                raise ValueError("the rows of the model are not those of its targets.")
            self._training = replace(self._training, X=points)

    def __copy__(self) -> Self:
        """With the rows of `fit`, which files leave behind; fitted values are never changed, so
        that two models may hold one."""
        new = type(self).__new__(type(self))
        new.__dict__.update(vars(self))
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = memo[id(self)] = type(self).__new__(type(self))
        new.__dict__.update(deepcopy(vars(self), memo))
        return new

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "solution_" in vars(self)

    def _solution(self) -> Solution:
        check_is_fitted(self)
        return self.solution_

    @property
    def plan_(self) -> Plan:
        return self._solution().plan

    @property
    def kernel_(self) -> FittedKernel:
        return self._solution().kernel

    @property
    def n_iter_(self) -> int:
        return self._solution().steps

    @property
    def alpha_(self) -> Any:
        """The penalty given, or chosen."""
        return self._solution().weights.alpha

    @property
    def intercept_(self) -> Any:
        s = self._solution()
        return s.weights.shaped(s.flat)[1]

    @property
    def coef_(self) -> Array:
        """(D,) or (D, q); AttributeError for models over rows."""
        part(
            self._solution(),
            "phi",
            "coef_ is there for models over features; this one has dual_coef_.",
        )
        return self.solution_.weights.shaped(self.solution_.flat)[0]

    @property
    def dual_coef_(self) -> Array:
        """(n,) or (n, q); AttributeError over features."""
        part(
            self._solution(),
            "over",
            "dual_coef_ is there for models over rows (via='exact', 'iterative') or many landmarks.",
        )
        return self.solution_.weights.shaped(self.solution_.flat)[0]

    @property
    def X_fit_(self) -> Matrix:
        """The rows (or landmarks) that dual_coef_ are of; empty for a given kernel matrix."""
        over = part(
            self._solution(),
            "over",
            "X_fit_ is there for models over rows (via='exact', 'iterative') or many landmarks.",
        )
        return (
            np.empty((0, 0))
            if over.points is None
            else Items(over.points.data)
            if over.points.items
            else over.points.data
        )

    @property
    def lift_(self) -> FittedLift:
        return part(
            self._solution(),
            "phi",
            "lift_ is there for models over features; this one has dual_coef_.",
        ).lift

    @property
    def n_features_lifted_(self) -> int:
        """D"""
        return part(
            self._solution(),
            "phi",
            "n_features_lifted_ is there for models over features; this one has dual_coef_.",
        ).width

    @property
    def moments_(self) -> list[Moments]:
        """Of [phi, y], one of every fold."""
        return part(
            self._solution(),
            "moments",
            "moments_ is there for models over features whose D x D statistics fit memory_limit.",
        )

    @property
    def rounding_(self) -> float:
        """How far an entry of the moments may be off."""
        return part(
            self._solution(),
            "total",
            "rounding_ is that of moments, which this model has not; fit with via='features'.",
        ).rounding

    @property
    def residual_(self) -> float:
        """Of the equations, relative to |y|."""
        what = "residual_ is there for models over rows, landmarks or passes; moments are solved directly."
        return part(self._solution(), "residual", what)

    @property
    def loo_scores_(self) -> Array:
        """R^2 of left-out rows for every penalty (of every bandwidth)."""
        return part(self._solution(), "loo_scores", "loo_scores_ is there with cv='loo'.")

    def _at_hand(self) -> TrainingRows:
        check_is_fitted(self)
        if self._training is None:
            raise AttributeError(
                "left-out rows need the rows of one `fit` at hand; streams, merged models and loaded ones "
                "of a given kernel matrix or over features or landmarks have none; fit once more."
            )
        return self._training

    def _fitted_by(self) -> RidgeSettings:
        """The settings of the fit, but for today's memory_limit."""
        return (
            RidgeSettings.of(self)
            if self._settings is None
            else replace(self._settings, memory=bytes_of(self.memory_limit))
        )

    def without_statistics(self) -> Self:
        """A copy that only predicts: without the moments of features, and the rows of `fit`."""
        model, s = clone(self).set_params(alpha=self.alpha_, cv=None, alphas=None), self._solution()
        for name in vars(self).keys() & {
            "n_features_in_",
            "feature_names_in_",
            "_of_items",
            "_kept",
        }:
            setattr(model, name, getattr(self, name))
        model.solution_ = s.alone() if isinstance(s, MomentRidge) else s
        return model


def _outputs(model: Solution) -> int:
    return model.outputs if isinstance(model, MomentRidge) else model.weights.outputs


# files from before
def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a `KernelRidge` as they are now."""
    if "solution_" in state or not any(name in state for name in ("X_fit_", "lift_")):
        return state
    old, left = (
        SimpleNamespace(**state),
        {name: value for name, value in state.items() if name not in LEARNT},
    )
    return left | {"solution_": _over_rows(old) if "X_fit_" in state else _over_features(old)}


def _over_rows(old: Any) -> DualRidge:
    given = isinstance(old.kernel_, str)
    over = Expansion(old.kernel_, None if given else Table(old.X_fit_))
    return DualRidge(
        old.plan_,
        over,
        old._found,
        old._flat,
        old.residual_,
        old.n_iter_,
        getattr(old, "loo_scores_", None),
    )


def _over_features(old: Any) -> MomentRidge | FeatureRidge:
    s = RidgeSettings.of(old)
    phi = FittedMap(old.lift_, min(BATCH_BYTES, s.memory / 8))
    if not hasattr(old, "moments_"):
        return FeatureRidge(old.plan_, phi, old._found, old._flat, old.residual_, old.n_iter_)
    why = old.plan_.why.partition("features: ")[2]
    chosen = float(old._found.alpha) if s.loo and old._found is not None else None
    scores = getattr(old, "loo_scores_", None)
    return MomentRidge(
        s.penalties(old._n_outputs),
        phi,
        old._folds,
        old._n_outputs,
        old._flat,
        old.moments_,
        why,
        chosen,
        scores,
    )
