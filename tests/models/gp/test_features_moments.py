"""Moments of Gaussian processes over features: nobody else's are changed, and plans count them."""

import copy

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.methods import Fourier, Landmarks
from mercer.models import GaussianProcessRegressor
from mercer.stats import Moments

GP = GaussianProcessRegressor


def data(n=60, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)


@pytest.mark.parametrize("via", [Fourier(40), Landmarks(15)])
def test_a_copy_that_goes_on_leaves_the_original(via):
    (X, y), (Z, zy) = data(60), data(30, seed=1)
    model = GP(Gaussian(0.8), 0.1, via, random_state=0).fit(X, y)
    before = model.predict(Z)
    copy.copy(model).partial_fit(Z, zy)
    assert model.moments_.count == 60
    np.testing.assert_array_equal(copy.deepcopy(model).predict(Z), before)


def test_a_batch_that_is_broken_off_leaves_the_model(monkeypatch):
    (X, y), (Z, zy) = data(60), data(30, seed=1)
    model = GP(Gaussian(0.8), 0.1, Fourier(40), random_state=0).fit(X, y)
    S = model.moments_.S.copy()

    def broken(self, batch):
        batch.S += self.S
        raise KeyboardInterrupt

    monkeypatch.setattr(Moments, "joined", broken)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(Z, zy)
    assert model.moments_.count == 60
    np.testing.assert_array_equal(model.moments_.S, S)


def test_plans_count_the_rows_of_models_that_forgot_or_merged():
    X, y = data(60)
    make = lambda: GP(Gaussian(0.8), 0.1, Fourier(20), random_state=0)
    assert make().fit(X, y).forget(X[:10], y[:10]).plan_.settings["rows"] == 50
    assert make().partial_fit(X, y).forget(X[:10], y[:10]).plan_.settings["rows"] == 50
    merged = make().fit(X[:20], y[:20]).merge(make().fit(X[20:], y[20:]))
    assert merged.plan_ == make().fit(X, y).plan_


def test_merging_keeps_what_is_known_of_rounding():
    X, y = data(60)
    make = lambda: GP(Gaussian(0.8), 0.1, Fourier(20), random_state=0)
    fine, coarse = make().fit(X, y), make().fit(X.astype(np.float32), 3 * y)
    merged = copy.copy(fine).merge(coarse)
    assert merged.moments_.held == 120
    assert merged.moments_.eps == coarse.moments_.eps > fine.moments_.eps
    assert merged.posterior_.eps == coarse.posterior_.eps
