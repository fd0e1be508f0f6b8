"""From settings and rows to a fitted ridge regression, by the way that the plan chooses: a solution,
and what its fit has at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Ints, Is
from mercer.models.folds import Folds
from mercer.models.intervals import Interval
from mercer.models.maps import FittedMap, fitted_map, nonzero_bytes, own_lift
from mercer.models.ridge import dual, landmarks, learnt, moments, passes
from mercer.models.ridge.cross_validation import FoldErrors
from mercer.models.ridge.dual import DualRidge
from mercer.models.ridge.leave_one_out import Calibration, calibrated, jackknife_interval, with_idle
from mercer.models.ridge.moments import MomentRidge
from mercer.models.ridge.passes import SPARSE_WAY, FeatureRidge
from mercer.models.ridge.problem import RidgeSettings, TrainingRows, choose, moments_fit
from mercer.store import register

Solution = DualRidge | MomentRidge | FeatureRidge
NONE = Table(np.empty((0, 0)))  # rows that are those of the solution


@register("ridge.Fitted")
@dataclass(frozen=True, eq=False)
class FittedRidge:
    """A solution, with the rows and settings of its fit while they are at hand.

    Of a stream, and of a model in a file that is no sum over its rows, there are none; `split` is
    then what is left to calibrate intervals by.
    """

    solution: Solution
    rows: TrainingRows | None = None  # without X where that is what the solution is a sum over
    settings: RidgeSettings | None = None  # of the fit, whatever was set since
    split: Calibration | None = None  # what intervals need, once it was asked for
    columns: Array | None = None  # of kernel matrices to come: those of rows of positive weight

    must = dict(
        solution=Is("DualRidge", "MomentRidge", "FeatureRidge"),
        rows=Is("TrainingRows") | None,
        settings=Is("RidgeSettings") | None,
        split=Is("Calibration") | None,
        columns=Ints("kept", below=1 << 62, distinct=True) | None,
    )

    @classmethod
    def of(cls, solution: Solution, rows: TrainingRows, settings: RidgeSettings) -> Self:
        """Of one fit; rows that the solution holds are not held twice."""
        held = _points(solution) is rows.X
        return cls(solution, replace(rows, X=NONE) if held else rows, settings, None, rows.kept)

    def _laws(self) -> str | None:
        """Rows, targets and coefficients are of the same sizes, whichever of them is asked."""
        model, rows, reads = self.solution, self.rows, self.solution.reads
        outputs = model.outputs if isinstance(model, MomentRidge) else model.weights.outputs
        if self.columns is not None and reads != len(self.columns):
            return f"has a solution over {reads} columns, which are not those that it takes"
        if rows is not None and rows.Y.shape[1] != outputs:
            return f"has targets of {rows.Y.shape[1]} outputs and a solution of {outputs}"
        if rows is not None and rows.idle is not None and reads not in (None, rows.idle[1].width):
            return f"has rows of weight zero with {rows.idle[1].width} columns"
        if rows is not None and not len(rows.X) and len(_points(model) or ()) != len(rows):
            return "has rows that are not those of its targets"
        return None if self.split is None else self.split.misfit(reads)

    def misfit(self, width: int) -> str | None:
        """What is wrong where rows, or kernel matrices, have so many columns."""
        reads, columns = self.solution.reads, self.columns
        fits = reads in (None, width) if columns is None else columns.max(initial=-1) < width
        return None if fits else f"has a solution over columns that are not the {width} it takes"

    # the rows of the fit
    def at_hand(self) -> TrainingRows | None:
        """The rows of the fit."""
        points = _points(self.solution)
        if self.rows is None or points is None or not self.travels_with_rows:
            return self.rows
        return replace(self.rows, X=points)

    def needed(self) -> TrainingRows:
        """The same; AttributeError where there are none."""
        if (rows := self.at_hand()) is None:
            raise AttributeError(
                "left-out rows need the rows of one `fit` at hand; streams, fits of dask collections over features, merged "
                "models, and loaded ones of a given kernel matrix or over features or landmarks have none; fit once more, "
                "to rows in memory (of dask collections, X.compute() of all or a part)."
            )
        return rows

    @property
    def folds(self) -> Folds | None:
        """Of the statistics, or of the rows at hand."""
        if isinstance(self.solution, MomentRidge) and self._learnt is None:
            return self.solution.folds
        return None if self.rows is None else self.rows.folds

    @property
    def _learnt(self) -> FittedMap | None:
        """The map, where it was learnt from targets."""
        phi = None if isinstance(self.solution, DualRidge) else self.solution.phi
        return phi if phi is not None and phi.learns else None

    # asking: s are the settings that it was fitted by, within the memory that there is now
    def seen(self, X: Table) -> Table:
        """Rows as the solution reads them."""
        return X if self.columns is None else Table(X.data[:, self.columns])

    def predict(self, X: Table, gpu: str | None = None) -> Array:
        if gpu is not None and isinstance(self.solution, DualRidge | MomentRidge):
            return self.solution.predict(self.seen(X), gpu)
        return self.solution.predict(self.seen(X))

    def _refit(self, s: RidgeSettings, rows: TrainingRows) -> Solution:
        """The fit of some rows by other settings, with outputs as this model has them."""
        return fit(s, rows, self.solution.flat)

    def fold_errors(self, s: RidgeSettings, alphas: Array) -> FoldErrors:
        """From statistics, or by going over the rows again."""
        if (phi := self._learnt) is not None:
            return learnt.fold_errors(s, self.needed(), phi, alphas)
        return self.solution.fold_errors(s, self.at_hand(), alphas, self._refit)  # type: ignore[arg-type]

    def left_out(self, s: RidgeSettings) -> Array:
        """y_i - f_-i(x_i), (n, q)."""
        rows, model = self.needed(), self.solution
        if self._learnt is not None and learnt.leaks(self._learnt):
            raise AttributeError(learnt.LOO.format(type(self._learnt.lift).__name__))
        return model.left_out(s, rows).residuals(model.weights.alpha, model.predict)

    def loo_predictions(self, s: RidgeSettings) -> Array:
        """f_-i(x_i), and f(x_i) of rows of weight zero: (n,) or (n, q)."""
        rows, model = self.needed(), self.solution
        out = with_idle(rows, rows.Y - self.left_out(s), model.predict)
        return out[:, 0] if model.flat else out

    def loo_score(self, s: RidgeSettings) -> float:
        """R^2 of left-out rows; of a constant y 1 where it is met, else 0."""
        rows = self.needed()
        error, spread = (rows.weights @ np.square(self.left_out(s))).mean(), rows.spread().mean()
        return float(1 - error / spread) if spread > 0 else float(error == 0)

    # intervals
    def calibrated(self, s: RidgeSettings) -> Self:
        """With what intervals by a split of the rows need."""
        rows, model = self.needed(), self.solution

        def without(held: Array) -> Solution:
            if self._learnt is None:
                return model.without(s, rows, held, self._refit)
            some = rows.some(np.flatnonzero(~held))
            phi = learnt.without(self._learnt, rows, held)
            at = replace(s, alpha=model.weights.alpha, cv=None)
            return fit_over(phi, at, replace(some, folds=Folds(1)), model.flat)

        return replace(self, split=calibrated(rows, without))

    def by_split(self, X: Table, coverage: float) -> Interval:
        """At new rows, by the split that was found."""
        if self.split is None:
            raise ValueError("nothing calibrates the model yet; ask for `calibrated` first.")
        return self.split.interval(self.seen(X), coverage)

    def by_jackknife(self, s: RidgeSettings, X: Table, coverage: float) -> Interval:
        """At new rows, calibrated by every row and the model without it."""
        rows, model = self.needed(), self.solution
        if isinstance(model, FeatureRidge) and len(rows) > model.phi.width:
            raise ValueError(
                "jackknife+ over features needs their D x D statistics; use method='split', or raise memory_limit."
            )
        if self._learnt is not None and learnt.leaks(self._learnt):
            raise ValueError(learnt.LOO.format(type(self._learnt.lift).__name__))
        left, alpha = model.left_out(s, rows), model.weights.alpha
        return jackknife_interval(left, len(rows), alpha, model.predict, self.seen(X), coverage)

    # files
    @property
    def travels_with_rows(self) -> bool:
        """Whether files keep the rows: where the solution is a sum over them."""
        return self.rows is not None and not len(self.rows.X)

    @property
    def loses_intervals(self) -> bool:
        """Whether files would have nothing for intervals that there could be."""
        if self.rows is None or self.travels_with_rows or self.split is not None:
            return False
        return len(self.rows) > 1 and self.solution.weights.outputs == 1

    def kept_in_files(self) -> Self:
        """What travels: rows only where the solution is a sum over them, else what was found of
        them for intervals."""
        if self.travels_with_rows:
            return replace(self, split=None)
        return self if self.rows is None else replace(self, rows=None, settings=None)

    # changes
    def stream(self, s: RidgeSettings, folds: Folds) -> MomentRidge:
        """The statistics that batches add to; those of an exact model are begun from its rows."""
        model, rows = self.solution, self.at_hand()
        if isinstance(model, MomentRidge):
            if model.folds.given is not None or model.folds.k != folds.k:
                raise ValueError(
                    "the folds of a stream are fixed by its first batch, as a number; fit anew to change cv."
                )
            return model
        if rows is None or not (isinstance(model, DualRidge) or model.plan.way == SPARSE_WAY):
            raise ValueError(
                "the model has no statistics that batches could add to; refit with via='features' (and more memory_limit)."
            )
        phi = map_of(s, rows, stream=True)
        stream = moments.begin(s, phi, folds, rows.X, rows.Y, model.flat)
        return stream.taking(stream.gathered(rows.X, rows.Y, rows.weight, s.gpu), s, "")

    def alone(self) -> Self:
        """That only predicts: without statistics and rows."""
        model = self.solution
        return type(self)(
            model.alone() if isinstance(model, MomentRidge) else model, columns=self.columns
        )


def _points(model: Solution) -> Table | None:
    """The rows, or landmarks, that a solution is a sum over."""
    return model.over.points if isinstance(model, DualRidge) else None


def fit(s: RidgeSettings, rows: TrainingRows, flat: bool) -> Solution:
    """One of the solutions, which answer the same questions."""
    rows = replace(rows, folds=Folds(1)) if s.cv is None else rows
    own = own_lift(s.kernel, s.method, rows.X) if s.lift is None and not s.precomputed else None
    plan = choose(len(rows), s, own=own is not None, tiles=_tiled(s, rows))

    def refit(settings: RidgeSettings, some: TrainingRows) -> Solution:
        return fit(settings, some, flat)

    if plan.way == "features":
        return over_features(s, rows, flat)
    return (landmarks if plan.way == "landmarks" else dual).fit(s, rows, plan, flat, refit)


def _tiled(s: RidgeSettings, rows: TrainingRows) -> bool:
    """Whether passes over landmarks may go to a GPU."""
    asked = s.way == "landmarks" and s.gpu is not None and s.lift is None and not s.precomputed
    return asked and dual.expansion(s, rows)[0].no_tile(rows.X) is None


def over_features(s: RidgeSettings, rows: TrainingRows, flat: bool) -> MomentRidge | FeatureRidge:
    """By moments where they fit, else by passes."""
    if s.bandwidths is not None:
        raise ValueError(
            "bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them."
        )
    phi = map_of(s, rows)
    if phi.learns and s.cv is not None:
        s, rows = at_best(s, rows, phi), replace(rows, folds=Folds(1))
    return fit_over(phi, s, rows, flat)


def fit_over(
    phi: FittedMap, s: RidgeSettings, rows: TrainingRows, flat: bool
) -> MomentRidge | FeatureRidge:
    """The same of a map that is there."""
    F = None if s.loo else phi.sparse_features(rows.X)
    most = s.memory if F is None else min(s.memory, 3.0 * nonzero_bytes(F))
    if moments_fit(phi.width, rows.folds.k, most):
        found = moments.fit(s, rows, phi, flat)
        found.weights  # noqa: B018 (a penalty that cannot be chosen is refused in `fit`)
        return found
    return passes.fit(s, rows, phi, flat)


def at_best(s: RidgeSettings, rows: TrainingRows, phi: FittedMap) -> RidgeSettings:
    """At the penalty of the best folds, of which none had a part in its map."""
    if s.loo:
        raise ValueError(learnt.LOO.format(type(phi.lift).__name__))
    among = s.penalties(rows.Y.shape[1])
    best = among.best_by_folds(learnt.fold_errors(s, rows, phi, among.grid), len(rows))
    return replace(s, alpha=best, cv=None)


def map_of(
    s: RidgeSettings, rows: TrainingRows, *, stream: bool = False, count: int | None = None
) -> FittedMap:
    """The map that was asked for, fitted to these rows, or to some of so many."""
    return fitted_map(
        s.kernel,
        s.lift,
        s.method,
        rows.X,
        rows.weight,
        seed=s.random_state,
        memory=s.memory,
        stream=stream,
        y=learnt.targets_of(rows),
        wide=not stream and not s.loo and count is None,
        count=count,
    )
