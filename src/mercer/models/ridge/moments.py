"""Ridge regression over features, by their moments: one pass for every penalty, sums that add,
subtract and merge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercer.gpu.devices import told, without
from mercer.inputs import Array, Table
from mercer.invariants import Each, Floats, Is, Number, Whole
from mercer.linalg.least_squares import solve
from mercer.models.base import fields_alone
from mercer.models.folds import Folds
from mercer.models.maps import HEAD, FittedMap
from mercer.models.ridge.cross_validation import (
    FoldErrors,
    dual_loo_errors,
    moment_fold_errors,
    moment_loo_errors,
)
from mercer.models.ridge.leave_one_out import ByInverse, ByMoments
from mercer.models.ridge.passes import FeatureRidge
from mercer.models.ridge.problem import (
    Penalties,
    Refit,
    RidgeSettings,
    TrainingRows,
    Weights,
    fold_of,
    moments_fit,
    square_bytes,
)
from mercer.models.settings import FittedKernel
from mercer.plans import Plan
from mercer.stats import Moments
from mercer.store import register


@register("ridge.Moments")
@dataclass(frozen=True, eq=False)
class MomentRidge:
    """The moments of [phi, y] of every fold; the model is computed from them when first asked for.

    `taking` adds a batch that was gathered whole, in the arrays of the batch: the value before
    stays what it was.
    """

    penalties: Penalties
    phi: FittedMap
    folds: Folds
    outputs: int
    flat: bool
    moments: list[Moments]
    why: str
    chosen: float | None = None  # the penalty of the best left-out rows
    loo_scores: Array | None = None  # R^2 of left-out rows for every penalty

    steps = 1
    __getstate__ = fields_alone
    must = dict(
        penalties=Is("Penalties"),
        phi=Is("FittedMap"),
        folds=Is("Folds"),
        outputs=Whole(1),
        moments=Each(Is("Moments"), size="folds.k"),
        chosen=Number(0) | None,
        loo_scores=Floats(None, finite=False) | None,
    )

    def _laws(self) -> str | None:
        p, q, alpha = self.phi.width + self.outputs, self.outputs, self.penalties.alpha
        if any(len(m.shift) != p for m in self.moments):
            return f"has moments that are not of {self.phi.width} features and {q} outputs"
        if alpha.shape not in ((), (q,)):
            return f"has penalties of {len(alpha)} outputs, not of {q}"
        return f"has {q} outputs where y had one axis" if self.flat and q != 1 else None

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.phi.reads

    @property
    def kernel(self) -> FittedKernel:
        return self.phi.kernel

    @cached_property
    def plan(self) -> Plan:
        n, D = sum(m.count for m in self.moments), self.phi.width
        return self.phi.plan(
            n, "features", f"{D:,} features: {self.why}", 1, square_bytes(D, self.folds.k)
        )

    @property
    def total(self) -> Moments:
        """Of all folds."""
        return sum(self.moments[1:], self.moments[0])

    # the model
    @cached_property
    def weights(self) -> Weights:
        p, total = self.penalties, self.total
        alpha: float | Array = p.alpha if self.chosen is None else self.chosen
        if p.by == "folds":
            alpha = p.best_by_folds(self._errors(p.grid), total.count)
        found = solve(total, self.phi.width, alpha, intercept=p.intercept)
        return Weights(alpha, found.coef, found.intercept)

    def choosing(self, rows: TrainingRows) -> MomentRidge:
        """At the penalty of the best left-out rows."""
        p = self.penalties
        if self._few(rows):
            errors = dual_loo_errors(
                self._by_inverse(rows).inverses(), rows.Y, rows.weights, p.grid
            )
        else:
            lifted = self.phi.batches(rows.X)
            errors = moment_loo_errors(
                self.total,
                self.phi.width,
                lifted,
                rows.Y,
                rows.weight,
                p.grid,
                intercept=p.intercept,
            )
        scores = rows.scores(errors)
        return replace(self, chosen=p.best_by_loo(scores, len(rows)), loo_scores=scores)

    def predict(self, X: Table, gpu: str | None = None) -> Array:
        return self.phi.linear(X, *self.weights.shaped(self.flat), gpu)

    def gradient(self, X: Table) -> Array:
        """(n, q, d)"""
        return self.phi.gradient(X, self.weights.coef)

    def _errors(self, alphas: Array) -> FoldErrors:
        return moment_fold_errors(
            self.moments, self.phi.width, alphas, intercept=self.penalties.intercept
        )

    def fold_errors(
        self, s: RidgeSettings, rows: TrainingRows | None, alphas: Array, refit: Refit
    ) -> FoldErrors:
        """From the statistics alone."""
        return self._errors(alphas)

    # left-out rows
    def _few(self, rows: TrainingRows) -> bool:
        """Whether n x n equations are smaller than D x D ones."""
        return len(rows) <= self.phi.width

    def _by_inverse(self, rows: TrainingRows) -> ByInverse:
        return ByInverse(self.phi.gram, rows, self.penalties.intercept)

    def left_out(self, s: RidgeSettings, rows: TrainingRows) -> ByInverse | ByMoments:
        if self._few(rows):
            return self._by_inverse(rows)
        return ByMoments(
            self.phi, self.total, rows, self.penalties.intercept, self.weights.shaped(self.flat)
        )

    def without(
        self, s: RidgeSettings, rows: TrainingRows, held: Array, refit: Refit
    ) -> FeatureRidge:
        """The model of the rows that are not held out."""
        weight = None if rows.weight is None else rows.weight[~held]
        rest = self.phi.moments(rows.X[~held], self.moments[0].shift, rows.Y[~held], weight)
        found = solve(rest, self.phi.width, self.weights.alpha, intercept=self.penalties.intercept)
        return replace(
            self.alone(), weights=Weights(self.weights.alpha, found.coef, found.intercept)
        )

    def alone(self) -> FeatureRidge:
        """Without the statistics."""
        return FeatureRidge(self.plan, self.phi, self.weights, self.flat, 0.0, self.steps)

    # changes
    def check_outputs(self, Y: Array) -> None:
        """Refuse targets of another number of outputs."""
        if Y.shape[1] != self.outputs:
            raise ValueError(
                f"y has {Y.shape[1]} outputs, but the model was begun with {self.outputs}; give as many."
            )

    def gathered(
        self, X: Table, Y: Array, weight: Array | None, gpu: str | None = None
    ) -> list[Moments]:
        """The moments of rows, apart from those held."""
        return self.phi.fold_moments(
            X, self.moments[0].shift, Y, weight, fold_of(self.folds, X), self.folds.k, gpu
        )

    def taking(self, new: list[Moments], s: RidgeSettings, why: str) -> MomentRidge:
        """With a batch that was gathered, which is spent."""
        penalties = s.penalties(self.outputs)
        return self._holding(
            penalties, [m.joined(batch) for m, batch in zip(self.moments, new, strict=True)], why
        )

    def merged(self, other: list[Moments], s: RidgeSettings) -> MomentRidge:
        """With the statistics of another model, which stay as they are."""
        penalties = s.penalties(self.outputs)
        return self._holding(
            penalties,
            [a + b for a, b in zip(self.moments, other, strict=True)],
            "of two models over the same map",
        )

    def _holding(self, penalties: Penalties, moments: list[Moments], why: str) -> MomentRidge:
        """Of other rows, of which no penalty was chosen by leaving them out."""
        return replace(
            self, penalties=penalties, moments=moments, why=why, chosen=None, loo_scores=None
        )

    def losing(self, gone: list[Moments], count: int, s: RidgeSettings) -> MomentRidge:
        """Without the rows of these moments."""
        penalties = s.penalties(self.outputs)
        left = [a - b for a, b in zip(self.moments, gone, strict=True)]
        most = sum(m.n for m in self.moments)
        if (
            any(m.count < 0 for m in left)
            or sum(m.count for m in left) < 1
            or sum(m.n for m in left) <= 1e-12 * most
        ):
            raise ValueError(
                f"cannot forget {count} rows of {self.total.count}; give rows that were seen, not all that count."
            )
        if not all(m.possible for m in left):
            raise ValueError(
                "these rows were not all taken in (sums without them are of no rows at all); forget rows that were seen."
            )
        return self._holding(penalties, left, "of a model that forgot some rows")


def origin(phi: FittedMap, X: Table, Y: Array) -> Array:
    """What moments of [phi, y] are about: the mean of the first rows."""
    return np.concatenate([phi.shift(X), Y[:HEAD].mean(0)])


def fit(s: RidgeSettings, rows: TrainingRows, phi: FittedMap, flat: bool) -> MomentRidge:
    """One pass."""
    shift = origin(phi, rows.X, rows.Y)
    moments = phi.fold_moments(rows.X, shift, rows.Y, rows.weight, rows.fold(), rows.folds.k, s.gpu)
    why = "their D x D moments fit, and one pass is enough for every penalty" + where(
        s, phi, rows.X
    )
    found = MomentRidge(
        s.penalties(rows.Y.shape[1]), phi, rows.folds, rows.Y.shape[1], flat, moments, why
    )
    return found.choosing(rows) if s.loo else found


def where(s: RidgeSettings, phi: FittedMap, X: Table) -> str:
    """On which device the pass goes, where that was asked."""
    if s.gpu is None:
        return without(s.device)
    why = phi.no_gpu(X)
    return f"; {told(s.device)}, to about 1e-6" if why is None else f"; on the CPU, as {why}"


def begin(
    s: RidgeSettings, phi: FittedMap, folds: Folds, X: Table, Y: Array, flat: bool
) -> MomentRidge:
    """A stream over this map that has seen no row; X and Y are the first of it."""
    if not moments_fit(phi.width, folds.k, s.memory):
        raise ValueError(
            "a stream needs D x D statistics, which exceed memory_limit; raise it, or use fewer features."
        )
    shift = origin(phi, X, Y)
    zero = [Moments.zero(shift) for _ in range(folds.k)]
    return MomentRidge(
        s.penalties(Y.shape[1]),
        phi,
        folds,
        Y.shape[1],
        flat,
        zero,
        "of a stream, over a map that its first batch fixed",
    )


def mergeable(mine: MomentRidge, theirs: MomentRidge | FeatureRidge) -> list[Moments]:
    """The statistics of another model, where they add to these."""
    if mine.phi.fingerprint != theirs.phi.fingerprint:
        raise ValueError(
            "the models have different feature maps, whose statistics do not add; fit both with the same kernel, via and random_state."
        )
    if not isinstance(theirs, MomentRidge):
        raise ValueError(
            "merge needs the statistics of both models, and one was fitted by passes; raise memory_limit."
        )
    if mine.folds.given is not None or theirs.folds.given is not None:
        raise ValueError("folds given by position do not merge; give cv as a number of folds.")
    if len(mine.moments) != len(theirs.moments) or mine.outputs != theirs.outputs:
        raise ValueError(
            "the models differ in cv or in the number of outputs; fit both with the same."
        )
    return theirs.moments
