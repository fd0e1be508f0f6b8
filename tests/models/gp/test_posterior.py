"""The evidence and its gradient, factors that grow and shrink, and the determinant by quadrature."""
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma, invgamma, lognorm, multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Table
from mercer.kernels import Gaussian, Matern, Periodic
from mercer.kernels.params import substitute
from mercer.linalg.precondition import Woodbury
from mercer.models.gp.exact import ExactPosterior
from mercer.models.gp.factor import appended, put_back, reference_put_back, removed, root
from mercer.models.gp.iterative import IterativePosterior, explained
from mercer.models.gp.likelihood import marginal_likelihood
from mercer.models.gp.priors import Gamma, InverseGamma, LogNormal
from mercer.models.gp.quadrature import log_determinant
from tests.market import rows, trees

KERNELS = {"gaussian": Gaussian((0.5, 1.0, 2.0)), "matern": 0.7 * Matern(1.2, nu=2.5), "sum": Gaussian(0.4) + 0.3 * Periodic(1.0, 2.0)}


def data(n=40, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack([np.sin(X[:, :1] + j) + 0.1 * rng.normal(size=(n, 1)) for j in range(q)])


def moved(k, path, step):
    return substitute(k, lambda p, v: v * np.exp(step) if p == path else v)


def differences(k, X, Y, noise, scale, h=1e-5):
    """The gradient of the evidence by central differences of the log-parameters."""

    def at(path, t):
        s = None if scale is None else scale * np.exp(t * (path == "scale"))
        return marginal_likelihood(moved(k, path, t), Table(X), Y, noise * np.exp(t * (path == "noise")), s, slopes=False).log

    return np.array([(at(p, h) - at(p, -h)) / (2 * h) for p in (*k.parameters(), "noise", "scale")])


@settings(max_examples=15)
@given(trees, st.sampled_from([None, 1.7]))
def test_gradients_of_random_trees(k, scale):
    X = rows(12)
    Y = np.sin(3 * X[:, :2])
    with np.errstate(all="ignore"):
        found, wanted = marginal_likelihood(k, Table(X), Y, 0.3, scale).gradient, differences(k, X, Y, 0.3, scale)
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("q", [1, 3])
def test_gradient_over_many_tiles(name, q):
    X, Y = data(700, q)  # three tiles a side
    found = marginal_likelihood(KERNELS[name], Table(X), Y, 0.05, None).gradient
    np.testing.assert_allclose(found, differences(KERNELS[name], X, Y, 0.05, None), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("name", KERNELS)
def test_the_evidence_is_a_gaussian_density(name):
    X, Y = data(30, 2)
    noise = np.random.default_rng(0).uniform(0.1, 1, 30)
    law = multivariate_normal(np.zeros(30), 1.5 * KERNELS[name](X) + np.diag(noise))
    assert marginal_likelihood(KERNELS[name], Table(X), Y, noise, 1.5).log == pytest.approx(law.logpdf(Y.T).sum())


def test_the_profiled_scale_is_the_best_one():
    X, Y = data()
    best = marginal_likelihood(Gaussian(), Table(X), Y, 0.1, None)
    logs = [marginal_likelihood(Gaussian(), Table(X), Y, 0.1 * s, s).log for s in best.scale * np.array([0.9, 1.0, 1.1])]
    assert logs[1] == pytest.approx(best.log)
    assert max(logs) == logs[1]


@pytest.mark.parametrize(("ours", "theirs"), [
    (LogNormal(2.0, 0.7), lognorm(0.7, scale=2.0)), (Gamma(3.0, 2.0), gamma(3.0, scale=0.5)),
    (InverseGamma(3.0, 4.0), invgamma(3.0, scale=4.0)),
], ids=["lognormal", "gamma", "inverse gamma"])  # fmt: skip
def test_priors_against_scipy(ours, theirs):
    v = np.array([0.3, 1.0, 4.0])
    logs = np.array([ours.log(x) for x in v])
    np.testing.assert_allclose(logs - logs[0], theirs.logpdf(v) - theirs.logpdf(v[0]))
    slopes = [(ours.log(x * np.exp(1e-6)) - ours.log(x * np.exp(-1e-6))) / 2e-6 for x in v]
    np.testing.assert_allclose([ours.slope(x) for x in v], slopes, rtol=1e-6)


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
    used = peak(lambda: marginal_likelihood(k, Table(X), Y, 0.1, None))
    assert used < 6 * matrix  # with room for the tiles of two threads; an (n, n, p) array alone would be 25


def test_the_iterative_way_forms_no_matrix():
    rng = np.random.default_rng(0)
    X, Y, each = rng.normal(size=(3000, 3)), rng.normal(size=(3000, 1)), np.full(3000, 0.5)

    def fit():
        p = IterativePosterior.of(Gaussian(2.0), Table(X), Y, each, 1.0, tol=1e-3, memory=5e6)
        return p.mean(Table(X[:100]))

    assert peak(fit) < 8 * 3000**2 / 2


# factors
@pytest.mark.parametrize("n", [1, 2, 17])
def test_rotations_are_a_fresh_factor(n):
    rng = np.random.default_rng(n)
    R = np.triu(rng.normal(size=(n, n)) + 3 * np.eye(n))
    R[np.diag_indices(n)] = np.abs(R.diagonal())
    v, plain = rng.normal(size=n), R.copy()
    reference_put_back(plain, v)
    fast = R.copy()
    put_back(fast, v.copy())
    np.testing.assert_allclose(np.triu(fast), np.triu(plain), atol=1e-12)


@pytest.mark.parametrize("index", [[0], [6], [3, 0, 6], [1, 2, 3, 4]], ids=str)
def test_rows_come_and_go(index):
    A = Gaussian()(np.random.default_rng(0).normal(size=(7, 2))) + 0.1 * np.eye(7)
    L = np.asfortranarray(np.linalg.cholesky(A))
    before, keep = L.copy(), np.setdiff1d(np.arange(7), index)
    smaller = removed(L, np.array(index))
    np.testing.assert_allclose(np.tril(smaller), np.linalg.cholesky(A[np.ix_(keep, keep)]), atol=1e-12)
    np.testing.assert_array_equal(L, before)
    order = np.append(keep, index)
    larger = appended(smaller, A[np.ix_(index, keep)], A[np.ix_(index, index)])
    np.testing.assert_allclose(np.tril(larger), np.linalg.cholesky(A[np.ix_(order, order)]), atol=1e-12)


# the operator
def test_the_determinant_is_within_its_error():
    """Over preconditioners: four standard errors, and the better the preconditioner the smaller they are."""
    X, _ = data(300)
    A = Gaussian(0.8)(X) + 0.05 * np.eye(300)
    values, vectors = np.linalg.eigh(A - 0.05 * np.eye(300))
    exact, errors = np.linalg.slogdet(A)[1], []
    for rank in (0, 20, 100):
        F = vectors[:, ::-1][:, :rank] * np.sqrt(np.maximum(values[::-1][:rank], 0))
        found = [log_determinant(lambda V: A @ V, Woodbury.of(F.copy(), np.full(300, 0.05)), seed=s) for s in range(5)]
        assert np.mean([d.log for d in found]) == pytest.approx(exact, abs=4 * np.mean([d.error for d in found]) / np.sqrt(5))
        errors.append(np.mean([d.error for d in found]))
    assert errors[0] > errors[1] > 2 * errors[2]


@pytest.mark.parametrize("noise", [1e-1, 1e-3])
def test_iterative_is_cholesky(noise):
    (X, Y), (Z, _) = data(400), data(50, seed=1)
    each = np.full(400, noise)
    exact, ours = ExactPosterior.of(Gaussian(0.9), Table(X), Y, each, 1.3), IterativePosterior.of(Gaussian(0.9), Table(X), Y, each, 1.3)
    np.testing.assert_allclose(ours.mean(Table(Z)), exact.mean(Table(Z)), atol=1e-5)
    np.testing.assert_allclose(ours.variance(Table(Z)), exact.variance(Table(Z)), atol=0.02 * noise, rtol=1e-4)
    np.testing.assert_allclose(ours.covariance(Table(Z)), exact.covariance(Table(Z)), atol=0.01 * noise)
    assert ours.log_marginal_likelihood == pytest.approx(exact.log_marginal_likelihood, abs=2 * ours.determinant.error + 1e-4)


def test_probes_are_taken_until_the_error_is_small():
    """Over seeds: where the preconditioner is poor, more probes, and the estimate as near as its error says."""
    A = np.diag(np.geomspace(1.0, 1e4, 200))
    P, product = Woodbury.of(np.zeros((200, 0)), np.full(200, 100.0)), lambda V: A @ V
    few = [log_determinant(product, P, seed=s) for s in range(5)]
    more = [log_determinant(product, P, seed=s, error=5.0) for s in range(5)]
    assert min(d.error for d in few) > 5 >= max(d.error for d in more)
    assert np.mean([abs(d.log - np.log(A.diagonal()).sum()) < 2 * d.error for d in more]) >= 0.8
    assert log_determinant(product, P, error=0.0).error > 0  # there is an end to it


def test_a_length_of_probes_adds_no_spread():
    """A = c P: the directions tell all, and every probe the same."""
    d = log_determinant(lambda V: 7.0 * V, Woodbury.of(np.zeros((50, 0)), np.ones(50)))
    assert d.error < 1e-9
    assert d.log == pytest.approx(50 * np.log(7.0))


@pytest.mark.parametrize("kernel", [Matern(0.6, nu=1.5), Matern(0.5, nu=0.5)], ids=["smooth", "rough"])
def test_the_iterative_way_is_within_what_it_states(kernel):
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(-1, 1, size=(1300, 3)), rng.uniform(-1, 1, size=(40, 3))
    Y = np.sin(3 * X[:, :1]) + 0.2 * rng.normal(size=(1300, 1))
    noise = np.full(1300, 0.05)
    ours, exact = IterativePosterior.of(kernel, Table(X), Y, noise, 1.0), ExactPosterior.of(kernel, Table(X), Y, noise, 1.0)
    np.testing.assert_allclose(ours.mean(Table(Z)), exact.mean(Table(Z)), atol=1e-4)
    assert (np.abs(ours.variance(Table(Z)) - exact.variance(Table(Z))) <= 0.02 * 0.05 + 1e-6).all()
    error = 0.5 * ours.determinant.error
    assert error <= 1e-3 * 1300
    assert ours.log_marginal_likelihood == pytest.approx(exact.log_marginal_likelihood, abs=4 * error + 1e-3)


def test_variances_that_stop_early_say_so():
    A, P = np.diag(np.geomspace(1e-8, 1.0, 400)), Woodbury.of(np.zeros((400, 0)), np.full(400, 1e-8))
    with pytest.warns(ConvergenceWarning, match="variances at 1 rows are too large by up to"):
        explained(lambda V: A @ V, np.ones((400, 1)), P, 1e-9)


# roots
def test_a_root_ends():
    np.testing.assert_allclose(root(np.ones((3, 3)), 1.0, 1e-14) @ root(np.ones((3, 3)), 1.0, 1e-14).T, 1.0, atol=1e-10)
    wrong = (-np.eye(2), "not positive semidefinite"), (np.full((2, 2), np.nan), "too large"), (np.diag([np.inf, 1.0]), "too large")
    for C, match in wrong:
        with pytest.raises(ValueError, match=match):
            root(C, 1.0, 1e-14)
    with pytest.raises(ValueError, match="too large"), np.errstate(all="ignore"):
        appended(np.eye(1), np.array([[1e200]]), np.array([[np.inf]]))
