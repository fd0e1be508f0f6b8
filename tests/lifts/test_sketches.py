"""Sketches and random units: unbiased over seeds, exact where promised, dense as sparse, and the
slip of squaring one map."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.kernels import Gaussian, Linear, Polynomial, exp
from mercer.lifts import (
    ArcCosineFeatures,
    Maclaurin,
    Monomials,
    PositiveFeatures,
    RandomFourier,
    SketchedTensor,
    TensorSketch,
)
from mercer.testing import check_lift

LIFTS = {
    "square": TensorSketch(2, 64, random_state=0),
    "linear": TensorSketch(1, 64, random_state=0),
    "homogeneous": TensorSketch(3, 63, bias=0.0, random_state=0),
    "tensor": SketchedTensor([Monomials(1), Monomials(2)], 64, random_state=0),
    "three maps": SketchedTensor(
        [Monomials(1), ArcCosineFeatures(1, 32, random_state=0), Monomials(1)], 50, random_state=0
    ),
    "equal seeds": SketchedTensor(
        [RandomFourier(Gaussian(), 32, random_state=0)] * 2, 64, random_state=0
    ),
    "exp": Maclaurin(exp(Linear()), 64, random_state=0),
    "cubic": Maclaurin(Polynomial(3), 64, random_state=0),
    "few": Maclaurin(Polynomial(3), 5, random_state=0),
    "series": Maclaurin(Linear().compose([1.0, 0.0, 2.0]), 40, random_state=0),
    "tree": Maclaurin(
        exp(0.3 * Linear() + 1) * Polynomial(2) + 2 * Linear() ** 2, 80, random_state=0
    ),
    "positive": PositiveFeatures(exp(Linear()), 64, random_state=0),
    "positive, odd": PositiveFeatures(exp(0.5 * Linear()), 63, random_state=0),
    "steps": ArcCosineFeatures(0, 64, random_state=0),
    "ramps": ArcCosineFeatures(1, 63, random_state=0),
    "squared ramps": ArcCosineFeatures(2, 64, random_state=0),
}


@pytest.mark.parametrize("name", LIFTS)
def test_unbiased(name):
    check_lift(LIFTS[name], exact=False)


@parametrize_with_checks(
    [
        TensorSketch(),
        Maclaurin(),
        PositiveFeatures(),
        ArcCosineFeatures(),
        SketchedTensor([Monomials(1), Monomials(2)], 64),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", LIFTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_equals_dense(name, dtype):
    G = np.random.default_rng(0)
    X = (G.normal(size=(30, 3)) * (G.random((30, 3)) > 0.5)).astype(dtype)
    phi = clone(LIFTS[name]).fit(X)
    F, S = phi.transform(X), phi.transform(sp.csr_array(X))
    assert S.dtype == dtype
    np.testing.assert_allclose(S, F, rtol=1e-3, atol=1e-4 if dtype == np.float32 else 1e-9)


def test_error_of_the_peer():
    X = np.random.default_rng(0).normal(size=(100, 10)) / 3
    K = Polynomial(3)(X)
    ours, peer = (
        np.mean([_rms(phi.set_params(random_state=seed).fit_transform(X), K) for seed in range(10)])
        for phi in (
            TensorSketch(3, 256),
            PolynomialCountSketch(degree=3, n_components=256, coef0=1),
        )
    )
    assert ours < 1.15 * peer


def _rms(F, K):
    return np.sqrt(np.mean((F @ F.T - K) ** 2))


def test_powers_need_independent_copies():
    """Squaring the estimate of one map is biased by its variance; two maps are not."""
    x = np.array([[0.0], [1.0]])
    k = Gaussian(1.0)
    one, two = [], []
    for seed in range(400):
        F, G = (
            RandomFourier(k, 4, frequencies="iid", random_state=2 * seed + i).fit_transform(x)
            for i in (0, 1)
        )
        one.append((F[0] @ F[1]) ** 2)
        two.append((F[0] @ F[1]) * (G[0] @ G[1]))
    true, error = float(k(x)[0, 1]) ** 2, np.std(two) / 20
    assert abs(np.mean(two) - true) < 4 * error
    assert np.mean(one) - true > 4 * np.std(one) / 20


def test_copies_of_one_map_are_drawn_apart():
    phi = SketchedTensor(
        [RandomFourier(Gaussian(), 32, random_state=0)] * 2, 64, random_state=0
    ).fit(np.eye(3))
    assert not np.allclose(phi.lifts_[0].draw(), phi.lifts_[1].draw())


@pytest.mark.parametrize(
    ("phi", "match"),
    [
        (TensorSketch(0), "degree must be an integer >= 1"),
        (TensorSketch(n_features=0), "n_features must be an integer >= 1"),
        (Maclaurin(Gaussian()), "not a power series"),
        (Maclaurin(exp(300 * Linear())), "more than 128 terms"),
        (PositiveFeatures(Gaussian()), r"exp\(Linear\(\)\)"),
        (ArcCosineFeatures(3), "order must be 0, 1 or 2"),
    ],
)
def test_errors(phi, match):
    with pytest.raises(ValueError, match=match):
        phi.fit(np.ones((3, 2)))
