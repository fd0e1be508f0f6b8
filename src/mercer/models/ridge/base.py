"""What a fitted ridge regression shows and what must hold of it; files from before there was one
fitted value are put together to it."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Items, Matrix, Table
from mercer.invariants import Is
from mercer.models.base import KernelEstimator, bytes_of, part
from mercer.models.expansion import Expansion
from mercer.models.maps import BATCH_BYTES, FittedMap
from mercer.models.naming import Named, strongest
from mercer.models.ridge.dual import DualRidge
from mercer.models.ridge.fit import FittedRidge, Solution
from mercer.models.ridge.moments import MomentRidge
from mercer.models.ridge.passes import FeatureRidge
from mercer.models.ridge.problem import RidgeSettings
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
    "solution_",
    "_training",
    "_settings",
    "_split",
    "_kept",
)
# what models held beside `solution_`, by what it is called in the fitted value
BESIDE = {"rows": "_training", "settings": "_settings", "split": "_split", "columns": "_kept"}


class RidgeEstimator(KernelEstimator):
    """An estimator that holds one fitted value: `fitted_`, a solution and what its fit has at hand."""

    memory_limit: MemoryLimit
    fitted_: FittedRidge

    must = dict(fitted_=Is("FittedRidge"))

    def _laws(self) -> str | None:
        return self.fitted_.misfit(self.n_features_in_)

    @staticmethod
    def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
        return upgraded(state)

    def __getstate__(self) -> dict[str, Any]:
        """What travels with the model."""
        if not self.__sklearn_is_fitted__():
            return super().__getstate__()
        if self.fitted_.loses_intervals:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # said by `fit`, or when intervals are asked for
                self.fitted_ = self.fitted_.calibrated(self._fitted_by())
        return {**super().__getstate__(), "fitted_": self.fitted_.kept_in_files()}

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
        return "fitted_" in vars(self)

    def _fitted(self) -> FittedRidge:
        check_is_fitted(self)
        return self.fitted_

    def _fitted_by(self) -> RidgeSettings:
        """The settings of the fit, but for today's memory_limit; of files of before, and of streams,
        which have none, today's."""
        held = self._fitted().settings
        if held is None:
            return RidgeSettings.of(self)
        return replace(held, memory=bytes_of(self.memory_limit))

    @property
    def solution_(self) -> Solution:
        """Over rows, landmarks or features."""
        return self._fitted().solution

    def gradient(self, X: Any) -> Array:
        """df/dx at every row of X, (n, d), or (n, q, d) of several outputs.

        Over features it is that of the map, which Fourier features and landmarks have.

        >>> from mercer import KernelRidge, kernels
        >>> X = np.linspace(0, 6, 200)[:, None]
        >>> m = KernelRidge(kernels.Gaussian(), alpha=1e-4).fit(X, np.sin(X[:, 0]))
        >>> m.gradient([[np.pi / 3], [np.pi]]).round(2)
        array([[ 0.5],
               [-1. ]])
        """
        s = self.solution_
        G = s.gradient(self._rows(X, reset=False))
        return G[:, 0] if s.flat else G

    @property
    def plan_(self) -> Plan:
        return self.solution_.plan

    @property
    def kernel_(self) -> FittedKernel:
        return self.solution_.kernel

    @property
    def n_iter_(self) -> int:
        return self.solution_.steps

    @property
    def alpha_(self) -> Any:
        """The penalty given, or chosen."""
        return self.solution_.weights.alpha

    @property
    def intercept_(self) -> Any:
        s = self.solution_
        return s.weights.shaped(s.flat)[1]

    @property
    def coef_(self) -> Array:
        """(D,) or (D, q); AttributeError for models over rows."""
        part(
            self.solution_,
            "phi",
            "coef_ is there for models over features; this one has dual_coef_.",
        )
        return self.solution_.weights.shaped(self.solution_.flat)[0]

    def coef_by_name(self, names: Any = None, top: int | None = None) -> Named:
        """The nonzero coefficients by name, signed, the largest first: those of each output, by its number.

        names : the D names, a transformer that has them (`NGrams`, `HashedFeatures`: of
        hashed columns, by the sign of the most frequent name), a mapping or
        function from places, or None for those of the lift; top : how many of each, or all
        """
        coef = np.atleast_2d(self.coef_.T).T
        return strongest(coef.T, range(coef.shape[1]), self.lift_, names, top)

    @property
    def dual_coef_(self) -> Array:
        """(n,) or (n, q); AttributeError over features."""
        part(
            self.solution_,
            "over",
            "dual_coef_ is there for models over rows (via='exact', 'iterative') or many landmarks.",
        )
        return self.solution_.weights.shaped(self.solution_.flat)[0]

    @property
    def X_fit_(self) -> Matrix:
        """The rows (or landmarks) that dual_coef_ are of; empty for a given kernel matrix."""
        over = part(
            self.solution_,
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
            self.solution_,
            "phi",
            "lift_ is there for models over features; this one has dual_coef_.",
        ).lift

    @property
    def n_features_lifted_(self) -> int:
        """D"""
        return part(
            self.solution_,
            "phi",
            "n_features_lifted_ is there for models over features; this one has dual_coef_.",
        ).width

    @property
    def moments_(self) -> list[Moments]:
        """Of [phi, y], one of every fold."""
        return part(
            self.solution_,
            "moments",
            "moments_ is there for models over features whose D x D statistics fit memory_limit.",
        )

    @property
    def rounding_(self) -> float:
        """How far an entry of the moments may be off."""
        return part(
            self.solution_,
            "total",
            "rounding_ is that of moments, which this model has not; fit with via='features'.",
        ).rounding

    @property
    def residual_(self) -> float:
        """Of the equations, relative to |y|."""
        what = "residual_ is there for models over rows, landmarks or passes; moments are solved directly."
        return part(self.solution_, "residual", what)

    @property
    def loo_scores_(self) -> Array:
        """R^2 of left-out rows for every penalty (of every bandwidth)."""
        return part(self.solution_, "loo_scores", "loo_scores_ is there with cv='loo'.")

    def without_statistics(self) -> Self:
        """A copy that only predicts: without the moments of features, and the rows of `fit`."""
        model = clone(self).set_params(alpha=self.alpha_, cv=None, alphas=None)
        for name in vars(self).keys() & {"n_features_in_", "feature_names_in_", "_of_items"}:
            setattr(model, name, getattr(self, name))
        model.fitted_ = self.fitted_.alone()
        return model


# files from before
def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a `KernelRidge` as they are now: a solution was one by one, then beside the
    rows of its fit."""
    old = SimpleNamespace(**{"device": "cpu"} | state)  # what settings have learnt to ask since
    left = {n: v for n, v in state.items() if n not in LEARNT}
    if "solution_" in state:
        model = old.solution_
    elif "fitted_" not in state and ("X_fit_" in state or "lift_" in state):
        model = _over_rows(old) if "X_fit_" in state else _over_features(old)
    else:
        return state
    beside = {name: state.get(before) for name, before in BESIDE.items()}
    return left | {"fitted_": FittedRidge(model, **beside)}


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
