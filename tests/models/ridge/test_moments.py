"""Ridge by moments: streams that solve when asked, rows that are forgotten or weigh nothing."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.lifts import Identity, RandomFourier
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelRidge

X60 = np.random.default_rng(0).normal(size=(60, 3))
y60 = X60[:, 0] + np.sin(X60[:, 1])


def test_streams_solve_when_asked():
    m = KernelRidge(via=Fourier(16), cv=5, random_state=0).partial_fit(
        X60[:1], y60[:1]
    )  # one row has no folds yet
    with pytest.raises(ValueError, match="fewer than two folds have rows"):
        _ = m.alpha_
    m.partial_fit(X60, y60)
    assert m.score(X60, y60) > 0.5
    assert m.plan_.settings["rows"] == 61


@pytest.mark.parametrize("order", [1, -1])
def test_a_model_does_not_forget_all_that_counts(order):
    m = KernelRidge(via=Fourier(64), random_state=0).fit(X60, y60, np.r_[np.ones(30), np.zeros(30)])
    with pytest.raises(ValueError, match="cannot forget"):
        m.forget(X60[:30][::order], y60[:30][::order])


@pytest.mark.parametrize("via", ["exact", Fourier(20), Landmarks(10)], ids=repr)
def test_rows_of_weight_zero_are_as_absent(via):
    some = np.r_[np.ones(40), np.zeros(20)]
    a, b = (
        KernelRidge(via=via, random_state=0).fit(X60, y60, some),
        KernelRidge(via=via, random_state=0).fit(X60[:40], y60[:40]),
    )
    np.testing.assert_allclose(a.predict(X60), b.predict(X60), rtol=1e-9)
    for method in ("split", "jackknife+"):
        np.testing.assert_allclose(
            a.predict_interval(X60, 0.8, method), b.predict_interval(X60, 0.8, method), rtol=1e-9
        )
    np.testing.assert_allclose(
        a.loo_predictions_, np.r_[b.loo_predictions_, b.predict(X60[40:])], rtol=1e-9
    )


def test_large_coefficients_keep_their_digits_at_float32_rows():
    A = np.linspace(0, 6, 200)[:, None]
    m = KernelRidge(Gaussian(1.0), 1e-9).fit(A, np.sin(A[:, 0]))
    np.testing.assert_allclose(m.predict(A.astype(np.float32)), np.sin(A[:, 0]), atol=2e-4)


rng = np.random.default_rng(0)
X = rng.normal(size=(240, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
w = rng.integers(0, 4, size=240).astype(float)
PHI = RandomFourier(Gaussian(1.5), 60, random_state=0)


def test_streams_batches_and_merged_models_are_the_whole():
    whole = KernelRidge(lift=PHI, cv=4).fit(X, y, w)
    stream = KernelRidge(lift=PHI, cv=4)
    for i in range(0, 240, 70):
        stream.partial_fit(X[i : i + 70], y[i : i + 70], w[i : i + 70])
    left, right = (
        KernelRidge(lift=PHI, cv=4).fit(X[s], y[s], w[s]) for s in (slice(0, 90), slice(90, 240))
    )
    for other in (stream, left.merge(right)):
        np.testing.assert_allclose(other.predict(X), whole.predict(X), rtol=1e-7)
        np.testing.assert_allclose(
            other.cv_scores([0.1, 1.0]), whole.cv_scores([0.1, 1.0]), rtol=1e-7
        )
        assert other.alpha_ == whole.alpha_


def test_forgotten_rows_leave_no_trace():
    m = KernelRidge(lift=PHI, alpha=0.3, cv=3).fit(X, y)
    m.forget(X[:50], y[:50])
    rest = KernelRidge(lift=PHI, alpha=0.3, cv=3).fit(X[50:], y[50:])
    np.testing.assert_allclose(m.predict(X), rest.predict(X), rtol=1e-7)


def test_a_row_of_1e8_is_forgotten_to_the_stated_rounding():
    phi = Identity()
    m = KernelRidge(lift=phi, alpha=1.0).fit(X, y)
    before = m.moments_[0].S.copy()
    m.partial_fit(np.full((1, 3), 1e8), [1.0])
    m.forget(np.full((1, 3), 1e8), [1.0])
    assert np.abs(m.moments_[0].S - before).max() <= m.rounding_
    assert m.rounding_ < 100  # of sums that held 1e16


def test_maps_with_random_states_of_their_own_do_not_merge():
    a, b = (KernelRidge(lift=RandomFourier(Gaussian(), 20)).fit(X, y) for _ in range(2))
    with pytest.raises(ValueError, match="different feature maps"):
        a.merge(b)


def test_rows_never_seen_are_not_forgotten():
    m = KernelRidge(lift=PHI, alpha=0.3).fit(X[:120], y[:120])
    before = m.predict(X)
    with pytest.raises(ValueError, match="not all taken in"):
        m.forget(X[120:200] + 5, y[120:200])
    np.testing.assert_array_equal(m.predict(X), before)


def test_float32_rows_keep_the_digits_of_y():
    far = 1e8 + y
    m = KernelRidge(lift=PHI, alpha=0.1).fit(X.astype("f4"), far)
    near = KernelRidge(lift=PHI, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(
        m.intercept_ + m.lift_.transform(X) @ m.coef_ - 1e8, near.predict(X), atol=5e-3
    )
