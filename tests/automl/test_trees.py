"""Trees' columns, and trees that stop in time."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from mercer.automl import trees
from mercer.automl.candidates import folds_of, score_of
from mercer.automl.recipes import TreeGrowth
from tests.automl.arrays import forever, problem

pytestmark = pytest.mark.usefixtures("one_thread")
DESIGN = trees.TreeColumns((0, 1, 2), ())


def test_indicators_of_a_category_become_one_column_of_codes():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 200)
    X = np.concatenate(
        [rng.normal(size=(200, 1)), np.eye(4)[codes], rng.normal(size=(200, 1))], axis=1
    ).astype(np.float32)
    design = trees.TreeColumns.of([0, 1, 1, 1, 1, 1], ["number", "category"], X)
    found = design(X)
    assert design.categorical.tolist() == [False, False, True]
    assert np.array_equal(found[:, 2], codes)
    assert np.array_equal(found[:, :2], X[:, [0, 5]])


@pytest.mark.parametrize("classes", [0, 3])
def test_trees_learn_and_say_on_how_many_rows(classes):
    p = problem(300, classes=classes)
    grown = trees.grow_trees(p.rows, DESIGN, classes, 0, forever(), 10.0)
    assert grown.rows == 300
    assert p.metric(p.rows.y, grown.predictor(p.rows.X)).value > 0.5


def test_trees_stop_where_time_is_up_and_say_so(monkeypatch):
    p = problem(300)
    monkeypatch.setattr(trees, "MIN_SECONDS", 0.0)
    short, whole = (trees.grow_trees(p.rows, DESIGN, 0, 0, forever(), s) for s in (0.0, 1e6))
    assert (short.growth.rounds, whole.growth.rounds) == (trees.FIRST_ROUNDS, trees.N_ROUNDS)
    assert short.predictor.trees.rounds == trees.FIRST_ROUNDS
    assert np.array_equal(
        whole.predictor(p.rows.X),
        HistGradientBoostingRegressor(random_state=0).fit(p.rows.X, p.rows.y).predict(p.rows.X),
    )


def test_with_time_for_some_rounds_steps_are_larger_and_it_is_said(monkeypatch):
    p = problem(300)
    monkeypatch.setattr(trees.Clock, "spent", property(lambda clock: 0.1))
    found = trees.grow_trees(p.rows, DESIGN, 0, 0, forever(), 1.0)  # 81 rounds are promised
    grown = found.growth
    assert trees.MIN_ROUNDS <= grown.rounds < trees.N_ROUNDS
    assert grown.rate == pytest.approx(10 / grown.rounds)
    assert not grown.starved
    assert f"{grown.rounds} rounds" in grown.settings(0)
    again = trees.grow_like(p.rows, DESIGN, 0, 0, grown)
    assert np.array_equal(again.predictor(p.rows.X), found.predictor(p.rows.X))


def test_what_is_done_once_in_the_first_rounds_shortens_nothing(monkeypatch):
    """The first took long: 60 rounds by them, and all by those that came next."""
    times = iter([0.5])

    class Slow:
        def __init__(self, budget):
            self.spent = next(times, 1e-3) if budget == 0 else 0.0

        def left(self):
            return 10.0

    p = problem(300)
    monkeypatch.setattr(trees, "Clock", Slow)
    assert trees._boost(p.rows, DESIGN, 0, 0, 10.0)[1] == TreeGrowth()


def test_leaves_of_many_classes_are_penalised():
    p = problem(300, classes=3)
    model, growth = trees._boost(p.rows, DESIGN, 3, 0, 10.0)
    assert model.l2_regularization == trees.MULTICLASS_PENALTY
    assert "penalised" in growth.settings(3)


@pytest.mark.parametrize("classes", [0, 3])
def test_trees_are_compared_on_the_folds_of_all_and_no_row_is_predicted_by_its_own(classes):
    """Other targets of a fold's rows change nothing that is predicted of them."""
    p = replace(problem(300, classes=classes), design=DESIGN)
    f = trees.trees_candidate(p, 1e6)
    assert f.growth == TreeGrowth()
    assert np.isfinite(f.predicted).all()
    train, test = folds_of(p).split(1)
    by_hand = trees.grow_like(p.rows.take(train), DESIGN, classes, p.seed, f.growth)
    assert np.array_equal(f.predicted[test], by_hand.predictor(p.rows.X[test]))
    assert f.score.value == score_of(p, f.predicted).value > 0.3


def test_folds_without_time_or_columns_have_no_trees():
    p = problem(300)
    assert trees.trees_candidate(p, 1e6) is None
    assert trees.trees_candidate(replace(p, design=DESIGN), 0.0) is None


def test_a_fold_of_one_class_is_predicted_by_its_share():
    p = replace(problem(300, classes=2, time=np.arange(300.0)), design=DESIGN)
    y = np.r_[np.zeros(60, int), p.rows.y[60:]]
    f = trees.trees_candidate(replace(p, rows=replace(p.rows, y=y)), 1e6)
    first = folds_of(p).split(0)[1]
    assert np.array_equal(f.predicted[first[0]], [1.0, 0.0])
    assert np.allclose(f.predicted[folds_of(p).tested()].sum(1), 1)
