"""Fitted clusters: predictions and distances of the kernel, digits far from zero, rows of their
own."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from mercer.kernels import Gaussian, Linear
from mercer.lifts import Identity
from mercer.methods import Fourier, Landmarks
from mercer.models.kmeans import KernelKMeans


def blobs(n=150, k=3, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    at = rng.integers(k, size=n)
    return 4 * np.column_stack([np.cos(at * 2), np.sin(at * 2)]) + spread * rng.normal(
        size=(n, 2)
    ), at


@pytest.mark.parametrize(
    "via", ["exact", Landmarks(80), Fourier(500)], ids=["exact", "landmarks", "fourier"]
)
def test_clusters_are_found_and_predicted(via):
    X, at = blobs()
    Z, z_at = blobs(seed=1)
    m = KernelKMeans(3, Gaussian(2.0), via, random_state=0).fit(X)
    assert adjusted_rand_score(m.labels_, at) == 1
    assert adjusted_rand_score(m.predict(Z), z_at) == 1
    np.testing.assert_array_equal(m.predict(X), m.labels_)
    np.testing.assert_array_equal(m.distances(X).argmin(1), m.labels_)


def test_distances_are_those_of_the_kernel():
    X, _ = blobs(40)
    k = Gaussian(2.0)
    m = KernelKMeans(3, k, "exact", random_state=0).fit(X)
    A = m.dual_coef_
    np.testing.assert_allclose(A.sum(0), 1)
    square = 1 - 2 * k(X) @ A + np.diag(A.T @ k(X) @ A)
    np.testing.assert_allclose(m.distances(X), np.sqrt(np.maximum(square, 0)), atol=1e-7)
    assert m.inertia_ == pytest.approx(square.min(1).sum())


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize(
    "options",
    [
        dict(kernel=Linear(), via="exact"),
        dict(kernel=Linear(metric=((1.0, 0.0), (0.0, 1.0))), via="exact"),
        dict(kernel=1.0 * Linear(), via="exact"),
        dict(lift=Identity()),
        dict(kernel=Linear(), via="features"),
    ],
    ids=["exact", "metric", "scaled", "identity", "features"],
)
def test_linear_loses_no_digits_far_from_zero(options, offset):
    X = blobs(spread=1.0)[0] + offset
    m, ref = (
        KernelKMeans(3, n_init=8, random_state=0, **options).fit(X),
        KMeans(3, n_init=8, random_state=0).fit(X),
    )
    assert m.inertia_ == pytest.approx(ref.inertia_, rel=1e-3)
    assert m.score(X) == pytest.approx(-m.inertia_, rel=1e-5)
    assert adjusted_rand_score(m.predict(X), ref.labels_) > 0.95
    np.testing.assert_array_equal(m.predict(sp.csr_array(X)), m.predict(X))
    if offset < 1e8:
        same = KernelKMeans(3, n_init=8, random_state=0, **options).fit(X.astype(np.float32))
        assert same.inertia_ == pytest.approx(ref.inertia_, rel=1e-2)


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_the_model_keeps_rows_of_its_own(monkeypatch, make):
    X = make(blobs(40)[0])
    m = KernelKMeans(2, Gaussian(2.0), random_state=0).fit(X)
    before = m.distances(X[:5])
    Z, data = X[:5].copy(), X.data if sp.issparse(X) else X
    data[:] = 0
    np.testing.assert_array_equal(m.distances(Z), before)
    monkeypatch.setattr("mercer.models.kmeans.ways.LARGE", 100)
    large = blobs(40)[0]
    assert KernelKMeans(2, Gaussian(2.0), random_state=0).fit(large).X_fit_ is large
