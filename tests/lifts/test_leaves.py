"""Leaves: the trees of scikit-learn walked as they walk, cross-fitting that is honest, Mondrian
trees that near a Laplace kernel, names, files, and models over it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer import GaussianProcessRegressor, KernelLogistic, KernelRidge, KernelSVC
from mercer.kernels import Laplace, Linear
from mercer.lifts import Leaves, Monomials, OnColumnsLift
from mercer.lifts.mondrian import mondrian
from mercer.lifts.trees import GrownTrees, OneTree
from mercer.testing import check_lift


def rows(n=80, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def numbers(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 0] > 0)


def three(X):
    return np.digitize(numbers(X), [-0.4, 0.4])


X = rows()
Y = numbers(X)
GROWERS = {
    "forest": (RandomForestRegressor(5, max_leaf_nodes=9), Y),
    "forest of classes": (RandomForestClassifier(5), three(X)),
    "extra trees": (ExtraTreesRegressor(4, max_depth=4), Y),
    "boosting": (GradientBoostingClassifier(n_estimators=3), three(X)),
    "tree": (DecisionTreeRegressor(max_depth=5), Y),
    "histograms": (HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=3), Y),
}
LIFTS = {
    "numbers": (Leaves(n_trees=10, random_state=0), Y),
    "classes": (Leaves(n_trees=10, random_state=0), three(X)),
    "texts": (Leaves(n_trees=7, cross_fit=3, random_state=0), np.array(["no", "yes"])[1 * (Y > 0)]),
    "outputs": (Leaves(n_trees=5, random_state=0), np.stack([Y, -Y], axis=1)),
    "no folds": (Leaves(n_trees=4, cross_fit=None, random_state=0), Y),
    "random": (Leaves(n_trees=6, max_leaves=8, how="random", random_state=0), None),
    **{name: (Leaves(e, random_state=0), y) for name, (e, y) in GROWERS.items()},
}


@pytest.mark.parametrize("name", LIFTS)
def test_lift_equals_kernel(name):
    phi, y = LIFTS[name]
    check_lift(phi, X, y=y)


@pytest.mark.parametrize(
    "phi",
    [
        Leaves(n_trees=5, random_state=0),
        Leaves(n_trees=3, how="random", random_state=0),
        Leaves(RandomForestClassifier(2, random_state=0), cross_fit=None),
    ],
    ids=["supervised", "random", "forest"],
)
def test_check_estimator(phi):
    check_estimator(phi, on_skip=None)


@pytest.mark.parametrize("name", [n for n in GROWERS if n != "histograms"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_rows_meet_where_they_meet_in_the_trees_of_scikit_learn(name, dtype, offset):
    grower, y = GROWERS[name]
    grower = clone(grower).set_params(random_state=3)
    A, Z = ((B + offset).astype(dtype) for B in (X, rows(60, seed=1)))
    phi = Leaves(grower, cross_fit=None).fit(A, y)
    leaf = clone(grower).fit(A, y).apply(Z).reshape(len(Z), -1)
    meet = (leaf[:, None] == leaf[None]).mean(axis=2)
    F = phi.transform(Z)
    assert sp.issparse(F)
    assert F.dtype == dtype
    np.testing.assert_allclose((F @ F.T).toarray(), meet, atol=1e-6)
    np.testing.assert_allclose(phi.kernel_(Z), meet, atol=1e-6)


@pytest.mark.parametrize("estimator", [HistGradientBoostingRegressor, RandomForestRegressor])
@pytest.mark.parametrize("seen", [True, False])
def test_missing_values_go_where_the_trees_send_them(estimator, seen):
    """One tree tells its leaf by the value that it gives."""
    A, Z = X.copy(), rows(60, seed=1)
    Z[::3, 0] = np.nan
    Z[::4, 1] = np.nan
    if seen:
        A[::5, 0] = np.nan
    settings = dict(max_leaf_nodes=12, random_state=0, min_samples_leaf=2)
    size = dict(max_iter=1) if estimator is HistGradientBoostingRegressor else dict(n_estimators=1)
    grower = estimator(**size, **settings)
    F = Leaves(grower, cross_fit=None).fit(A, Y).transform(Z)
    told = clone(grower).fit(A, Y).predict(Z)
    same = (F @ F.T).toarray() > 0.5
    assert F.indices.max() > 3
    np.testing.assert_array_equal(same, told[:, None] == told[None])


def test_a_walk_is_its_reference():
    from mercer.ops.trees import walk, walk_reference

    rng = np.random.default_rng(2)
    for n, d, leaves in [(1, 1, 2), (700, 5, 40), (33, 2, 64)]:
        A = rng.normal(size=(n, d)).astype(np.float32)
        trees = [(0, mondrian(rng.normal(size=(100, d)), leaves, rng)) for _ in range(7)]
        t = GrownTrees.of(trees, d, single=False)
        A[rng.random(A.shape) < 0.1] = np.nan
        nodes = (t.roots, t.columns, t.thresholds, t.children, t.missing, t.leaves)
        np.testing.assert_array_equal(walk(A, *nodes), walk_reference(A, *nodes))


# cross-fitting
def test_leaves_of_a_row_have_not_seen_its_target():
    """Whatever the targets of its fold are, a row of it has the same leaves."""
    phi = Leaves(n_trees=15, cross_fit=3, random_state=0).fit(X, Y)
    fold = phi.folds_[np.searchsorted(phi.keys_, _keys(X))]
    for k in range(3):
        changed = np.where(fold == k, 100 * np.random.default_rng(k).normal(size=len(Y)), Y)
        other = Leaves(n_trees=15, cross_fit=3, random_state=0).fit(X, changed)
        assert set(_named(phi, X[fold == k])) == set(_named(other, X[fold == k]))
        assert set(_named(phi, X[fold != k])) != set(_named(other, X[fold != k]))


def _keys(A):
    from mercer.stats.sample import row_hashes

    return (row_hashes(A) >> np.uint64(2)).astype(np.int64)


def _named(phi, A):
    names = phi.get_feature_names_out()
    F = phi.transform(A)
    return [
        (i, names[j].split("~")[0])
        for i in range(len(A))
        for j in F.indices[slice(*F.indptr[i : i + 2])]
    ]


def test_known_rows_have_one_block_and_new_rows_all():
    phi = Leaves(n_trees=11, cross_fit=4, random_state=0)
    F, Z = phi.fit_transform(X, Y), rows(20, seed=5)
    G = phi.transform(Z)
    trees = phi.trees_
    counts = np.bincount(trees.folds)
    assert counts.tolist() == [3, 3, 3, 2]
    fold = phi.folds_[np.searchsorted(phi.keys_, _keys(X))]
    np.testing.assert_array_equal(np.diff(F.indptr), counts[fold])
    assert (np.diff(G.indptr) == 11).all()
    np.testing.assert_allclose((G.multiply(G)).sum(1), 1)
    # between a row of fit and a new one: the share of the trees that have not seen it
    own = trees(X)[:, None] == trees(Z)[None]
    of = trees.folds == fold[:, None]
    np.testing.assert_allclose(
        (F @ G.T).toarray(), (own * of[:, None]).sum(2) / counts[fold][:, None], atol=1e-12
    )
    assert not (F @ F.T).toarray()[fold[:, None] != fold].any()
    np.testing.assert_array_equal(
        phi.transform(X.astype(np.float64)[::-1])[::-1].toarray(), F.toarray()
    )


def test_copies_lie_in_one_fold():
    A, y = np.repeat(X[:30], 3, axis=0), np.random.default_rng(0).normal(size=90)
    phi = Leaves(n_trees=10, random_state=0).fit(A, y)
    assert len(phi.keys_) == 30
    F = phi.transform(A).toarray()
    np.testing.assert_array_equal(F[::3], F[1::3])
    near = A + 1e-13
    assert (np.diff(phi.transform(near).indptr) == 10).all()  # nearly is not known


def test_left_out_rows_are_honest():
    """Of targets that nothing tells, left-out rows of a ridge regression find nothing; where all
    rows grew the trees they would, and are refused."""
    honest = []
    for seed in range(6):
        A, y = rows(150, 4, seed), np.random.default_rng(seed + 100).normal(size=150)
        for folds in (5, None):
            phi = Leaves(n_trees=20, max_leaves=8, cross_fit=folds, random_state=seed)
            m = KernelRidge(lift=phi, alpha=0.3, cv=None).fit(A, y)
            if folds is not None:
                honest.append(m.loo_score_)
                continue
            with pytest.raises(AttributeError, match="Leaves learns from y"):
                m.loo_score_  # noqa: B018
    assert np.mean(honest) < 0.02


def test_one_row_equal_rows_and_equal_targets():
    for A, y in [(X[:1], Y[:1]), (np.ones((9, 2)), np.arange(9.0)), (X, np.ones(len(X)))]:
        phi = Leaves(n_trees=5, random_state=0).fit(A, y)
        assert np.isfinite(phi.transform(A).toarray()).all()
        assert set(phi.get_feature_names_out()) <= {"all", *(f"all~{i}" for i in range(2, 6))}
    phi = Leaves(n_trees=5, random_state=0).fit(X[:2], Y[:2])  # two folds of one row
    assert phi.transform(X[:2]).shape == (2, phi.n_features_out_)


# names
def test_names_are_the_conditions_of_leaves():
    frame = pd.DataFrame({"age": [25.0, 28, 45, 50, 33, 60], "income": [1.0, 9, 2, 8, 7, 1]})
    y = [0.0, 0, 1, 3, 0, 1]
    phi = Leaves(DecisionTreeRegressor(), cross_fit=None, random_state=0).fit(frame, y)
    names = phi.get_feature_names_out().tolist()
    assert set(names) == {"age <= 39", "age > 39 and income <= 5", "age > 39 and income > 5"}
    F = phi.transform(frame).toarray()
    for name, column in zip(names, F.T, strict=True):
        np.testing.assert_array_equal(frame.eval(name), column > 0)


def test_names_hold_of_the_rows_in_them():
    frame = (8 * pd.DataFrame(rows(200, 3, 4), columns=["a", "b", "c"])).round() / 8
    for phi in (
        Leaves(n_trees=5, random_state=0),
        Leaves(n_trees=5, max_leaves=12, how="random", random_state=0),
        Leaves(RandomForestRegressor(3, max_leaf_nodes=20), cross_fit=2, random_state=0),
    ):
        phi.fit(frame.to_numpy()[:150], numbers(frame.to_numpy()[:150]))
        names = phi.get_feature_names_out(frame.columns)
        new = frame[150:].drop_duplicates()
        F = phi.transform(new.to_numpy()).toarray()
        fresh = (F > 0).sum(1) == len(phi.trees_.roots)
        for name, column in zip(names, F.T, strict=True):
            text = name.split("~")[0]
            holds = np.ones(len(new), bool) if text == "all" else new.eval(text).to_numpy()
            np.testing.assert_array_equal(holds[fresh], column[fresh] > 0)


# at random
def test_mondrian_trees_near_the_laplace_kernel():
    A = np.array([[0.0, 0.0], [0.3, 0.1], [1.0, 0.2], [0.5, 2.0], [0.5, 2.0]])
    scale, t, m = np.array([1.0, 2.0]), 0.8, 3000
    rng = np.random.default_rng(0)
    trees = [(0, mondrian(A, 99, rng, scale=scale, lifetime=t)) for _ in range(m)]
    leaf = GrownTrees.of(trees, 2, single=False)(A)
    meet = (leaf[:, None] == leaf[None]).mean(2)
    expected = Laplace(tuple(scale / t), norm=1)(A)
    error = 5 * np.sqrt(expected * (1 - expected) / m) + 1e-12
    assert (np.abs(meet - expected) <= error).all()


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e15])
def test_mondrian_trees_part_what_differs(offset):
    A = np.unique((4 * rows(40, 2)).round(), axis=0) + offset
    phi = Leaves(n_trees=3, max_leaves=200, how="random", random_state=0).fit(A)
    np.testing.assert_allclose(phi.kernel_(A), np.eye(len(A)), atol=1e-12)
    few = Leaves(n_trees=3, max_leaves=5, how="random", random_state=0).fit(A)
    assert few.n_features_out_ == 15
    assert few.keys_ is None


def test_mondrian_trees_of_missing_and_huge_values():
    A = rows(50, 3) * np.array([1.0, 1e300, 1e-300])
    A[::4, 0] = np.nan
    A[:, 2] = np.where(np.arange(50) % 2, A[:, 2], np.nan)
    phi = Leaves(n_trees=20, max_leaves=30, how="random", random_state=0).fit(A)
    assert set(phi.trees_.columns) == {0, 1, 2}
    assert phi.transform(np.full((1, 3), np.nan)).nnz == 20
    empty = Leaves(n_trees=2, how="random", random_state=0).fit(np.full((4, 2), np.nan))
    assert empty.n_features_out_ == 2


# in models
@pytest.mark.parametrize("model", [KernelRidge, GaussianProcessRegressor])
def test_regressions_pass_their_targets_on(model):
    A, Z = rows(300), rows(100, seed=9)
    m = model(lift=Leaves(n_trees=40, random_state=0)).fit(A, numbers(A))
    assert m.score(Z, numbers(Z)) > 0.6
    assert isinstance(m.lift_, Leaves)


@pytest.mark.parametrize("model", [KernelLogistic(alpha=0.3), KernelSVC()])
def test_classifications_pass_their_classes_on(model):
    A, Z = rows(300), rows(100, seed=9)
    labels = np.array(["low", "middle", "high"])
    m = clone(model).set_params(lift=Leaves(n_trees=40, random_state=0)).fit(A, labels[three(A)])
    assert m.score(Z, labels[three(Z)]) > 0.7


def test_a_pipeline_is_the_model_with_the_lift():
    A, Z = rows(200), rows(40, seed=9)
    phi = Leaves(n_trees=20, random_state=0)
    pipe = make_pipeline(phi, KernelRidge(Linear(), alpha=0.5)).fit(A, numbers(A))
    inside = KernelRidge(lift=clone(phi), alpha=0.5).fit(A, numbers(A))
    np.testing.assert_allclose(pipe.predict(Z), inside.predict(Z), rtol=1e-6, atol=1e-8)


def test_maps_made_of_leaves_pass_targets_on():
    phi = Leaves(n_trees=5, random_state=0)
    for made in (
        phi + Monomials(1),
        2.0 * phi,
        phi * Monomials(1),
        Monomials(2) >> phi,
        OnColumnsLift(phi, [0, 1]),
    ):
        F = clone(made).fit(X, Y).transform(X)
        F = F.toarray() if sp.issparse(F) else F
        np.testing.assert_allclose(F @ F.T, clone(made).fit(X, Y).kernel_(X), atol=1e-9)
        assert KernelRidge(lift=made).fit(X, Y).predict(X).shape == Y.shape
        with pytest.raises(ValueError, match="requires y"):
            clone(made).fit(X)


def test_files(tmp_path):
    Z = rows(30, seed=9)
    Z[0, 0] = np.nan
    for phi, y in LIFTS.values():
        phi = clone(phi).fit(X, y)
        phi.save(tmp_path / "phi.mercer")
        again = mercer.load(tmp_path / "phi.mercer")
        for A in (X, Z):
            np.testing.assert_array_equal(again.transform(A).toarray(), phi.transform(A).toarray())


def test_files_hold_the_settings_of_growers_alone(tmp_path):
    grown = RandomForestRegressor(2).fit(X, Y)
    phi = Leaves(grown, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="is fitted, and files hold its settings alone"):
        phi.save(tmp_path / "phi.mercer")
    assert not list(tmp_path.iterdir())


# refusals
@pytest.mark.parametrize(
    ("phi", "y", "match"),
    [
        (Leaves(), None, "requires y to be passed"),
        (Leaves(how="forest"), Y, "how must be"),
        (Leaves(RandomForestRegressor(), how="random"), Y, "give no estimator"),
        (Leaves(BaggingRegressor()), Y, "estimator must be .* got BaggingRegressor"),
        (Leaves(n_trees=0), Y, "n_trees must be"),
        (Leaves(max_leaves=1), Y, "max_leaves must be"),
        (Leaves(cross_fit=1), Y, "cross_fit must be"),
        (Leaves(n_trees=3), Y, "n_trees must be at least cross_fit=5"),
        (Leaves(), Y[:-1], "one target for each of 80 rows"),
        (Leaves(), np.where(Y > 1, np.nan, Y), "y contains NaN"),
        (Leaves(), np.full(80, None), "Unknown label type"),
        (
            Leaves(HistGradientBoostingClassifier(categorical_features=[0], min_samples_leaf=1)),
            three(X),
            "splits by sets of categories",
        ),
    ],
    ids=lambda v: None if not isinstance(v, str) else v,
)
def test_refusals(phi, y, match):
    A = np.column_stack([np.arange(80) % 7, X[:, 1:]])
    with pytest.raises(ValueError, match=match):
        phi.fit(A, y)
    with pytest.raises(ValueError, match="infinity"):
        Leaves(how="random").fit([[np.inf]])


@pytest.mark.parametrize(
    ("field", "change", "match"),
    [
        ("columns", lambda a: a + 9, "not from 0 to 2"),
        ("children", lambda a: a * 0, "behind their parents"),
        ("children", lambda a: a + 1000, "not from 0"),
        ("leaves", lambda a: np.where(a == 1, 0, a), "numbered through"),
        ("leaves", lambda a: np.full_like(a, -1), "behind their parents"),
        ("roots", lambda a: a[::-1].copy(), "not in order"),
        ("roots", lambda a: a + 1, "not in order"),
        ("thresholds", lambda a: a * np.nan, "not finite"),
        ("folds", lambda a: a + 7, "not from 0"),
        ("missing", lambda a: a[:-1], "shape"),
    ],
)
def test_trees_that_a_loop_must_not_walk_are_refused(field, change, match):
    trees = Leaves(n_trees=4, cross_fit=2, random_state=0).fit(X, Y).trees_
    with pytest.raises(ValueError, match=match):
        type(trees)(**{**vars(trees), field: change(getattr(trees, field))})


def test_children_stay_in_their_tree():
    one = OneTree(
        np.zeros(3, int), np.zeros(3), np.array([[1, 2], [-1, -1], [-1, -1]]), np.zeros(3, bool)
    )
    trees = GrownTrees.of([(0, one), (0, one)], 1, single=False)
    children = trees.children.copy()
    children[0, 1] = 4
    with pytest.raises(ValueError, match="behind their parents"):
        type(trees)(**{**vars(trees), "children": children})
