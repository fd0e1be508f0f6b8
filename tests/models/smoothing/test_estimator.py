"""NadarayaWatson and SoftNeighborsClassifier: shares and confidences, odd data and settings,
refusals that change nothing."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Callable, Cauchy, Gaussian, Laplace, Linear, Matern, Periodic, exp
from mercer.models.smoothing import NadarayaWatson, SoftNeighborsClassifier

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


@pytest.mark.parametrize(
    "model",
    [NadarayaWatson(), SoftNeighborsClassifier(), NadarayaWatson(Matern(0.5))],
    ids=["regression", "classes", "matern"],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


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
        (dict(kernel="precomputed", bandwidth="loo"), "with a bandwidth"),
        (dict(scales=[0.0]), "scales must be a number > 0"),
        (dict(kernel="cosines"), "kernel must be"),
    ],
    ids=["bandwidth", "linear", "precomputed", "scales", "kernel"],
)
def test_wrong_settings_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        NadarayaWatson(**options).fit(np.abs(np.eye(3)), [1.0, 2.0, 3.0])


def test_odd_data():
    assert NadarayaWatson().fit([[1.0]], [4.0]).predict([[1.0], [1.0]]).tolist() == [4.0, 4.0]
    assert SoftNeighborsClassifier().fit(np.eye(3), ["a"] * 3).predict(
        [[0.0, 0.0, 0.0]]
    ).tolist() == ["a"]
    np.testing.assert_allclose(
        NadarayaWatson().fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 6.0]).predict(np.ones((1, 2))), 3.0
    )
    X, y = data()
    m = NadarayaWatson(Gaussian()).fit(X, y)
    np.testing.assert_allclose(
        NadarayaWatson(Gaussian()).fit(X, 1e300 * y).predict(X), 1e300 * m.predict(X)
    )
    np.testing.assert_allclose(
        NadarayaWatson().fit(1e-150 * X, y).predict(1e-150 * X),
        NadarayaWatson().fit(X, y).predict(X),
        rtol=1e-6,
    )
    np.testing.assert_allclose(NadarayaWatson().fit(X, np.full(len(X), 7.0)).predict(X), 7.0)
    with pytest.raises(ValueError, match="too large to square"):
        NadarayaWatson().fit(1e160 * X, y)
    with pytest.raises(ValueError, match="zero for every row"):
        NadarayaWatson().fit(X, y, np.zeros(len(X)))


BAD = {
    "scales": (dict(scales=[-1]), 1.0),
    "none": (dict(scales=[]), 1.0),
    "text": (dict(scales="x"), 1.0),
    "bandwidth": (dict(bandwidth="x"), 1.0),
    "array": (dict(bandwidth=np.array(["loo", "fixed"])), 1.0),
    "kernel": (dict(kernel="cosines"), 1.0),
    "huge": (dict(), 1e160),
    "linear": (dict(kernel=Linear(), bandwidth="loo"), 1.0),
    "random_state": (dict(random_state="x"), 1.0),
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
        (dict(scales=[]), "scales is empty; give one factor"),
        (dict(scales=np.zeros(0)), "scales is empty"),
        (dict(scales=[[1.0], [2.0, 3.0]]), r"scales must be a number > 0, got \[1.0\]"),
        (
            dict(bandwidth=np.array(["loo", "fixed"])),
            "bandwidth must be 'auto', 'loo' or 'fixed', got",
        ),
        (dict(bandwidth=np.zeros(1000)), "got 'a value of type ndarray'"),
        (dict(kernel=Gaussian(), scales=[-1.0]), "scales must be"),
    ],
    ids=["empty list", "empty array", "ragged", "bandwidths", "numbers", "unused"],
)
def test_odd_settings_are_refused_by_a_sentence(options, match):
    with pytest.raises(ValueError, match=match):
        NadarayaWatson(**options).fit(*data(30))


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


def test_the_fitted_kernel_reads_the_rows():
    X, y = data(50)
    m = NadarayaWatson(Gaussian()).fit(X, y)
    want = m.predict(X)
    np.testing.assert_array_equal(m.set_params(kernel="precomputed").predict(X), want)
    m.fit(Gaussian()(X), y)
    np.testing.assert_allclose(m.set_params(kernel=None).predict(Gaussian()(X)), want)
    assert m.fit(X, y).predict(X).shape == (50,)
