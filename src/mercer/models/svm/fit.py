"""From settings and labelled rows to a classifier: rules of the exact dual, or hinge losses over
features."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.models.expansion import scaled_kernel_at
from mercer.models.maps import fitted_map, own_lift
from mercer.models.penalties import HeldOut, PenaltyPath, accuracy, check_no_targets
from mercer.models.settings import FittedKernel, class_weights
from mercer.models.svm import hinge
from mercer.models.svm.calibration import cross_fitted, enough_rows
from mercer.models.svm.dual import intercept_of, operator_of, summary_of, support_of, warn_if_open
from mercer.models.svm.hinge import HingeRows
from mercer.models.svm.machine import DualMachine, FeatureMachine, Machine, WarmStart, chosen_C
from mercer.models.svm.multiclass import BinaryRule, HingeSettings, OneVsOne, by_class, one_vs_rest
from mercer.models.svm.plan import ClassifierSettings, LabelledRows, choose, some_rows
from mercer.operators import TiledOperator
from mercer.plans import Plan

CHOOSING = 1e-3  # the relative gap at which models of folds are good enough to compare penalties
REMEDIES = (
    "lower C",
    "centre and scale the columns of X, or lower C",
)  # where rounds ran out, and where rounding is what is left


def fit(
    s: ClassifierSettings, rows: LabelledRows, n: int, last: WarmStart | None = None
) -> Machine:
    """One of the fitted values, of n rows of which these count; it may start where the last fit
    ended."""
    own = own_lift(s.kernel, s.method, rows.X) if s.lift is None else None
    plan = choose(n, s, own=own is not None)
    if s.probability and plan.way == "exact":
        enough_rows(rows.codes)
    if plan.way != "exact":
        return over_features(s, rows, plan)
    if s.Cs is None:
        return over_rows(s, rows, plan, last)
    path = path_of_rows(s, s.Cs, rows, plan)
    machine = over_rows(replace(s, C=path.best, Cs=None), rows, plan, last)
    return replace(machine, summary=replace(machine.summary, path=path))


# paths of C
def path_of_rows(s: ClassifierSettings, Cs: Array, rows: LabelledRows, plan: Plan) -> PenaltyPath:
    """By the exact dual over the rows of the other folds."""
    gram, y = s.precomputed, rows.classes[rows.codes]
    kernel = scaled_kernel_at(s.kernel, rows.X, rows.weights)
    s = replace(s, probability=False, warm_start=True, kernel=kernel, Cs=None)

    def along(held: Array) -> Iterator[Array]:
        on, last = np.flatnonzero(~held), None
        X = some_rows(rows.X, on, on, gram=gram)
        some = LabelledRows.of(X, y[on], rows.weights[on], gram=gram)
        asked = some_rows(rows.X, np.flatnonzero(held), on, gram=gram)
        for C in Cs.tolist():
            machine = over_rows(replace(s, C=C), some, plan, last)
            last = machine.last
            yield machine.decide(asked)

    return HeldOut.of(s.folds, rows.X, rows.codes, rows.weights).path(Cs, along, accuracy)


def path_of_features(
    s: ClassifierSettings, Cs: Array, rows: LabelledRows, features: HingeRows, how: HingeSettings
) -> PenaltyPath:
    """Over the same features, rows of the fold being without weight; until gaps of 1e-3."""
    check_no_targets(s.lift)
    signs, how = signs_of(rows), replace(how, tol=max(how.tol, CHOOSING))

    def along(held: Array) -> Iterator[Array]:
        w = np.where(held, 0.0, rows.weights)
        c = w * class_weights(s.class_weight, rows.classes, rows.codes, w)[rows.codes]
        return (f[held] for f in hinge.along(features, signs, c, Cs, how))

    return HeldOut.of(s.folds, rows.X, rows.codes, rows.weights).path(Cs, along, accuracy)


def signs_of(rows: LabelledRows) -> list[Array]:
    """Those of the second of two classes, or of each class against the rest."""
    K = len(rows.classes)
    return [np.where(rows.codes == k, 1.0, -1.0) for k in ([1] if K == 2 else range(K))]


# the exact dual
def over_rows(
    s: ClassifierSettings, rows: LabelledRows, plan: Plan, last: WarmStart | None
) -> DualMachine:
    """One rule for two classes; for more, one for every two of them, or one a class against the
    rest."""
    w, codes, K = rows.weights, rows.codes, len(rows.classes)
    kernel = scaled_kernel_at(s.kernel, rows.X, w)
    c = s.C * w * class_weights(s.class_weight, rows.classes, codes, w)[codes]
    ridge, bias = 0.0 if s.loss == "hinge" else 0.5 / float(c.min()), bool(s.intercept)
    op = operator_of(
        kernel,
        rows.X,
        largest=float(c.max()),
        tol=s.tol,
        memory=s.memory,
        bias=bias,
        balanced=bias,
        ridge=ridge,
    )
    multiclass = "ovr" if K == 2 or s.multiclass == "ovr" else "ovo"
    starts = last.starts(s, multiclass, codes, c) if s.warm_start and last is not None else None
    rules = rules_of(
        op, codes, c, HingeSettings(s.loss, bias, s.tol, s.max_iter, s.memory), multiclass, starts
    )
    machine = machine_of(s, rows, op, rules, multiclass, kernel, plan.why)
    ended = WarmStart(s.loss, bias, multiclass, codes, c, tuple(rules))
    return replace(machine, last=ended) if s.warm_start else machine


def rules_of(
    op: TiledOperator,
    codes: Array,
    c: Array,
    how: HingeSettings,
    multiclass: str,
    starts: list[Array] | None,
) -> list[BinaryRule]:
    """In the order of pairs, or of classes; the second class alone of two."""
    if multiclass == "ovo":
        return OneVsOne(op, codes, c, how).solve(starts)
    K = int(codes.max()) + 1
    return one_vs_rest(
        op, [np.where(codes == k, 1.0, -1.0) for k in ([1] if K == 2 else range(K))], c, how, starts
    )


def machine_of(
    s: ClassifierSettings,
    rows: LabelledRows,
    op: TiledOperator,
    rules: Sequence[BinaryRule],
    multiclass: str,
    kernel: FittedKernel,
    why: str,
) -> DualMachine:
    """Support vectors sorted by class, and the scores of all rules over them."""
    codes, K = rows.codes, len(rows.classes)
    coef = (
        by_class(rules, codes, K)
        if multiclass == "ovo"
        else np.stack([r.solution.b for r in rules])
    )
    parts = support_of(kernel, rows.X, rows.kept, coef, np.argsort(codes, kind="stable"))
    counts = np.bincount(codes[np.searchsorted(rows.kept, parts["support"])], minlength=K).astype(
        np.int32
    )
    intercept = np.array([intercept_of(op, r.solution, r.index) for r in rules])
    why, found = (
        f"{len(rows):,} rows, {why}; blocks of the dual until its gap is closed",
        [r.solution for r in rules],
    )
    summary = summary_of(found, op, why, vectors=len(parts["support"]), memory=s.memory)
    warn_if_open("KernelSVC", found, summary, s.tol, s.max_iter, REMEDIES)
    return DualMachine(
        **parts,
        intercept=intercept,
        counts=counts,
        summary=summary,
        multiclass=multiclass,
        memory=s.memory,
    )


# features
def over_features(s: ClassifierSettings, rows: LabelledRows, plan: Plan) -> FeatureMachine:
    """The map, and then one rule for two classes, or one a class against the rest."""
    phi = fitted_map(
        s.kernel,
        s.lift,
        s.method,
        rows.X,
        rows.weight,
        seed=s.random_state,
        memory=s.memory,
        y=rows.codes,
        wide=True,
    )
    if s.probability:
        enough_rows(rows.codes)
    how = HingeSettings(s.loss, bool(s.intercept), 0.1 * s.tol, s.max_iter, s.memory)
    features = hinge.features_of(phi, rows.X, how)
    path = None if s.Cs is None else path_of_features(s, s.Cs, rows, features, how)
    w, C = rows.weights, s.C if path is None else path.best
    c = C * (w * class_weights(s.class_weight, rows.classes, rows.codes, w)[rows.codes])
    coef, intercept, summary = hinge.fit(phi, features, signs_of(rows), c, how)
    plan = replace(summary.plan, rejected=plan.rejected)
    return FeatureMachine(phi, coef, intercept, replace(summary, plan=plan, path=path))


# probabilities
def with_probabilities(s: ClassifierSettings, rows: LabelledRows, machine: Machine) -> Machine:
    """The same machine with a sigmoid for every score, from folds that go its way."""
    exact, gram = isinstance(machine, DualMachine), s.precomputed
    way, kernel = (
        "exact" if exact else "features" if s.way == "auto" else s.way,
        machine.kernel if exact else s.kernel,
    )
    s, y = (
        replace(
            s,
            probability=False,
            warm_start=False,
            kernel=kernel,
            way=way,
            C=chosen_C(machine, s.C),
            Cs=None,
        ),
        rows.classes[rows.codes],
    )

    def scores(train: Array, test: Array) -> Array:
        some = LabelledRows.of(
            some_rows(rows.X, train, train, gram=gram), y[train], rows.weights[train], gram=gram
        )
        part = fit(replace(s, random_state=copy.deepcopy(s.random_state)), some, len(some))
        return part.decide(some_rows(rows.X, test, train, gram=gram))

    return replace(machine, sigmoid=cross_fitted(rows.codes, rows.weights, scores))
