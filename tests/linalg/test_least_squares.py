"""Kernel ridge in the dual: scikit-learn's, weights as repeated rows, intercepts as a huge
constant."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as Theirs

from mercer.kernels import Constant, Gaussian, Laplace, Linear
from mercer.linalg import least_squares as primal
from mercer.linalg.cholesky import Cholesky
from mercer.linalg.least_squares import exact
from mercer.linalg.solvers import CG
from mercer.operators import KernelOperator
from mercer.operators.stored import GivenOperator
from mercer.stats import Moments

SOLVERS = {"cholesky": Cholesky(), "cg": CG(tol=1e-10)}
TWINS = {
    "gaussian": (Gaussian(1.5), dict(kernel="rbf", gamma=1 / 4.5)),
    "linear": (Linear(), dict(kernel="linear")),
    "laplace": (Laplace(2.0, norm=1), dict(kernel="laplacian", gamma=0.5)),
}


def data(n=60, q=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[n // 2] = X[0]
    return (
        X,
        np.column_stack([np.sin(X[:, 0]) + 5, X[:, 1] ** 2])[:, :q] + 0.1 * rng.normal(size=(n, q)),
        rng.uniform(0.2, 3, size=n),
    )


def predict(kernel, X, s, Z):
    return kernel(Z, X) @ s.coef + s.intercept


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0, 1e6])
def test_scikit_learns_solution(solver, twin, alpha):
    (X, Y, w), (kernel, theirs) = data(), TWINS[twin]
    s = exact(KernelOperator(kernel, X), Y, alpha, w, intercept=False, solver=SOLVERS[solver])
    ref = Theirs(alpha=alpha, **theirs).fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(
        kernel(X) @ s.coef, ref.predict(X), rtol=1e-6, atol=1e-6 * np.abs(Y).max()
    )
    assert s.residual <= 1e-8
    assert s.intercept.tolist() == [0, 0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_intercept_is_an_unpenalised_constant(solver):
    X, Y, w = data()
    s = exact(KernelOperator(Gaussian(1.5), X), Y, 0.1, w, solver=SOLVERS[solver])
    np.testing.assert_allclose(s.coef.sum(0), 0, atol=1e-7)
    huge = exact(
        KernelOperator(Gaussian(1.5) + 1e7 * Constant(), X),
        Y,
        0.1,
        w,
        intercept=False,
        solver=Cholesky(),
    )
    np.testing.assert_allclose(
        predict(Gaussian(1.5), X, s, X),
        predict(Gaussian(1.5) + 1e7 * Constant(), X, huge, X),
        atol=1e-5,
    )


def test_primal_ridge_is_dual_ridge():
    X, Y, w = data()
    m = Moments.zero(np.zeros(5))
    m.add(np.column_stack([X, Y]), w)
    p = primal.solve(m, 3, 0.3)
    s = exact(KernelOperator(Linear(), X), Y, 0.3, w)
    np.testing.assert_allclose(X.T @ s.coef, p.coef, atol=1e-9)
    np.testing.assert_allclose(s.intercept, p.intercept, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_are_repeated_rows_and_zero_drops_out(solver):
    X, Y, _ = data(30)
    w = np.arange(30) % 3
    again = np.repeat(np.arange(30), w)
    s = exact(KernelOperator(Gaussian(1.5), X), Y, 0.2, w, solver=SOLVERS[solver])
    t = exact(KernelOperator(Gaussian(1.5), X[again]), Y[again], 0.2, solver=SOLVERS[solver])
    np.testing.assert_allclose(
        predict(Gaussian(1.5), X, s, X), predict(Gaussian(1.5), X[again], t, X), atol=1e-7
    )
    assert not s.coef[w == 0].any()


def test_one_penalty_an_output():
    X, Y, w = data()
    s = exact(KernelOperator(Gaussian(), X), Y, [0.1, 10.0], w, loo=True, solver=Cholesky())
    for j, a in enumerate([0.1, 10.0]):
        t = exact(KernelOperator(Gaussian(), X), Y[:, [j]], a, w, loo=True, solver=Cholesky())
        np.testing.assert_allclose(s.coef[:, [j]], t.coef)
        np.testing.assert_allclose(s.loo[:, [j]], t.loo)


@pytest.mark.parametrize("bandwidth", [1e-6, 1e-2, 1e2, 1e6])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_extreme_bandwidths_and_penalties_stay_sane(bandwidth, alpha, solver):
    X, Y, w = data()
    s = exact(KernelOperator(Gaussian(bandwidth), X), Y, alpha, w, solver=SOLVERS[solver])
    fitted = predict(Gaussian(bandwidth), X, s, X)
    assert np.isfinite(fitted).all()
    assert (
        np.square(w[:, None] ** 0.5 * (fitted - Y)).sum()
        <= (1 + 1e-9) * np.square(w[:, None] ** 0.5 * (Y - np.average(Y, 0, w))).sum()
    )


def test_given_matrices_one_row_constant_targets_and_no_weight():
    X, Y, w = data()
    K = Gaussian(1.5)(X)
    s, t = exact(GivenOperator(K), Y, 0.1, w), exact(KernelOperator(Gaussian(1.5), X), Y, 0.1, w)
    np.testing.assert_allclose(s.coef, t.coef, atol=1e-9)
    w[5] = 0
    s = exact(GivenOperator(K), Y, 0.1, w, loo=True)
    t = exact(KernelOperator(Gaussian(1.5), X), Y, 0.1, w, loo=True)
    np.testing.assert_allclose(s.loo, t.loo, atol=1e-9)
    one = exact(KernelOperator(Gaussian(), X[:1]), Y[:1])
    np.testing.assert_allclose(one.intercept, Y[0])
    flat = exact(KernelOperator(Gaussian(), X), np.full(60, 7.0), 0.1)
    assert (flat.residual, flat.intercept[0], np.abs(flat.coef).max()) == (0, 7, 0)
    with pytest.raises(ValueError, match="zero for every row"):
        exact(KernelOperator(Gaussian(), X), Y, 0.1, np.zeros(60))
    with pytest.raises(ValueError, match="needs a Cholesky factor"):
        exact(KernelOperator(Gaussian(), X), Y, 0.1, loo=True, solver=CG())
