"""A study: the selection on the training rows, the last fits, the trees, and what the holdout says
of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mercer.automl import budget, evaluate, refit, trees
from mercer.automl.boosted import BoostedTrees, TreeColumns
from mercer.automl.budget import Clock
from mercer.automl.candidates import ModelCandidate, folds_of
from mercer.automl.data import TableData
from mercer.automl.details import (
    candidate_detail,
    machine_detail,
    trees_detail,
    trees_shortage,
    trees_shortened,
)
from mercer.automl.ensemble import described
from mercer.automl.evaluate import Evaluation
from mercer.automl.metrics import Metric
from mercer.automl.predictors import (
    Classifier,
    ConstantPredictor,
    Predictor,
    Regressor,
    WeightedMean,
)
from mercer.automl.reasons import no_last_fit
from mercer.automl.recipes import TreeGrowth
from mercer.automl.refit import FitSize, max_rows_held
from mercer.automl.search import SearchProblem
from mercer.automl.select import Selection, select_candidate
from mercer.automl.units import ColumnUnits
from mercer.automl.validate import ValidationResult, compare_on_validation, refit_machine
from mercer.inputs import Array

# the share of the time by which models are fitted, and the least that the chosen one gets
FIT_SHARE = 0.8
MIN_FIT_SHARE = 0.1
TREES_OF_REST = 0.4  # of the time left, for trees where their own is spent
REFIT_FACTOR = (
    1.2  # times the seconds of a rival's fit that must be left to do it once more, with all rows
)


@dataclass(frozen=True, eq=False)
class FittedCandidate:
    """A candidate after its last fit."""

    kind: str
    predictor: Predictor | BoostedTrees
    evaluation: Evaluation
    seconds: float
    detail: str
    note: str = ""
    rows: int = 0  # that it was fitted to
    handicap: str = ""  # what else it had less of
    growth: TreeGrowth | None = None  # of trees


@dataclass(frozen=True, eq=False)
class StudyResult:
    """All that was fitted and evaluated."""

    selection: Selection
    entries: tuple[FittedCandidate, ...]
    kind: str  # of the chosen one
    # classes, probabilities and weights of rows that a chosen machine was not fitted to
    known: tuple[Array, Array, Array | None] | None = None
    members: tuple[tuple[str, float], ...] = ()  # of a chosen mean: kinds and weights
    validation: ValidationResult | None = None
    unfitted: Mapping[str, str] = field(default_factory=dict)  # kinds that were not, and why

    @property
    def apart(self) -> tuple[Array, Array] | None:
        """The targets of training rows, and what was predicted of them by a model of the chosen
        kind that was not fitted to them."""
        if self.validation is not None:
            told, y = self.validation.told, self.validation.y
            return None if told is None or y is None else (y, told)
        out, here = self.selection.chosen.predicted, self.selection.here
        if out is None:
            return None
        where = folds_of(here).tested()
        return here.rows.y[where], out[where]

    def __getitem__(self, kind: str) -> FittedCandidate | None:
        return next((e for e in self.entries if e.kind == kind), None)

    @property
    def chosen(self) -> FittedCandidate:
        return next(e for e in self.entries if e.kind == self.kind)

    @property
    def predictor(self) -> Predictor:
        """Of the chosen one, which trees alone never are."""
        found = self.chosen.predictor
        assert not isinstance(found, BoostedTrees)
        return found


@dataclass(frozen=True, eq=False)
class Study:
    """The gathered rows, the metric (`why` says what made it another than usual), and what may be
    spent on them."""

    data: TableData
    metric: Metric
    why: str
    memory: float
    seed: int
    clock: Clock
    sums: bool = False  # whether the chosen one is to be a sum over rows

    @property
    def n_classes(self) -> int:
        return len(self.data.columns.classes_)

    @property
    def rarest(self) -> float:
        """The share of the rarest class in the training rows."""
        return float(np.bincount(self.data.train.y, minlength=self.n_classes).min()) / len(
            self.data.train
        )

    @cached_property
    def problem(self) -> SearchProblem:
        """The training rows that memory holds at once: all of most tables, else a sample."""
        rows = self.data.train
        most = budget.training_rows(self.memory, rows.X.shape[1], rows.vectors)
        some, units = rows.sample(most, self.seed), ColumnUnits.of(self.data.columns)
        asked = (some, self.metric, self.n_classes, self.seed, self.memory)
        return SearchProblem(*asked, units=units, sums=self.sums)

    @cached_property
    def design(self) -> TreeColumns | None:
        """How trees see the columns; None where there is no room for them, or the rows have one
        class only, or so many that as many trees a round take too long."""
        rows, seconds = self.problem.rows, trees.TREE_SHARE * self.clock.budget
        crowded = trees.least_seconds(self.n_classes) > 2 * seconds
        if not self.room_for_trees or crowded or (self.n_classes and len(np.unique(rows.y)) < 2):
            return None
        columns = self.data.columns
        kinds = [t.kind for t in columns.treatments_]
        return TreeColumns.of(columns.origin_, kinds, rows.X)

    def run(self) -> StudyResult:
        """Baselines and the chosen one first, then trees, then the others as time allows."""
        whole = self.room_for_trees >= len(self.problem.rows)
        p = replace(self.problem, design=self.design if whole else None)
        selection = select_candidate(p, self.clock, self.memory)
        validation = (
            None
            if selection.tuned is None
            else compare_on_validation(
                p, selection, self.clock, FIT_SHARE, MIN_FIT_SHARE, self.memory
            )
        )
        entries = [] if validation is None else self._validated(selection, validation)
        members = _members(selection, validation)
        kind = (
            "ensemble"
            if members
            else "machine"
            if validation is not None and validation.machine_wins
            else selection.chosen.kind
        )
        first = {"constant", "linear", kind, *dict(members)} - {e.kind for e in entries}
        wanted = [f for f in selection.candidates if f.kind in first - {"ensemble"}]
        entries += [self.entry(selection, f) for f in wanted]
        entries += self._trees(selection, validation)
        entries += self._mean(members, entries) if members else []
        others = [f for f in selection.candidates if f.kind not in {e.kind for e in entries}]
        unfitted = dict[str, str]()
        for f in others:
            why = self._beyond(selection, f)
            entries += [self.entry(selection, f)] if not why else []
            unfitted |= {f.kind: why} if why else {}
        known = None
        if validation is not None and self.n_classes and (members or kind == "machine"):
            assert validation.y is not None
            assert validation.told is not None
            known = validation.y, validation.told, validation.row_weights
        return StudyResult(selection, tuple(entries), kind, known, members, validation, unfitted)

    def _validated(
        self, selection: Selection, validation: ValidationResult
    ) -> list[FittedCandidate]:
        """Both that were validated, with the fits that were; the winner fitted again, to the
        validation rows as well, where there is time.

        A linear model is fitted again in any case: what a lift gains is told against it.
        """
        entries = [self._of_machine(selection, validation)]
        rival, f = validation.rival, selection.chosen
        more = (
            REFIT_FACTOR * rival.seconds < self.clock.left(FIT_SHARE)
            or self._reach(f) > len(self.problem.rows)
            if rival is not None
            else False
        )
        if (
            rival is None
            or f.kind in ("constant", "linear")
            or (not validation.machine_wins and more)
        ):
            return entries
        detail, note = (
            candidate_detail(f, rival.features, rival.predictor),
            self._after(validation, rival.rows),
        )
        evaluation, seconds = self._evaluated(rival.predictor), f.seconds + rival.seconds
        return [
            *entries,
            FittedCandidate(f.kind, rival.predictor, evaluation, seconds, detail, note, rival.rows),
        ]

    def _of_machine(self, selection: Selection, validation: ValidationResult) -> FittedCandidate:
        tuned, mine = selection.tuned, validation.machine
        assert tuned is not None
        m, rows, seconds, n = mine.predictor, mine.rows, mine.seconds, len(self.problem.rows)
        if (
            validation.machine_wins
            and rows == n - validation.n_validation
            and scaled_seconds(seconds, rows, n, validation.power) < self.clock.left(FIT_SHARE)
        ):
            watch = Clock(0)
            m, rows = refit_machine(self.problem, tuned, m, mine.features, self.memory), n
            seconds += watch.spent
        note = "; ".join(filter(None, (self._after(validation, rows), validation.summary)))
        return FittedCandidate(
            "machine",
            m,
            self._evaluated(m),
            seconds,
            machine_detail(tuned.setting, m),
            note,
            rows,
        )

    def _mean(
        self, members: Sequence[tuple[str, float]], entries: Sequence[FittedCandidate]
    ) -> list[FittedCandidate]:
        """The mean of models that are fitted already."""
        known = {e.kind: e for e in entries}
        parts = [known[kind] for kind, _ in members]
        mean = mean_of([e.predictor for e in parts], members)
        rows, seconds = min(e.rows for e in parts), sum(e.seconds for e in parts)
        what, fewer = described(members), self._note("fitted", rows)
        made = (what, "; ".join(filter(None, (what, fewer))), rows)
        return [FittedCandidate("ensemble", mean, self._evaluated(mean), seconds, *made)]

    def _beyond(self, selection: Selection, f: ModelCandidate) -> str:
        """Why it is not fitted to all rows: there must be time for twice the guess."""
        guess = refit.expected_seconds(selection.here, f, len(self.data.train), f.size)
        left = self.clock.left()
        return no_last_fit(guess, left) if 2 * guess >= left else ""

    def entry(self, selection: Selection, f: ModelCandidate) -> FittedCandidate:
        n, left = self._reach(f), max(self.clock.left(FIT_SHARE), MIN_FIT_SHARE * self.clock.budget)
        whole = FitSize(f.size, min(n, max_rows_held(selection.here, f, self.memory)))
        chosen = selection.chosen
        timed = f is chosen or f.kind == "linear" or f.kind in dict(chosen.members)
        size = refit.fit_size(selection.here, f, n, left, self.memory) if timed else whole
        self.clock.say(f"fitting {f.name.lower()} to {size.rows:,} rows")
        watch = Clock(0)
        if size.rows <= len(self.problem.rows):
            predictor = refit.fit_all_rows(
                self.problem.sample(size.rows), f, size.features, self.memory
            )
        else:
            predictor = refit.fit_streamed_rows(
                self.problem, self.data.train, size.rows, f, size.features, self.memory
            )
        budget.release_memory()
        seconds = watch.spent + f.seconds
        detail, note = (
            candidate_detail(f, size.features, predictor),
            self._note("fitted", size.rows),
        )
        return FittedCandidate(
            f.kind, predictor, self._evaluated(predictor), seconds, detail, note, size.rows
        )

    def _reach(self, f: ModelCandidate) -> int:
        """How many rows a last fit may be of: all where they are streamed, else those that are
        held."""
        wide = f.size > budget.max_features(self.memory, refit.SQUARE_ARRAYS)
        held = wide or f.kind in ("machine", "sparse")
        streams = f.kind == "constant" or not (self.n_classes or held)
        with np.errstate(all="ignore"):
            defined = (
                self.n_classes
                or np.isfinite(f.target.to(np.array([self.data.train.y.min()]))).all()
            )
        return len(self.data.train) if streams and defined else len(self.problem.rows)

    def _after(self, validation: ValidationResult, rows: int) -> str:
        """How many rows a validated fit has seen, and why not all."""
        n, core = len(self.data.train), len(self.problem.rows)
        others = (
            "the others validate" if n == core else f"{validation.n_validation:,} others validate"
        )
        return (
            f"fitted on {rows:,} of {n:,} rows, {others}"
            if rows == core - validation.n_validation
            else self._note("fitted", rows)
        )

    def _trees(
        self, selection: Selection, validation: ValidationResult | None
    ) -> list[FittedCandidate]:
        """Grown as those of the folds were, else in the seconds that theirs have left; none where
        there is no design."""
        design = self.design
        if design is None:
            return []
        used = self.problem.rows.sample(self.room_for_trees, self.seed)
        watch, growth = Clock(0), None if selection.trees is None else selection.trees.growth
        took = comparing_trees(selection, validation)
        if growth is not None and len(used) == len(self.problem.rows):
            self.clock.say(f"growing trees on {len(used):,} rows")
            grown = trees.grow_like(used, design, self.n_classes, self.seed, growth)
        else:
            seconds = trees.TREE_SHARE * self.clock.budget - took
            seconds = max(seconds, TREES_OF_REST * self.clock.left())
            grown = trees.grow_trees(used, design, self.n_classes, self.seed, self.clock, seconds)
        short, fewer = trees_shortage(grown), trees_shortened(grown)
        note = "; ".join(text for text in (self._note("grown", grown.rows), fewer) if text)
        evaluation, seconds = self._evaluated(grown.predictor), watch.spent + took
        made = (trees_detail(grown), note, grown.rows, short, grown.growth)
        return [FittedCandidate("trees", grown.predictor, evaluation, seconds, *made)]

    @property
    def room_for_trees(self) -> int:
        """Rows of which trees may be grown."""
        return budget.tree_rows(self.memory, self.data.train.X.shape[1], self.n_classes)

    def _note(self, what: str, n: int) -> str:
        return (
            ""
            if n == len(self.data.train)
            else f"{what} on {n:,} of {len(self.data.train):,} rows, to keep to time and memory"
        )

    def _evaluated(self, predictor: Predictor | BoostedTrees) -> Evaluation:
        return evaluate.evaluate_predictions(
            self.data.held, self.metric, predictor(self.data.held.X)
        )


def _members(
    selection: Selection, validation: ValidationResult | None
) -> tuple[tuple[str, float], ...]:
    """Of a mean, by folds or by validation."""
    return selection.chosen.members if validation is None else validation.members


def comparing_trees(selection: Selection, validation: ValidationResult | None) -> float:
    """Seconds that trees took before those of all rows."""
    validated = None if validation is None else validation.trees
    return selection.tree_seconds + (0.0 if validated is None else validated.seconds)


def mean_of(
    parts: Sequence[Predictor | BoostedTrees], members: Sequence[tuple[str, float]]
) -> WeightedMean:
    """The mean of fitted predictors, with the weights of the members."""
    return WeightedMean(tuple(map(_single, parts)), tuple(weight for _, weight in members))


def _single(
    predictor: Predictor | BoostedTrees,
) -> ConstantPredictor | Regressor | Classifier | BoostedTrees:
    """A predictor that is no mean itself."""
    assert not isinstance(predictor, WeightedMean)
    return predictor


def scaled_seconds(seconds: float, rows: int, n: int, power: float) -> float:
    """The seconds of a fit to n rows, by those of a fit to fewer.

    >>> scaled_seconds(9.0, 900, 1800, 2.0)
    36.0
    """
    return float(seconds * (n / rows) ** power)
