"""Kernels by name are scikit-learn's, whatever gamma, degree and coef0 are."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from mercer.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Gaussian,
    Laplace,
    Linear,
    Polynomial,
)
from mercer.kernels.defaults import is_open, kernel_of, resolve
from mercer.kernels.named import NAMES, NamedKernel, spread

RNG = np.random.default_rng(0)
WITH_GAMMA = ("rbf", "gaussian", "laplacian", "poly", "polynomial", "chi2")
THEIRS = {"gaussian": "rbf"}


def rows(name, dtype=np.float64, n=20, d=4):
    X = RNG.normal(size=(n, d)).astype(dtype)
    X[-1], X[-2] = X[0], 0
    return np.abs(X) if "chi2" in name else X


@pytest.mark.parametrize("name", [n for n in NAMES if n != "additive_chi2"])
@pytest.mark.parametrize("gamma", [0.3, 5, np.float32(2.0)])
@pytest.mark.parametrize("shape", [(20, 4), (1, 3), (3, 40)])
def test_values_are_those_of_scikit_learn(name, gamma, shape):
    X = rows(name, n=max(shape[0], 2), d=shape[1])[: shape[0]]
    k = NamedKernel(name, gamma).at(X)
    theirs = pairwise_kernels(
        X, metric=THEIRS.get(name, name), filter_params=True, gamma=float(gamma)
    )
    np.testing.assert_allclose(k(X), theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 2.0])
@pytest.mark.parametrize("coef0", [0, 0.5, 2])
def test_polynomials(degree, coef0):
    X = rows("poly")
    k = NamedKernel("poly", 0.7, degree, coef0).at(X)
    theirs = pairwise_kernels(X, metric="poly", gamma=0.7, degree=degree, coef0=coef0)
    np.testing.assert_allclose(k(X), theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("of", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_scale_and_auto_are_those_of_scikit_learn(gamma, of, offset):
    X = rows("rbf") + offset
    theirs = SVC(gamma=gamma).fit(X, np.arange(len(X)) % 2)._gamma
    for name in ("rbf", "laplacian", "poly", "chi2"):
        found = NamedKernel(name, gamma).at(of(X))
        meant = NamedKernel(name, theirs).at(X)
        ours, asked = (np.array([*k.parameters().values()]) for k in (found, meant))
        np.testing.assert_allclose(ours, asked, rtol=1e-9)


def test_equal_numbers_and_too_large_ones():
    assert NamedKernel("rbf", "scale").at(np.ones((3, 2))) == Gaussian.of(gamma=1.0)
    with pytest.raises(ValueError, match="too large to square"):
        NamedKernel("rbf", "scale").at(np.array([[1e200], [-1e200]]))


def test_defaults_are_as_before():
    X = rows("rbf")
    assert resolve("rbf", X) == resolve(None, X) == resolve("gaussian", X)
    assert resolve("laplacian", X) == Laplace(4.0, norm=1)
    assert resolve("poly", X) == resolve("polynomial", X) == Polynomial()
    assert resolve("linear", X) == Linear()
    assert resolve("cosine", X) == Cosine()
    assert resolve("chi2", X) == Chi2()
    assert resolve("additive_chi2", X) == AdditiveChi2()
    np.testing.assert_allclose(resolve("rbf", X).bandwidth, np.sqrt(X.var(0).sum() / 2))


def model(kernel=None, **given):
    return SimpleNamespace(kernel=kernel, **given)


def test_what_a_model_was_given():
    X = rows("rbf")
    assert kernel_of(model()) is None
    assert kernel_of(model("rbf")) == "rbf"
    assert kernel_of(model("precomputed", gamma=2.0)) == "precomputed"
    assert resolve(kernel_of(model(gamma=0.5)), X) == Gaussian()
    assert resolve(kernel_of(model("linear", gamma=0.5)), X) == Linear()  # as scikit-learn's grids
    assert resolve(kernel_of(model("poly", coef0=0.0)), X) == Polynomial(bias=0.0)
    assert is_open(kernel_of(model()))
    assert is_open(kernel_of(model("rbf", degree=2)))
    assert not is_open(kernel_of(model(gamma="auto")))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            model(Gaussian(), gamma=2.0),
            r"write Gaussian\(bandwidth=0.5\), as .* 1/sqrt\(2\*gamma\)",
        ),
        (model(Gaussian(), gamma="scale"), r"write Gaussian\(bandwidth=1/sqrt\(2\*gamma\)\)"),
        (model(Laplace(), gamma=4), r"write Laplace\(bandwidth=0.25, norm=1\)"),
        (model(Polynomial(), degree=2), r"^degree is of .* Polynomial\(degree, coef0/gamma\)"),
        (model(Chi2(), gamma=4.0), r"write Chi2\(gamma=4\)"),
        (model(Linear() + 1, gamma=4.0), r"set the parameters of that kernel"),
        (model(RBF(), gamma=4.0), r"beside kernel=RBF"),
        (model(np.dot, gamma=4.0), r"beside kernel=<function dot"),
        (model(lift=Linear(), gamma=4.0), "a lift has its own parameters"),
        (model("sigmoid"), "'sigmoid', .* is not positive semidefinite, so it is no kernel; use"),
        (model("sigmoid", gamma=1.0), "is not positive semidefinite"),
        (model("rfb", gamma=1.0), "None or one of rbf, .*, got 'rfb'"),
        (model("rbf", gamma=0.0), "gamma, where it is not 'scale', .* must be a number > 0"),
        (model("rbf", gamma="scaled"), "'scale', 'auto' or None, got 'scaled'"),
        (model("rbf", gamma=True), "must be a number > 0, got True"),
        (model("poly", coef0=-1.0), "coef0 must be a number >= 0"),
        (model("poly", degree=1.5), "degree must be an integer >= 0"),
    ],
)
def test_what_is_wrong_is_said(given, said):
    with pytest.raises(ValueError, match=said):
        resolve(kernel_of(given), rows("rbf"))


def weighed(n, seed=5):
    return np.random.default_rng(seed).uniform(size=n) * (np.arange(n) % 3 > 0)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e8])
@pytest.mark.parametrize("weight", [None, weighed(60)])
@pytest.mark.parametrize("zeros", [False, True])
def test_offsets_cost_sparse_rows_no_digits(offset, weight, zeros):
    X = np.random.default_rng(0).normal(size=(60, 4)) + offset
    if zeros:
        X[::3, 1], X[:, 2] = 0.0, np.where(np.arange(60) % 2, offset, 0.0)
    if weight is not None:
        X[weight == 0] *= 1e12  # of which nothing counts
    A = sp.csr_array(X)
    assert spread(A, weight) == pytest.approx(spread(X, weight), rel=1e-12)
    w = np.full(60, 1 / 60) if weight is None else weight / weight.sum()
    exact = sum(float(w @ (x - w @ x) ** 2) for x in X.astype(np.longdouble).T)
    assert spread(X, weight) == pytest.approx(exact, rel=1e-7)
    ours = NamedKernel("rbf", "scale").at(A).bandwidth  # of all rows alike
    assert ours == pytest.approx(NamedKernel("rbf", "scale").at(X).bandwidth, rel=1e-12)


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, -1e-3])
@pytest.mark.parametrize("of", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weight", [None, weighed(1000)])
def test_equal_rows_have_no_spread_of_rounding(value, of, weight):
    X = of(np.full((1000, 3), value))
    assert spread(X, weight) == 1.0
    assert NamedKernel("rbf").at(X, weight) == Gaussian(np.sqrt(0.5))
