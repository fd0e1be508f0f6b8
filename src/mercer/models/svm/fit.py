"""From settings and labelled rows to a classifier: rules of the exact dual, or hinge losses over
features."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.gpu.devices import device_of
from mercer.inputs import Array
from mercer.kernels import Kernel
from mercer.kernels.ways import value_ways
from mercer.lifts.widths import MOST_FEATURES, width
from mercer.models.expansion import scaled_kernel_at
from mercer.models.folds import Folds
from mercer.models.maps import FittedMap, fitted_map, own_lift
from mercer.models.partitions.classifiers import ClassPartitions, MapSetting, Rounds
from mercer.models.penalties import HeldOut, PenaltyPath, accuracy
from mercer.models.settings import FittedKernel, class_weights
from mercer.models.svm import hinge
from mercer.models.svm.blocks import ONE_BLOCK
from mercer.models.svm.calibration import cross_fitted, enough_rows
from mercer.models.svm.descent import HingeRows, MinimumWithGap
from mercer.models.svm.dual import intercept_of, operator_of, summary_of, support_of, warn_if_open
from mercer.models.svm.forecast import Forecast, columns_of, forecast, samples
from mercer.models.svm.machine import DualMachine, FeatureMachine, Machine, WarmStart, chosen_C
from mercer.models.svm.multiclass import BinaryRule, HingeSettings, OneVsOne, by_class, one_vs_rest
from mercer.models.svm.plan import (
    PRICES,
    ClassifierSettings,
    LabelledRows,
    choose,
    left_open,
    some_rows,
)
from mercer.operators import TiledOperator
from mercer.operators.products import dense_bytes, stays_sparse
from mercer.ops.threads import single_blas
from mercer.plans import Plan

CHOOSING = 1e-3  # the relative gap at which models of folds are good enough to compare penalties
REMEDIES = (
    "lower C",
    "centre and scale the columns of X, or lower C",
)  # where rounds ran out, and where rounding is what is left


def fit(s: ClassifierSettings, rows: LabelledRows, last: WarmStart | None = None) -> Machine:
    """One of the fitted values, of the rows that count; it may start where the last fit ended."""
    n = len(rows)
    own = s.lift is None and own_lift(s.kernel, s.method, rows.X) is not None
    cost = expected(s, rows) if left_open(n, s, own=own) else None
    plan = choose(n, s, own=own, cost=cost)
    if s.probability and plan.way == "exact":
        enough_rows(rows.codes)
    if plan.way != "exact":
        found = over_features(s, rows, plan)
        return found if device_of(s.device) is None else on_cpu(found)
    if s.Cs is None:
        return over_rows(s, rows, plan, last)
    path = path_of_rows(s, s.Cs, rows, plan)
    machine = over_rows(replace(s, C=path.best, Cs=None), rows, plan, last)
    return replace(machine, summary=replace(machine.summary, path=path))


def expected(s: ClassifierSettings, rows: LabelledRows) -> Forecast | None:
    """What the exact dual of all rows would take, from those of two samples; None where they tell
    nothing, or the kernel has few features of its own, which are as good."""
    kernel = scaled_kernel_at(s.kernel, rows.X, rows.weights)
    own = width(kernel, rows.X[:1]) if isinstance(kernel, Kernel) else None
    if own is not None and own <= MOST_FEATURES:
        return None
    columns, s = columns_of(rows.X, s.memory), replace(s, kernel=kernel, device="cpu")
    at = samples(rows.codes, columns)
    if 2 * len(rows.classes) > len(at[0]):
        return None  # too few rows a class to tell anything
    sparse = stays_sparse(rows.X, s.memory)
    small, large = (support_met(s, rows.some(i), sparse=sparse) for i in at)
    features = MOST_FEATURES * len(signs_of(rows))
    return forecast(len(rows), len(at[1]), (small, large), columns, float(features))


def support_met(s: ClassifierSettings, rows: LabelledRows, *, sparse: bool) -> float:
    """The support vectors of all rules of these rows, each counted by the share of rows that its
    rule is of; `sparse` where they are to stay so."""
    if sparse:
        s = replace(s, memory=min(s.memory, dense_bytes(rows.X)))
    met = (len(r.index) * np.count_nonzero(r.solution.b) for r in dual_rules(s, rows).rules)
    return float(sum(met)) / len(rows)


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
            yield machine.decide(asked, device_of(s.device))

    return HeldOut.of(s.folds, rows.X, rows.codes, rows.weights).path(Cs, along, accuracy)


def path_of_features(
    s: ClassifierSettings,
    Cs: Array,
    rows: LabelledRows,
    phi: FittedMap,
    every: HingeRows,
    how: HingeSettings,
) -> PenaltyPath:
    """Over the same features, rows of the fold being without weight; until gaps of 1e-3. A map that
    learns from classes is learnt anew without the fold."""
    signs, how = signs_of(rows), replace(how, tol=max(how.tol, CHOOSING))

    def along(held: Array) -> Iterator[Array]:
        features = every
        if phi.learns:
            apart = phi.anew(rows.X[~held], rows.codes[~held])
            features = hinge.features_of(apart, rows.X, how)
        w = np.where(held, 0.0, rows.weights)
        c = w * class_weights(s.class_weight, rows.classes, rows.codes, w)[rows.codes]
        return (f[held] for f in hinge.along(features, signs, c, Cs, how))

    return HeldOut.of(s.folds, rows.X, rows.codes, rows.weights).path(Cs, along, accuracy)


def signs_of(rows: LabelledRows) -> list[Array]:
    """Those of the second of two classes, or of each class against the rest."""
    K = len(rows.classes)
    return [np.where(rows.codes == k, 1.0, -1.0) for k in ([1] if K == 2 else range(K))]


# the exact dual
@dataclass(frozen=True, eq=False)
class DualRules:
    """The rules of an exact fit, with the kernel values and the bounds that they are of."""

    kernel: FittedKernel
    op: TiledOperator
    c: Array
    multiclass: str
    rules: list[BinaryRule]


def over_rows(
    s: ClassifierSettings, rows: LabelledRows, plan: Plan, last: WarmStart | None
) -> DualMachine:
    """The machine of the rules of these rows, which may start from those of the last fit."""
    found = hard_rules(s, rows) if s.hard else dual_rules(s, rows, last)
    machine = machine_of(s, rows, found, plan.why)
    ended = WarmStart(
        s.loss, bool(s.intercept), found.multiclass, rows.codes, found.c, tuple(found.rules)
    )
    return replace(machine, last=ended) if s.warm_start else machine


def dual_rules(
    s: ClassifierSettings, rows: LabelledRows, last: WarmStart | None = None
) -> DualRules:
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
        device=s.device,
    )
    multiclass = "ovr" if K == 2 or s.multiclass == "ovr" else "ovo"
    starts = last.starts(s, multiclass, codes, c) if s.warm_start and last is not None else None
    how = HingeSettings(s.loss, bias, s.tol, s.max_iter, s.memory)
    # of few rows one hold for all: those of every short sum would take longer than the sums
    with single_blas() if len(rows) <= ONE_BLOCK else nullcontext():
        rules = rules_of(op, codes, c, how, multiclass, starts)
    return DualRules(kernel, op, c, multiclass, rules)


def hard_rules(s: ClassifierSettings, rows: LabelledRows) -> DualRules:
    """Rules without slack: those of a C that no dual comes near to; every row counts alike."""
    kernel = scaled_kernel_at(s.kernel, rows.X, rows.weights)
    s = replace(s, kernel=kernel, loss="hinge", class_weight=None)
    rows, bias = replace(rows, weight=None), bool(s.intercept)
    op = operator_of(
        kernel, rows.X, largest=1.0, tol=s.tol, memory=s.memory, bias=bias, balanced=bias
    )
    size = float(np.abs(op.diag()).mean()) or 1.0
    for price in PRICES:
        found = dual_rules(replace(s, C=price / size), rows)
        inside = sum(np.count_nonzero(2 * np.abs(r.solution.b) > price / size) for r in found.rules)
        if not inside:
            return found
    raise ValueError(
        f"C=inf asks for rows that the kernel separates, and {inside} of {len(rows)} stay inside the margin"
        f" at C={price / size:.1e}; give a finite C."
    )


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


def machine_of(s: ClassifierSettings, rows: LabelledRows, dual: DualRules, why: str) -> DualMachine:
    """Support vectors sorted by class, and the scores of all rules over them."""
    codes, K, found = rows.codes, len(rows.classes), [r.solution for r in dual.rules]
    pairs = dual.multiclass == "ovo"
    coef = by_class(dual.rules, codes, K) if pairs else np.stack([m.b for m in found])
    parts = support_of(dual.kernel, rows.X, rows.kept, coef, np.argsort(codes, kind="stable"))
    counts = np.bincount(codes[np.searchsorted(rows.kept, parts["support"])], minlength=K).astype(
        np.int32
    )
    intercept = np.array([intercept_of(dual.op, r.solution, r.index) for r in dual.rules])
    why = f"{len(rows):,} rows, {why}; blocks of the dual until its gap is closed"
    summary = summary_of(
        found,
        dual.op,
        why,
        vectors=len(parts["support"]),
        memory=s.memory,
        ways=value_ways(dual.kernel, rows.X),
        device=s.device,
    )
    warn_if_open("KernelSVC", found, summary, s.tol, s.max_iter, REMEDIES)
    return DualMachine(
        **parts,
        intercept=intercept,
        counts=counts,
        summary=summary,
        multiclass=dual.multiclass,
        memory=s.memory,
    )


# features
def on_cpu(machine: FeatureMachine) -> FeatureMachine:
    """The same, whose plan says that a GPU was asked for in vain."""
    plan = machine.summary.plan
    why = f"{plan.why}; on the CPU, as only the exact dual goes to a GPU"
    return replace(machine, summary=replace(machine.summary, plan=replace(plan, why=why)))


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
    path = None if s.Cs is None else path_of_features(s, s.Cs, rows, phi, features, how)
    w, C = rows.weights, s.C if path is None else path.best
    c = C * (w * class_weights(s.class_weight, rows.classes, rows.codes, w)[rows.codes])
    coef, intercept, summary = hinge.fit(phi, features, signs_of(rows), c, how)
    plan = replace(summary.plan, rejected=plan.rejected)
    return FeatureMachine(phi, coef, intercept, replace(summary, plan=plan, path=path))


def fit_partitions(
    s: ClassifierSettings, cv: Any, X: Any, y: Any, weight: Any
) -> tuple[FeatureMachine, Array]:
    """The squared hinge over the features of dask collections; and their classes."""
    if s.loss == "hinge" or s.way == "exact" or s.precomputed:
        raise ValueError(
            "the hinge and the exact dual need all rows in one place; give loss='squared_hinge' with via='features', or X.compute()."
        )
    if s.probability:
        raise ValueError(
            "probability needs the scores of rows left out, which dask collections do not keep; leave it out, or use KernelLogistic."
        )
    Folds.by_hash(cv)  # refuses what is none, before a pass
    rows = ClassPartitions.of(
        MapSetting(s.kernel, s.lift, s.method, s.memory, s.random_state), X, y, weight
    )
    tol, intercept = 0.1 * s.tol, bool(s.intercept)
    how = Rounds(hinge.SquaredHinge, 1.0, intercept, tol, s.max_iter, jointly=False, C=s.C)
    path = None
    if s.Cs is not None:
        rough = replace(how, tol=max(tol, CHOOSING))
        ways = [replace(rough, C=C) for C in s.Cs.tolist()]
        path = rows.path(ways, s.Cs, cv, s.class_weight, accuracy)
        how = replace(how, C=path.best)
    found = rows.scores(how, s.class_weight)
    minima = [MinimumWithGap(**vars(m), last=m.theta) for m in found.found]
    machine = hinge.machine(found.phi, found.coef, found.intercept, found.plan, minima, s.max_iter)
    return replace(machine, summary=replace(machine.summary, path=path)), found.classes


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
        part = fit(replace(s, random_state=copy.deepcopy(s.random_state)), some)
        asked = some_rows(rows.X, test, train, gram=gram)
        return part.decide(asked, device_of(s.device))

    return replace(machine, sigmoid=cross_fitted(rows.codes, rows.weights, scores))
