"""The choice of a bandwidth by leaving rows out."""

import tracemalloc
import warnings

import numpy as np
import pytest

from mercer.kernels import Cauchy, Gaussian, Laplace, Linear, Matern, Periodic, exp
from mercer.kernels.defaults import scaled
from mercer.models.smoothing import FarAwayWarning, NadarayaWatson, SoftNeighborsClassifier

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
