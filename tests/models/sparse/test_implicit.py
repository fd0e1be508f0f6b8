"""Products that are never built against the same products built."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mercer import SparseClassifier, SparseRegressor, store
from mercer.inputs import Table
from mercer.lifts import Interactions, Monomials, RandomFourier, Subsets
from mercer.models.maps import FittedMap
from mercer.models.sparse.implicit import ProductFeatures, count, implicit, needed, sweepable
from mercer.models.sparse.losses import BinaryLoss, SquaredLoss
from mercer.models.sparse.solve import Solver, grid
from mercer.models.sparse.stored import LiftedFeatures, StoredDictionary
from mercer.ops.monomials import exponents

LIFTS = {
    "cubic": Monomials(3),
    "from degree 2": Monomials((2, 3), include_bias=False),
    "no constant": Monomials(4, include_bias=False),
    "distinct": Monomials(3, interaction_only=True),
    "caps": Monomials(4, degree_per_column={0: 1, 3: 2}),
    "of a degree": Monomials(None, degree_per_column=[1, 0, 2, 1, 1, 0]),
    "three": Interactions(3),
    "of columns": Interactions(2, columns=[4, 0, 1]),
    "none": Interactions(7),
    "subsets": Subsets(),
}


def rows(n, d=6, seed=0):
    """Columns of many kinds: numbers, bits, signs, a copy, a negative, a constant."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[:, 1] = X[:, 1] > 0.3
    X[:, 3] = rng.integers(-1, 2, n)
    X[:, 4] = -X[:, 0]
    X[:, 5] = 0.5
    return X


def plain(n, d, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


def centred(F, w, unit):
    F = F - w @ F
    s = np.sqrt(w @ F**2)
    return F / np.where(s > 1e-12, s, 1.0) if unit else F


@pytest.mark.parametrize("lift", LIFTS.values(), ids=LIFTS.keys())
@pytest.mark.parametrize("unit", [False, True])
def test_the_features_are_those_of_the_lift(lift, unit):
    X = rows(30)
    w = np.random.default_rng(1).dirichlet(np.ones(30))
    phi = lift.fit(X)
    D, F = implicit(ProductFeatures(phi), Table(X), w, unit), phi.transform(X)
    ids = np.random.default_rng(2).permutation(phi.n_features_out_)
    assert (D.n, D.p) == F.shape
    assert D.features.width == D.p
    assert np.allclose(D.features.columns(Table(X), ids), F[:, ids], rtol=1e-14, atol=0)
    assert np.allclose(D.columns(ids) * D.scales(ids), F[:, ids], rtol=1e-13, atol=0)
    assert np.allclose(D.means(ids) * D.scales(ids), w @ F[:, ids], atol=1e-14)
    deviations = np.sqrt(w @ (F - w @ F)[:, ids] ** 2)
    assert np.allclose(D.norms(ids) * D.scales(ids), deviations, atol=1e-14)
    if unit:
        assert np.allclose(D.norms(ids)[deviations > 1e-12], 1.0)
    else:
        assert (D.scales(ids) == 1).all()
    assert D.names(ids) == list(phi.get_feature_names_out()[ids])


@pytest.mark.parametrize("lift", LIFTS.values(), ids=LIFTS.keys())
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("n", [1, 4, 50])
def test_all_others_are_within_the_bound_and_copies_come_once(lift, unit, n):
    rng = np.random.default_rng(n)
    X, w = rows(n, seed=n), rng.dirichlet(np.ones(n))
    phi = lift.fit(X)
    D, F = implicit(ProductFeatures(phi), Table(X), w, unit), centred(phi.transform(X), w, unit)
    r = w * rng.normal(size=n)
    r -= w * r.sum()
    G = np.abs(F.T @ r)
    for k, above in [(2, 0.0), (1000, 0.3 * G.max()), (5, 0.5 * G.max() + 1e-9)]:
        found = D.largest(r, k, float(above))
        assert np.allclose(np.abs(found.values), G[found.ids], rtol=1e-9, atol=1e-13)
        assert np.allclose(found.values, F[:, found.ids].T @ r, rtol=1e-9, atol=1e-13)
        C = F[:, found.ids] * np.sign(found.values)
        assert len(found.ids) <= k
        assert len(np.unique(C.round(10) + 0.0, axis=1).T) == len(found.ids)
        # a feature that is not found is within the bound, or a multiple, at most 1, of one that is
        left = np.setdiff1d(np.arange(D.p), found.ids)
        beyond = left[G[left] > found.bound * (1 + 1e-12) + 1e-13]
        for j in beyond:
            t = C.T @ F[:, j] / np.maximum((C**2).sum(0), 1e-300)
            off = np.abs(F[:, [j]] - C * t).max(axis=0, initial=0)
            assert ((off < 1e-12) & (np.abs(t) <= 1 + 1e-9)).any()
        assert found.largest >= G.max() * (1 - 1e-12) - 1e-13 or not len(found.ids)


def test_features_are_centred_whatever_the_vector():
    X, rng = 0.5 + 0.5 * plain(40, 4), np.random.default_rng(0)
    w, r = rng.dirichlet(np.ones(40)), rng.normal(size=40) + 3
    phi = Monomials(2, include_bias=False).fit(X)
    found = implicit(ProductFeatures(phi), Table(X), w).largest(r, 14, 0.0)
    assert np.allclose(found.values, centred(phi.transform(X), w, False)[:, found.ids].T @ r)


def eight(kind, n=60):
    """Rows of eight columns, two of them of other kinds, and targets of three products."""
    rng = np.random.default_rng(len(kind))
    X = rng.uniform(-1, 1, (n, 8))
    match kind:
        case "bits":
            X[:, 2:5] = X[:, 2:5] > 0
        case "copies":
            X[:, 6], X[:, 7] = X[:, 1], -X[:, 2]
        case "close":
            X[:, 6] = X[:, 1] + 1e-7 * X[:, 6]
        case "line":
            X = np.linspace(-1, 1, n)[:, None] ** np.arange(1, 9)
        case "offset":
            X = 0.9 + 0.1 * X
    y = X[:, 0] * X[:, 1] * X[:, 2] * X[:, 3] - X[:, 4] ** 2 * X[:, 5] + 0.5 * X[:, 1]
    return X, y + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("kind", ["plain", "bits", "copies", "close", "line", "offset"])
def test_every_condition_of_optimality_holds_at_degree_four(kind, unit):
    X, y = eight(kind)
    rng = np.random.default_rng(3)
    w = rng.dirichlet(np.full(len(X), 5.0))
    phi = Monomials(4, include_bias=False).fit(X)
    D = implicit(ProductFeatures(phi), Table(X), w, unit)
    solver = Solver.of(D, SquaredLoss(y[:, None], w), 1e-12)
    alphas = grid(solver.largest, 12, 0.02)
    path, _ = solver.path(alphas, 1.0)
    F = phi.transform(X)
    Z = centred(F, w, unit)
    assert np.isclose(alphas[0], np.abs(Z.T @ (w * (y - w @ y))).max(), rtol=1e-12)
    assert path.sizes[0] == 0 < path.sizes[-1]
    for i, alpha in enumerate(alphas):
        ids, coef, b0 = path.at(i)
        r = w * (y - F[:, ids] @ coef[0] - b0)
        g = Z.T @ r
        assert abs(r.sum()) < 1e-12
        assert np.abs(g).max() <= alpha * (1 + 1e-6)  # all 494 of them
        assert np.allclose(g[ids], alpha * np.sign(coef[0]), rtol=1e-6)
        assert 0 <= path.gaps[i] <= 1e-12


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_the_objective_is_that_of_the_features_built(ratio, unit):
    X, y = eight("copies")
    w = np.full(len(X), 1 / len(X))
    phi = Monomials(3, include_bias=False).fit(X)
    F, loss = phi.transform(X), SquaredLoss(y[:, None], w)
    here = Solver.of(implicit(ProductFeatures(phi), Table(X), w, unit), loss, 1e-12)
    stored = StoredDictionary(
        F, w, LiftedFeatures(FittedMap(phi), phi.n_features_out_, None), unit, True
    )
    there = Solver.of(stored, loss, 1e-12)
    assert np.isclose(here.largest, there.largest, rtol=1e-12)
    alphas = grid(here.largest / ratio, 10, 0.01)
    s = stored.divisors

    def objective(path, i):
        ids, coef, b0 = path.at(i)
        b = coef[0] * s[ids]
        penalty = ratio * np.abs(b).sum() + (1 - ratio) / 2 * b @ b
        return w @ (y - F[:, ids] @ coef[0] - b0) ** 2 / 2 + alphas[i] * penalty

    ours, theirs = here.path(alphas, ratio)[0], there.path(alphas, ratio)[0]
    for i in range(len(alphas)):
        assert np.isclose(objective(ours, i), objective(theirs, i), rtol=1e-10, atol=0)


def test_classes_are_told_apart_by_products_that_are_not_built():
    X, y = eight("bits", 200)
    w, Y = np.full(200, 1 / 200), (y > np.median(y)).astype(float)
    phi = Monomials(4, include_bias=False).fit(X)
    loss = BinaryLoss(Y[:, None], w)
    solver = Solver.of(implicit(ProductFeatures(phi), Table(X), w), loss, 1e-9)
    alphas = grid(solver.largest, 5, 0.1)
    path, _ = solver.path(alphas, 1.0)
    F = phi.transform(X)
    assert path.sizes[-1] > 1
    for i, alpha in enumerate(alphas):
        ids, coef, b0 = path.at(i)
        r = w * (Y - 1 / (1 + np.exp(-(F[:, ids] @ coef[0] + b0))))
        g = (F - w @ F).T @ r
        assert np.abs(g).max() <= alpha * (1 + 1e-3)
        assert np.allclose(g[ids], alpha * np.sign(coef[0]), rtol=1e-3)


def test_powers_that_repeat_are_left_out():
    X = rows(50)
    phi = Monomials(4).fit(X)
    D = implicit(ProductFeatures(phi), Table(X), np.full(50, 0.02))
    caps = D.sweep.caps
    assert caps.tolist() == [4, 1, 4, 2, 0, 0]
    assert D.repeats == {
        "left out": "x4, x5: constant, or copies of columns before",
        "powers": "x1 from 2 on, x3 from 3 on repeat those below",
    }
    F = phi.transform(X)
    kept = (exponents(phi.program_).toarray() <= caps).all(axis=1)
    assert sum(kept) == D.width + 1  # and the constant
    stay = F[:, kept]
    for f in F[:, ~kept].T:
        t = stay.T @ f / (stay**2).sum(0)
        assert (np.abs(np.abs(stay * t - f[:, None]).max(0)) < 1e-12).any()
    assert len({(f * np.sign(f[np.argmax(f != 0)])).tobytes() for f in stay.T}) == stay.shape[1]


def test_columns_of_distinct_products_stay_where_their_squares_would_be_missed():
    X = plain(20, 3)
    X[:, 2] = X[:, 0]
    assert needed(X.T, np.ones(3, int), 2).tolist() == [1, 1, 1]
    assert needed(X.T, np.full(3, 2), 2).tolist() == [2, 2, 0]
    X[:, 0] = X[:, 2] = np.sign(X[:, 0])
    assert needed(X.T, np.ones(3, int), 2).tolist() == [1, 1, 0]


def test_rows_may_be_sparse_and_of_few_digits():
    X = plain(12, 5) * (plain(12, 5, 1) > 0)
    phi = Monomials(3).fit(X)
    ids = np.array([3, 17, 50, 0])
    features = ProductFeatures(phi)
    want = phi.transform(X)[:, ids]
    assert np.allclose(features.columns(Table(sp.csr_array(X)), ids), want, rtol=1e-14, atol=0)
    assert np.allclose(features.columns(Table(X.astype(np.float32)), ids), want, atol=1e-6)
    assert features.columns(Table(X), ids[:0]).shape == (12, 0)
    assert features.columns(Table(X[:0]), ids).shape == (0, 4)
    w = np.full(12, 1 / 12)
    r = w * np.arange(12.0)
    some = [
        implicit(ProductFeatures(phi), Table(Z), w).largest(r, 9, 0.0) for Z in (X, sp.csr_array(X))
    ]
    assert np.array_equal(some[0].ids, some[1].ids)


def test_names_are_those_of_the_columns():
    X = pd.DataFrame(plain(5, 3), columns=["age", "wage", "x"])
    phi = Interactions(2, columns=["x", "age"]).fit(X)
    D = implicit(ProductFeatures(phi), Table(X.to_numpy(), tuple(X)), np.full(5, 0.2))
    assert D.names(np.array([0])) == ["x*age"] == list(phi.get_feature_names_out())
    assert D.features.inputs == ("age", "wage", "x")
    assert D.features.words(np.array([0])) == [(2, 0)]


def test_features_keep_through_a_file():
    X = rows(9)
    for lift in LIFTS.values():
        features = ProductFeatures(lift.fit(X))
        again = store.decode(*store.encode(features))
        ids = np.arange(features.width)
        assert np.array_equal(again.columns(Table(X), ids), features.columns(Table(X), ids))
        assert again.names(ids) == features.names(ids)


def test_ids_beyond_the_features_are_refused():
    features = ProductFeatures(Monomials(2).fit(plain(3, 2)))
    for ids in ([6], [-1]):
        with pytest.raises(IndexError, match=r"from 0 to 5, but ids has"):
            features.letters(np.array(ids))


def test_only_plain_products_are_swept():
    X = plain(9, 3)
    assert all(sweepable(lift.fit(rows(9))) for lift in LIFTS.values())
    assert not sweepable(Monomials(2, ordered=True).fit(X))
    assert not sweepable(RandomFourier(random_state=0).fit(X))
    with pytest.raises(ValueError, match="no plain products"):
        ProductFeatures(Monomials(2, weights="kernel").fit(X))


def test_an_expansion_that_no_sweep_gets_through_is_refused_by_its_size():
    X = plain(100, 300)
    with pytest.raises(
        ValueError, match=r"degree=6.* has 1,\d{3},\d{3},\d{3},\d{3} features.*lower"
    ):
        implicit(ProductFeatures(Monomials(6).fit(X)), Table(X), np.full(100, 0.01))


def test_a_dictionary_of_constants_finds_nothing():
    X = np.full((5, 3), 0.7)
    w = np.full(5, 0.2)
    D = implicit(ProductFeatures(Monomials(2).fit(X)), Table(X), w)
    found = D.largest(w * np.arange(5.0), 3, 0.1)
    assert D.width == 0
    assert not len(found.ids)
    assert found.bound == 0.1


def test_memory_is_far_below_that_of_the_features():
    X = plain(400, 60)
    phi, w = Monomials(3).fit(X), np.full(400, 1 / 400)
    r = w * np.random.default_rng(0).normal(size=400)
    D = implicit(ProductFeatures(phi), Table(X), w)
    D.largest(r, 100, 0.0)  # loops are compiled
    tracemalloc.start()
    D = implicit(ProductFeatures(phi), Table(X), w)
    D.largest(r, 100, 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * 8 * D.p * D.n  # 127 MB


def test_counts():
    assert count(np.full(200, 3), range(1, 4)) == 1_373_700
    assert count(np.ones(100, int), range(1, 5)) == 4_087_975


def many(n=160, d=30, seed=0):
    """Rows of 5,455 cubic products, and targets of three of them."""
    X = plain(n, d, seed) * np.r_[1.0, 50.0, np.ones(d - 2)]
    y = X[:, 0] * X[:, 1] / 20 - 2 * X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5] ** 2
    return X, y + 0.05 * np.random.default_rng(seed).normal(size=n)


@pytest.mark.parametrize("scale", ["unit", "columns"])
def test_a_learner_sweeps_and_keeps_what_was_planted(scale):
    X, y = many()
    m = SparseRegressor(Monomials(3), n_alphas=12, eps=0.05, cv=3, scale=scale, random_state=0)
    m.fit(X[:120], y[:120])
    assert m.plan_.settings["n_features"] == 5456
    assert "never built" in m.plan_.why
    assert isinstance(m.model_.map.features, ProductFeatures)
    words = m.model_.map.features.words(m.model_.ids)
    assert {(0, 1), (2, 3, 4), (5, 5)} <= set(words)
    assert m.path_.gaps.max() <= 1e-6
    assert m.score(X[120:], y[120:]) > 0.7
    assert np.allclose(m.formula_(X[120:]), m.predict(X[120:]), rtol=1e-10, atol=1e-10)
    again = store.decode(*store.encode(m))
    assert np.array_equal(again.predict(X), m.predict(X))


def test_a_learner_of_units_gives_the_same_model():
    X, y = many()
    options = dict(alpha=0.05, n_alphas=5)
    one = SparseRegressor(Monomials(3), **options).fit(X, y)
    order = np.random.default_rng(0).permutation(30)
    scaled = X[:, order] * 2.0 ** np.arange(-15, 15)
    two = SparseRegressor(Monomials(3), **options).fit(scaled, y)
    assert np.allclose(one.predict(X), two.predict(scaled), rtol=1e-8, atol=1e-8)
    single = SparseRegressor(Monomials(3), **options).fit(X.astype(np.float32), y)
    assert np.allclose(one.predict(X), single.predict(X), atol=1e-4)


def test_a_classifier_sweeps():
    X, y = many(200)
    m = SparseClassifier(Monomials(3), alpha=0.03, n_alphas=4).fit(X, y > np.median(y))
    words = m.model_.map.features.words(m.model_.ids)
    assert isinstance(m.model_.map.features, ProductFeatures)
    assert {(0, 1), (2, 3, 4)} <= set(words)
    assert m.score(X, y > np.median(y)) > 0.8


def test_a_learner_refuses_by_size_what_no_sweep_gets_through():
    X = plain(50, 400)
    with pytest.raises(ValueError, match=r"has \d+(,\d{3})+ features"):
        SparseRegressor(Monomials(6)).fit(X, X[:, 0])


@pytest.mark.long
def test_ten_of_a_million_products_are_found_in_little_memory():
    w = np.full(2000, 1 / 2000)
    tracemalloc.start()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1, 1, (2000, 200)), np.zeros(2000)
        words = {tuple(np.sort(rng.integers(0, 200, 1 + i % 3)).tolist()) for i in range(10)}
        for word in sorted(words):
            z = X[:, word].prod(axis=1)
            y += rng.choice([-1, 1]) * (z - z.mean()) / z.std()
        y += rng.normal(size=2000) * y.std() / 3  # 0.9 of the variance is not noise
        D = implicit(ProductFeatures(Monomials(3).fit(X)), Table(X), w, unit=True)
        assert D.width == 1_373_700
        solver = Solver.of(D, SquaredLoss(y[:, None], w), 1e-6)
        path, _ = solver.path(grid(solver.largest, 8, 0.2), 1.0)
        assert words <= set(D.features.words(path.at(7)[0]))
        assert path.sizes[7] < 40
        assert path.gaps.max() <= 1e-6
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6  # of 22 GB
