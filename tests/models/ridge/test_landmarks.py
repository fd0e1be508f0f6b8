"""Ridge over landmarks: the normal equations, Nystrom features, streams, weights, and a residual
that is met."""

import numpy as np
import pytest

from mercer.kernels import Callable, Gaussian, Laplace, Linear
from mercer.lifts import Nystrom
from mercer.linalg.least_squares import exact
from mercer.models import KernelRidge
from mercer.models.ridge import falkon as module
from mercer.models.ridge.falkon import falkon
from mercer.operators import KernelOperator


def data(n=400, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([np.sin(X[:, 0]) + 3, X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(n, 2))
    return X.astype(dtype), Y, rng.uniform(0.2, 3, size=n)


def predict(kernel, Z, s, X):
    return kernel(X, Z[s.kept]) @ s.coef + s.intercept


def by_least_squares(kernel, Z, X, Y, w, alpha, intercept):
    """[sqrt(w) k(x, Z), 1; sqrt(alpha) root of k(Z)] c = [sqrt(w) Y; 0], dense: products of these
    rows would square their condition."""
    F = np.column_stack([kernel(X, Z), np.ones(len(X))]) if intercept else kernel(X, Z)
    s, V = np.linalg.eigh(kernel(Z))
    P = np.zeros((len(Z), F.shape[1]))
    P[:, : len(Z)] = np.sqrt(alpha * np.maximum(s, 0))[:, None] * V.T
    root = np.sqrt(w)[:, None]
    rows, right = np.vstack([root * F, P]), np.vstack([root * Y, np.zeros((len(Z), Y.shape[1]))])
    return F @ np.linalg.lstsq(rows, right, rcond=1e-15)[0]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.5), Laplace(2.0), Linear() + Gaussian(3.0)],
    ids=["gaussian", "laplace", "sum"],
)
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
def test_the_normal_equations(kernel, intercept, alpha):
    X, Y, w = data()
    Z = X[::10]
    s = falkon(kernel, Z, lambda: [(X, Y, w)], alpha, intercept=intercept, tol=1e-10)
    expected = by_least_squares(kernel, Z, X, Y, w, alpha, intercept)
    np.testing.assert_allclose(predict(kernel, Z, s, X), expected, atol=1e-7 * np.abs(Y).max())
    assert s.residual <= 1e-10


@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_residual_is_met(alpha, dtype):
    X, Y, w = data(dtype=dtype)
    s = falkon(Gaussian(1.5), X[::8], lambda: [(X, Y, w)], alpha)
    assert s.residual <= 1e-6
    assert s.steps < 60


def test_all_rows_as_landmarks_are_kernel_ridge():
    X, Y, w = data(120)
    s = falkon(Gaussian(1.5), X, lambda: [(X, Y, w)], 0.1, tol=1e-10)
    e = exact(KernelOperator(Gaussian(1.5), X), Y, 0.1, w)
    np.testing.assert_allclose(
        predict(Gaussian(1.5), X, s, X), Gaussian(1.5)(X) @ e.coef + e.intercept, atol=1e-5
    )


def test_landmarks_are_ridge_on_nystrom_features():
    X, Y, _ = data()
    phi = Nystrom(Gaussian(1.5), 50, random_state=0).fit(X)
    F, Z = phi.transform(X), phi.landmarks_
    coef = np.linalg.solve(F.T @ F + 0.1 * np.eye(F.shape[1]), F.T @ Y)
    s = falkon(Gaussian(1.5), Z, lambda: [(X, Y, None)], 0.1, intercept=False, tol=1e-10)
    np.testing.assert_allclose(predict(Gaussian(1.5), Z, s, X), F @ coef, atol=1e-6)


@pytest.mark.parametrize("memory", [1e9, 0.0], ids=["kept", "recomputed"])
def test_a_stream_is_the_whole(memory):
    X, Y, w = data(900)
    Z = X[:60]
    whole = falkon(Gaussian(1.5), Z, lambda: [(X, Y, w)], 0.1, tol=1e-9)
    parts = lambda: ((X[i : i + 170], Y[i : i + 170], w[i : i + 170]) for i in range(0, 900, 170))
    s = falkon(Gaussian(1.5), Z, parts, 0.1, tol=1e-9, memory=memory)
    np.testing.assert_allclose(
        predict(Gaussian(1.5), Z, s, X), predict(Gaussian(1.5), Z, whole, X), atol=1e-7
    )


def test_weights_are_repeated_rows_and_zero_drops_out():
    X, Y, _ = data(300)
    w = np.arange(300) % 3
    again = np.repeat(np.arange(300), w)
    far = np.where((w == 0)[:, None], 50.0, 0.0)
    s = falkon(Gaussian(1.5), X[:40], lambda: [(X, Y + far, w)], 0.1, tol=1e-10)
    t = falkon(Gaussian(1.5), X[:40], lambda: [(X[again], Y[again], None)], 0.1, tol=1e-10)
    np.testing.assert_allclose(
        predict(Gaussian(1.5), X[:40], s, X), predict(Gaussian(1.5), X[:40], t, X), atol=1e-6
    )


def test_repeated_landmarks_are_left_out():
    X, Y, _ = data()
    Z = np.vstack([X[:30], X[:30]])
    s, t = (falkon(Gaussian(1.5), z, lambda: [(X, Y, None)], 0.1, tol=1e-10) for z in (Z, X[:30]))
    assert len(s.kept) == 30
    np.testing.assert_allclose(s.coef, t.coef, atol=1e-6)


def test_the_sample_is_uniform_whatever_the_batches():
    X = module.table(np.arange(1000.0)[:, None])
    found = []
    for step in (1000, 170):
        sample = module.SampledRows(50, module.Stream(3))
        for i in range(0, 1000, step):
            sample.add(X[i : i + step], np.ones(len(X[i : i + step])), i)
        found.append(np.concatenate([rows.data[:, 0] for rows, _ in sample.rows]))
    np.testing.assert_array_equal(*found)
    assert len(found[0]) == 50
    assert abs(found[0].mean() - 500) < 5 * 290 / 50**0.5


def test_any_kernel_constant_targets_and_empty_streams():
    X, Y, _ = data(100)
    s = falkon(Callable(lambda A, B: A @ B.T), X[:5], lambda: [(X, Y, None)], 1e-3)
    np.testing.assert_allclose(
        predict(Callable(lambda A, B: A @ B.T), X[:5], s, X),
        by_least_squares(Linear(), X[:3], X, Y, np.ones(100), 1e-3, True),
        atol=1e-4,
    )
    flat = falkon(Gaussian(), X[:5], lambda: [(X, np.full((100, 1), 2.0), None)])
    assert flat.intercept[0] == pytest.approx(2)
    assert np.abs(flat.coef).max() < 1e-9
    for batches in (list, lambda: [(X, Y, np.zeros(100))]):
        with pytest.raises(ValueError, match="no row of positive weight"):
            falkon(Gaussian(), X[:5], batches)


rng = np.random.default_rng(0)
X60 = np.random.default_rng(0).normal(size=(60, 3))
y60 = X60[:, 0] + np.sin(X60[:, 1])


def test_a_preconditioner_in_float32_keeps_its_sign():
    A = rng.uniform(0, 6, size=(3200, 1))
    m = KernelRidge(alpha=1e-3).fit(A, np.sin(A[:, 0]) + 0.1 * rng.normal(size=3200))
    assert m.plan_.way == "conjugate gradients"
    assert m.residual_ <= 1e-6
    assert np.abs(m.predict(A) - np.sin(A[:, 0])).max() < 0.1


def test_falkon_notices_batches_that_do_not_come_again():
    spent = iter([(X60, y60, None)])
    with pytest.raises(ValueError, match="other rows than in the first pass"):
        falkon(Gaussian(), X60[:20], lambda: spent, alpha=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_landmarks_near_the_floor_of_rounding(seed):
    Z = np.random.default_rng(seed).normal(size=(500, 2))
    assert (
        KernelRidge(None, 1e-2, "landmarks", random_state=seed).fit(Z, Z[:, 0]).score(Z, Z[:, 0])
        > 0.99
    )
