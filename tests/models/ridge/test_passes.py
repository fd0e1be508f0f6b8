"""Ridge by passes over the rows."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer.kernels import Gaussian
from mercer.lifts import Identity, RandomFourier
from mercer.models import KernelRidge

X60 = np.random.default_rng(0).normal(size=(60, 3))
y60 = X60[:, 0] + np.sin(X60[:, 1])


def test_intervals_after_passes():
    m = KernelRidge(lift=Identity(), alpha=0.1, memory_limit=10).fit(X60, y60)
    assert m.plan_.way == "conjugate gradients"
    right = KernelRidge(lift=Identity(), alpha=0.1).fit(X60, y60)
    np.testing.assert_allclose(m.predict_interval(X60), right.predict_interval(X60), atol=1e-4)
    with pytest.raises(ValueError, match="cv='loo' over features needs"):
        KernelRidge(lift=Identity(), cv="loo", memory_limit=10).fit(X60, y60)


rng = np.random.default_rng(0)
X = rng.normal(size=(240, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
w = rng.integers(0, 4, size=240).astype(float)
PHI = RandomFourier(Gaussian(1.5), 60, random_state=0)


def test_too_many_features_for_their_square_take_passes_instead():
    exact = KernelRidge(lift=PHI, alpha=0.3).fit(X, y, w)
    passes = KernelRidge(lift=PHI, alpha=0.3, memory_limit=1000).fit(X, y, w)
    np.testing.assert_allclose(passes.predict(X), exact.predict(X), atol=1e-4)
    assert passes.plan_.way == "conjugate gradients"
    assert passes.residual_ <= 1e-6
    assert exact.plan_.way == "features"
    with pytest.raises(
        AttributeError, match="leave-one-out over features needs their D x D statistics"
    ):
        _ = passes.loo_score_


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_folds_by_passes_are_those_of_the_moments(outputs, intercept):
    Y = 1e3 + (y if outputs == 1 else np.column_stack([y, y**2]))
    grid = [0.1, 1.0, 10.0]
    options = dict(lift=PHI, cv=3, alphas=grid, fit_intercept=intercept, tol=1e-10)
    exact, passes = (
        KernelRidge(**options, memory_limit=limit).fit(X, Y, w) for limit in (None, 20_000)
    )
    np.testing.assert_allclose(passes.cv_scores([0.3, 3.0]), exact.cv_scores([0.3, 3.0]), atol=1e-5)
    assert passes.alpha_ == exact.alpha_
    assert passes.plan_.way == "conjugate gradients"
    np.testing.assert_allclose(passes.predict(X), exact.predict(X), rtol=1e-6)


def test_passes_stop_where_asked_and_say_so():
    with pytest.warns(ConvergenceWarning, match="stopped at a residual of"):
        m = KernelRidge(lift=PHI, alpha=1e-6, memory_limit=1000, max_iter=3).fit(X, y)
    assert m.residual_ > 1e-6
    assert KernelRidge(lift=PHI, alpha=1.0, memory_limit=1000, tol=1e-3).fit(X, y).residual_ <= 1e-3
