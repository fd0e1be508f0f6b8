"""Systems: what both solve on hard rows, rows that come and go; the iterative one is the exact one to
what it states, and forms no matrix."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Table
from mercer.kernels import Gaussian, Matern
from mercer.linalg.precondition import Woodbury
from mercer.models.gp.points import PointPosterior
from mercer.models.gp.sources import KernelPoints
from mercer.models.gp.systems import CholeskySystem, IterativeSystem, explained, latent


def data(n=40, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack(
        [np.sin(X[:, :1] + j) + 0.1 * rng.normal(size=(n, 1)) for j in range(q)]
    )


def rows_of(case, dtype):
    rng = np.random.default_rng(3)
    X = {
        "plain": rng.normal(size=(23, 3)),
        "copies": np.repeat(rng.normal(size=(6, 2)), 4, axis=0),
        "near copies": np.repeat(rng.normal(size=(6, 2)), 4, axis=0)
        + 1e-7 * rng.normal(size=(24, 2)),
        "a line": np.outer(np.linspace(-1, 1, 17), np.ones(4)),
        "far away": 1e6 + rng.normal(size=(19, 2)),
        "one row": rng.normal(size=(1, 5)),
        "few rows": rng.normal(size=(4, 30)),
    }[case]
    return Table(X.astype(dtype)).astype(np.float64)


CASES = ["plain", "copies", "near copies", "a line", "far away", "one row", "few rows"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [CholeskySystem, IterativeSystem])
def test_systems_on_hard_rows(kind, case, dtype):
    """Against plain algebra: solutions, determinants, variances and covariances of new rows."""
    X = rows_of(case, dtype)
    n, rng = len(X), np.random.default_rng(4)
    noise = rng.uniform(0.05, 0.2, size=n)
    s = kind(KernelPoints(Gaussian(1.3), X), noise, 1.7)
    A, B = 1.7 * Gaussian(1.3)(X) + np.diag(noise), rng.normal(size=(n, 2))
    np.testing.assert_allclose(A @ s.solve(B), B, atol=1e-5)
    d = s.determinant(1)
    assert d.log == pytest.approx(np.linalg.slogdet(A)[1], abs=4 * d.error + 1e-6 * n)
    Z = Table(np.vstack([X.data[:2], X.data[:1] + 0.5]))
    K = 1.7 * Gaussian(1.3)(Z, X)
    C = 1.7 * Gaussian(1.3)(Z) - K @ np.linalg.solve(A, K.T)
    np.testing.assert_allclose(s.covariance(Z, 0.1), C + 0.1 * np.eye(len(C)), atol=1e-4)
    np.testing.assert_allclose(s.variance(Z, 0.1), C.diagonal() + 0.1, atol=2e-3)
    np.testing.assert_allclose(latent(s, B, Z), K @ B, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [CholeskySystem, IterativeSystem])
def test_systems_grow_and_shrink(kind, case):
    X, rng = rows_of(case, np.float64), np.random.default_rng(5)
    n = len(X)
    more = Table(X.data[rng.integers(0, n, 3)] + 0.1 * rng.normal(size=(3, X.width)))
    s = kind(KernelPoints(Gaussian(1.3), X), np.full(n, 0.1), 1.7)
    B = rng.normal(size=(n, 1))
    before = s.solve(B)
    grown = s.grown(more, np.full(3, 0.2))
    fresh = kind(KernelPoints(Gaussian(1.3), grown.points.X), grown.noise, 1.7)
    C = rng.normal(size=(n + 3, 1))
    np.testing.assert_allclose(grown.solve(C), fresh.solve(C), atol=1e-5)
    back = grown.shrunk(np.arange(n))
    np.testing.assert_array_equal(back.points.X.data, X.data)
    np.testing.assert_array_equal(back.noise, s.noise)
    np.testing.assert_allclose(back.solve(B), before, atol=1e-5)


def peak(call):
    """The most bytes that arrays took while the call ran."""
    call()  # what is compiled and cached does not count
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_iterative_way_forms_no_matrix():
    rng = np.random.default_rng(0)
    X, Y, each = rng.normal(size=(3000, 3)), rng.normal(size=(3000, 1)), np.full(3000, 0.5)

    def fit():
        points = KernelPoints(Gaussian(2.0), Table(X))
        p = PointPosterior.of(IterativeSystem(points, each, 1.0, tol=1e-3, memory=5e6), Y)
        return p.mean(Table(X[:100]))

    assert peak(fit) < 8 * 3000**2 / 2


@pytest.mark.parametrize("noise", [1e-1, 1e-3])
def test_iterative_is_cholesky(noise):
    (X, Y), (Z, _) = data(400), data(50, seed=1)
    each = np.full(400, noise)
    exact, ours = (
        PointPosterior.of(system(KernelPoints(Gaussian(0.9), Table(X)), each, 1.3), Y)
        for system in (CholeskySystem, IterativeSystem)
    )
    np.testing.assert_allclose(ours.mean(Table(Z)), exact.mean(Table(Z)), atol=1e-5)
    np.testing.assert_allclose(
        ours.variance(Table(Z)), exact.variance(Table(Z)), atol=0.02 * noise, rtol=1e-4
    )
    np.testing.assert_allclose(
        ours.covariance(Table(Z)), exact.covariance(Table(Z)), atol=0.01 * noise
    )
    assert ours.log_marginal_likelihood == pytest.approx(
        exact.log_marginal_likelihood, abs=2 * ours.determinant.error + 1e-4
    )


@pytest.mark.parametrize(
    "kernel", [Matern(0.6, nu=1.5), Matern(0.5, nu=0.5)], ids=["smooth", "rough"]
)
def test_the_iterative_way_is_within_what_it_states(kernel):
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(-1, 1, size=(1300, 3)), rng.uniform(-1, 1, size=(40, 3))
    Y = np.sin(3 * X[:, :1]) + 0.2 * rng.normal(size=(1300, 1))
    noise = np.full(1300, 0.05)
    ours, exact = (
        PointPosterior.of(system(KernelPoints(kernel, Table(X)), noise, 1.0), Y)
        for system in (IterativeSystem, CholeskySystem)
    )
    np.testing.assert_allclose(ours.mean(Table(Z)), exact.mean(Table(Z)), atol=1e-4)
    assert (np.abs(ours.variance(Table(Z)) - exact.variance(Table(Z))) <= 0.02 * 0.05 + 1e-6).all()
    error = 0.5 * ours.determinant.error
    assert error <= 1e-3 * 1300
    assert ours.log_marginal_likelihood == pytest.approx(
        exact.log_marginal_likelihood, abs=4 * error + 1e-3
    )


def test_variances_that_stop_early_say_so():
    A, P = (
        np.diag(np.geomspace(1e-8, 1.0, 400)),
        Woodbury.of(np.zeros((400, 0)), np.full(400, 1e-8)),
    )
    with pytest.warns(ConvergenceWarning, match="variances at 1 rows are too large by up to"):
        explained(lambda V: A @ V, np.ones((400, 1)), P, 1e-9)
