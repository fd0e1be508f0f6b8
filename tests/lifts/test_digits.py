"""Landmarks of float32 rows whose kernel values hide what tells them apart."""

import warnings

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Laplace, Linear, Polynomial
from mercer.lifts import Nystrom
from mercer.lifts.digits import FINE, least_share, values_dtype
from mercer.models import KernelLogistic, KernelPCA, KernelRidge
from mercer.models.ridge.falkon import falkon

KERNELS = {"linear": Linear(), "polynomial": Polynomial(2), "sum": Linear() + 0.1 * Gaussian(2.0)}


def far(offset, size=30.0, n=300):
    """Four columns of size 1, and one far from zero; y of them all."""
    rng = np.random.default_rng(7)
    A, last = rng.normal(size=(n, 4)), np.rint(size * rng.uniform(size=n))
    y = A @ [1.0, -2.0, 0.5, 0.3] + 3 / size * last
    return np.column_stack([A, last + offset]).astype(np.float32), y


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize(("offset", "size"), [(2e3, 30.0), (1e5, 30.0), (0.0, 400.0)])
def test_no_column_is_lost_beside_a_larger_one(kernel, offset, size):
    X, y = far(offset, size)
    exact = KernelRidge(kernel, alpha=1e-2, via="landmarks").fit(X.astype(float)[:200], y[:200])
    narrow = KernelRidge(kernel, alpha=1e-2, via="landmarks").fit(X[:200], y[:200])
    assert narrow.score(X[200:], y[200:]) > 0.99
    found, wanted = narrow.predict(X[200:]), exact.predict(X[200:].astype(float))
    assert found.dtype == np.float32
    assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.05 * y.std()


@pytest.mark.parametrize("offset", [0.0, 2e3, 1e5])
def test_the_exact_answer_of_a_linear_kernel(offset):
    X, y = far(offset)
    exact = KernelRidge(Linear(), alpha=1e-2, via="exact").fit(
        X.astype(float) - [*[0] * 4, offset], y
    )
    wanted = exact.predict(X.astype(float) - [*[0] * 4, offset])
    found = KernelRidge(Linear(), alpha=1e-2, via="landmarks").fit(X, y).predict(X)
    assert np.abs(found - wanted).max() < 1e-3 * y.std()
    s = falkon(Linear(), X[::6], lambda: [(X, y, None)], 1e-2)
    f = Linear()(X.astype(float), X[::6][s.kept].astype(float)) @ s.coef + s.intercept
    rounding = 2e-2 if offset > 1e4 else 1e-3  # of sums of values of 1e10, in float64
    assert np.abs(f[:, 0] - wanted).max() < rounding * y.std()


def test_features_are_those_of_float64_rows():
    X = far(2e3)[0]
    phi = Nystrom(Linear(), 40, random_state=0).fit(X)
    F = phi.transform(X)
    assert F.dtype == np.float32
    assert F.shape == (300, 5)
    wide = Nystrom(Linear(), 40, random_state=0).fit(X.astype(float))
    assert np.array_equal(phi.landmark_indices_, wide.landmark_indices_)
    for other in (wide.transform(X), wide.transform(X.astype(float))):  # of float32 rows at last
        assert np.abs(F - other).max(axis=0) == pytest.approx(0, abs=2e-4)


def test_learners_over_landmarks():
    X, y = far(2e3)
    assert (
        KernelLogistic(Linear(), via="landmarks").fit(X, y > y.mean()).score(X, y > y.mean()) > 0.95
    )
    found = KernelPCA(5, Linear(), via="landmarks").fit(X).eigenvalues_
    assert found == pytest.approx(KernelPCA(5, Linear()).fit(X).eigenvalues_, rel=1e-3)


def test_the_share_of_a_landmark():
    X = Table(far(0.0)[0] / 30)
    assert least_share(Gaussian(), X, 3e-5) == least_share(Laplace(), X, 3e-5) == 3e-5
    assert least_share(Gaussian() + 9.0, X, 3e-5) == FINE  # shared by all
    assert least_share(Linear(), X, 3e-5) == FINE
    assert least_share(Gaussian(), X.astype(float), 1e-11) == FINE
    told = np.array([1.0, 1e-2])
    assert values_dtype(Gaussian(), X[:2], told, 3e-5) == np.float32
    assert values_dtype(Gaussian(), X[:2], told / 10, 3e-5) == np.float64


def test_what_float64_hides_is_said():
    X = far(1e6)[0].astype(float)
    with pytest.warns(UserWarning, match="centre the columns of X"):
        Nystrom(Linear(), 300).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Nystrom(Linear(), 300).fit(X - X.mean(0))
        Nystrom(Linear(), 300).fit(X[:1])
        Nystrom(Linear(), 300).fit(np.ones((5, 2)) * 1e6)
