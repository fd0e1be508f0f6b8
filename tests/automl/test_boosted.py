"""Boosted trees as arrays: what scikit-learn predicts, in files that no damage leads astray."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

from mercer.automl.boosted import BoostedTrees, TreeColumns, TreeEnsemble
from mercer.ops.trees import add_values, add_values_reference
from mercer.store import decode, encode

pytestmark = pytest.mark.usefixtures("one_thread")
STRANGE = (np.nan, np.inf, -np.inf, -1.0, 2.5, 99.0, 254.0, 1e9)


def drawn(seed, dtype=np.float64, n=300):
    """Numbers about an offset, some missing, and codes with gaps; how many of each is drawn."""
    rng = np.random.default_rng(seed)
    numbers, categories = int(rng.integers(0, 4)), int(rng.integers(0, 3))
    numbers += not numbers + categories
    X = rng.normal(size=(n, numbers + categories)) + rng.choice([0.0, 1e6])
    X[rng.random(X.shape) < 0.1] = np.nan
    for j in range(numbers, numbers + categories):
        X[:, j] = rng.choice(np.r_[rng.choice(200, 9, replace=False), np.nan], n)
    order = rng.permutation(numbers + categories)
    y = np.nan_to_num(X[:, 0] - np.nanmean(X[:, 0])) + np.nan_to_num(X[:, -1] % 7)
    return X[:, order].astype(dtype), y + 0.1 * rng.normal(size=n), order >= numbers


def grown(seed, classes, dtype=np.float64, **settings):
    X, y, mask = drawn(seed, dtype)
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) if classes else y
    settings = {"max_iter": 6, "min_samples_leaf": 3} | settings
    model = kind(categorical_features=mask if mask.any() else None, **settings)
    return model.fit(X, y), X


def asked(X, model, seed):
    """Rows of training, and rows with what training never had; scikit-learn takes no category that
    is infinite."""
    rng = np.random.default_rng(seed)
    Z = X[rng.integers(0, len(X), 200)].copy()
    where = rng.random(Z.shape) < 0.2
    Z[where] = rng.choice(STRANGE, int(where.sum()))
    if model.is_categorical_ is not None:
        Z[np.isinf(Z) & model.is_categorical_] = 7.0
    return np.concatenate([X, Z])


@pytest.mark.parametrize("classes", [0, 2, 3, 12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_are_those_of_scikit_learn(classes, dtype):
    split = 0
    for seed in range(8):
        model, X = grown(seed, classes, dtype)
        trees, Z = TreeEnsemble.of(model), asked(X, model, seed)
        found = trees.predict(Z)
        expected = model.predict_proba(Z) if classes else model.predict(Z)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert np.array_equal(trees.predict(Z[:1]), found[:1])
        split += len(trees.goes)
    assert split > 10  # categories were split


@pytest.mark.parametrize("loss", ["poisson", "gamma", "absolute_error"])
def test_links_of_other_losses(loss):
    X, y, _ = drawn(3)
    model = HistGradientBoostingRegressor(loss=loss, max_iter=5).fit(X, np.exp(y / 5))
    np.testing.assert_allclose(TreeEnsemble.of(model).predict(X), model.predict(X), rtol=1e-12)


def test_rows_alike_and_trees_of_one_leaf():
    X, y = np.ones((40, 2)), np.arange(40.0)
    model = HistGradientBoostingRegressor(max_iter=2).fit(X, y)
    assert np.array_equal(TreeEnsemble.of(model).predict(X), model.predict(X))


def test_the_loop_is_its_reference():
    for seed in range(6):
        model, X = grown(seed, 3)
        t, Z = TreeEnsemble.of(model), asked(X, model, seed)
        nodes = (t.roots, t.columns, t.numbers, t.children, t.sets, t.goes)
        both = [f(Z, *nodes, np.zeros((len(Z), 3))) for f in (add_values, add_values_reference)]
        assert np.array_equal(*both)
        assert np.abs(both[0]).max() > 0


def test_other_models_and_other_rows_are_refused():
    with pytest.raises(ValueError, match="got RandomForestRegressor"):
        TreeEnsemble.of(RandomForestRegressor())
    X = np.stack([np.arange(60.0), np.arange(60) % 3 - 1.0], axis=1)
    model = HistGradientBoostingRegressor(categorical_features=[1]).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="whole numbers from 0"):
        TreeEnsemble.of(model)
    trees = TreeEnsemble.of(grown(0, 0)[0])
    with pytest.raises(ValueError, match="give as many"):
        trees.predict(np.zeros((2, trees.width + 1)))


def predictor(classes=0, seed=1):
    """Of treated rows: one number, three indicators, one number."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(200, 2)), np.eye(3)[rng.integers(0, 3, 200)]], axis=1)
    X = X[:, [0, 2, 3, 4, 1]].astype(np.float32)
    design = TreeColumns.of([0, 1, 1, 1, 2], ["number", "category", "number"], X)
    y = X[:, 0] + 2 * X[:, 1]
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    y = 1 + np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) if classes else y
    model = kind(max_iter=4, categorical_features=design.categorical).fit(design(X), y)
    codes = tuple(model.classes_.tolist()) if classes else ()
    trees = TreeEnsemble.of(model)
    return BoostedTrees(trees, design, codes, classes + 1 if classes else 0, 5), X, model


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_a_predictor_is_saved_and_predicts_the_same(classes):
    m, X, model = predictor(classes)
    found = m(X)
    again = decode(*encode(m))
    assert np.array_equal(again(X), found)
    if classes:
        assert np.array_equal(found[:, 0], np.zeros(len(X)))  # no row of training had this class
        np.testing.assert_allclose(found[:, 1:], model.predict_proba(m.design(X)), atol=1e-12)
    else:
        assert np.array_equal(found, model.predict(m.design(X)))
        assert replace(m, low=0.0)(X).min() == 0.0
    assert len(m(X[:0])) == 0
    assert "rounds" in again.plan_
    with pytest.raises(ValueError, match="give as many"):
        m(X[:, :4])


def changed(array, place, value):
    out = array.copy()
    out[place] = value
    return out


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [
        ("children", (0, 0), 0),
        ("children", (0, 1), 10**6),
        ("children", (1, 2), -1),
        ("columns", 0, 77),
        ("columns", 0, -1),
        ("roots", 0, 1),
        ("roots", 1, 0),
        ("sets", 0, 10**6),
        ("sets", 0, -2),
        ("numbers", 0, np.nan),
    ],
)
def test_arrays_that_would_lead_a_walk_astray_are_refused(field, place, value):
    trees = predictor()[0].trees
    with pytest.raises(ValueError, match="TreeEnsemble"):
        replace(trees, **{field: changed(getattr(trees, field), place, value)})


def test_a_child_that_stands_before_its_parent_or_in_another_tree_is_refused():
    trees = predictor()[0].trees
    inner = np.flatnonzero(trees.children[:, 0] > 0)
    for v, child in ((inner[1], inner[1]), (inner[0], trees.roots[1]), (inner[-1], 0)):
        with pytest.raises(ValueError, match="children"):
            replace(trees, children=changed(trees.children, (v, 1), child))


def test_parts_that_do_not_belong_together_are_refused():
    m, classes = predictor()[0], predictor(4)[0]
    for change in (
        dict(codes=(0, 1), n_classes=2),
        dict(width=4),
        dict(design=TreeColumns((0,), ())),
        dict(trees=classes.trees),
    ):
        with pytest.raises(ValueError, match="BoostedTrees"):
            replace(m, **change)
    with pytest.raises(ValueError, match="outputs"):
        replace(classes.trees, baseline=np.zeros(3))
    with pytest.raises(ValueError, match="link"):
        replace(m.trees, link="probit")
    with pytest.raises(ValueError, match="BoostedTrees"):
        replace(classes, codes=(1, 2, 3, 3))
