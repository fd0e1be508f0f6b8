"""The marginal likelihood of rows and its gradient: against differences, a Gaussian density, and
the memory of the matrix."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from mercer.costs.choice import forced, watched
from mercer.costs.processes import readings
from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear, Matern, Periodic
from mercer.kernels.params import substitute
from mercer.models.gp import likelihood
from mercer.models.gp.likelihood import marginal_likelihood, stationary
from tests.market import rows, trees

KERNELS = {
    "gaussian": Gaussian((0.5, 1.0, 2.0)),
    "matern": 0.7 * Matern(1.2, nu=2.5),
    "sum": Gaussian(0.4) + 0.3 * Periodic(1.0, 2.0),
}


def data(n=40, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack(
        [np.sin(X[:, :1] + j) + 0.1 * rng.normal(size=(n, 1)) for j in range(q)]
    )


def moved(k, path, step):
    return substitute(k, lambda p, v: v * np.exp(step) if p == path else v)


def differences(k, X, Y, noise, scale, h=1e-5):
    """The gradient of the evidence by central differences of the log-parameters."""

    def at(path, t):
        s = None if scale is None else scale * np.exp(t * (path == "scale"))
        return marginal_likelihood(
            moved(k, path, t), Table(X), Y, noise * np.exp(t * (path == "noise")), s
        ).log

    return np.array([(at(p, h) - at(p, -h)) / (2 * h) for p in (*k.parameters(), "noise", "scale")])


@settings(max_examples=15)
@given(trees, st.sampled_from([None, 1.7]))
def test_gradients_of_random_trees(k, scale):
    X = rows(12)
    Y = np.sin(3 * X[:, :2])
    with np.errstate(all="ignore"):
        found, wanted = (
            marginal_likelihood(k, Table(X), Y, 0.3, scale).gradient,
            differences(k, X, Y, 0.3, scale),
        )
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("q", [1, 3])
def test_gradient_over_many_tiles(name, q):
    X, Y = data(700, q)  # three tiles a side
    found = marginal_likelihood(KERNELS[name], Table(X), Y, 0.05, None).gradient
    np.testing.assert_allclose(
        found, differences(KERNELS[name], X, Y, 0.05, None), rtol=1e-4, atol=1e-2
    )


@pytest.mark.parametrize("name", KERNELS)
def test_the_evidence_is_a_gaussian_density(name):
    X, Y = data(30, 2)
    noise = np.random.default_rng(0).uniform(0.1, 1, 30)
    law = multivariate_normal(np.zeros(30), 1.5 * KERNELS[name](X) + np.diag(noise))
    assert marginal_likelihood(KERNELS[name], Table(X), Y, noise, 1.5).log == pytest.approx(
        law.logpdf(Y.T).sum()
    )


def test_the_profiled_scale_is_the_best_one():
    X, Y = data()
    best = marginal_likelihood(Gaussian(), Table(X), Y, 0.1, None)
    logs = [
        marginal_likelihood(Gaussian(), Table(X), Y, 0.1 * s, s).log
        for s in best.scale * np.array([0.9, 1.0, 1.1])
    ]
    assert logs[1] == pytest.approx(best.log)
    assert max(logs) == logs[1]


def peak(call):
    """The most bytes that arrays took while the call ran."""
    call()  # what is compiled and cached does not count
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_gradients_take_the_memory_of_the_matrix():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(900, 25)), rng.normal(size=(900, 1))
    k, matrix = Gaussian((5.0,) * 25), 8 * 900**2
    used = peak(lambda: marginal_likelihood(k, Table(X), Y, 0.1, None).gradient)
    assert (
        used < 6 * matrix
    )  # with room for the tiles of two threads; an (n, n, p) array alone would be 25


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.7),
        Gaussian((0.7, 1.5, 3.0)),
        0.5 * Matern((1.0, 2.0, 3.0), nu=1.5) + 2.0 * Gaussian(0.4),
        Linear() * Gaussian(2.0) + Linear(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("q", [1, 2])
def test_one_reading_of_few_rows_is_that_by_tiles(kernel, q, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(45, 3)), 2, axis=0) + 1e3  # with copies, far from zero
    rows, Y = Table(X), rng.normal(size=(90, q))
    for noise, scale in ((0.1, None), (0.1, 2.0), (rng.uniform(0.1, 1, 90), 1.5)):
        monkeypatch.setattr(likelihood.tiles, "square", lambda size: 64)
        with forced(likelihoods="tiles"):
            many = marginal_likelihood(kernel, rows, Y, noise, scale)
            slopes = many.gradient
        monkeypatch.undo()
        for way in readings(90, 3, 1, paired=True):
            with forced(likelihoods=way), watched() as met:
                one = marginal_likelihood(kernel, rows, Y, noise, scale)
            assert way in met["likelihoods"]["taken"] or not stationary(kernel)
            assert np.isclose(one.log, many.log, rtol=1e-9)
            np.testing.assert_allclose(one.gradient, slopes, rtol=1e-6, atol=1e-6)
