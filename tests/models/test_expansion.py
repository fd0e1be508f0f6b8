"""Answers for float32 rows keep their digits where large coefficients cancel."""

import numpy as np
import pytest

from mercer import KernelPCA, KernelRidge, KernelSVC, KernelSVR
from mercer.kernels import Gaussian, Laplace, Polynomial
from mercer.models import expansion

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (300, 2)).astype(np.float32)
X[150:160] = X[:10]  # copies
Y = (np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=300)).astype(np.float32)
TEST = np.concatenate([X[:40], rng.uniform(-3, 3, (80, 2)).astype(np.float32)])
K = Gaussian(1.0)


def wanted(k, points, coef, intercept):
    values = k(TEST.astype(np.float64), points.astype(np.float64))
    return values @ np.asarray(coef, np.float64) + intercept


@pytest.mark.parametrize("k", [K, Laplace(1.0), 1e4 * Gaussian(1.0), Polynomial(3)])
@pytest.mark.parametrize("alpha", [1e-1, 1e-4, 1e-7])
@pytest.mark.parametrize("via", ["exact", "iterative"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ridge(k, alpha, via):
    m = KernelRidge(k, alpha=alpha, via=via, random_state=0).fit(X, np.column_stack([Y, 1e3 * Y]))
    found = m.predict(TEST)
    f = wanted(k, X, m.dual_coef_, m.intercept_)
    assert found.dtype == np.float32
    assert np.abs(found - f).max() <= 1e-3 * np.abs(f).max()
    one = np.concatenate([m.predict(TEST[i : i + 1]) for i in range(5)])
    assert np.abs(one - found[:5]).max() <= 1e-3 * np.abs(f).max()


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_support_vectors(C):
    for m in (KernelSVR(K, C=C, epsilon=0.01), KernelSVC(K, C=C, via="exact")):
        classes = isinstance(m, KernelSVC)
        m.fit(X, Y > 0 if classes else Y)
        f = wanted(K, m.support_vectors_, np.ravel(m.dual_coef_), np.ravel(m.intercept_)[0])
        found = m.decision_function(TEST) if classes else m.predict(TEST)
        assert np.abs(found - f).max() <= 1e-3 * np.abs(f).max()
        assert found.dtype == np.float32


def test_components():
    m = KernelPCA(40, K, "exact").fit(X)
    wide = KernelPCA(40, K, "exact").fit(X.astype(np.float64))
    assert (m.eigenvalues_[0] / m.eigenvalues_[-1]) > 1e2
    T, F = m.transform(X), wide.transform(X.astype(np.float64))
    assert T.dtype == np.float32
    assert np.abs(np.abs(T) - np.abs(F)).max() <= 1e-3 * np.abs(F).max()


def test_values_stay_float32_where_nothing_cancels(monkeypatch):
    """And are float64, a piece at a time, where something does."""
    seen = []
    monkeypatch.setattr(expansion, "PIECE", 50)

    def watched(f, rows):
        seen.append(len(rows))
        return widened(f, rows)

    widened = expansion.widened
    monkeypatch.setattr(expansion, "widened", watched)
    KernelRidge(K, alpha=10.0, via="exact").fit(X, Y).predict(TEST)
    assert not seen
    KernelRidge(K, alpha=1e-6, via="exact").fit(X, Y).predict(TEST)
    assert seen == [len(TEST)]


def test_a_constant_needs_no_digits():
    m = KernelRidge(K, alpha=1e-6, via="exact").fit(X, np.full(300, 2.0, np.float32))
    assert np.abs(m.predict(TEST) - 2).max() < 1e-5


def test_no_points_need_no_digits():
    m = KernelSVR(K, epsilon=10.0).fit(X, Y)
    assert not len(m.support_)
    assert np.array_equal(m.predict(TEST), np.full(len(TEST), m.intercept_[0], np.float32))
