"""Kernels of scikit-learn's Gaussian processes: the same values, and what they fix."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as sk
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from mercer import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.kernels import Gaussian, Linear
from mercer.kernels.defaults import resolve
from mercer.kernels.translated import is_process_kernel, translated

ARD = [0.5, 1.0, 4.0]
KERNELS = [
    RBF(0.5),
    RBF(ARD),
    RBF([2.0]),
    *(Matern(2.0, nu=nu) for nu in (0.5, 0.8, 1.5, 2.5, 3.5, np.inf)),
    Matern(ARD, nu=1.5),
    RationalQuadratic(0.5, 2.0),
    RationalQuadratic(2.0, 0.1),
    DotProduct(1.5),
    DotProduct(0.0),
    ConstantKernel(3.0),
    ConstantKernel(3.0) * RBF(2.0) + DotProduct(),
    RBF() * Matern() * 2.0,
    3.0 * (RBF() + 2.0),
    ConstantKernel(2.0) * ConstantKernel(3.0) + ConstantKernel(1.0),
    Exponentiation(DotProduct(1.0) + RBF(), 3),
    RBF() ** 2 * 2.0,
    Exponentiation(RBF(), 0),
    *(
        PairwiseKernel(0.5, metric=m)
        for m in ("rbf", "laplacian", "polynomial", "cosine", "linear")
    ),
]


def rows(offset=0.0, n=20, d=3):
    X = np.random.default_rng(0).normal(size=(n, d))
    X = np.round(X * 2**20) / 2**20 + offset  # so that offsets round nothing
    X[-1], X[5] = X[0], X[6] + 2.0**-20
    return X


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_values_are_the_same(k):
    moved = not any(w in repr(k) for w in ("DotProduct", "Pairwise"))
    for offset in (0.0, 2.0**20) if moved else (0.0,):
        X = rows(offset)
        Z, ours = X[::3] + 0.25, resolve(k, X)
        size = np.abs(k(X)).max()
        np.testing.assert_allclose(ours(X, Z), k(X, Z), rtol=0, atol=1e-12 * size)
        np.testing.assert_allclose(ours(X), k(X), rtol=0, atol=1e-12 * size)
        np.testing.assert_allclose(ours.diag(X), k.diag(X), rtol=1e-12)
    t = translated(k)
    assert t.fixed == []
    assert len(t.holds) == len(t.kernel.parameters())


def test_a_period_of_one_column():
    X, k = rows(d=1), ExpSineSquared(0.7, 1.3)
    np.testing.assert_allclose(resolve(k, X)(X), k(X), atol=1e-12)
    with pytest.raises(ValueError, match="no kernel of more than one column, and X has 3; use Per"):
        resolve(2.0 * k + RBF(), rows())


def test_histograms():
    X, k = np.abs(rows()), PairwiseKernel(0.5, metric="chi2")
    np.testing.assert_allclose(resolve(k, X)(X), k(X), atol=1e-12)


@pytest.mark.parametrize(
    ("k", "fixed"),
    [
        (RBF(ARD, "fixed"), ["bandwidth__0", "bandwidth__1", "bandwidth__2"]),
        (RationalQuadratic(alpha_bounds="fixed"), ["mixture"]),
        (RationalQuadratic(length_scale_bounds="fixed"), ["bandwidth"]),
        (ConstantKernel(2.0, "fixed") * RBF(), ["factor"]),
        (RBF() * ConstantKernel(2.0, "fixed"), ["factor"]),
        (RBF() * Matern(2.0, "fixed"), ["terms__1__bandwidth"]),
        (RBF() + (RBF(2.0, "fixed") + DotProduct(1.0, "fixed")), None),
        (ExpSineSquared(periodicity_bounds="fixed"), ["period"]),
        (WhiteKernel() + Exponentiation(RBF(1.0, "fixed"), 2), ["kernel__bandwidth"]),
    ],
)
def test_what_is_fixed(k, fixed):
    fixed = ["terms__1__bandwidth", "terms__3__factor"] if fixed is None else fixed
    assert translated(k).fixed == fixed


@pytest.mark.parametrize(
    ("k", "bounds"),
    [
        (RBF(), {}),
        (RBF(2.0, (1, 3)), {"bandwidth": (1.0, 3.0)}),
        (RBF(ARD, (1, 3)), {f"bandwidth__{j}": (1.0, 3.0) for j in range(3)}),
        (RBF((1, 2), [(1e-5, 1e5), (2, 3)]), {"bandwidth__1": (2.0, 3.0)}),
        (ConstantKernel(2.0, (1, 9)) * Matern(1.0, "fixed"), {"factor": (1.0, 9.0)}),
        (DotProduct(2.0, (1, 3)) + RBF(), {"terms__1__factor": (1.0, 9.0)}),
        (RationalQuadratic(alpha_bounds=(1, 2)), {"mixture": (1.0, 2.0)}),
        (ExpSineSquared(periodicity_bounds=(1, 2)), {"period": (1.0, 2.0)}),
        (RBF() + WhiteKernel(0.1, (0.01, 1)), {"noise": (0.01, 1.0)}),
        (RBF() + WhiteKernel(0.1, (0.01, 1)) + WhiteKernel(), {}),
        (ConstantKernel(2.0) * (RBF() + WhiteKernel(0.1, (0.01, 1))), {}),
    ],
)
def test_what_is_bounded(k, bounds):
    assert translated(k).bounds == bounds


def test_processes_stay_within_the_bounds_of_the_kernel():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.sin(X[:, 0]) + 0.2 * X[:, 1] ** 2 * np.where(np.arange(40) % 2, 1, -1)
    k = RBF(0.1, (0.05, 0.2)) + WhiteKernel(0.1, (0.05, 0.3))
    with pytest.warns(ConvergenceWarning, match="grows beyond the bounds of bandwidth"):
        m = GaussianProcessRegressor(k).fit(X, y)
    assert m.kernel_.bandwidth == pytest.approx(0.2)
    assert 0.05 <= m.noise_ <= 0.3
    m = GaussianProcessRegressor(k, bounds={"bandwidth": (0.01, 50.0), "noise": (1e-4, 1.0)}).fit(
        X, y
    )
    assert m.kernel_.bandwidth > 0.3  # what is said here comes first
    with pytest.warns(ConvergenceWarning, match="bounds of bandwidth"):
        c = GaussianProcessClassifier(RBF(0.1, (0.05, 0.2))).fit(X, y > 0)
    assert c.kernel_.bandwidth == pytest.approx(0.2)


def test_noise():
    assert translated(RBF()).noise is None
    t = translated(WhiteKernel(0.5, "fixed") + RBF() + WhiteKernel(0.25, "fixed"))
    assert (t.noise, t.noise_fixed, t.kernel) == (0.75, True, Gaussian())
    t = translated(ConstantKernel(2.0, "fixed") * (DotProduct() + WhiteKernel(0.25)))
    assert (t.noise, t.noise_fixed, t.kernel) == (0.5, False, 2.0 * (Linear() + 1))
    assert t.without_noise().at(3) == t.kernel
    assert not translated(ConstantKernel(2.0) * WhiteKernel(0.5, "fixed")).noise_fixed


class Own(RBF):
    """Of a formula of its own, for all we know."""


@pytest.mark.parametrize(
    ("k", "said"),
    [
        (RBF() + WhiteKernel(), "WhiteKernel is noise, not a kernel of rows; leave it out"),
        (WhiteKernel(), "WhiteKernel is noise"),
        (RBF() * WhiteKernel(), "multiplies WhiteKernel, noise, by a kernel"),
        (RBF() ** 0.5, "only whole powers >= 0"),
        (Exponentiation(RBF() + WhiteKernel(), 2), "without noise"),
        (CompoundKernel([RBF()]), "CompoundKernel is several kernels at once"),
        (PairwiseKernel(metric="sigmoid"), "not positive semidefinite"),
        (PairwiseKernel(metric="additive_chi2"), "has no translation"),
        (Own(), "Own is not known here; write it as a function"),
    ],
)
def test_what_has_no_translation(k, said):
    with pytest.raises(ValueError, match=said):
        resolve(k, rows())


def test_every_kernel_of_scikit_learn_has_an_answer():
    """A new one there shows here."""
    names = {
        n
        for n, c in vars(sk).items()
        if isinstance(c, type) and issubclass(c, sk.Kernel) and c.__module__ == sk.__name__
    }
    from mercer.kernels.translated import RULES

    assert names - {"Kernel", "KernelOperator"} == set(RULES)
    assert not is_process_kernel(Gaussian())
