"""Fitting a sparse model: the path of all rows, those of folds, a choice among them, a refit where
folds prefer it; and the fitted value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Each, Floats, Is, Number, Text, Whole, check
from mercer.invariants import Ints as Places
from mercer.models.base import fields_alone
from mercer.models.sparse.dictionary import Dictionary
from mercer.models.sparse.folds import FoldLosses, FoldModel, Split, splits
from mercer.models.sparse.implicit import Implicit
from mercer.models.sparse.maps import SparseMap, dictionary_of
from mercer.models.sparse.problem import SparseSettings, WeighedRows
from mercer.models.sparse.refit import preferred, refits
from mercer.models.sparse.solve import Solver, SparsePath, grid, one_thread, warn_of_gaps
from mercer.models.sparse.stability import survivals
from mercer.models.sparse.stored import StoredDictionary
from mercer.models.sparse.streamed import StreamedFeatures
from mercer.models.sparse.terms import worded
from mercer.plans import Plan
from mercer.store import register

SHOWN = 8  # names in a plan
MOST_NAMED = 700  # features of which those that others make up are looked for
PIECE = 1 << 14  # rows that are predicted at a time


@register("sparse.SparseModel")
@dataclass(frozen=True, eq=False)
class SparseModel:
    """f(x) = intercept + sum_j coef_j phi_j(x) over the features `ids` of a map; C = 1 but for many
    classes. `deviations` are those of the features in the rows of the fit."""

    map: SparseMap
    ids: Array  # (k,)
    coef: Array  # (C, k)
    intercept: Array  # (C,)
    deviations: Array  # (k,)
    names: list[str]
    path: SparsePath
    place: int  # in the path
    losses: FoldLosses | None
    ridge: float | None  # the penalty of a refit
    stability: Array | None
    plan: Plan

    must = dict(
        map=Is("SparseMap", width="D"),
        ids=Places("k", below="D", distinct=True),
        coef=Floats("C", "k"),
        intercept=Floats("C"),
        deviations=Floats("k", low=0.0),
        names=Each(Text(), size="k"),
        path=Is("SparsePath"),
        place=Whole(0),
        losses=Is("FoldLosses") | None,
        ridge=Number() | None,
        stability=Floats("k", low=0.0) | None,
        plan=Is("Plan"),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        if self.place >= len(self.path):
            return f"has place {self.place} in a path of {len(self.path)}"
        wide = self.path.width == self.map.width
        return None if wide else "has a path over other features than its map's"

    def __getstate__(self) -> dict[str, Any]:
        return fields_alone(self)

    def scores(self, rows: Table) -> Array:
        """f(x), (n, C)."""
        out = np.empty((len(rows), len(self.intercept)))
        for start in range(0, len(rows), PIECE):
            at = slice(start, start + PIECE)
            out[at] = self.map.columns(rows[at], self.ids) @ self.coef.T + self.intercept
        return out

    @cached_property
    def full(self) -> Array:
        """The coefficients of all D features, (C, D)."""
        out = np.zeros((len(self.coef), self.map.width))
        out[:, self.ids] = self.coef
        return out

    @property
    def alpha(self) -> float:
        return float(self.path.alphas[self.place])

    @property
    def gap(self) -> float:
        return float(self.path.gaps[self.place])


def fit(s: SparseSettings, p: WeighedRows) -> SparseModel:
    """By settings, to rows."""
    parts = splits(s, p) if s.alpha is None else []
    phi, X = dictionary_of(s, p)
    with one_thread(X, p.scores):
        return _fitted(s, p, parts, phi, X)


def _fitted(
    s: SparseSettings, p: WeighedRows, parts: list[Split], phi: SparseMap, X: Dictionary
) -> SparseModel:
    solver = Solver.of(X, p.loss(), s.tol)
    alphas = grid(solver.largest / s.l1_ratio, s.n_alphas, s.eps, s.alpha)
    path, rounds = solver.path(alphas, s.l1_ratio)
    folds = [FoldModel.of(s, p, at, alphas) for at in parts]
    losses = FoldLosses(np.stack([f.losses() for f in folds], axis=1)) if folds else None
    path = replace(path, deviations=X.norms(path.ids) * X.scales(path.ids))
    place = _place(s, path, losses)
    ids, coef, b0 = path.at(place)
    ridge, held = None, 8.0 * len(p) * len(ids) <= s.memory
    if s.refit and losses is not None and len(ids) and held:
        ridge, _ = preferred(folds, place, float(losses.means[place]))
        if ridge is not None:
            coef, b0 = refits(phi.columns(p.rows, ids), p, [ridge])[0]
    warn_of_gaps(path, s.tol)
    return SparseModel(
        phi,
        ids,
        coef,
        b0,
        X.norms(ids) * X.scales(ids),
        worded(phi, ids),
        path,
        place,
        losses,
        ridge,
        survivals(s, phi, p, alphas[: place + 1], ids),
        _plan(s, X, solver, path, rounds, losses, phi.frame is not None, _refitted(ridge, held)),
    )


def _place(s: SparseSettings, path: SparsePath, losses: FoldLosses | None) -> int:
    """The chosen penalty; without folds the one asked for, or the largest."""
    if losses is not None:
        return losses.chosen(s.rule)
    return len(path) - 1 if s.alpha is not None else 0


def _plan(
    s: SparseSettings,
    X: Dictionary,
    solver: Solver,
    path: SparsePath,
    rounds: int,
    losses: FoldLosses | None,
    framed: bool,
    refitted: str,
) -> Plan:
    gram = solver.quadratic is not None
    size = f"{X.n:,} rows of {X.p:,} features" + _held(X)
    why = (
        f"{size}, whose Gram matrix fits; each penalty is solved to rounding by active sets"
        if gram
        else f"{size}; steps on those that count, and sweeps over all for the gap"
    )
    settings: dict[str, Any] = {"n_features": X.p, "rows": X.n, "scale": scaled(s, framed)}
    settings |= {"penalties": len(path), "rounds": rounds, "gap": float(path.gaps.max())}
    if losses is not None:
        settings |= {"folds": losses.values.shape[1], "rule": s.rule}
        settings["refit"] = refitted
    elif s.alpha is None:
        settings["folds"] = "none: too few rows, so the largest penalty is kept"
    settings |= _repeats(X, solver)
    held = 8.0 * X.p * X.p if gram else 8.0 * X.n * len(path.ids)
    against = f"{X.p:,} features" if solver.loss.constant else "its curvature is not fixed"
    other = ("working set", "all products fit") if gram else ("gram", against)
    return Plan("gram" if gram else "working set", why, settings, bytes=held, rejected=(other,))


def _held(X: Dictionary) -> str:
    """How features are read, where they are not in memory."""
    if isinstance(X, StoredDictionary) and isinstance(X.F, StreamedFeatures):
        return ", made anew some rows at a time"
    return ", never built" if isinstance(X, Implicit) else ""


def _refitted(ridge: float | None, held: bool) -> str:
    if not held:
        return "no: the features kept take more than memory_limit"
    return "no" if ridge is None else f"ridge {ridge:g}"


def scaled(s: SparseSettings, framed: bool) -> str:
    """The units in which features are penalised, in words."""
    first = "columns to [-1, 1]" if framed else "columns as they are"
    return f"{first}, then features {'of unit variance' if s.scale == 'unit' else 'as they come'}"


def _repeats(X: Dictionary, solver: Solver) -> dict[str, str]:
    """What was kept once: constants, copies, and features that the others make up."""
    if isinstance(X, Implicit):
        return X.repeats
    if not isinstance(X, StoredDictionary):
        return {}
    told = {}
    constant = np.flatnonzero(X.deviations == 0)
    if len(constant):
        told["constant"] = _listed(X, constant)
    if X.copies:
        copies = np.fromiter(X.copies, np.int64, len(X.copies))
        names = X.names(copies[:SHOWN])
        firsts = X.names(np.array([X.copies[int(j)] for j in copies[:SHOWN]]))
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(names, firsts, strict=True))
        told["copies"] = f"{len(copies)} kept once: {pairs}" + (", ..." * (len(copies) > SHOWN))
    if solver.quadratic is not None and len(solver.quadratic.ids) <= MOST_NAMED:
        made = solver.quadratic.dependent()
        if len(made):
            told["dependent"] = _listed(X, made) + " are made up by others"
    return told


def _listed(X: Dictionary, ids: Array) -> str:
    names = ", ".join(X.names(ids[:SHOWN])) + (", ..." if len(ids) > SHOWN else "")
    return f"{len(ids)}: {names}"
