"""Votes by proximity: the formula, far queries and narrow bandwidths, underflow, weights, tiles and
threads."""

import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from mercer.kernels import Cauchy, Gaussian, Laplace, Linear, Matern, Periodic, exp
from mercer.models.smoothing import FarAwayWarning, NadarayaWatson, SoftNeighborsClassifier
from mercer.ops.threads import limit

EXPRESSIONS = {
    "gaussian": Gaussian(0.7),
    "ard": Gaussian((0.4, 0.8, 1.6)),
    "laplace": Laplace(0.5),
    "1-norm": Laplace(0.5, norm=1),
    "sum": 0.5 * Gaussian(0.3) + Cauchy(),
    "product": Matern(1.0) * Gaussian().on_columns([0, 2]),
    "periodic": Periodic(),
    "exponential": exp(Linear()),
    "square": (Linear() + 1) ** 2,
}


def data(n=150, seed=0, q=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 0.1 * rng.normal(
        size=(n, 2)
    )
    return X, Y if q else Y[:, 0]


def plainly(K, y, w=1.0):
    return (K * w) @ y / (K * w).sum(1)[(...,) + (None,) * (np.ndim(y) - 1)]


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("q", [None, 2])
def test_the_formula(name, q):
    (X, y), (Z, _), k = data(q=q), data(40, 1), EXPRESSIONS[name]
    w = np.random.default_rng(2).uniform(0, 3, len(X))
    np.testing.assert_allclose(
        NadarayaWatson(k).fit(X, y).predict(Z), plainly(k(Z, X), y), atol=1e-9
    )
    np.testing.assert_allclose(
        NadarayaWatson(k).fit(X, y, w).predict(Z), plainly(k(Z, X), y, w), atol=1e-9
    )
    m = NadarayaWatson("precomputed").fit(k(X), y, w)
    np.testing.assert_allclose(m.predict(k(Z, X)), plainly(k(Z, X), y, w), atol=1e-9)


def test_votes_over_many_tiles():
    X, y = data(3000)
    index, shares = SoftNeighborsClassifier(Gaussian(0.5)).fit(X, y > 0).votes(X[:20], 4)
    assert index[:, 0].tolist() == list(range(20))
    P = Gaussian(0.5)(X[:20], X)
    np.testing.assert_allclose(shares, -np.sort(-P / P.sum(1, keepdims=True), axis=1)[:, :4])


def test_a_weight_of_two_is_two_rows():
    X, y = data(80)
    a = NadarayaWatson().fit(X, y, np.where(np.arange(80) < 30, 2.0, 1.0))
    b = NadarayaWatson().fit(np.vstack([X, X[:30]]), np.concatenate([y, y[:30]]))
    np.testing.assert_allclose(a.loo_errors_, b.loo_errors_)
    np.testing.assert_allclose(a.predict(X), b.predict(X))


@pytest.mark.parametrize(
    "k",
    [
        Gaussian(1.0),
        0.5 * Gaussian(1.0) + 2 * Gaussian(0.3),
        Matern(0.7, nu=2.5),
        Matern(0.7, nu=0.8),
        Laplace(1.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_far_queries_are_answered_by_the_nearest_and_said_so(k, dtype):
    X, y = np.array([[0.0], [1.0], [2.0]], dtype), np.array([5.0, 6.0, 9.0])
    m = NadarayaWatson(k).fit(X, y)
    Z = np.array([[-5000.0], [0.5], [5000.0]], dtype)
    assert m.far(Z).tolist() == [True, False, True]
    with pytest.warns(FarAwayWarning, match="2 of 3 queries") as told:
        out = m.predict(Z)
    assert len(told) == 1
    gap = k.parameters()["bandwidth"] if isinstance(k, Matern | Laplace) else 0.0
    if gap == 0.0:  # a Gaussian: the nearest alone
        np.testing.assert_allclose(out[[0, 2]], [5.0, 9.0])
    else:  # exponential tails: the limit of the shares, which does not depend on how far
        with pytest.warns(FarAwayWarning):
            further = m.predict(np.array([[-8000.0]], dtype))
        np.testing.assert_allclose(out[0], further[0], rtol=1e-3)
        assert 5 < out[0] < 6 < out[2] < 9


def test_just_before_and_after_underflow_there_is_no_jump():
    X, y = data(50)
    m = NadarayaWatson(Gaussian(0.1)).fit(X, y)
    Z = np.array([[0.0, 0.0, 0.0]]) + np.linspace(3.0, 8.0, 400)[:, None] * [1.0, 0.0, 0.0]
    far = m.far(Z)
    assert 0 < far.sum() < 400
    with pytest.warns(FarAwayWarning):
        out = m.predict(Z)
    logs = -np.square(Z[:, None] - X).sum(2) / 0.02
    P = np.exp(logs - logs.max(1, keepdims=True))
    np.testing.assert_allclose(out, plainly(P, y), rtol=1e-6)


@pytest.mark.parametrize("bandwidth", [1e-3, 1e-6, 1e-100])
def test_bandwidth_to_zero_is_the_nearest_neighbour(bandwidth):
    X, y = load_iris(return_X_y=True)
    Z = X[:150] + np.random.default_rng(0).normal(size=X.shape) / 3
    m, peer = (
        SoftNeighborsClassifier(Gaussian(bandwidth)).fit(X, y),
        KNeighborsClassifier(1).fit(X, y),
    )
    with pytest.warns(FarAwayWarning):
        np.testing.assert_array_equal(m.predict(Z), peer.predict(Z))
    np.testing.assert_array_equal(m.predict(X), peer.predict(X))


def test_bandwidth_to_infinity_is_the_mean():
    X, y = data()
    np.testing.assert_allclose(
        NadarayaWatson(Gaussian(1e6)).fit(X, y).predict(X), y.mean(), atol=1e-9
    )


def test_no_votes_at_all_are_equal_votes():
    K = np.eye(3)
    with pytest.warns(FarAwayWarning):
        assert NadarayaWatson("precomputed").fit(K, [1.0, 2.0, 6.0]).predict(np.zeros((1, 3)))[
            0
        ] == pytest.approx(3.0)


def test_sparse_rows_are_the_dense_ones():
    X, y = data()
    X[np.abs(X) < 0.5] = 0
    a, b = NadarayaWatson().fit(X, y), NadarayaWatson().fit(sp.csr_array(X), y)
    np.testing.assert_allclose(a.loo_errors_, b.loo_errors_)
    np.testing.assert_allclose(a.predict(X), b.predict(sp.csr_array(X)))


def test_threads_change_nothing():
    X, y = data(700)
    with limit(1):
        one = NadarayaWatson().fit(X, y)
        alone = one.predict(X)
    with limit(3):
        np.testing.assert_array_equal(alone, NadarayaWatson().fit(X, y).predict(X))


def test_memory_is_that_of_tiles():
    X, y = data(20_000)
    m = NadarayaWatson(Gaussian(0.3)).fit(X, y)
    m.predict(X[:300])
    tracemalloc.start()
    m.predict(X[:2000])
    m.votes(X[:300], 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # the matrix of all pairs would take 320 MB


def nearest(Z, X):
    """The nearest rows, by exact arithmetic."""
    rows = [[Fraction(float(v)) for v in x] for x in X]
    return [
        min(
            range(len(X)),
            key=lambda i: sum(
                (Fraction(float(a)) - b) ** 2 for a, b in zip(z, rows[i], strict=True)
            ),
        )
        for z in Z
    ]


def around(rng, size, n=4):
    U = rng.normal(size=(n, 2))
    return size * U / np.linalg.norm(U, axis=1, keepdims=True)


def answers(model, Z):
    """Predictions and the largest votes, which must tell the same."""
    with pytest.warns(FarAwayWarning, match="answered by the nearest points"):
        out = model.predict(Z)
    index, shares = model.votes(Z, len(model.smoothing_.rows))
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_allclose(
        (shares * np.asarray(model.smoother_.Y[:, 0])[index]).sum(1), out, atol=1e-9
    )
    return out


@pytest.mark.parametrize(
    "k",
    [Gaussian(1.0), Gaussian((1.0, 1.0)), 0.5 * Gaussian(1.0) + Gaussian(0.3)],
    ids=["one", "ard", "sum"],
)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_far_queries_find_the_exact_nearest(k, sparse, seed):
    rng = np.random.default_rng(seed)
    X, Z = (
        rng.normal(size=(60, 2)),
        np.concatenate([around(rng, d) for d in (1e6, 5e6, 1e7, 1e8, 1e9)]),
    )
    form = sp.csr_array if sparse else np.asarray
    m = NadarayaWatson(k).fit(form(X), np.arange(60.0))
    np.testing.assert_allclose(answers(m, form(Z)), nearest(Z, X), atol=1e-9)


@pytest.mark.parametrize("bandwidth", [2e-9, 1e-17, 1e-100, 1e-300])
@pytest.mark.parametrize("seed", range(3))
def test_the_narrowest_bandwidths_find_the_exact_nearest(bandwidth, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(60, 2)), rng.normal(size=(20, 2))
    m = NadarayaWatson(Gaussian(bandwidth)).fit(X, np.arange(60.0))
    np.testing.assert_allclose(answers(m, Z), nearest(Z, X), atol=1e-9)
    rest = [nearest(X[[i]], np.delete(X, i, 0))[0] for i in range(60)]  # left out, too
    np.testing.assert_allclose(
        m.loo_predictions_, [j + (j >= i) for i, j in enumerate(rest)], atol=1e-9
    )


@pytest.mark.parametrize("query", [0.0, 30.0, 1e4, 1e13, 1e20, 1e100, 1e160, 1e300])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "sum", "1-norm", "product"])
def test_all_shares_add_up_to_one_for_any_query(name, query):
    X, y = data(50)
    w = np.random.default_rng(0).integers(0, 3, 50)
    for weight in (None, w):
        index, shares = (
            NadarayaWatson(EXPRESSIONS[name]).fit(X, y, weight).votes([[query, 0.0, 0.0]], 50)
        )
        assert sorted(index[0]) == list(range(50))
        assert shares.sum() == pytest.approx(1.0)
        assert weight is None or not shares[0][w[index[0]] == 0].any()


@pytest.mark.parametrize("bandwidth", [1.0, 1e-3, 1e-30])
def test_a_weight_of_zero_is_no_row(bandwidth):
    X, y = data(40)
    w = np.where(np.arange(40) < 20, 0.0, 1.0)
    a, b = (
        NadarayaWatson(Gaussian(bandwidth)).fit(X, y, w),
        NadarayaWatson(Gaussian(bandwidth)).fit(X[20:], y[20:]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FarAwayWarning)
        np.testing.assert_allclose(a.predict(X), b.predict(X))
    np.testing.assert_array_equal(a.votes(X, 1)[0], b.votes(X, 1)[0] + 20)


@pytest.mark.parametrize("bandwidth", ["loo", "fixed"])
def test_the_largest_targets(bandwidth):
    X, _ = data(60)
    y = np.where(np.arange(60) % 3 == 0, 1.0, -1.0)
    big, small = (
        NadarayaWatson(Gaussian(), bandwidth=bandwidth).fit(X, s * y) for s in (1.7e308, 1.0)
    )
    np.testing.assert_allclose(big.predict(X) / 1.7e308, small.predict(X))
    np.testing.assert_allclose(big.loo_predictions_ / 1.7e308, small.loo_predictions_)
    assert big.loo_score_ == pytest.approx(small.loo_score_)
    with pytest.raises(ValueError, match="y is too large for float32"):
        NadarayaWatson().fit(X.astype(np.float32), 1e300 * y)
