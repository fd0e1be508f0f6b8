"""Whatever stands on landmarks gives the exact answer where these tell all rows: on a line, and
among near-copies."""

import numpy as np
import pytest

from mercer.kernels import Gaussian, Matern
from mercer.methods import Landmarks
from mercer.models import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelPCA,
    KernelRidge,
    KernelSVC,
)
from mercer.models.ridge.falkon import falkon

RNG = np.random.default_rng(0)
LINE = np.linspace(0, 1, 60)[:, None]
APART = np.tile(10.0 ** np.arange(-10, 0, 2), 12)[:, None] * RNG.normal(size=(60, 2))
COPIES = np.repeat(RNG.uniform(-1, 1, size=(12, 2)), 5, axis=0) + APART
ROWS = {
    "line": np.vstack([LINE, LINE]),
    "copies": np.vstack([COPIES, COPIES]),
}  # twice, so that all but one tell all
KERNELS = [Gaussian(0.2), Gaussian(2.0), Matern(nu=2.5)]
VIAS = [
    Landmarks(120),
    Landmarks(120, "kmeans"),
    Landmarks(119),
    Landmarks(119, "uniform"),
    Landmarks(119, "leverage"),
]

pytestmark = [
    pytest.mark.parametrize("X", ROWS.values(), ids=ROWS),
    pytest.mark.parametrize("kernel", KERNELS, ids=repr),
]
ways = pytest.mark.parametrize("via", VIAS, ids=repr)


def target(X):
    return np.sin(6 * X[:, 0]) + 0.05 * np.cos(1e3 * X[:, 0])


def new(X):
    """Rows between and around those of X."""
    return X + 0.1 * np.random.default_rng(1).normal(size=X.shape)


@ways
def test_gaussian_process(kernel, X, via):
    models = [
        GaussianProcessRegressor(kernel, noise=0.01, via=v).fit(X, target(X))
        for v in ("exact", via)
    ]
    (mean, std), (m, s) = (model.predict(new(X), return_std=True) for model in models)
    np.testing.assert_allclose(m, mean, atol=1e-4)
    np.testing.assert_allclose(s, std, rtol=1e-4)
    assert models[1].log_marginal_likelihood_ == pytest.approx(
        models[0].log_marginal_likelihood_, abs=1e-4
    )


@ways
def test_principal_components(kernel, X, via):
    all_, few = (
        KernelPCA(3, kernel=kernel, via=v).fit(X).explained_variance_ for v in ("exact", via)
    )
    np.testing.assert_allclose(few, all_, rtol=1e-5)


@ways
def test_ridge(kernel, X, via):
    f, g = (
        KernelRidge(kernel=kernel, alpha=0.1, via=v).fit(X, target(X)).predict(X)
        for v in ("exact", via)
    )
    np.testing.assert_allclose(g, f, atol=1e-5)


@ways
def test_support_vectors(kernel, X, via):
    f, g = (
        KernelSVC(kernel=kernel, via=v).fit(X, target(X) > 0).decision_function(X)
        for v in ("exact", via)
    )
    np.testing.assert_allclose(g, f, atol=0.02)


@pytest.mark.parametrize("via", [Landmarks(120), Landmarks(119, "uniform")], ids=repr)
def test_classification_by_processes(kernel, X, via):
    f, g = (
        GaussianProcessClassifier(kernel, via=v, fixed=True)
        .fit(X, target(X) > 0)
        .predict_proba(new(X))
        for v in ("exact", via)
    )
    np.testing.assert_allclose(g, f, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_passes_over_the_rows(kernel, X, dtype):
    """Falkon's way, with all rows for landmarks in an order that is none of pivots."""
    X, Y = X.astype(dtype), target(X)[:, None]
    s = falkon(kernel, X, lambda: [(X, Y, None)], 0.1)
    f = (
        KernelRidge(kernel=kernel, alpha=0.1, via="exact")
        .fit(X.astype(float), Y[:, 0])
        .predict(X.astype(float))
    )
    g = kernel(X.astype(float), X[s.kept].astype(float)) @ s.coef[:, 0] + s.intercept
    assert s.residual <= 1e-6
    np.testing.assert_allclose(g, f, atol=1e-5 if dtype == np.float64 else 1e-3)
