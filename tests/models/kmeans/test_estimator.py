"""KernelKMeans: k-means in the kernel's space, exact and over features; weights, refusals,
memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from mercer.inputs import table
from mercer.kernels import Gaussian, Linear
from mercer.lifts import Identity
from mercer.methods import Fourier
from mercer.models.kmeans import KernelKMeans


def blobs(n=150, k=3, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    at = rng.integers(k, size=n)
    return 4 * np.column_stack([np.cos(at * 2), np.sin(at * 2)]) + spread * rng.normal(
        size=(n, 2)
    ), at


@pytest.mark.parametrize("via", ["auto", Fourier(64)], ids=["exact", "features"])
def test_scikit_learn_contract(via):
    check_estimator(KernelKMeans(3, via=via, random_state=0), on_skip=None)


@pytest.mark.parametrize(
    "make",
    [
        dict(kernel="linear", via="exact"),
        dict(lift=Identity()),
        dict(kernel="linear", via="features"),
    ],
    ids=["exact", "identity", "features"],
)
def test_linear_is_k_means(make):
    for seed in range(3):
        X, _ = blobs(seed=seed, spread=1.0)
        m = KernelKMeans(3, n_init=8, random_state=0, **make).fit(X)
        ref = KMeans(3, n_init=8, random_state=0).fit(X)
        assert m.inertia_ == pytest.approx(ref.inertia_, rel=1e-3)
        assert adjusted_rand_score(m.labels_, ref.labels_) > 0.95
        np.testing.assert_allclose(m.score(X), -m.inertia_)


def test_precomputed_is_the_kernel():
    (X, _), (Z, _), k = blobs(60), blobs(20, seed=1), Gaussian(2.0)
    g = KernelKMeans(3, "precomputed", random_state=0).fit(k(X))
    assert adjusted_rand_score(g.labels_, KernelKMeans(3, k, random_state=0).fit(X).labels_) == 1
    np.testing.assert_array_equal(g.predict(k(X)), g.labels_)
    assert g.predict(k(Z, X)).shape == (20,)
    assert not hasattr(g, "distances")
    with pytest.raises(ValueError, match="square"):
        KernelKMeans(2, "precomputed").fit(X)
    with pytest.raises(ValueError, match="no features"):
        KernelKMeans(2, "precomputed", "features").fit(k(X))


def test_weights_are_repeated_rows():
    X, _ = blobs(60, spread=1.0)
    w = np.arange(60) % 3
    again = np.repeat(np.arange(60), w)
    a = KernelKMeans(3, Gaussian(2.0), "exact", random_state=0).fit(X, sample_weight=w)
    b = KernelKMeans(3, Gaussian(2.0), "exact", random_state=0).fit(X[again])
    assert a.inertia_ == pytest.approx(b.inertia_)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_sparse_float32_and_kept_or_not():
    X, at = blobs()
    for data in (sp.csr_array(X), X.astype(np.float32)):
        assert (
            adjusted_rand_score(
                KernelKMeans(3, Gaussian(2.0), random_state=0).fit(data).predict(data), at
            )
            == 1
        )
    assert (
        KernelKMeans(3, random_state=0)
        .fit(X.astype(np.float32))
        .distances(X.astype(np.float32))
        .dtype
        == np.float32
    )
    few, none = (
        KernelKMeans(3, Gaussian(2.0), Fourier(64), memory_limit=m, random_state=0).fit(X)
        for m in (1e9, 1.0)
    )
    assert adjusted_rand_score(few.labels_, none.labels_) == 1
    assert few.inertia_ == pytest.approx(none.inertia_)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(n_clusters=0), "n_clusters"),
        (dict(n_clusters=99), "n_clusters=99"),
        (dict(via="best"), "via must be"),
        (dict(n_init=0), "n_init"),
    ],
    ids=str,
)
def test_settings_are_checked(options, match):
    with pytest.raises(ValueError, match=match):
        KernelKMeans(**{"n_clusters": 2, **options}).fit(table(np.ones((5, 2))).data)


def test_too_few_steps_warn():
    X, _ = blobs(200, spread=2.0)
    with pytest.warns(match="raise max_iter"):
        KernelKMeans(6, Gaussian(), max_iter=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="zero"):
        KernelKMeans(2).fit(X, sample_weight=np.zeros(200))


# refused calls, settings
WAYS = {
    "exact": dict(via="exact"),
    "features": dict(via=Fourier(20)),
    "lift": dict(lift=Identity()),
}
BAD = {  # settings, a factor of the rows, and what the sentence says
    "rows": (dict(), np.nan, "NaN"),
    "too large": (dict(kernel=Linear(), lift=None), 1e200, "too large"),
    "via": (dict(via="best", lift=None), 1.0, "via must be"),
    "memory_limit": (dict(memory_limit="much"), 1.0, "memory_limit"),
    "n_clusters": (dict(n_clusters=0), 1.0, "n_clusters"),
    "many clusters": (dict(n_clusters=999), 1.0, "n_clusters=999"),
    "max_iter": (dict(max_iter=0.5), 1.0, "max_iter"),
    "random_state": (dict(random_state=-1), 1.0, "random_state"),
    "kernel": (dict(kernel="none", lift=None), 1.0, "kernel must be"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("way", WAYS)
def test_refused_fits_change_nothing(way, bad):
    X, _ = blobs(40)
    m = KernelKMeans(2, random_state=0, **WAYS[way]).fit(X)
    options, factor, match = BAD[bad]
    m.set_params(**options)
    before = dict(vars(m))
    for fit in (m.fit, m.fit_predict):
        with pytest.raises(ValueError, match=match):
            fit(factor * X)
        assert vars(m).keys() == before.keys()
        assert all(vars(m)[name] is before[name] for name in before)


@pytest.mark.parametrize("via", ["exact", Fourier(20)], ids=["exact", "features"])
def test_weights_of_scores_are_checked(via):
    X, _ = blobs(40)
    m = KernelKMeans(2, via=via, random_state=0).fit(X)
    assert m.score(X, sample_weight=np.full(40, 2.0)) == pytest.approx(2 * m.score(X))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        m.score(X, sample_weight=-np.ones(40))
    with pytest.raises(ValueError, match=r"sample_weight\.shape"):
        m.score(X, sample_weight=np.ones(39))
    with pytest.raises(ValueError, match="NaN"):
        m.score(X, sample_weight=np.full(40, np.nan))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "options",
    [dict(), dict(via=Fourier(20)), dict(lift=Identity())],
    ids=["exact", "features", "lift"],
)
def test_fewer_distinct_rows_than_clusters_warn(options, dtype):
    X = np.repeat([[0.0, 1.0], [1.0, 5.0], [3.0, 0.0]], 7, axis=0).astype(dtype)
    with pytest.warns(ConvergenceWarning, match="only 3 of 5 clusters have rows"):
        KernelKMeans(5, random_state=0, **options).fit(X)
    assert len(set(KernelKMeans(3, random_state=0, **options).fit(X).labels_)) == 3


def test_ways_and_lifts():
    X, _ = blobs(40)
    with pytest.raises(
        ValueError,
        match=r"auto, exact, iterative, features, landmarks, or a value of mercer\.methods, got 'best'",
    ):
        KernelKMeans(2, via="best").fit(X)
    with pytest.raises(ValueError, match="a lift is the feature map itself"):
        KernelKMeans(2, via="exact", lift=Identity()).fit(X)


@pytest.mark.parametrize(
    "options", [dict(kernel=Linear()), dict(lift=Identity())], ids=["exact", "features"]
)
def test_huge_rows_are_refused_without_other_warnings(options):
    X, _ = blobs(40)
    m = KernelKMeans(2, random_state=0, **options).fit(X)
    for ask in (KernelKMeans(2, **options).fit, m.distances, m.score):
        with pytest.raises(ValueError, match="too large for sums"):
            ask(1e200 * X)
    assert set(m.predict(1e200 * X)) == {0, 1}  # which needs no squares
