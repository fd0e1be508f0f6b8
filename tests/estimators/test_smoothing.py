"""NadarayaWatson and SoftNeighborsClassifier: votes by proximity, exact far away, leave-one-out in one sweep."""
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import check_estimator

from mercer.estimators.smoothing import FarAwayWarning, NadarayaWatson, SoftNeighborsClassifier
from mercer.kernels import Callable, Cauchy, Gaussian, Laplace, Linear, Matern, Periodic, exp
from mercer.kernels.stretch import scaled
from mercer.ops.threads import limit

EXPRESSIONS = {
    "gaussian": Gaussian(0.7), "ard": Gaussian((0.4, 0.8, 1.6)), "laplace": Laplace(0.5), "1-norm": Laplace(0.5, norm=1),
    "sum": 0.5 * Gaussian(0.3) + Cauchy(), "product": Matern(1.0) * Gaussian().on_columns([0, 2]), "periodic": Periodic(),
    "exponential": exp(Linear()), "square": (Linear() + 1) ** 2,
}


def data(n=150, seed=0, q=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 0.1 * rng.normal(size=(n, 2))
    return X, Y if q else Y[:, 0]


def plainly(K, y, w=1.0):
    return (K * w) @ y / (K * w).sum(1)[(...,) + (None,) * (np.ndim(y) - 1)]


@pytest.mark.parametrize(
    "model", [NadarayaWatson(), SoftNeighborsClassifier(), NadarayaWatson(Matern(0.5))], ids=["regression", "classes", "matern"],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("q", [None, 2])
def test_the_formula(name, q):
    (X, y), (Z, _), k = data(q=q), data(40, 1), EXPRESSIONS[name]
    w = np.random.default_rng(2).uniform(0, 3, len(X))
    np.testing.assert_allclose(NadarayaWatson(k).fit(X, y).predict(Z), plainly(k(Z, X), y), atol=1e-9)
    np.testing.assert_allclose(NadarayaWatson(k).fit(X, y, w).predict(Z), plainly(k(Z, X), y, w), atol=1e-9)
    m = NadarayaWatson("precomputed").fit(k(X), y, w)
    np.testing.assert_allclose(m.predict(k(Z, X)), plainly(k(Z, X), y, w), atol=1e-9)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_votes_are_shares(name):
    (X, y), (Z, _), k = data(), data(10, 1), EXPRESSIONS[name]
    m = NadarayaWatson(k).fit(X, y)
    index, shares = m.votes(Z, len(X))
    P = k(Z, X) / k(Z, X).sum(1, keepdims=True)
    np.testing.assert_allclose(shares, np.take_along_axis(P, index, 1), atol=1e-9)
    np.testing.assert_allclose((shares * y[index]).sum(1), m.predict(Z), atol=1e-9)
    assert (np.diff(shares, axis=1) <= 0).all()
    np.testing.assert_array_equal(m.votes(Z, 3)[0], index[:, :3])


def test_votes_over_many_tiles():
    X, y = data(3000)
    index, shares = SoftNeighborsClassifier(Gaussian(0.5)).fit(X, y > 0).votes(X[:20], 4)
    assert index[:, 0].tolist() == list(range(20))
    P = Gaussian(0.5)(X[:20], X)
    np.testing.assert_allclose(shares, -np.sort(-P / P.sum(1, keepdims=True), axis=1)[:, :4])


@pytest.mark.parametrize("name", ["gaussian", "ard", "laplace", "1-norm", "sum", "product"])
def test_leave_one_out_is_n_refits(name):
    X, y = data(60)
    k = EXPRESSIONS[name]
    w = np.random.default_rng(0).uniform(0.5, 2, 60)
    scales = [0.01, 0.5, 1.0, 3.0]
    m = NadarayaWatson(k, bandwidth="loo", scales=scales).fit(X, y, w)

    def refit(c, i):
        rest = np.arange(60) != i
        return NadarayaWatson(scaled(k, c)).fit(X[rest], y[rest], w[rest]).predict(X[[i]])[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FarAwayWarning)
        refits = np.array([[refit(c, i) for i in range(60)] for c in scales])
    errors = np.square(refits - y) @ w / w.sum() / m.smoother_.scale**2
    np.testing.assert_allclose(m.loo_errors_, errors, rtol=1e-6)
    assert m.kernel_ == scaled(k, scales[int(errors.argmin())])
    np.testing.assert_allclose(m.loo_predictions_, refits[errors.argmin()], atol=1e-7)


def test_a_weight_of_two_is_two_rows():
    X, y = data(80)
    a = NadarayaWatson().fit(X, y, np.where(np.arange(80) < 30, 2.0, 1.0))
    b = NadarayaWatson().fit(np.vstack([X, X[:30]]), np.concatenate([y, y[:30]]))
    np.testing.assert_allclose(a.loo_errors_, b.loo_errors_)
    np.testing.assert_allclose(a.predict(X), b.predict(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_chosen_bandwidth_learns(dtype):
    X, y = data(600)
    m = NadarayaWatson().fit(X.astype(dtype), y)
    assert m.predict(X.astype(dtype)).dtype == dtype
    assert m.loo_score_ > 0.8 > NadarayaWatson(bandwidth="fixed").fit(X, y).loo_score_
    assert "by leave-one-out" in str(m.plan_)


def test_only_some_rows_are_left_out_of_many(monkeypatch):
    monkeypatch.setattr("mercer.estimators.smoothing.LOO_PAIRS", 10_000)
    monkeypatch.setattr("mercer.estimators.smoothing.LOO_ROWS", 50)
    X, y = data(500)
    a, b = (NadarayaWatson(random_state=0).fit(X, y) for _ in range(2))
    assert a.plan_.settings["rows left out"] == 50
    np.testing.assert_array_equal(a.loo_errors_, b.loo_errors_)
    assert a.loo_score_ > 0.7


@pytest.mark.parametrize(
    "k", [Gaussian(1.0), 0.5 * Gaussian(1.0) + 2 * Gaussian(0.3), Matern(0.7, nu=2.5), Matern(0.7, nu=0.8), Laplace(1.0)], ids=repr,
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
    gap = (k.parameters()["bandwidth"] if isinstance(k, Matern | Laplace) else 0.0)
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
    m, peer = SoftNeighborsClassifier(Gaussian(bandwidth)).fit(X, y), KNeighborsClassifier(1).fit(X, y)
    with pytest.warns(FarAwayWarning):
        np.testing.assert_array_equal(m.predict(Z), peer.predict(Z))
    np.testing.assert_array_equal(m.predict(X), peer.predict(X))


def test_bandwidth_to_infinity_is_the_mean():
    X, y = data()
    np.testing.assert_allclose(NadarayaWatson(Gaussian(1e6)).fit(X, y).predict(X), y.mean(), atol=1e-9)


def test_no_votes_at_all_are_equal_votes():
    K = np.eye(3)
    with pytest.warns(FarAwayWarning):
        assert NadarayaWatson("precomputed").fit(K, [1.0, 2.0, 6.0]).predict(np.zeros((1, 3)))[0] == pytest.approx(3.0)


def test_negative_votes_are_refused():
    X, y = data(30)
    for model, rows in ((NadarayaWatson(Linear()), X), (NadarayaWatson("precomputed"), Linear()(X))):
        with pytest.raises(ValueError, match="negative for some pairs"):
            model.fit(rows, y).predict(rows)
    np.testing.assert_allclose(NadarayaWatson(Linear()).fit(np.abs(X), y).predict(np.abs(X)), plainly(Linear()(np.abs(X)), y), atol=1e-9)


def test_confidences():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    m = SoftNeighborsClassifier(Gaussian(0.5)).fit(X, names)
    K = Gaussian(0.5)(X)
    np.testing.assert_allclose(m.predict_proba(X), plainly(K, np.eye(3)[y]), atol=1e-9)
    sign = SoftNeighborsClassifier(Gaussian(0.5)).fit(X, np.where(y == 0, -1, 1)).predict(X)
    np.testing.assert_array_equal(sign, np.sign(K @ np.where(y == 0, -1, 1)))
    auto = SoftNeighborsClassifier().fit(X, y)
    assert auto.loo_score_ > 0.94
    np.testing.assert_allclose(auto.loo_confidences_.sum(1), 1)


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


def overlap(X, Z):
    return np.array([[float(len(set(a) & set(b))) for b in Z] for a in X])


def test_items_are_compared_by_their_kernel():
    class Overlap(Callable):
        items = True

    m = SoftNeighborsClassifier(Overlap(overlap)).fit(["abc", "abd", "xyz"], ["a", "a", "x"])
    assert m.predict(["abq", "xyq"]).tolist() == ["a", "x"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(bandwidth=2.0), "bandwidth must be 'auto', 'loo' or 'fixed', got 2.0"),
        (dict(kernel="linear", bandwidth="loo"), "with a bandwidth"),
        (dict(kernel="precomputed", bandwidth="loo"), "with a bandwidth"), (dict(scales=[0.0]), "scales must be a number > 0"),
        (dict(kernel="cosine"), "kernel must be"),
    ],
    ids=["bandwidth", "linear", "precomputed", "scales", "kernel"],
)
def test_wrong_settings_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        NadarayaWatson(**options).fit(np.abs(np.eye(3)), [1.0, 2.0, 3.0])


def test_odd_data():
    assert NadarayaWatson().fit([[1.0]], [4.0]).predict([[1.0], [1.0]]).tolist() == [4.0, 4.0]
    assert SoftNeighborsClassifier().fit(np.eye(3), ["a"] * 3).predict([[0.0, 0.0, 0.0]]).tolist() == ["a"]
    np.testing.assert_allclose(NadarayaWatson().fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 6.0]).predict(np.ones((1, 2))), 3.0)
    X, y = data()
    m = NadarayaWatson(Gaussian()).fit(X, y)
    np.testing.assert_allclose(NadarayaWatson(Gaussian()).fit(X, 1e300 * y).predict(X), 1e300 * m.predict(X))
    np.testing.assert_allclose(NadarayaWatson().fit(1e-150 * X, y).predict(1e-150 * X), NadarayaWatson().fit(X, y).predict(X), rtol=1e-6)
    np.testing.assert_allclose(NadarayaWatson().fit(X, np.full(len(X), 7.0)).predict(X), 7.0)
    with pytest.raises(ValueError, match="too large to square"):
        NadarayaWatson().fit(1e160 * X, y)
    with pytest.raises(ValueError, match="zero for every row"):
        NadarayaWatson().fit(X, y, np.zeros(len(X)))


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
