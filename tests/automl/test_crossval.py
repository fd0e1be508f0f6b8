"""Out-of-fold predictions: those of refits, from moments or inner products."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from mercer.automl import crossval
from mercer.automl.crossval import refits, ridge_path
from mercer.automl.rows import TableRows
from mercer.automl.splits import FoldPlan, make_folds
from mercer.lifts import Identity as Columns
from tests.automl.arrays import problem


@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_fold_predictions_are_those_of_refits(weighted):
    p = problem(200)
    w = np.random.default_rng(1).uniform(0.5, 2, 200) if weighted else None
    split = make_folds(p.rows)
    mine = ridge_path(Columns(), p.rows.X, p.rows.y, w, split, np.array([0.1, 10.0]))
    for alpha, f in zip((0.1, 10.0), mine, strict=True):
        theirs = refits(
            lambda a=alpha: Ridge(alpha=a), lambda m, X: m.predict(X), p.rows.X, p.rows.y, w, split
        )
        assert f[:, 0] == pytest.approx(theirs, abs=1e-4)


def test_forward_folds_leave_the_first_block_out():
    p = problem(120, time=np.arange(120.0))
    split = make_folds(p.rows)
    f = ridge_path(Columns(), p.rows.X, p.rows.y, None, split, np.array([1.0]))[0, :, 0]
    assert np.isnan(f[split.block == 0]).all()
    assert np.isfinite(f[split.tested()]).all()
    train, test = split.split(0)
    assert f[test] == pytest.approx(
        Ridge(alpha=1.0).fit(p.rows.X[train], p.rows.y[train]).predict(p.rows.X[test]), abs=1e-4
    )


def test_folds_without_training_rows_are_refused():
    with pytest.raises(ValueError, match="no fold"):
        refits(
            Ridge,
            lambda m, X: m.predict(X),
            np.zeros((2, 1)),
            np.zeros(2),
            None,
            FoldPlan(np.zeros(2, int), (((1,), 0),)),
        )


def test_a_test_fold_does_not_see_its_own_target():
    p = problem(300)
    split = make_folds(p.rows)
    _, test = split.split(0)
    y = p.rows.y.copy()
    y[test] += 100
    before, after = (
        ridge_path(Columns(), p.rows.X, v, None, split, np.array([1.0]))[0, test, 0]
        for v in (p.rows.y, y)
    )
    assert before == pytest.approx(after, abs=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("timed", [False, True])
def test_more_columns_than_rows_give_what_refits_give(weighted, timed):
    rng = np.random.default_rng(0)
    X = rng.normal(3, 1, size=(60, 90)).astype(np.float32)
    y, w = X[:, 0] + rng.normal(size=60), rng.uniform(0.5, 2, 60) if weighted else None
    split = make_folds(TableRows(X, y, np.arange(60), time=np.arange(60.0) if timed else None))
    tested = split.tested()
    mine = ridge_path(Columns(), X, np.stack([y, -2 * y], axis=1), w, split, np.array([0.1, 10.0]))
    for alpha, f in zip((0.1, 10.0), mine, strict=True):
        theirs = refits(lambda a=alpha: Ridge(alpha=a), lambda m, X: m.predict(X), X, y, w, split)
        assert f[tested, 0] == pytest.approx(theirs[tested], abs=1e-3)
        assert f[tested, 1] == pytest.approx(-2 * theirs[tested], abs=2e-3)
    assert np.isnan(mine[:, np.setdiff1d(np.arange(60), tested)]).all()


def test_the_dual_and_the_moments_agree_on_rows_without_weight(monkeypatch):
    rng = np.random.default_rng(0)
    X, y, w = (
        rng.normal(size=(60, 90)).astype(np.float32),
        rng.normal(size=60),
        rng.integers(0, 2, 60).astype(float),
    )
    split = make_folds(TableRows(X, y, np.arange(60)))
    dual = ridge_path(Columns(), X, y, w, split, np.array([1.0]))
    monkeypatch.setattr(crossval, "MAX_DUAL_ROWS", 0)
    assert dual == pytest.approx(ridge_path(Columns(), X, y, w, split, np.array([1.0])), abs=1e-3)
