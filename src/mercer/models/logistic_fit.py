"""From settings and rows of classes to a fitted logistic or softmax regression: rounds of passes over
features, dense or sparse, and paths of penalties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mercer import methods
from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is, Number, Whole
from mercer.kernels.defaults import is_precomputed, kernel_of
from mercer.models import sparse_newton
from mercer.models.base import bytes_of
from mercer.models.folds import ONE_FOLD, Folds
from mercer.models.linear import FeatureRows, Logistic, Problem, Softmax, feature_rows, unshifted
from mercer.models.maps import FittedMap
from mercer.models.newton import Minimum, minimise, rounds_plan
from mercer.models.partitions.classifiers import ClassPartitions, MapSetting, Rounds
from mercer.models.penalties import (
    HeldOut,
    PenaltyPath,
    log_likelihood,
    penalty_grid,
)
from mercer.models.settings import (
    KernelSetting,
    LiftSetting,
    Seed,
    checked_flag,
    class_weights,
    positive,
    way_of,
    whole,
)
from mercer.models.sparse_newton import SparseProblem, newton_plan
from mercer.models.sparse_rows import SparseRows
from mercer.plans import Plan
from mercer.store import register

CHOOSING = 1e-2  # the tolerance at which models of folds are good enough to compare penalties
WAYS = (
    "auto",
    "features",
    "landmarks",
)  # of features all: rounds of passes over them are the one way
GIVEN = "a Gram matrix has no features, over which a logistic regression is fitted; give a kernel, or use KernelSVC."


@dataclass(frozen=True, eq=False)
class LogisticSettings:
    """The parameters of `KernelLogistic`, checked: `method` is what `via` says, `memory` is in
    bytes.
    """

    kernel: KernelSetting
    lift: LiftSetting
    alpha: float
    method: methods.Method
    intercept: bool
    tol: float
    max_iter: int
    memory: float
    random_state: Seed
    folds: Folds = ONE_FOLD  # of the rows that count
    alphas: Array | None = None  # where there is cv: ascending

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        if is_precomputed(m.kernel):
            raise ValueError(GIVEN)
        alpha, tol, steps = (
            positive(m.alpha, "alpha"),
            positive(m.tol, "tol"),
            whole(m.max_iter, "max_iter"),
        )
        kernel, intercept = kernel_of(m), checked_flag(m.fit_intercept, "fit_intercept")
        _, method = way_of(m.via, kernel, m.lift, WAYS)
        return cls(
            kernel,
            m.lift,
            alpha,
            method,
            intercept,
            tol,
            steps,
            bytes_of(m.memory_limit),
            m.random_state,
            alphas=penalty_grid(m.alphas, alpha, "alphas", m.cv),
        )


@register("logistic.Solution")
@dataclass(frozen=True, eq=False)
class LogisticSolution:
    """Scores f(x) = phi(x)'coef + intercept: coef (K, D), intercept (K,), K = 1 for two classes."""

    plan: Plan
    phi: FittedMap
    coef: Array
    intercept: Array
    objective: float
    steps: int  # rounds
    path: PenaltyPath | None = None  # that the penalty was chosen from

    must = dict(
        plan=Is("Plan"),
        phi=Is("FittedMap"),
        coef=Floats("K", "D"),
        intercept=Floats("K"),
        objective=Number(),
        steps=Whole(),
        path=Is("PenaltyPath") | None,
    )

    def _laws(self) -> str | None:
        D = self.coef.shape[1]
        return (
            None
            if self.phi.width == D
            else f"has coefficients of {D} features, not of {self.phi.width}"
        )

    def scores(self, X: Table) -> Array:
        """(n, K), in the precision of the rows."""
        return self.phi.linear(X, self.coef.T, self.intercept)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Features, dense or sparse, of rows of classes, and their targets: +-1, or rows of the
    identity."""

    features: FeatureRows | SparseRows
    Y: Array

    @classmethod
    def of(cls, s: LogisticSettings, phi: FittedMap, X: Table, codes: Array, K: int) -> Self:
        Y = 2.0 * codes[:, None] - 1 if K == 2 else np.eye(K)[codes]
        if (F := phi.sparse_features(X)) is not None:
            rows = SparseRows.of(F, intercept=s.intercept)
            rows.by_column  # noqa: B018 (made once, before the threads that share it)
            return cls(rows, Y)
        return cls(feature_rows(phi, X, intercept=s.intercept, limit=s.memory), Y)

    def minimum(
        self, s: LogisticSettings, w: Array, alpha: float, start: Array | None = None
    ) -> Minimum:
        """The model of these weights and this penalty."""
        loss = Logistic() if self.Y.shape[1] == 1 else Softmax()
        if isinstance(self.features, SparseRows):
            sparse = SparseProblem(self.features, loss, self.Y, w, alpha, s.intercept)
            return sparse_newton.minimise(sparse, s.tol, s.max_iter, start)
        p = Problem(self.features, loss, self.Y, w, alpha, s.intercept)
        return minimise(p, s.tol, s.max_iter, start)

    def along(self, s: LogisticSettings, w: Array, alphas: Array) -> Iterator[Array]:
        """Scores of all rows at one penalty after another, the largest first, each model from where
        the last ended."""
        last = None
        for alpha in alphas.tolist():
            m = self.minimum(s, w, alpha, last)
            last = m.theta
            yield m.f[:, 0] if self.Y.shape[1] == 1 else m.f

    def told(self, phi: FittedMap, m: Minimum, *, intercept: bool) -> tuple[Plan, Array, Array]:
        """The plan, coef (K, D) and intercept (K,) of a minimum."""
        rows = self.features
        if isinstance(rows, SparseRows):
            coef, b = m.theta[: rows.p], m.theta[rows.p :].sum(0)
            return newton_plan(rows, [m]), *rows.unshifted(coef, b)
        return rounds_plan(phi.lift, rows, [m]), *unshifted(rows, m.theta, intercept=intercept)


def fit(
    s: LogisticSettings, X: Table, codes: Array, K: int, weight: LossWeights, phi: FittedMap
) -> tuple[LogisticSolution, bool]:
    """Rounds of passes over the features of rows of classes `codes`; and whether they reached
    the tolerance.
    """
    rows = ClassRows.of(s, phi, X, codes, K)
    path = None
    if s.alphas is not None:

        def of_fold(held: Array) -> ClassRows:
            if not phi.learns:
                return rows
            return ClassRows.of(s, phi.anew(X[~held], codes[~held]), X, codes, K)

        path = path_of(s, s.alphas, of_fold, X, codes, weight)
    m = rows.minimum(s, weight(None), s.alpha if path is None else path.best)
    plan, coef, b = rows.told(phi, m, intercept=s.intercept)
    return LogisticSolution(plan, phi, coef, b, m.value, m.rounds, path), m.converged


def fit_partitions(
    s: LogisticSettings, class_weight: Any, cv: Any, X: Any, y: Any, weight: Any
) -> tuple[LogisticSolution, Array, bool]:
    """The same of dask collections; their classes, and whether the rounds reached the tolerance."""
    Folds.by_hash(cv)  # refuses what is none, before a pass
    rows = ClassPartitions.of(
        MapSetting(s.kernel, s.lift, s.method, s.memory, s.random_state), X, y, weight
    )
    if s.alphas is None:
        return summed(s, class_weight, rows)
    rough, down = _rounds(replace(s, tol=max(s.tol, CHOOSING)), rows), s.alphas[::-1]
    ways = [replace(rough, alpha=a) for a in down.tolist()]
    path = rows.path(ways, down, cv, class_weight, log_likelihood)
    found, classes, converged = summed(replace(s, alpha=path.best), class_weight, rows)
    return replace(found, path=path), classes, converged


def summed(
    s: LogisticSettings,
    class_weight: Any,
    rows: ClassPartitions,
    start: tuple[Array, Array] | None = None,
) -> tuple[LogisticSolution, Array, bool]:
    """The same over a map that is there."""
    found = rows.scores(_rounds(s, rows), class_weight, start)
    (m,) = found.found
    solution = LogisticSolution(
        found.plan, found.phi, found.coef, found.intercept, m.value, m.rounds
    )
    return solution, found.classes, m.converged


def _rounds(s: LogisticSettings, rows: ClassPartitions) -> Rounds:
    loss = Logistic if len(rows.totals.classes) == 2 else Softmax
    return Rounds(loss, s.alpha, s.intercept, s.tol, s.max_iter, jointly=True)


def path_of(
    s: LogisticSettings,
    alphas: Array,
    of_fold: Callable[[Array], ClassRows],
    X: Table,
    codes: Array,
    weight: LossWeights,
) -> PenaltyPath:
    """By the likelihood of folds in models of the others, whose rounds end at 1e-4 of the objective;
    `of_fold` has the features that rows held out had no part in."""
    rough, down = replace(s, tol=max(s.tol, CHOOSING)), alphas[::-1]

    def along(held: Array) -> Iterator[Array]:
        return (f[held] for f in of_fold(held).along(rough, weight(held), down))

    return HeldOut.of(s.folds, X, codes, weight.rows).path(down, along, log_likelihood)


@dataclass(frozen=True, eq=False)
class LossWeights:
    """The weights of rows, and the class weights that multiply them."""

    rows: Array
    given: Any
    classes: Array
    codes: Array

    def __call__(self, held: Array | None) -> Array:
        """The weights of a fit, zero for rows held out."""
        w = self.rows if held is None else np.where(held, 0.0, self.rows)
        return w * class_weights(self.given, self.classes, self.codes, w)[self.codes]
