"""What estimators of support vectors share: a fitted machine seen through attributes, fewer support
vectors, files from before."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.gpu.devices import device_of
from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.lifts import Identity
from mercer.lifts.base import seed_of
from mercer.models.base import KernelEstimator, bytes_of
from mercer.models.maps import BATCH_BYTES, FittedMap
from mercer.models.naming import Named, strongest
from mercer.models.settings import FittedKernel, FittedLift, MemoryLimit, Seed, whole
from mercer.models.svm.machine import (
    Compression,
    DualMachine,
    FeatureMachine,
    FitSummary,
    Machine,
    WarmStart,
    compress,
)
from mercer.plans import Plan

LEARNT = (
    "support_",
    "support_vectors_",
    "dual_coef_",
    "n_support_",
    "multiclass_",
    "compression_",
    "coef_",
    "lift_",
    "n_features_lifted_",
    "sigmoid_",
    "gap_",
    "intercept_",
    "offset_",
    "_size",
    "n_iter_",
    "objective_",
    "plan_",
    "kernel_",
    "_last",
)


class SupportVectorEstimator(KernelEstimator):
    """An estimator that holds one machine: `machine_`, over support vectors or over features."""

    memory_limit: MemoryLimit
    device: str
    machine_: Machine

    must = dict(machine_=Is("DualMachine"))

    def _laws(self) -> str | None:
        return self.machine_.misfit(self.n_features_in_)

    @staticmethod
    def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
        return upgraded({"device": "cpu"} | state)  # what settings have learnt to ask since

    # rows
    def _row_weights(self, sample_weight: Any, rows: Table) -> Array:
        """Weights as they are, the bounds of the duals; ones where none are given."""
        found = self._weights(sample_weight, rows)
        return np.ones(len(rows)) if found is None else found

    def _raw(self, X: Any) -> Array:
        """Scores (n, k) of new rows, without the intercept."""
        machine = self._dual()
        return machine.queried(self._rows(X, reset=False), self._gpu)

    @property
    def _gpu(self) -> str | None:
        """The torch device to predict on; None: the CPU."""
        return device_of(self.device)

    def gradient(self, X: Any) -> Array:
        """df/dx of the scores at every row of X, (n, d), or (n, K, d) of K > 2 classes.

        Votes among pairs of classes have none; there multiclass="ovr" has one a class.

        >>> from mercer import KernelSVC, kernels
        >>> X = np.linspace(-3, 3, 60)[:, None]
        >>> m = KernelSVC(kernels.Linear(), C=1.0).fit(X, X[:, 0] > 0)
        >>> bool(np.all(m.gradient(X) > 0))
        True
        """
        G = self._machine().gradient(self._rows(X, reset=False))
        return G[:, 0] if G.shape[1] == 1 else G

    def compress(self, budget: int, X: Any = None, random_state: Seed = 0) -> Self:
        """The same model over at most `budget` of its support vectors.

        `compression_` holds what that costs.

        The function is projected, in the RKHS of its kernel, onto the span of vectors chosen by
        randomly pivoted Cholesky.

        Parameters
        ----------
        budget : int
            The most support vectors.
        X : array-like of shape (n, d), default=None
            Rows that the cost is measured on; None takes the support vectors themselves.
        random_state : int, RandomState, Generator or None, default=0
            The seed of the choice.
        """
        machine = self._machine()
        rows, small = None if X is None else self._rows(X, reset=False), copy.copy(self)
        small.machine_ = compress(machine, whole(budget, "budget"), rows, seed_of(random_state))
        return small

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "machine_" in vars(self)

    def _machine(self) -> Machine:
        check_is_fitted(self)
        return self.machine_

    def _dual(self) -> DualMachine:
        """The machine, where it is one over rows."""
        if not isinstance(machine := self._machine(), DualMachine):
            raise AttributeError(
                "support vectors and dual coefficients are there for models over rows; this one is over features."
            )
        return machine

    @property
    def plan_(self) -> Plan:
        return self._machine().summary.plan

    @property
    def kernel_(self) -> FittedKernel:
        return self._machine().kernel

    @property
    def n_iter_(self) -> int:
        return self._machine().summary.rounds

    @property
    def objective_(self) -> float:
        """Of the dual, or over features of the primal problem."""
        return self._machine().summary.objective

    @property
    def gap_(self) -> float:
        """The duality gap, relative to the objective; AttributeError where there is none."""
        if (gap := self._machine().summary.gap) is None:
            raise AttributeError(
                "gap_ is that of a dual problem, and the squared hinge over features is solved without one."
            )
        return gap

    @property
    def intercept_(self) -> Array:
        return self._machine().intercept

    @property
    def support_(self) -> Array:
        """The places of the support vectors among the rows; AttributeError over features."""
        return self._dual().support

    @property
    def support_vectors_(self) -> Any:
        """Their rows, or the columns of a given matrix."""
        m = self._dual()
        return m.support if m.vectors is None else m.vectors.data

    @property
    def dual_coef_(self) -> Array:
        """(1, m), (K, m) or of pairs (K - 1, m); AttributeError over features."""
        return self._dual().coef

    @property
    def n_support_(self) -> Array:
        """How many there are, of every class."""
        return self._dual().counts

    @property
    def coef_(self) -> Array:
        """(1 or K, D) over features; over rows with a linear kernel (k, d), a row of every score or
        pair of classes, and AttributeError with others."""
        if isinstance(machine := self._machine(), FeatureMachine):
            return machine.coef
        if (found := machine.slopes) is None:
            raise AttributeError(
                "coef_ is there with kernel='linear', and for models over features; this one has dual_coef_."
            )
        return found

    def _strongest(self, labels: list[Any], names: Any, top: int | None) -> Named:
        """Coefficients by name: over rows of a linear kernel the columns are the features."""
        if isinstance(self._machine(), FeatureMachine):
            return strongest(self.coef_, labels, self.lift_, names, top)
        own = getattr(self, "feature_names_in_", None) if names is None else names
        return strongest(self.coef_, labels, Identity(), own, top)

    @property
    def lift_(self) -> FittedLift:
        return self._linear().phi.lift

    @property
    def n_features_lifted_(self) -> int:
        """D"""
        return self._linear().phi.width

    def _linear(self) -> FeatureMachine:
        if not isinstance(machine := self._machine(), FeatureMachine):
            raise AttributeError(
                "a map and coefficients of its features are there for models over features; this one has dual_coef_."
            )
        return machine

    @property
    def compression_(self) -> Compression:
        """What `compress` has cost."""
        if (found := self._dual().compression) is None:
            raise AttributeError("compression_ is there for a model that compress returned.")
        return found


# files from before there was one fitted value: their attributes, put together to one
def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an estimator of support vectors as they are now: a machine was one by one,
    then beside the end of its fit."""
    old, left = SimpleNamespace(**state), {n: v for n, v in state.items() if n not in LEARNT}
    if "machine_" in state and "_last" in state:
        return left | {"machine_": _with_last(old.machine_, old._last)}
    if "machine_" in state or "intercept_" not in state:
        return state
    machine = _over_rows(old) if "dual_coef_" in state else _over_features(old)
    items = (
        isinstance(machine, DualMachine) and machine.vectors is not None and machine.vectors.items
    )
    last = _warm_start(*old._last) if "_last" in state else None
    return left | {"machine_": _with_last(machine, last), "_of_items": items}


def _with_last(machine: Any, last: WarmStart | None) -> Machine:
    return machine if last is None else replace(machine, last=last)


def _warm_start(kind: tuple[str, bool, str], codes: Any, c: Any, rules: Any) -> WarmStart:
    loss, bias, multiclass = kind
    return WarmStart(loss, bias, multiclass, codes, c, tuple(rules))


def _summary(old: Any) -> FitSummary:
    return FitSummary(old.plan_, old.objective_, old.n_iter_, getattr(old, "gap_", None))


def _over_rows(old: Any) -> DualMachine:
    vectors = None if isinstance(old.kernel_, str) else Table(old.support_vectors_)
    multiclass = getattr(old, "multiclass_", "")
    return DualMachine(
        old.kernel_,
        vectors,
        old.support_,
        old.dual_coef_,
        np.asarray(old.intercept_),
        old.n_support_,
        _summary(old),
        multiclass,
        getattr(old, "_size", 0.0),
        getattr(old, "sigmoid_", None),
        getattr(old, "compression_", None),
        bytes_of(old.memory_limit),
    )


def _over_features(old: Any) -> FeatureMachine:
    phi = FittedMap(old.lift_, min(BATCH_BYTES, bytes_of(old.memory_limit) / 8))
    return FeatureMachine(
        phi, old.coef_, old.intercept_, _summary(old), getattr(old, "sigmoid_", None)
    )
