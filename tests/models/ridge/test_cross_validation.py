"""Folds: refits without them, in any splitter's words."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from mercer.kernels import Gaussian
from mercer.lifts import RandomFourier
from mercer.linalg.cholesky import Cholesky
from mercer.linalg.least_squares import exact
from mercer.models import KernelRidge
from mercer.models.ridge.cross_validation import Inverses, dual_loo_errors
from mercer.models.ridge.problem import RidgeSettings
from mercer.operators import KernelOperator
from mercer.stats import row_hashes

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
PHI = RandomFourier(Gaussian(1.5), 60, random_state=0)


def refit(X, y, alpha, sample_weight=None, **options):
    """scikit-learn's Ridge over the same features."""
    F = PHI.fit(X).transform(X)
    return Ridge(alpha, **options).fit(F, y, sample_weight)


def test_total_less_a_fold_is_a_refit_without_the_fold():
    m = KernelRidge(lift=PHI, cv=3).fit(X, y)
    folds, alphas = row_hashes(X) % np.uint64(3), [0.01, 1.0, 100.0]
    for j in range(3):
        for i, a in enumerate(alphas):
            peer = refit(X[folds != j], y[folds != j], a)
            score = peer.score(PHI.fit(X).transform(X[folds == j]), y[folds == j])
            assert m.cv_scores(alphas)[i, j] == pytest.approx(score, abs=1e-6)
    assert m.alpha_ in RidgeSettings.of(m).grid()


def test_folds_by_position():
    splits = [
        (np.arange(80, 240), np.arange(80)),
        (np.r_[0:80, 160:240], np.arange(80, 160)),
        (np.arange(160), np.arange(160, 240)),
    ]
    m = KernelRidge(lift=PHI, cv=splits).fit(X, y)
    peer = refit(X[80:], y[80:], 1.0).score(PHI.fit(X).transform(X[:80]), y[:80])
    assert m.cv_scores([1.0])[0, 0] == pytest.approx(peer, abs=1e-6)


def test_a_splitter_is_its_positions():
    split = KFold(3, shuffle=True, random_state=0)
    ours = KernelRidge(lift=PHI, cv=split).fit(X, y).cv_scores([1.0])
    np.testing.assert_allclose(
        ours, KernelRidge(lift=PHI, cv=list(split.split(X))).fit(X, y).cv_scores([1.0])
    )
    with pytest.raises(ValueError, match="do not serve a stream"):
        KernelRidge(lift=PHI, cv=split).partial_fit(X, y)


def test_a_fold_of_one_row_does_not_choose_the_penalty():
    m = KernelRidge(lift=PHI, cv=KFold(40)).fit(X[:40], y[:40])
    assert np.isnan(m.cv_scores([1.0])).all()  # one row has no spread
    F = PHI.fit(X).transform(X[:40])
    errors = {
        a: sum(
            (y[i] - Ridge(a).fit(np.delete(F, i, 0), np.delete(y[:40], i)).predict(F[i : i + 1])[0])
            ** 2
            for i in range(40)
        )
        for a in RidgeSettings.of(m).grid()
    }
    assert m.alpha_ == pytest.approx(min(errors, key=errors.get))


def data(n=60, q=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[n // 2] = X[0]
    return (
        X,
        np.column_stack([np.sin(X[:, 0]) + 5, X[:, 1] ** 2])[:, :q] + 0.1 * rng.normal(size=(n, q)),
        rng.uniform(0.2, 3, size=n),
    )


def predict(kernel, X, s, Z):
    return kernel(Z, X) @ s.coef + s.intercept


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_leave_one_out_by_formula_is_n_refits(intercept, weighted, alpha):
    X, Y, w = data(25)
    w = w if weighted else np.ones(25)
    w[[3, 7]] = 0 if weighted else 1
    op = KernelOperator(Gaussian(1.5), X)
    loo = exact(op, Y, alpha, w, intercept=intercept, solver=Cholesky(), loo=True).loo
    for i in range(25):
        rest = np.arange(25) != i
        s = exact(
            KernelOperator(Gaussian(1.5), X[rest]),
            Y[rest],
            alpha,
            w[rest],
            intercept=intercept,
            solver=Cholesky(),
        )
        np.testing.assert_allclose(
            loo[i], (Y[[i]] - predict(Gaussian(1.5), X[rest], s, X[[i]]))[0], atol=1e-8
        )
    on = np.flatnonzero(w)
    inverses, alphas = (
        Inverses.of(KernelOperator(Gaussian(1.5), X[on]), w[on], intercept=intercept),
        np.array([alpha, 10 * alpha]),
    )
    for a, e in zip(alphas, dual_loo_errors(inverses, Y[on], w[on], alphas), strict=True):
        loo = exact(op, Y, a, w, intercept=intercept, solver=Cholesky(), loo=True).loo
        np.testing.assert_allclose(e, np.average(loo**2, axis=0, weights=w), rtol=1e-7)


def test_leave_one_out_finds_the_bandwidth():
    found = set()
    for seed in range(5):
        X, Y, _ = data(120, seed=seed)
        widths = [0.05, 1.5, 80.0]
        inverses = [
            Inverses.of(KernelOperator(Gaussian(b), X), np.ones(120), intercept=True)
            for b in widths
        ]
        errors = np.stack(
            [dual_loo_errors(v, Y, np.ones(120), np.array([1e-2, 1.0])) for v in inverses]
        )
        assert errors.shape == (3, 2, 2)
        found.add(widths[int(errors.mean((1, 2)).argmin())])
    assert found == {1.5}
