"""Trees' columns, and trees that stop in time."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from mercer.automl import trees
from tests.automl.arrays import forever, problem


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
    grown, used = trees.grow_trees(
        p.rows, trees.TreeColumns((0, 1, 2), ()), classes, 0, forever(), 10.0
    )
    assert used == 300
    assert p.metric(p.rows.y, grown(p.rows.X)).value > 0.5


def test_trees_stop_where_time_is_up_and_say_so(monkeypatch):
    p = problem(300)
    monkeypatch.setattr(trees, "MIN_SECONDS", 0.0)
    design = trees.TreeColumns((0, 1, 2), ())
    short, whole = (trees.grow_trees(p.rows, design, 0, 0, forever(), s)[0] for s in (0.0, 1e6))
    assert (short.rounds, whole.rounds) == (trees.FIRST_ROUNDS, trees.N_ROUNDS)
    assert short.estimator.n_iter_ == trees.FIRST_ROUNDS
    assert np.array_equal(
        whole(p.rows.X),
        HistGradientBoostingRegressor(random_state=0).fit(p.rows.X, p.rows.y).predict(p.rows.X),
    )


def test_with_time_for_some_rounds_steps_are_larger_and_it_is_said(monkeypatch):
    p = problem(300)
    monkeypatch.setattr(trees.Clock, "spent", property(lambda clock: 0.1))
    design = trees.TreeColumns((0, 1, 2), ())
    grown = trees.grow_trees(p.rows, design, 0, 0, forever(), 2.0)[0]  # 57 rounds are promised
    assert trees.MIN_ROUNDS <= grown.rounds < trees.N_ROUNDS
    assert grown.rate == pytest.approx(10 / grown.rounds)
    assert not grown.starved
    assert f"{grown.rounds} rounds" in grown.settings


def test_leaves_of_many_classes_are_penalised():
    p = problem(300, classes=3)
    grown = trees.grow_trees(p.rows, trees.TreeColumns((0, 1, 2), ()), 3, 0, forever(), 10.0)[0]
    assert grown.estimator.l2_regularization == trees.MULTICLASS_PENALTY
    assert "penalised" in grown.settings
