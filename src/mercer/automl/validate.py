"""Validation of two: a kernel machine and the best by folds, on rows set aside, where there are
more rows than folds were made of.

Comparing all kinds on a few thousand rows would under-rate a machine, which is local and gains from
every row more than a map of fixed size does. So a tenth of the training rows is set aside for
validation: both are fitted to the same few thousand of the others first. A machine that is ahead
there by more than two standard errors of the difference has won, and the time left is its own. Else
both are fitted to the rest, each in half of the time left, and the machine wins where it is ahead,
of a linear model by more than one; or a mean of both, of which trees grown on the same rows may be
one, where that is better than either.

Neither is fitted to the validation rows, but the settings of both were chosen with them: what is
compared is fair, and no measure of how good they are. What is learnt of these rows for a score (a
machine's calibration, the retransformation of a logarithm) is learnt of one half for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mercer.automl import machines, refit
from mercer.automl.budget import Clock
from mercer.automl.choice import READABLE, losses_of, worse_by_rows
from mercer.automl.ensemble import MIN_ROWS, MeanRule, blended, cross_weighted
from mercer.automl.machines import Machine
from mercer.automl.metrics import TITLES, Score, difference_error, number
from mercer.automl.predictors import (
    Classifier,
    IdentityTarget,
    LogTarget,
    Predictor,
    Regressor,
    in_blocks,
)
from mercer.automl.recipes import NAMES
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.automl.select import Selection
from mercer.automl.splits import make_folds
from mercer.automl.trees import MIN_SECONDS, TREE_SHARE, VALIDATION_PART, grow_trees
from mercer.automl.tuning import TunedMachine
from mercer.inputs import Array

# a tenth of the rows validates, and at most so many
N_PARTS = 10
MAX_VALIDATION_ROWS = 10_000
# rows on which both begin, or as many as that share of the time allows
FIRST_ROWS = 8_000
FIRST_SHARE = 0.1
CLEAR_LEAD = 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class ScoredFit:
    """A predictor, the rows and seconds that it took, and its score on the validation rows."""

    predictor: Predictor
    rows: int
    seconds: float
    score: Score
    features: int = 0
    known: tuple[Array, Array] | None = (
        None  # of a machine's calibration: the classes and probabilities of the validation rows
    )
    fitting: float = 0.0  # seconds of the fit of one of its cells
    told: Array | None = None  # what it predicted of the validation rows


@dataclass(frozen=True, eq=False)
class ValidatedTrees:
    """The seconds that trees took, their score, and what they predicted of the validation rows."""

    seconds: float
    score: Score
    told: Array


@dataclass(frozen=True, eq=False)
class ValidationResult:
    """Both at their last, and who won; the rival is None where it was beaten on few rows and not
    fitted to more."""

    machine: ScoredFit
    rival: ScoredFit | None
    machine_wins: bool
    summary: str
    n_validation: int  # rows that neither was fitted to
    power: float = 2.0  # of the rows in the seconds of the machine
    y: Array | None = None  # of the validation rows
    members: tuple[tuple[str, float], ...] = ()  # of a mean that is better than either
    blended: Array | None = None  # what the mean predicted of the validation rows
    trees: ValidatedTrees | None = None
    row_weights: Array | None = None  # of the validation rows, and their groups
    groups: Array | None = None

    @property
    def winner(self) -> ScoredFit:
        return self.machine if self.machine_wins or self.rival is None else self.rival

    @property
    def told(self) -> Array | None:
        """What was predicted of the validation rows by what is chosen."""
        return self.blended if self.members else self.winner.told


def compare_on_validation(
    p: SearchProblem, selection: Selection, clock: Clock, until: float, least: float, memory: float
) -> ValidationResult:
    """Fit both and compare; fits are over by that share of the time, or take at least that share of
    it."""
    assert selection.tuned is not None
    with machines.ignore_convergence():
        return Validation(p, selection, selection.tuned, clock, memory).run(until, least)


class Validation:
    """The rows to fit and the rows to validate by."""

    def __init__(
        self,
        p: SearchProblem,
        selection: Selection,
        tuned: TunedMachine,
        clock: Clock,
        memory: float,
    ) -> None:
        split = make_folds(p.rows, k=N_PARTS, seed=p.seed + 1)
        train, test = split.split(len(split.plan) - 1)
        self.selection, self.tuned, self.clock, self.memory = selection, tuned, clock, memory
        self.rest, self.held = (replace(p, rows=p.rows.take(i)) for i in (train, test))
        self.held, self.n_validation = (
            self.held.sample(MAX_VALIDATION_ROWS),
            len(p.rows) - len(train),
        )
        self.half, w = halves(self.held.rows), self.held.rows.weights()
        self.weights = w if w.sum() > 0 else np.ones(len(w))

    def run(self, until: float, least: float) -> ValidationResult:
        """Few rows first, then as many as there is time for; trees in time of their own."""
        n, trees = len(self.rest.rows), self.trees()
        few, cell = self.tuned.size(
            min(FIRST_ROWS, n), FIRST_SHARE * self.clock.budget, self.memory
        )
        mine, theirs = self.machine(few, cell), self.rival(few, self.selection.chosen.size)
        whole = cell >= few or self.tuned.setting.own_cells
        self.tuned = self.tuned.timed(mine.fitting, few if whole else cell)
        until += 0.0 if trees is None else trees.seconds / self.clock.budget
        left = max(self.clock.left(until), least * self.clock.budget)
        if few < n and self.ahead(mine, theirs) > CLEAR_LEAD:
            last = self.machine(*self.tuned.size(n, left, self.memory))
            words = f"chosen after both were fitted to {few:,} rows: {self.summary(mine, theirs)}"
            return self.result(last, None, True, words, trees)
        if few < n:
            size = refit.fit_size(
                self.selection.here, self.selection.chosen, n, left / 2, self.memory
            )
            theirs = self.rival(size.rows, size.features)
            mine = self.machine(
                *self.tuned.size(
                    n, max(left - theirs.seconds, FIRST_SHARE * self.clock.budget), self.memory
                )
            )
        wins = self.ahead(mine, theirs) > (1 if self.selection.chosen.kind in READABLE else 0)
        return self.result(mine, theirs, wins, self.summary(mine, theirs), trees)

    def result(
        self,
        mine: ScoredFit,
        theirs: ScoredFit | None,
        machine_wins: bool,
        words: str,
        trees: ValidatedTrees | None,
    ) -> ValidationResult:
        """With the mean, where one is better."""
        named: dict[str, ScoredFit | ValidatedTrees | None] = {
            "machine": mine,
            self.selection.chosen.kind: theirs,
            "trees": trees,
        }
        fits = {kind: f for kind, f in named.items() if f is not None and kind != "constant"}
        members = self.mean_members(fits)
        told = [np.asarray(fits[kind].told) for kind, _ in members]
        return ValidationResult(
            mine,
            theirs,
            machine_wins,
            words,
            self.n_validation,
            self.tuned.power,
            self.held.rows.y,
            members,
            blended([v for _, v in members], told) if members else None,
            trees,
            self.weights,
            self.held.rows.group,
        )

    def mean_members(
        self, fits: Mapping[str, ScoredFit | ValidatedTrees]
    ) -> tuple[tuple[str, float], ...]:
        """The kinds and weights of a mean, where each half of the validation rows says by the
        weights of the other that it is better than the best that is no trees: by more than a
        standard error, or row by row; else none."""
        y, metric, group = self.held.rows.y, self.rest.metric, self.held.rows.group
        parts = [np.asarray(f.told) for f in fits.values() if f.told is not None]
        if not 1 < len(parts) == len(fits) or len(y) < MIN_ROWS:
            return ()
        kinds = tuple(fits)
        own = [k for k, kind in enumerate(kinds) if kind != "trees"]
        first = max(own, key=lambda k: metric.gain(fits[kinds[k]].score.value))
        rule, best = MeanRule(kinds, first), fits[kinds[first]]
        mean = cross_weighted(rule, parts, y, self.weights, self.half)
        score = self.score(mean)
        gap = metric.gain(score.value) - metric.gain(best.score.value)
        if not np.isfinite(gap) or gap <= 0:
            return ()
        sure = gap > difference_error(score, best.score, group) or worse_by_rows(
            losses_of(metric, y, parts[first]), losses_of(metric, y, mean), group, self.weights
        )
        members = rule.members(rule(parts, y, self.weights))
        return members if sure and len(members) > 1 else ()

    def trees(self) -> ValidatedTrees | None:
        """Grown on the rows to fit; None where none take part, or their time is too short."""
        p, seconds = self.rest, VALIDATION_PART * TREE_SHARE * self.clock.budget
        if p.design is None or seconds < MIN_SECONDS or (p.n_classes and _one_class(p.rows)):
            return None
        watch = Clock(0)
        grown = grow_trees(
            p.rows.with_positive_weight(), p.design, p.n_classes, p.seed, self.clock, seconds
        )
        told = grown.predictor(self.held.rows.X)
        return None if grown.growth.starved else ValidatedTrees(watch.spent, self.score(told), told)

    def ahead(self, mine: ScoredFit, theirs: ScoredFit) -> float:
        """By how many standard errors of their difference the machine is better."""
        gain, group = self.rest.metric.gain, self.held.rows.group
        gap, error = (
            gain(mine.score.value) - gain(theirs.score.value),
            difference_error(mine.score, theirs.score, group),
        )
        return gap / max(error, 1e-300) if np.isfinite(gap) else -np.inf

    def rival(self, rows: int, features: int) -> ScoredFit:
        """The one that was best by folds."""
        p, f, watch = self.rest.sample(rows), self.selection.chosen, Clock(0)
        self.clock.say(
            f"fitting {f.name.lower()} to {len(p.rows):,} rows, to compare with a kernel machine"
        )
        predictor, told = self.retransformed(refit.fit_all_rows(p, f, features, self.memory))
        score = self.score(told)
        return ScoredFit(predictor, len(p.rows), watch.spent, score, features, told=told)

    def machine(self, rows: int, cell: int) -> ScoredFit:
        """In cells of so many rows."""
        p, watch, held = self.rest.sample(rows), Clock(0), self.held.rows
        self.clock.say(
            f"fitting a kernel machine to {len(p.rows):,} rows, in cells of up to {cell:,}"
        )
        m = _fit_cells(p, self.tuned, cell, self.memory)
        each = watch.spent if self.tuned.setting.own_cells else watch.spent / m.n_cells
        if p.numeric:
            predictor, told = self.retransformed(
                refit.machine_predictor(m, self.tuned.target, None, p)
            )
            score = self.score(told)
            return ScoredFit(predictor, len(p.rows), watch.spent, score, cell, None, each, told)
        s = in_blocks(m.scores, held.X)
        P = machines.cross_fitted_probabilities(s, held.y, self.weights, self.half)
        predictor = refit.machine_predictor(
            m, IdentityTarget(), machines.calibration(s, held.y, self.weights), p
        )
        known = (held.y, P)
        return ScoredFit(predictor, len(p.rows), watch.spent, self.score(P), cell, known, each, P)

    def retransformed(self, predictor: Predictor) -> tuple[Predictor, Array]:
        """A logarithm with the retransformation of the validation rows; and what is predicted of
        them, each half with that of the other."""
        if not isinstance(predictor, Regressor) or not isinstance(predictor.target, LogTarget):
            return predictor, predictor(self.held.rows.X)
        target, y, z = (
            predictor.target,
            self.held.rows.y,
            in_blocks(predictor.estimator.predict, self.held.rows.X),
        )
        out, w, metric = np.empty_like(z), self.weights, self.rest.metric
        for mine in (self.half == k for k in np.unique(self.half)):
            other = ~mine if not mine.all() else mine
            out[mine] = np.clip(
                target.retransformed(y[other], z[other], w[other], metric).back(z[mine]),
                predictor.low,
                predictor.high,
            )
        return replace(predictor, target=target.retransformed(y, z, w, metric)), out

    def score(self, predicted: Array) -> Score:
        return self.rest.metric(self.held.rows.y, predicted, self.weights)

    def summary(self, mine: ScoredFit, theirs: ScoredFit) -> str:
        """What was compared."""
        shown = [number(f.score.value, self.rest.metric.name) for f in (mine, theirs)]
        names = NAMES["machine"].lower(), self.selection.chosen.name.lower()
        title = TITLES[self.rest.metric.name]
        return f"{title} on {len(self.held.rows):,} validation rows: {names[0]} {shown[0]}, {names[1]} {shown[1]}"


def _one_class(rows: TableRows) -> bool:
    return len(np.unique(rows.with_positive_weight().y)) < 2


def _fit_cells(p: SearchProblem, tuned: TunedMachine, cell: int, memory: float) -> Machine:
    y = tuned.target.to(p.rows.y) if p.numeric else p.rows.y
    return machines.fit_machine(p.rows, y, p.n_classes, tuned.setting, cell, memory)


def halves(rows: TableRows) -> Array:
    """The half of every row, 0 or 1: every other one, of groups every other group.

    >>> halves(TableRows(np.zeros((4, 1)), np.zeros(4), np.arange(4), group=np.array([7, 7, 7, 9])))
    array([0, 0, 0, 1])
    """
    alternate = np.arange(len(rows)) % 2
    if rows.group is None:
        return alternate
    by_group = np.unique(rows.group, return_inverse=True)[1] % 2
    return by_group if by_group.any() else alternate


def refit_machine(
    p: SearchProblem, tuned: TunedMachine, former: Predictor, cell: int, memory: float
) -> Predictor:
    """The same of all rows; the retransformation or calibration stays that of rows which were not
    fitted."""
    assert isinstance(former, Regressor | Classifier)
    with machines.ignore_convergence():
        m = _fit_cells(p, tuned, cell if former.estimator.n_cells > 1 else len(p.rows), memory)
    if isinstance(former, Regressor):
        return refit.machine_predictor(m, former.target, None, p)
    return refit.machine_predictor(
        m, IdentityTarget(), (former.estimator.slope, former.estimator.offsets), p
    )
