"""Nystrom: exactness on the landmarks, errors that never rise, weights, every kind of input,
pre-images, pivots."""

import pickle
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.inputs import Table
from mercer.kernels import Callable, Gaussian, Laplace, Linear, Polynomial
from mercer.lifts import Nystrom
from mercer.lifts.nystrom import MIN_RESIDUAL
from mercer.testing import check_lift
from tests.market import KERNELS, rows

CHOICES = ["rpcholesky", "uniform", "leverage", "kmeans"]
NESTED = CHOICES[:3]
IN_LAW = "weights act on the law of the sample, not on one draw"


@parametrize_with_checks(
    [Nystrom(), Nystrom(Laplace()), Nystrom("precomputed"), Nystrom(landmarks="kmeans")]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [Nystrom(n_landmarks=5, landmarks=choice, random_state=0) for choice in NESTED],
    expected_failed_checks=lambda e: {
        f"check_sample_weight_equivalence_on_{kind}_data": IN_LAW for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_few(estimator, check):
    check(estimator)


def shared(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def errors(phi, X):
    F = phi.fit_transform(X).astype(float)
    E = np.abs(F @ F.T - phi.kernel_(np.asarray(X, dtype=float)))
    return E.mean(), E.max()


@pytest.mark.parametrize("name", KERNELS)
def test_all_points_are_exact(name):
    X = rows(12)
    K = KERNELS[name](X)
    F = Nystrom(KERNELS[name], n_landmarks=50, random_state=0).fit_transform(X)
    np.testing.assert_allclose(F @ F.T, K, rtol=1e-7, atol=1e-9 * np.abs(K).max())


@pytest.mark.parametrize("choice", CHOICES)
def test_contract(choice):
    check_lift(Nystrom(Gaussian(0.5), n_landmarks=30, landmarks=choice, random_state=0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("choice", NESTED)
@pytest.mark.parametrize(
    "kernel", [Gaussian(1.0), Gaussian(4.0), Gaussian(8.0), Gaussian(60.0), Polynomial(3)], ids=repr
)
def test_error_never_rises(kernel, choice, dtype):
    """Strictly down to rounding, or to the cut where the order of the landmarks is not kept: there
    the error stands still."""
    X = shared(300).astype(dtype)
    found = [
        errors(Nystrom(kernel, m, choice, random_state=1), X)[0] for m in (5, 20, 80, 160, 299)
    ]
    rounding = (
        np.finfo(dtype).eps * 10 if choice == "rpcholesky" else MIN_RESIDUAL[np.dtype(dtype)]
    ) * kernel.diag(X).max()
    assert all(b <= a * (1 + 1e-9) or b <= rounding for a, b in pairwise(found)), found


def test_more_landmarks_append():
    X = shared(500)
    few, many = (Nystrom(Gaussian(1.0), m, random_state=3).fit(X) for m in (40, 300))
    np.testing.assert_array_equal(many.landmark_indices_[:40], few.landmark_indices_)
    np.testing.assert_allclose(many.transform(X)[:, :40], few.transform(X), atol=1e-8)


@pytest.mark.parametrize("choice", NESTED)
def test_more_landmarks_contain_the_fewer(choice):
    few, many = (
        Nystrom(Laplace(), m, choice, random_state=3).fit(shared(500)).landmark_indices_
        for m in (40, 300)
    )
    assert len(few) == 40
    assert set(few) <= set(many)


def test_better_than_uniform_where_rows_are_unequal():
    X = np.concatenate([shared(950) / 50, 10 + 3 * shared(50, seed=1)])
    mean = {
        c: np.mean([errors(Nystrom(Gaussian(1.0), 60, c, random_state=s), X)[1] for s in range(5)])
        for c in CHOICES[:2]
    }
    assert mean["rpcholesky"] < mean["uniform"] / 2, mean


def test_rank_is_revealed():
    X = shared(300)
    assert Nystrom(Linear(), 100, random_state=0).fit(X).n_features_out_ == 4
    assert (
        Nystrom(Gaussian(), 100, random_state=0).fit(np.repeat(X[:7], 20, axis=0)).n_features_out_
        == 7
    )
    zero = Nystrom(Linear(), 5).fit(np.zeros((9, 2)))
    assert not zero.transform(np.ones((2, 2))).any()


def test_error_is_a_kernel_that_vanishes_at_landmarks():
    X = shared(200)
    phi = Nystrom(Gaussian(1.5), 30, random_state=0).fit(X)
    F = phi.transform(X)
    E = Gaussian(1.5)(X) - F @ F.T
    assert np.linalg.eigvalsh(E)[0] > -1e-10
    assert np.abs(E[phi.landmark_indices_]).max() < 1e-9


@pytest.mark.parametrize("choice", NESTED)
def test_precomputed_equals_kernel(choice):
    X, Z = shared(150), shared(20, seed=1)
    ours = Nystrom(Gaussian(1.0), 40, choice, random_state=0).fit(X)
    given = Nystrom("precomputed", 40, choice, random_state=0).fit(Gaussian(1.0)(X))
    np.testing.assert_array_equal(given.landmark_indices_, ours.landmark_indices_)
    np.testing.assert_allclose(given.transform(Gaussian(1.0)(Z, X)), ours.transform(Z), atol=1e-9)


@pytest.mark.parametrize("choice", CHOICES)
def test_sparse_equals_dense(choice):
    X = shared(200) * (shared(200, seed=1) > 0.5)
    F, G = (
        Nystrom(Laplace(2.0), 30, choice, random_state=0).fit_transform(A)
        for A in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(F @ F.T, G @ G.T, atol=1e-7)


def test_dense_after_sparse_and_float32_after_float64():
    X = shared(100)
    phi = Nystrom(Gaussian(2.0), 30, random_state=0).fit(sp.csr_array(X))
    np.testing.assert_allclose(phi.transform(X), phi.transform(sp.csr_array(X)), atol=1e-9)
    F = phi.transform(X.astype(np.float32))
    assert F.dtype == np.float32
    np.testing.assert_allclose(F, phi.transform(X), atol=1e-3)


def test_items():
    words = ["kernel", "colonel", "lift", "left", "features", "feature", "Gram"]
    k = Callable(letters_in_common)
    F = Nystrom(k, n_landmarks=7).fit(words).transform(words)
    np.testing.assert_allclose(F @ F.T, k(words), atol=1e-9)
    assert Nystrom(k, 3, random_state=0).fit(words).transform(words[:2]).shape == (2, 3)


def letters_in_common(A, B):
    count = lambda words: np.array(
        [[w.count(c) for c in "abcdefghijklmnopqrstuvwxyzG"] for w in words], dtype=float
    )
    return count(A) @ count(B).T


def test_names_of_columns():
    frame = pd.DataFrame(shared(50), columns=list("abcd"))
    phi = Nystrom(Gaussian().on_columns(["a", "c"]), 50).set_output(transform="pandas").fit(frame)
    F = phi.transform(frame)
    assert list(F.columns) == [f"nystrom{i}" for i in range(F.shape[1])]
    np.testing.assert_allclose(F @ F.T, Gaussian()(frame[["a", "c"]]), atol=1e-8)


@pytest.mark.parametrize("choice", NESTED)
def test_weights_are_respected(choice):
    X = shared(60)
    weight = np.where(np.arange(60) < 30, 0.0, np.where(np.arange(60) < 45, 1.0, 30.0))
    counts = np.zeros(60)
    for seed in range(60):
        phi = Nystrom(Gaussian(0.3), 5, choice, random_state=seed).fit(X, sample_weight=weight)
        counts[phi.landmark_indices_] += 1
    assert counts[:30].sum() == 0
    assert counts[45:].sum() > 8 * counts[30:45].sum() > 0


def test_weights_scale_the_default_kernel():
    X, weight = shared(40), np.arange(40) % 3
    weighted, repeated = Nystrom().fit(X, sample_weight=weight), Nystrom().fit(X.repeat(weight, 0))
    assert weighted.kernel_.bandwidth == pytest.approx(repeated.kernel_.bandwidth)


def test_points_of_ones_own():
    X, L = shared(100), shared(12, seed=5)
    phi = Nystrom(Gaussian(), landmarks=L).fit(X)
    F = phi.transform(L)
    assert phi.landmark_indices_ is None
    np.testing.assert_allclose(F @ F.T, Gaussian()(L), atol=1e-9)


@pytest.mark.parametrize("choice", ["rpcholesky", "kmeans"])
def test_preimages(choice):
    X = shared(300, 2) + 5
    phi = Nystrom(Gaussian(2.0), 100, choice, random_state=0).fit(X)
    assert np.abs(phi.inverse_transform(phi.transform(X)) - X).mean() < 0.01
    assert phi.inverse_transform(phi.transform(X.astype(np.float32))).dtype == np.float32


def test_pickles_small_and_alike():
    X = shared(2000)
    phi = Nystrom(Gaussian(), 20, random_state=0).fit(X)
    data = pickle.dumps(phi)
    assert len(data) < 10_000
    np.testing.assert_array_equal(pickle.loads(data).transform(X), phi.transform(X))


def test_memory_is_linear():
    X = shared(20_000, 3)
    tracemalloc.start()
    Nystrom(Gaussian(), 60, random_state=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * X.shape[0] * 60 * 8


@pytest.mark.parametrize(
    ("phi", "match"),
    [
        (Nystrom(n_landmarks=0), "n_landmarks must be an integer >= 1"),
        (Nystrom(landmarks="best"), "landmarks must be rpcholesky, uniform"),
        (Nystrom("precomputed"), "square Gram matrix"),
        (Nystrom("radial"), "kernel must be"),
        (Nystrom(landmarks=np.ones((3, 9))), "9 columns, 4 expected"),
    ],
)
def test_errors(phi, match):
    with pytest.raises(ValueError, match=match):
        phi.fit(shared(10))


def test_errors_of_weights_and_preimages():
    with pytest.raises(ValueError, match="sample_weight is zero"):
        Nystrom().fit(shared(5), sample_weight=np.zeros(5))
    with pytest.raises(ValueError, match="kmeans"):
        Nystrom("precomputed", 2, "kmeans").fit(np.eye(5))
    with pytest.raises(ValueError, match="rows of numbers"):
        Nystrom("precomputed").fit(np.eye(5)).inverse_transform(np.eye(5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [300, 3000])  # by NumPy, and by compiled loops
@pytest.mark.parametrize("kind", ["plain", "near-copies", "line", "far", "huge", "one column"])
def test_gaussian_features_from_products_are_those_of_tiles(kind, n, dtype):
    """Rows far from the origin lose digits of their products, and go by tiles."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 1 if kind == "one column" else 4))
    X = {
        "near-copies": X[rng.integers(0, 20, n)] + 1e-6 * X,
        "line": np.outer(X[:, 0], [1.0, -2.0, 0.5, 3.0]),
        "far": X + 1e6,
        "huge": X * 1e150 if dtype == np.float64 else X * 1e18,
    }.get(kind, X)
    X, b = X.astype(dtype), 1.3e150 if kind == "huge" and dtype == np.float64 else 1.3
    b = 1.3e18 if kind == "huge" and dtype == np.float32 else b
    k = Gaussian(b)
    phi = Nystrom(k, 30, random_state=0).fit(X)
    values = np.full((n, phi.n_features_out_), np.nan, dtype)
    phi._values(Table(X), values.dtype)(slice(0, n), values)
    allowed = {np.float32: 4e-5, np.float64: 2e-9}[dtype]
    np.testing.assert_allclose(
        values, k(X.astype(float), phi.landmarks_.astype(float)), atol=allowed
    )


def test_fit_transform_is_fit_and_transform():
    X = np.random.default_rng(0).normal(size=(50, 3))
    w = np.arange(50.0)
    once = Nystrom(n_landmarks=10, random_state=1).fit_transform(X, sample_weight=w)
    phi = Nystrom(n_landmarks=10, random_state=1).fit(X, sample_weight=w)
    np.testing.assert_array_equal(once, phi.transform(X))


@pytest.mark.parametrize("m", [100, 149, 150, 151, 300])
@pytest.mark.parametrize(("n", "others"), [(600, 0.0), (600, 1e-9), (1300, 0.0)])
def test_landmarks_end_where_most_rows_tell_nothing(m, n, others):
    """Fewer rows with k(x, x) > 0 than landmarks: once they all are pivots, no more is proposed."""
    X = np.random.default_rng(0).normal(size=(n, 200))
    X[150:] *= others
    F = Nystrom(Linear(), m, random_state=0).fit_transform(X)
    assert F.shape[1] == min(m, 150) if others == 0 else F.shape[1] >= min(m, 150)
    if m >= 150:
        assert np.abs(F @ F.T - X @ X.T).max() <= 1e-9 * np.abs(X @ X.T).max()


@pytest.mark.parametrize("landmarks", ["rpcholesky", "kmeans", "uniform"])
@pytest.mark.parametrize("n", [10, 200])
def test_rows_too_large_for_their_kernel_are_refused_in_a_sentence(landmarks, n):
    X = 1e200 * np.random.default_rng(0).normal(size=(n, 3))
    for fit in (
        Nystrom(Linear(), 20, landmarks).fit,
        Nystrom(Linear(), 20, landmarks).fit_transform,
    ):
        with pytest.raises(ValueError, match="scale the columns"):
            fit(X)
    if landmarks != "kmeans":
        assert np.isfinite(Nystrom(Gaussian(1e200), 20, landmarks).fit_transform(X)).all()


@pytest.mark.parametrize("offset", [30.0, 100.0, 700.0, 3e4])
def test_few_rows_far_from_zero_are_told_to_the_digits_that_landmarks_have(offset):
    X = np.random.default_rng(0).normal(size=(60, 5))
    moved = X + offset
    X = moved - offset  # exactly
    F = Nystrom(Gaussian(), 60, random_state=0).fit_transform(moved)
    assert np.abs(F @ F.T - np.exp(-cdist(X, X, "sqeuclidean") / 2)).max() < 3e-11
