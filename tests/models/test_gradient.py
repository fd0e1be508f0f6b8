"""Gradients of fitted functions are those of central differences of their predictions."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import mercer
from mercer import (
    GaussianProcessRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    OneClassSVM,
)
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from mercer.lifts import Monomials
from mercer.methods import Fourier, Landmarks

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
Y = np.column_stack([y, X[:, 0] ** 2])
NEW = rng.normal(size=(5, 3))
THREE = np.digitize(y, [-0.5, 0.5])
k = Gaussian((1.0, 2.0, 1.5)) + 0.1 * Linear()

MODELS = {
    "ridge": (KernelRidge(k, 0.1), y),
    "ridge of two": (KernelRidge(k, 0.1), Y),
    "ridge iterative": (KernelRidge(k, 0.1, via="iterative", tol=1e-10), y),
    "ridge rough": (KernelRidge(Laplace(2.0, norm=1, exponent=0.8), 0.1), y),
    "ridge fourier": (KernelRidge(Gaussian(2.0), 0.1, via=Fourier(64), random_state=0), y),
    "ridge sum": (KernelRidge(k, 0.1, via=Fourier(64), random_state=0), Y),
    "ridge landmarks": (KernelRidge(k, 0.1, via=Landmarks(20), random_state=0), y),
    "svr": (KernelSVR(k, C=10.0), y),
    "svc": (KernelSVC(k, C=10.0), y > 0),
    "svc of three": (KernelSVC(k, C=10.0, multiclass="ovr"), THREE),
    "svc features": (KernelSVC(Gaussian(2.0), via=Fourier(64), random_state=0), THREE),
    "one class": (OneClassSVM(k, nu=0.2), None),
    "gp": (GaussianProcessRegressor(k, noise=0.01), y),
    "gp of two": (GaussianProcessRegressor(Matern(2.0, nu=2.5), noise=0.01), Y),
    "gp iterative": (GaussianProcessRegressor(k, noise=0.1, via="iterative"), y),
    "gp features": (GaussianProcessRegressor(Gaussian(2.0), 0.01, Fourier(64), random_state=0), y),
    "gp landmarks": (GaussianProcessRegressor(k, 0.01, Landmarks(20), random_state=0), y),
}


def answers(m, X):
    f = getattr(m, "decision_function", m.predict)(X)
    return f.reshape(len(f), -1)


def central(m, X, h=1e-6):
    out = [(answers(m, X + e) - answers(m, X - e)) / (2 * h) for e in h * np.eye(X.shape[1])]
    return np.stack(out, axis=-1)


@pytest.mark.filterwarnings("ignore::mercer.models.gp.posterior.VarianceStarvationWarning")
@pytest.mark.parametrize("name", MODELS)
def test_central_differences(name):
    model, target = MODELS[name]
    m = clone(model).fit(X, target)
    found, expected = m.gradient(NEW), central(m, NEW)
    several = expected.shape[1] > 1
    assert found.shape == (expected.shape if several else (5, 3))
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-6 * size, rtol=0)
    narrow = m.gradient(NEW.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, found, atol=2e-3 * size, rtol=0)


@pytest.mark.parametrize(
    "kernel", [k, Matern(2.0, nu=1.5), Polynomial(2), Matern(nu=3.0)], ids=repr
)
@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_the_variance_of_slopes_is_that_of_difference_quotients(kernel, via):
    m = GaussianProcessRegressor(kernel, noise=0.1, via=via, random_state=0).fit(X, 3 * y)
    h = 1e-2
    mean, variance = m.gradient(NEW, return_var=True)
    np.testing.assert_array_equal(mean, m.gradient(NEW))
    for c, e in enumerate(h * np.eye(3)):
        _, C = m.predict(np.concatenate([NEW + e, NEW - e]), return_cov=True, of="f")
        quotient = (np.diag(C)[:5] + np.diag(C)[5:] - 2 * np.diag(C[:5, 5:])) / (4 * h * h)
        np.testing.assert_allclose(variance[:, c], quotient, rtol=0.03 if via == "exact" else 0.05)


def test_variances_before_and_after_the_data():
    """Far from the rows slopes have their prior variance; between many rows next to none."""
    m = GaussianProcessRegressor(Gaussian(2.0), noise=1e-4).fit(X, Y)
    kernel, unit = m.posterior_.kernel, m.posterior_.outputs.unit
    _, far = m.gradient(NEW + 1e3, return_var=True)
    b = np.broadcast_to(kernel.bandwidth, 3)
    expected = m.posterior_.scale * unit[:, None] ** 2 / b**2
    np.testing.assert_allclose(far, np.broadcast_to(expected, (5, 2, 3)), rtol=1e-9)
    assert (m.gradient(X[:5], return_var=True)[1] < far).all()


@pytest.mark.parametrize(
    "kernel", [Laplace(), Laplace(exponent=1.9), Laplace(norm=1), Matern(nu=1.0)], ids=repr
)
def test_kinks_have_slopes_and_no_variance(kernel):
    m = GaussianProcessRegressor(kernel, noise=0.1).fit(X, y)
    assert m.gradient(NEW).shape == (5, 3)
    with pytest.raises(ValueError, match="no finite variance"):
        m.gradient(NEW, return_var=True)


def test_sparse_rows():
    S = sp.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0))
    m = KernelRidge(Gaussian(), 0.1).fit(S, y)
    np.testing.assert_allclose(m.gradient(S[:5]), m.gradient(S[:5].toarray()), atol=1e-12)


def test_hostile_rows():
    for R in (np.ones((4, 2)), rng.normal(size=(1, 2)), np.repeat(X[:3], 4, axis=0) + 1e6):
        m = KernelRidge(Gaussian(), 1.0).fit(R, np.arange(len(R), dtype=float))
        np.testing.assert_allclose(
            m.gradient(R), central(m, R, 1e-3)[:, 0], atol=1e-4, err_msg=str(R.shape)
        )


def test_what_has_no_gradient_says_so():
    K = Gaussian()(X)
    for m in (KernelRidge("precomputed"), KernelSVR("precomputed")):
        with pytest.raises(ValueError, match="sees no columns"):
            m.fit(K, y).gradient(K[:3])
    with pytest.raises(ValueError, match="votes among pairs"):
        KernelSVC(k, multiclass="ovo").fit(X, THREE).gradient(NEW)
    with pytest.raises(ValueError, match="features of Monomials have no derivative"):
        KernelRidge(lift=Monomials(2)).fit(X, y).gradient(NEW)
    g = GaussianProcessRegressor(Gaussian(2.0), 0.01, Landmarks(20), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="variance of slopes is that of a model of points"):
        g.gradient(NEW, return_var=True)
    with pytest.raises(ValueError, match="no derivative by the inputs"):
        KernelRidge(Gaussian().warped(np.tanh)).fit(X, y).gradient(NEW)


def test_a_saved_model_has_the_same(tmp_path):
    m = KernelRidge(Laplace(exponent=0.7).mapped([[1.0, 0.5, 0.0]]), 0.1).fit(X, y)
    m.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").gradient(NEW), m.gradient(NEW))
