"""Rows left out: unknown where there is one, told where y is constant, and the penalties that they
choose."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.lifts import RandomFourier
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelRidge
from mercer.models.ridge.problem import RidgeSettings

rng = np.random.default_rng(0)
X60 = np.random.default_rng(0).normal(size=(60, 3))
y60 = X60[:, 0] + np.sin(X60[:, 1])


def test_models_that_go_through_the_rows_do_not_look_perfect_without_them():
    A = rng.normal(size=(30, 8))
    t = A[:, 0] + A[:, 1] ** 2
    options = dict(kernel=Gaussian(1.0), alpha=1e-6, via=Fourier(600), random_state=0)
    m = KernelRidge(**options, cv="loo").fit(A, t)
    for a, score in zip(RidgeSettings.of(m).grid()[::6], m.loo_scores_[::6], strict=True):
        one = KernelRidge(Gaussian(1.0), a, via=Fourier(600), random_state=0).fit(A, t)
        rest = [
            KernelRidge(lift=one.lift_.map_, alpha=a)
            .fit(np.delete(A, i, 0), np.delete(t, i))
            .predict(A[[i]])[0]
            for i in range(30)
        ]
        assert score == pytest.approx(1 - np.mean((t - rest) ** 2) / t.var(), abs=1e-4)
    low, high = (
        KernelRidge(**(options | dict(alpha=1e-12)))
        .fit(A, t)
        .predict_interval(A, 0.8, "jackknife+")
    )
    assert np.median(high - low) > 1


@pytest.mark.parametrize("via", ["exact", Fourier(20)], ids=repr)
def test_one_row_without_itself_is_unknown(via):
    m = KernelRidge(via=via, random_state=0).fit(X60[:1], y60[:1])
    assert np.isnan(m.loo_predictions_).all()
    with pytest.raises(ValueError, match="leave-one-out tells nothing"):
        KernelRidge(via=via, cv="loo", random_state=0).fit(X60[:1], y60[:1])


def test_penalties_of_their_own_have_left_out_rows():
    Y = np.column_stack([y60, y60**2])
    for via in ("exact", Fourier(20), Fourier(200)):
        both = KernelRidge(Gaussian(), [0.1, 10.0], via, random_state=0).fit(X60, Y)
        one = KernelRidge(Gaussian(), 10.0, via, random_state=0).fit(X60, Y[:, 1])
        np.testing.assert_allclose(both.loo_predictions_[:, 1], one.loo_predictions_, rtol=1e-6)


@pytest.mark.parametrize("via", ["exact", "iterative", Landmarks(30), Fourier(30)], ids=repr)
def test_the_unit_of_y_does_not_choose_the_penalty(via, monkeypatch):
    monkeypatch.setattr("mercer.models.ridge.problem.MOMENTS", 10)
    t = y60 + 0.3 * np.random.default_rng(3).normal(size=60)
    model = KernelRidge(Gaussian(), via=via, cv=3, alphas=[1e-3, 0.1, 10.0, 1e3], random_state=0)
    assert len({model.fit(X60, s * t).alpha_ for s in (1e-3, 1.0, 1e3)}) == 1


def test_a_constant_y_is_told_without_its_row():
    assert KernelRidge(via="exact").fit(X60, np.full(60, 3.0)).loo_score_ in (0.0, 1.0)


X = rng.normal(size=(240, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
w = rng.integers(0, 4, size=240).astype(float)
PHI = RandomFourier(Gaussian(1.5), 60, random_state=0)


def test_leave_one_out_is_n_refits():
    m = KernelRidge(lift=PHI, alpha=0.7).fit(X[:60], y[:60], w[:60] + 0.5)
    for i in range(0, 60, 7):
        keep = np.arange(60) != i
        one = KernelRidge(lift=PHI, alpha=0.7).fit(X[:60][keep], y[:60][keep], (w[:60] + 0.5)[keep])
        assert m.loo_predictions_[i] == pytest.approx(one.predict(X[i : i + 1])[0], abs=1e-7)
    assert m.loo_score_ < m.score(X[:60], y[:60])


def test_jackknife_plus_is_that_of_n_refits():
    n = 40
    m = KernelRidge(lift=PHI, alpha=2.0).fit(X[:n], y[:n])
    low, high = m.predict_interval(X[n : n + 5], coverage=0.8, method="jackknife+")
    models = [
        KernelRidge(lift=PHI, alpha=2.0).fit(np.delete(X[:n], i, 0), np.delete(y[:n], i))
        for i in range(n)
    ]
    r = np.array([abs(y[i] - models[i].predict(X[i : i + 1])[0]) for i in range(n)])
    mu = np.array([f.predict(X[n : n + 5]) for f in models])
    rank = int(np.ceil((n + 1) * 0.8))
    np.testing.assert_allclose(high, np.sort(mu + r[:, None], axis=0)[rank - 1], atol=1e-7)
    np.testing.assert_allclose(low, np.sort(mu - r[:, None], axis=0)[n - rank], atol=1e-7)
