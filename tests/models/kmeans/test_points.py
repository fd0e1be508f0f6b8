"""k-means among points against plain Lloyd steps, on rows that are hard to tell apart, far away,
equal, few or weightless."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from mercer.kernels import Linear
from mercer.models.kmeans import KernelKMeans, seeds
from mercer.models.kmeans.points import Descent, origin, points
from mercer.models.kmeans.seeds import Beginning, sample
from mercer.models.kmeans.steps import Steps, halves
from mercer.ops.philox import Stream
from mercer.ops.threads import limit

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _anew():
    rng.bit_generator.state = np.random.default_rng(0).bit_generator.state


def blobs(n, d, k, spread=1.0):
    return spread * rng.normal(size=(n, d)) + 2 * rng.normal(size=(k, d))[rng.integers(k, size=n)]


def squared(X, C):
    return np.stack([np.square(X - c).sum(1) for c in C], axis=1)


def plain_lloyd(X, w, C, steps):
    """Labels and means after so many steps; an empty cluster becomes the row that costs most."""
    for _ in range(steps):
        D = squared(X, C)
        labels, far = D.argmin(1), iter(np.argsort(-w * D.min(1), kind="stable"))
        share = [w * (labels == c) for c in range(len(C))]
        C = np.stack([v @ X / v.sum() if v.any() else X[next(far)] for v in share])
    return squared(X, C).argmin(1), C


def descend(X, w, C, most, tol=0.0):
    return Descent(Steps.of(X, w, len(C)), Beginning(C, None, {}), tol).go(most).end()


def checked(X, found, w=None, rtol=1e-9):
    """Whether labels, means and inertia tell of each other, and no row is nearer to another mean."""
    w = np.ones(len(X)) if w is None else w
    C = found.centers + found.origin
    D = squared(X.astype(np.float64), C)
    scale = np.square(X - X.mean(0, dtype=np.float64)).sum(1).mean() + 1e-300
    own = D[np.arange(len(X)), found.labels]
    assert (own <= D.min(1) + rtol * scale).all()
    assert found.inertia == pytest.approx(w @ own, rel=1e-3 if rtol > 1e-6 else 1e-6, abs=1e-20)
    means = found.coef(w).T @ X
    np.testing.assert_allclose(means, C, rtol=1e-6, atol=rtol * np.abs(X).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 11, 12, 40, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_are_those_of_plain_lloyd(d, dtype, weighted):
    n, k = 700, 6
    X = blobs(n, d, 4).astype(dtype)
    w = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
    C = X[np.flatnonzero(w)[:k]].astype(np.float64)
    for most in (1, 3, 300):
        found = descend(X, w, C, most)
        if dtype == np.float64:
            labels, centers = plain_lloyd(X, w, C, found.steps)
            np.testing.assert_array_equal(found.labels, labels)
            np.testing.assert_allclose(found.centers, centers, atol=1e-9)
        checked(X, found, w, 1e-9 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("d", [2, 30])
def test_from_the_same_means_it_ends_where_scikit_learn_does(d):
    X = blobs(3000, d, 10)
    C = X[:12]
    found = descend(X, np.ones(len(X)), C, 300, 1e-4)
    theirs = KMeans(12, init=C, n_init=1, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(found.labels, theirs.labels_)
    np.testing.assert_allclose(found.centers, theirs.cluster_centers_, atol=1e-9)
    assert found.settled
    assert abs(found.steps - theirs.n_iter_) <= 1


HARD = {
    "offset": lambda: blobs(900, 3, 5) + 1e6,
    "wide offset": lambda: blobs(900, 20, 5) + 1e6,
    "near-copies": lambda: np.repeat(blobs(90, 2, 3), 10, 0) + 1e-7 * rng.normal(size=(900, 2)),
    "duplicates": lambda: rng.integers(0, 4, (900, 2)).astype(float),
    "a line": lambda: np.outer(rng.normal(size=900), [1.0, 2.0, 3.0]),
    "constant columns": lambda: np.hstack([blobs(900, 1, 3), np.full((900, 2), 7.0)]),
    "n < d": lambda: blobs(40, 90, 4),
    "huge": lambda: 1e100 * blobs(900, 2, 5),
    "tiny": lambda: 1e-100 * blobs(900, 20, 5),
    "a row far away": lambda: np.vstack([blobs(899, 2, 3), [[1e9, 0.0]]]),
    "clusters far apart": lambda: blobs(900, 15, 5, 1e-6),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", HARD)
def test_hard_rows_are_no_worse_than_with_scikit_learn(name, dtype):
    X = HARD[name]().astype(np.float64)
    X = X if dtype == np.float64 else (X / np.abs(X).max() if name in ("huge", "tiny") else X)
    X = X.astype(dtype)
    found = points(X, np.ones(len(X)), 5, Stream(0), n_init=3)
    checked(X, found, rtol=1e-9 if dtype == np.float64 else 1e-4)
    wide = X.astype(np.float64)
    unit = np.abs(wide - wide.mean(0)).max()  # theirs under- and overflows
    theirs = KMeans(5, n_init=3, random_state=0).fit((wide - wide.mean(0)) / unit)
    assert found.inertia / unit**2 <= 1.02 * theirs.inertia_ + 1e-12


@pytest.mark.parametrize("d", [2, 20])
def test_rows_of_float32_may_be_as_small_or_large_as_they_go(d):
    X = blobs(500, d, 4).astype(np.float32)
    plain = points(X, np.ones(500), 4, Stream(0), n_init=3)
    for factor in (1e-30, 1e25):
        found = points(X * np.float32(factor), np.ones(500), 4, Stream(0), n_init=3)
        assert found.inertia == pytest.approx(plain.inertia * factor**2, rel=1e-3)


@pytest.mark.parametrize("d", [1, 3, 20])
def test_one_cluster_and_as_many_as_rows(d):
    X, w = blobs(30, d, 3), np.ones(30)
    one = points(X, w, 1, Stream(0))
    np.testing.assert_allclose(one.centers[0] + one.origin, X.mean(0))
    assert one.inertia == pytest.approx(np.square(X - X.mean(0)).sum())
    every = points(X, w, 30, Stream(0))
    assert sorted(every.labels) == list(range(30))
    assert every.inertia == pytest.approx(0, abs=1e-20)
    single = points(X[:1], w[:1], 1, Stream(0))
    assert single.labels.tolist() == [0]


def test_rows_without_weight_do_not_count():
    X = np.vstack([blobs(800, 2, 4), 1e3 + blobs(800, 2, 4)])
    w = np.repeat([1.0, 0.0], 800)
    a = points(X, w, 4, Stream(0), n_init=3)
    b = points(X[:800], w[:800], 4, Stream(0), n_init=3)
    checked(X, a, w)
    assert a.inertia <= 1.02 * b.inertia
    assert (a.centers + a.origin).max() < 100


def test_clusters_that_are_left_empty_begin_anew():
    X = blobs(600, 2, 5)
    C = np.vstack([X[:3], [[1e3, 1e3]], [[1e3, -1e3]]])  # no row is nearest to the last two
    found = descend(X, np.ones(600), C, 300)
    assert set(found.labels) == set(range(5))
    checked(X, found)
    few = np.repeat([[0.0], [1.0]], 300, axis=0)
    found = descend(few, np.ones(600), np.array([[0.0], [0.1], [0.2], [1.0]]), 300)
    assert found.settled
    assert found.inertia == 0
    checked(few, found)
    with pytest.warns(ConvergenceWarning, match="only 2 of 4"):
        KernelKMeans(4, Linear(), random_state=0).fit(few)


def test_a_row_of_huge_weight_leaves_no_rounding():
    X = np.vstack([blobs(500, 2, 2), [[3.0, 3.0]]])
    w = np.append(np.ones(500), 1e16)
    found = descend(X, w, X[[0, 500]] + [[3.0, 3.0], [0.0, 0.0]], 300)
    checked(X, found, w)


@pytest.mark.parametrize("d", [2, 40])
def test_few_far_rows_are_in_the_sample(d):
    far = [rng.normal(size=(8, d)) + 50 * rng.normal(size=d) for _ in range(4)]
    X = np.vstack([rng.normal(size=(20_000, d)), *far])
    found = points(X, np.ones(len(X)), 6, Stream(0), n_init=3)
    assert found.inertia < 1.02 * KMeans(6, n_init=3, random_state=0).fit(X).inertia_


def test_the_sample_is_all_rows_by_value_or_stands_for_them():
    X, w = blobs(100, 3, 3), np.arange(100) % 2.0
    norms = np.square(X).sum(1)
    rows, v = sample(X, w, norms, 5, Stream(0))
    assert sorted(rows) == np.flatnonzero(w).tolist()
    np.testing.assert_array_equal(v, 1)
    order = rng.permutation(100)
    again, _ = sample(X[order], w[order], norms[order], 5, Stream(0))
    np.testing.assert_array_equal(X[order][again], X[rows])
    X = blobs(5000, 3, 3)
    norms, w = np.square(X).sum(1), rng.uniform(size=5000)
    sums = []
    for seed in range(40):
        rows, v = sample(X, w, norms, 3, Stream(seed))
        sums.append([v.sum(), v @ norms[rows]])
    np.testing.assert_allclose(np.mean(sums, 0), [w.sum(), w @ norms], rtol=0.02)


@pytest.mark.parametrize("d", [3, 40])
def test_threads_change_no_bit(d):
    X = blobs(6000, d, 8).astype(np.float32)
    found = []
    for n in (1, 3):
        with limit(n):
            found.append(points(X, np.ones(6000), 9, Stream(0), n_init=3))
    np.testing.assert_array_equal(found[0].labels, found[1].labels)
    np.testing.assert_array_equal(found[0].centers, found[1].centers)
    assert found[0].inertia == found[1].inertia


def test_means_of_float32_products_are_looked_at_again():
    """Clusters that differ by a millionth of the extent."""
    at = rng.integers(0, 4, 400)
    X = np.array([[0.0, 0], [1e-5, 0], [1, 0], [1, 1e-5]])[at] + 1e-7 * rng.normal(size=(400, 2))
    S, w = X[np.argsort(at)], np.ones(400)
    assert not seeds.told(seeds.runs(S, w, 4, Stream(0), 1, np.float32), S, w)
    found = points(X, w, 4, Stream(0))
    assert all(len(set(found.labels[at == c])) == 1 for c in range(4))
    assert len(set(found.labels)) == 4


def test_tol_ends_steps_early_and_zero_does_not():
    X = rng.uniform(size=(4000, 2))
    steps = [
        KernelKMeans(20, Linear(), tol=tol, n_init=1, random_state=0).fit(X) for tol in (1e-2, 0)
    ]
    assert steps[0].n_iter_ < steps[1].n_iter_
    assert steps[1].inertia_ < steps[0].inertia_ < 1.1 * steps[1].inertia_
    for bad in (-1, np.nan, "much"):
        with pytest.raises(ValueError, match="tol must be a number >= 0"):
            KernelKMeans(2, Linear(), tol=bad).fit(X)


def test_both_ways_of_a_linear_kernel_are_the_same_clusters():
    X = blobs(2000, 4, 5) + 100
    means = KernelKMeans(5, Linear(), random_state=0).fit(X)
    sums = KernelKMeans(5, Linear(), "exact", random_state=0).fit(X)
    np.testing.assert_array_equal(means.labels_, sums.labels_)
    np.testing.assert_allclose(sums.dual_coef_.T @ X, means.cluster_centers_)
    np.testing.assert_array_equal(means.predict(X), means.labels_)
    np.testing.assert_array_equal(sums.predict(X), means.labels_)
    np.testing.assert_allclose(means.distances(X), sums.distances(X), atol=1e-6)
    assert means.score(X) == pytest.approx(-means.inertia_)


def test_halves_are_no_more_than_half_of_the_way_to_the_next():
    C = 1e3 + rng.normal(size=(20, 5))
    D = np.sqrt(squared(C, C)) + np.diag(np.full(20, np.inf))
    assert (halves(C) <= D.min(1) / 2).all()
    np.testing.assert_allclose(halves(C), D.min(1) / 2, rtol=1e-4)
    assert np.isinf(halves(C[:1])).all()


def outliers(n, d, size):
    X = blobs(n, d, 6)
    X[:3] = size * rng.normal(size=(3, d))
    return X


@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize("size", [1e4, 1e10, 1e15])
def test_seeds_beside_rows_far_away_are_apart(size, d):
    X = outliers(400, d, size)
    found = points(X, np.ones(400), 20, Stream(0), n_init=3)
    assert len(set(found.labels)) == 20
    near = points(X[3:], np.ones(397), 17, Stream(0), n_init=3)
    own = np.square(X - (found.centers + found.origin)[found.labels]).sum(1)
    assert own[3:].sum() <= 1.1 * near.inertia


def test_the_origin_is_near_most_rows_whatever_few_are():
    X = outliers(400, 3, 1e10)
    assert origin(X, np.ones(400)) is None
    X[3:] += 1e6
    assert np.abs(origin(X, np.ones(400)) - 1e6).max() < 10


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sampled_distances_of_near_rows_are_those_of_differences(dtype):
    X = np.repeat(outliers(60, 7, 1e6 if dtype == np.float32 else 1e10), 2, axis=0).astype(dtype)
    D = seeds.distances(seeds._unit(X))
    unit = seeds._unit(X).astype(np.float64)
    assert not np.diag(D).any()
    assert not D[::2, 1::2].diagonal().any()
    rtol = 1e-2 if dtype == np.float32 else 1e-3
    np.testing.assert_allclose(D, squared(unit, unit), rtol=rtol)


def test_copies_of_a_seed_are_not_drawn_while_other_rows_are_apart():
    X = np.repeat(rng.normal(size=(12, 5)), 20, axis=0)
    for seed in range(20):
        rows = X[rng.permutation(len(X))]
        for _, at, chosen in seeds.runs(rows, np.ones(240), 12, Stream(seed), 3, np.float32):
            assert len(np.unique(rows[chosen], axis=0)) == 12
            assert len(set(at)) == 12


def test_no_run_is_settled_with_an_empty_cluster_while_rows_differ():
    X = blobs(300, 2, 5)
    labels = np.repeat(0, 300)
    begun = Beginning(np.vstack([X.mean(0), X[[7, 7]] + 1e3]), labels, {1: 7, 2: 7})
    run = Descent(Steps.of(X, np.ones(300), 3), begun, 1e9)
    assert not run.settled
    found = run.go(300).end()
    assert set(found.labels) == {0, 1, 2}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("via", ["auto", "exact"])
@pytest.mark.parametrize("d", [1, 2, 12, 40])
@pytest.mark.parametrize("offset", [0, 1e3])
def test_rows_are_predicted_as_they_were_labelled_where_means_coincide(d, via, dtype, offset):
    for seed in range(4):
        X = (offset + rng.normal(size=(5, d)))[rng.integers(0, 5, 300)].astype(dtype)
        with pytest.warns(ConvergenceWarning, match="only 5 of 9"):
            m = KernelKMeans(9, Linear(), via, random_state=seed).fit(X)
        np.testing.assert_array_equal(m.predict(X), m.labels_)


def test_of_means_that_coincide_the_first_has_the_rows():
    for d in (3, 50):
        X = blobs(500, d, 4)
        C = X[[5, 9, 5, 11, 9, 5, 30]]
        steps = Steps.of(X, np.ones(500), 7)
        steps.begin(C)
        np.testing.assert_array_equal(steps.labels, squared(X, C).argmin(1))


@pytest.mark.parametrize("kernel", ["linear", Linear()])
def test_a_kernel_by_its_name_goes_the_same_way(kernel):
    X = blobs(500, 3, 4)
    m = KernelKMeans(4, kernel, random_state=0).fit(X)
    plain = KernelKMeans(4, Linear(), random_state=0).fit(X)
    np.testing.assert_array_equal(m.cluster_centers_, plain.cluster_centers_)
    assert m.plan_.way == plain.plan_.way == "features"
    assert m.kernel_ == plain.kernel_


@pytest.mark.parametrize("tol", [0, 1e-4, 1e-1])
@pytest.mark.parametrize("offset", [0, 1e6])
@pytest.mark.parametrize("d", [2, 20])
def test_inertia_is_that_of_labels_and_centers_which_predict_tells_again(d, offset, tol):
    X = rng.uniform(size=(3000, d)) + offset
    m = KernelKMeans(15, Linear(), tol=tol, n_init=1, random_state=0).fit(X)
    own = np.square(X - m.cluster_centers_[m.labels_]).sum()
    assert m.inertia_ == pytest.approx(own, rel=1e-12 if not offset else 1e-8)
    np.testing.assert_array_equal(m.predict(X), m.labels_)
    assert (squared(X, m.cluster_centers_).argmin(1) == m.labels_).mean() > 0.999
