"""NadarayaWatson and SoftNeighborsClassifier: votes by proximity, exact far away, leave-one-out in one sweep."""
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Callable, Cauchy, Gaussian, Laplace, Linear, Matern, Periodic, exp
from mercer.kernels.defaults import scaled
from mercer.models.smoothing import FarAwayWarning, NadarayaWatson, SoftNeighborsClassifier
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
    errors = np.square(refits - y) @ w / w.sum() / (2 * m.smoother_.half) ** 2
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
    monkeypatch.setattr("mercer.models.smoothing.bandwidths.LOO_PAIRS", 10_000)
    monkeypatch.setattr("mercer.models.smoothing.bandwidths.LOO_ROWS", 50)
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


def nearest(Z, X):
    """The nearest rows, by exact arithmetic."""
    rows = [[Fraction(float(v)) for v in x] for x in X]
    return [min(range(len(X)), key=lambda i: sum((Fraction(float(a)) - b) ** 2 for a, b in zip(z, rows[i], strict=True))) for z in Z]


def around(rng, size, n=4):
    U = rng.normal(size=(n, 2))
    return size * U / np.linalg.norm(U, axis=1, keepdims=True)


def answers(model, Z):
    """Predictions and the largest votes, which must tell the same."""
    with pytest.warns(FarAwayWarning, match="answered by the nearest points"):
        out = model.predict(Z)
    index, shares = model.votes(Z, len(model.smoothing_.rows))
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_allclose((shares * np.asarray(model.smoother_.Y[:, 0])[index]).sum(1), out, atol=1e-9)
    return out


@pytest.mark.parametrize("k", [Gaussian(1.0), Gaussian((1.0, 1.0)), 0.5 * Gaussian(1.0) + Gaussian(0.3)], ids=["one", "ard", "sum"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_far_queries_find_the_exact_nearest(k, sparse, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(60, 2)), np.concatenate([around(rng, d) for d in (1e6, 5e6, 1e7, 1e8, 1e9)])
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
    np.testing.assert_allclose(m.loo_predictions_, [j + (j >= i) for i, j in enumerate(rest)], atol=1e-9)


@pytest.mark.parametrize("query", [0.0, 30.0, 1e4, 1e13, 1e20, 1e100, 1e160, 1e300])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "sum", "1-norm", "product"])
def test_all_shares_add_up_to_one_for_any_query(name, query):
    X, y = data(50)
    w = np.random.default_rng(0).integers(0, 3, 50)
    for weight in (None, w):
        index, shares = NadarayaWatson(EXPRESSIONS[name]).fit(X, y, weight).votes([[query, 0.0, 0.0]], 50)
        assert sorted(index[0]) == list(range(50))
        assert shares.sum() == pytest.approx(1.0)
        assert weight is None or not shares[0][w[index[0]] == 0].any()


@pytest.mark.parametrize("bandwidth", [1.0, 1e-3, 1e-30])
def test_a_weight_of_zero_is_no_row(bandwidth):
    X, y = data(40)
    w = np.where(np.arange(40) < 20, 0.0, 1.0)
    a, b = NadarayaWatson(Gaussian(bandwidth)).fit(X, y, w), NadarayaWatson(Gaussian(bandwidth)).fit(X[20:], y[20:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FarAwayWarning)
        np.testing.assert_allclose(a.predict(X), b.predict(X))
    np.testing.assert_array_equal(a.votes(X, 1)[0], b.votes(X, 1)[0] + 20)


@pytest.mark.parametrize("precomputed", [False, True])
def test_votes_of_zero_are_told_as_such(precomputed):
    X, y, Z = np.array([[1.0, 0, 0], [2.0, 0, 0]]), np.array([1.0, 3.0]), np.array([[0.0, 1.0, 0], [1.0, 0, 0], [0, 0, 5.0]])
    k = Linear() ** 2
    m = NadarayaWatson("precomputed").fit(k(X), y) if precomputed else NadarayaWatson(k).fit(X, y)
    with pytest.warns(FarAwayWarning) as told:
        out = m.predict(k(Z, X) if precomputed else Z)
    assert str(told[0].message) == "2 of 3 queries have only votes of zero; they are answered by all training points equally."
    np.testing.assert_allclose(out, [2.0, 2.6, 2.0])
    np.testing.assert_allclose(m.votes(k(Z, X) if precomputed else Z, 2)[1], [[0.5, 0.5], [0.8, 0.2], [0.5, 0.5]])


def test_votes_of_none_go_by_weight():
    m = NadarayaWatson("precomputed").fit(np.eye(3), [1.0, 2.0, 6.0], [1.0, 3.0, 2.0])
    index, shares = m.votes(np.zeros((1, 3)), 2)
    assert index.tolist() == [[1, 2]]
    np.testing.assert_allclose(shares, [[1 / 2, 1 / 3]])


BAD = {
    "scales": (dict(scales=[-1]), 1.0), "none": (dict(scales=[]), 1.0), "text": (dict(scales="x"), 1.0),
    "bandwidth": (dict(bandwidth="x"), 1.0),
    "array": (dict(bandwidth=np.array(["loo", "fixed"])), 1.0), "kernel": (dict(kernel="cosine"), 1.0), "huge": (dict(), 1e160),
    "linear": (dict(kernel=Linear(), bandwidth="loo"), 1.0), "random_state": (dict(random_state="x"), 1.0),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("model", [NadarayaWatson, SoftNeighborsClassifier])
def test_a_refused_fit_changes_nothing(model, fitted, name, monkeypatch):
    monkeypatch.setattr("mercer.models.smoothing.bandwidths.LOO_PAIRS", 10)
    monkeypatch.setattr("mercer.models.smoothing.bandwidths.LOO_ROWS", 10)
    X, y = data(30)
    m = model(random_state=0).fit(X, y > 0) if fitted else model()
    m.set_params(**BAD[name][0])
    before = dict(vars(m))
    with pytest.raises(ValueError, match=r"\.$|RandomState"):
        m.fit(BAD[name][1] * X[:, :2], y > 0)
    assert list(vars(m)) == list(before)
    assert all(vars(m)[key] is before[key] for key in before)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(scales=[]), "scales is empty; give one factor"), (dict(scales=np.zeros(0)), "scales is empty"),
        (dict(scales=[[1.0], [2.0, 3.0]]), r"scales must be a number > 0, got \[1.0\]"),
        (dict(bandwidth=np.array(["loo", "fixed"])), "bandwidth must be 'auto', 'loo' or 'fixed', got"),
        (dict(bandwidth=np.zeros(1000)), "got 'a value of type ndarray'"), (dict(kernel=Gaussian(), scales=[-1.0]), "scales must be"),
    ],
    ids=["empty list", "empty array", "ragged", "bandwidths", "numbers", "unused"],
)
def test_odd_settings_are_refused_by_a_sentence(options, match):
    with pytest.raises(ValueError, match=match):
        NadarayaWatson(**options).fit(*data(30))


def test_a_fixed_refit_forgets_the_choice():
    X, y = data(50)
    m = NadarayaWatson().fit(X, y)
    assert len(m.scales_) == len(m.loo_errors_) == 19
    m.set_params(bandwidth="fixed").fit(X, y)
    assert not hasattr(m, "scales_")
    assert not hasattr(m, "loo_errors_")


def test_memory_of_the_choice_does_not_grow_with_scales_rows_and_classes():
    X = np.random.default_rng(0).normal(size=(1200, 2))
    tracemalloc.start()
    SoftNeighborsClassifier().fit(X, np.repeat(np.arange(400), 3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # 19 x 1200 x 401 sums alone would take 73 MB


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("model", [NadarayaWatson, SoftNeighborsClassifier])
def test_what_the_caller_does_to_his_arrays_changes_nothing(model, sparse):
    X, y = data(50)
    y = (y > 0).astype(float)
    rows = sp.csr_array(X) if sparse else X.copy()
    m = model(Gaussian()).fit(rows, y)
    want = model(Gaussian()).fit(X, y.copy()).predict(X)
    (rows.data if sparse else rows)[:] = 7
    y[:] = 5
    np.testing.assert_allclose(m.predict(X), want)


def test_large_rows_are_not_copied(monkeypatch):
    monkeypatch.setattr("mercer.models.smoothing.bandwidths.COPIED", 100)
    X, y = data(50)
    assert np.shares_memory(NadarayaWatson(Gaussian()).fit(X, y).smoothing_.rows.data, X)


@pytest.mark.parametrize("bandwidth", ["loo", "fixed"])
def test_the_largest_targets(bandwidth):
    X, _ = data(60)
    y = np.where(np.arange(60) % 3 == 0, 1.0, -1.0)
    big, small = (NadarayaWatson(Gaussian(), bandwidth=bandwidth).fit(X, s * y) for s in (1.7e308, 1.0))
    np.testing.assert_allclose(big.predict(X) / 1.7e308, small.predict(X))
    np.testing.assert_allclose(big.loo_predictions_ / 1.7e308, small.loo_predictions_)
    assert big.loo_score_ == pytest.approx(small.loo_score_)
    with pytest.raises(ValueError, match="y is too large for float32"):
        NadarayaWatson().fit(X.astype(np.float32), 1e300 * y)


def test_the_fitted_kernel_reads_the_rows():
    X, y = data(50)
    m = NadarayaWatson(Gaussian()).fit(X, y)
    want = m.predict(X)
    np.testing.assert_array_equal(m.set_params(kernel="precomputed").predict(X), want)
    m.fit(Gaussian()(X), y)
    np.testing.assert_allclose(m.set_params(kernel=None).predict(Gaussian()(X)), want)
    assert m.fit(X, y).predict(X).shape == (50,)


def test_values_too_large_for_votes_are_refused():
    m = NadarayaWatson(exp(Linear())).fit([[1.0], [2.0]], [1.0, 2.0])
    for ask in (m.predict, m.votes):
        with pytest.raises(ValueError, match="too large"):
            ask([[1.7e308]])
    with pytest.raises(ValueError, match="too large"):
        NadarayaWatson(exp(Linear()) * Gaussian(1e200), bandwidth="loo").fit([[1e200], [2e200]], [1.0, 2.0])
