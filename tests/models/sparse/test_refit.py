"""Refits: ridge and logistic regressions of scikit-learn, taken where folds prefer them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from mercer.inputs import Table
from mercer.lifts import Identity
from mercer.models.sparse.estimator import SparseRegressor
from mercer.models.sparse.folds import FoldModel, splits
from mercer.models.sparse.problem import SparseSettings, WeighedRows
from mercer.models.sparse.refit import PENALTIES, preferred, refits

RNG = np.random.default_rng(6)
X = RNG.normal(size=(90, 4)) * [1.0, 10.0, 0.1, 1.0] + [0, 5, 0, 100]
Y = X @ [1.0, 0.2, 0.0, -1.0] + RNG.normal(size=90)
W = RNG.integers(1, 4, size=90) / 1.0


def standard():
    mean = np.average(X, axis=0, weights=W)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=W))
    return (X - mean) / scale, mean, scale


@pytest.mark.parametrize("penalty", [1e-8, 0.1, 10.0])
def test_squared_loss_is_ridge_of_scikit_learn(penalty):
    coef, b0 = refits(X, WeighedRows.of(Table(X), Y, W, 0, None), [1.0, penalty])[1]
    A, mean, scale = standard()
    peer = Ridge(alpha=penalty * W.sum()).fit(A, Y, W)
    np.testing.assert_allclose(coef[0], peer.coef_ / scale, rtol=1e-9)
    assert b0[0] == pytest.approx(peer.intercept_ - mean @ (peer.coef_ / scale))


@pytest.mark.parametrize("penalty", [1e-4, 0.1])
def test_more_features_than_rows(penalty):
    F, y = RNG.normal(size=(12, 30)), RNG.normal(size=12)
    coef, b0 = refits(F, WeighedRows.of(Table(F), y, None, 0, None), [penalty])[0]
    A = (F - F.mean(0)) / F.std(0)
    peer = Ridge(alpha=penalty * 12).fit(A, y)
    np.testing.assert_allclose(F @ coef[0] + b0, peer.predict(A), rtol=1e-8)


@pytest.mark.parametrize("K", [2, 3])
def test_classes_are_logistic_regression_of_scikit_learn(K):
    codes = np.digitize(Y, np.quantile(Y, np.arange(1, K) / K))
    coef, b0 = refits(X, WeighedRows.of(Table(X), codes, W, K, None), [0.01])[0]
    A, _, scale = standard()
    peer = LogisticRegression(C=1 / (0.01 * W.sum()), tol=1e-10, max_iter=10_000).fit(A, codes, W)
    np.testing.assert_allclose(coef, peer.coef_ / scale, rtol=1e-3, atol=1e-4)
    f, theirs = X @ coef.T + b0, A @ peer.coef_.T + peer.intercept_
    off = f - theirs
    np.testing.assert_allclose(off - off.mean(1, keepdims=True) * (K > 2), 0, atol=1e-3)


def test_the_least_mean_loss_over_folds_decides():
    s = SparseSettings.of(SparseRegressor(Identity()))
    p = WeighedRows.of(Table(X), Y, W, 0, None)
    alphas = np.array([1.0, 0.3])
    folds = [FoldModel.of(s, p, at, alphas) for at in splits(s, p)]
    penalty, loss = preferred(folds, 1, np.inf)
    assert penalty in PENALTIES
    each = []
    for fold in folds:
        ids, _, _ = fold.path.at(1)
        coef, b0 = refits(fold.fitted.rows.data[:, ids], fold.fitted, [penalty])[0]
        f = fold.left.rows.data[:, ids] @ coef[0] + b0[0]
        each.append(np.average((f - fold.left.y) ** 2, weights=fold.left.w))
    assert loss == pytest.approx(np.mean(each))
    assert preferred(folds, 1, 0.99 * loss) == (None, 0.99 * loss)
    assert preferred(folds, 1, 1.01 * loss) == (penalty, loss)


def test_a_path_that_keeps_nothing_is_as_good_as_its_mean():
    s = SparseSettings.of(SparseRegressor(Identity()))
    p = WeighedRows.of(Table(X), Y, W, 0, None)
    folds = [FoldModel.of(s, p, at, np.array([1e6])) for at in splits(s, p)]
    own = float(np.mean([fold.losses()[0] for fold in folds]))
    assert preferred(folds, 0, own) == (None, own)
