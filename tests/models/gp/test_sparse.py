"""The evidence over landmarks: gradients against differences, limits against the exact evidence,
memory, threads."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear, Matern, Periodic
from mercer.kernels.params import substitute
from mercer.models.gp.likelihood import marginal_likelihood
from mercer.models.gp.sparse import BLOCK_ROWS, fitc, vfe
from mercer.ops.threads import limit

KERNELS = {
    "gaussian": Gaussian((0.5, 1.0, 2.0)),
    "matern": 0.7 * Matern(1.2, nu=2.5),
    "sum": Gaussian(0.4) + 0.3 * Periodic(1.0, 2.0),
    "not stationary": Linear() * Gaussian(1.5) + 2.0,
}
MEASURES = {"vfe": vfe, "fitc": fitc}


def blocks(n=2 * BLOCK_ROWS + 88, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack(
        [np.sin(X[:, :1] + j) + 0.1 * rng.normal(size=(n, 1)) for j in range(q)]
    )


def plain(k, X, Y, noise, Z, own):
    """Both measures by their formulas, at scale 1."""
    Q = k(X, Z) @ np.linalg.solve(k(Z), k(Z, X))
    left = k.diag(X) - Q.diagonal()
    law = multivariate_normal(np.zeros(len(X)), Q + np.diag(noise + own * left))
    return law.logpdf(Y.T).sum() - (0 if own else Y.shape[1] * (left / noise).sum() / 2)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", KERNELS)
def test_the_formula(measure, name):
    X, Y = blocks(60, 2)
    noise = np.random.default_rng(1).uniform(0.1, 1, 60)
    found = MEASURES[measure](KERNELS[name], Table(X), Y, noise, points=Table(X[:15])).log
    assert found == pytest.approx(
        plain(KERNELS[name], X, Y, noise, X[:15], measure == "fitc"), rel=1e-5
    )


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("scale", [None, 1.7])
def test_gradient_against_differences(measure, name, scale):
    f, k, (X, Y), h = MEASURES[measure], KERNELS[name], blocks(q=2), 1e-5
    rows, points = Table(X), Table(X[:40])

    def at(path, t):
        moved = substitute(k, lambda p, v: v * np.exp(t) if p == path else v)
        s = None if scale is None else scale * np.exp(t * (path == "scale"))
        return f(
            moved, rows, Y, 0.1 * np.exp(t * (path == "noise")), s, points=points, slopes=False
        ).log

    wanted = np.array(
        [(at(p, h) - at(p, -h)) / (2 * h) for p in (*k.parameters(), "noise", "scale")]
    )
    found = f(k, rows, Y, 0.1, scale, points=points).gradient
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", ["gaussian", "matern", "sum"])
@pytest.mark.parametrize("scale", [None, 1.7])
def test_all_rows_as_landmarks_are_the_evidence(measure, name, scale):
    (X, Y), k = blocks(200, 2), KERNELS[name]
    ours, exact = (
        MEASURES[measure](k, Table(X), Y, 0.1, scale, points=Table(X)),
        marginal_likelihood(k, Table(X), Y, 0.1, scale),
    )
    assert ours.log == pytest.approx(exact.log, abs=1e-3)
    assert ours.scale == pytest.approx(exact.scale, rel=1e-6)
    np.testing.assert_allclose(ours.gradient, exact.gradient, atol=0.02)


@pytest.mark.parametrize("name", KERNELS)
def test_more_landmarks_raise_the_bound_to_the_evidence(name):
    X, Y = blocks(150)
    logs = [vfe(KERNELS[name], Table(X), Y, 0.2, points=Table(X[:m])).log for m in (5, 20, 80)]
    assert logs[0] < logs[1] <= logs[2] + 1e-6 * abs(logs[2])
    assert logs[2] <= marginal_likelihood(KERNELS[name], Table(X), Y, 0.2).log + 1e-3


def test_memory_is_that_of_the_landmarks():
    rng = np.random.default_rng(0)
    n, m = 20_000, 64
    X, Y, Z = rng.normal(size=(n, 3)), rng.normal(size=(n, 1)), Table(rng.normal(size=(m, 3)))
    fitc(Gaussian(), Table(X), Y, 0.1, None, points=Z)
    tracemalloc.start()
    try:
        fitc(Gaussian(), Table(X), Y, 0.1, None, points=Z)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used < 8 * n * m / 2  # no n x m array


def test_threads_change_nothing():
    X, Y = blocks(1500)
    found = []
    for threads in (1, 3):
        with limit(threads):
            found.append(fitc(Gaussian(), Table(X), Y, 0.1, None, points=Table(X[:50])))
    assert found[0].log == found[1].log
    np.testing.assert_array_equal(found[0].gradient, found[1].gradient)
