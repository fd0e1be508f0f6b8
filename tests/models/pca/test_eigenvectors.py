"""Leading eigenvectors of centred kernel matrices by products: those of the whole matrix."""

import numpy as np
import pytest

from mercer.kernels import Gaussian, Laplace, Linear, Polynomial
from mercer.linalg.lanczos import TooSlow
from mercer.models.pca import eigenvectors
from mercer.models.pca.eigenvectors import asymmetry, components, leading, lowest, way_of
from mercer.operators import KernelOperator
from mercer.operators.stored import GivenOperator
from mercer.ops import symmetric
from mercer.ops.threads import limit


def data(n=320, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(2, 0.5, d)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(3.0), Laplace(3.0), Linear(), Polynomial(2)],
    ids=["gaussian", "laplace", "linear", "poly"],
)
def test_by_products_as_by_the_whole_matrix(kernel):
    op = KernelOperator(kernel, data())
    whole, some = components(op, 6, "exact"), components(op, 6, "iterative")
    np.testing.assert_allclose(some.values, whole.values, rtol=1e-9, atol=1e-9 * whole.values[0])
    apart = whole.values > 1e-6 * whole.values[0]
    np.testing.assert_allclose(
        some.training_scores()[:, apart], whole.training_scores()[:, apart], atol=1e-5
    )
    assert some.total == pytest.approx(whole.total)
    assert some.residual < 1e-7
    assert some.products > whole.products == 1


def test_scores_of_new_rows_are_those_of_the_centred_kernel():
    X, Z, k = data(100), data(20, seed=1), Gaussian(3.0)
    found = components(KernelOperator(k, X), 5)
    K, H = k(X), np.eye(100) - 1 / 100
    values, V = np.linalg.eigh(H @ K @ H)
    centred = (k(Z, X) - K.mean(0)) @ H
    ours = k(Z, X) @ found.dual - found.offset
    np.testing.assert_allclose(
        np.abs(ours), np.abs(centred @ V[:, :-6:-1] / np.sqrt(values[:-6:-1])), atol=1e-9
    )
    np.testing.assert_allclose(k(X) @ found.dual - found.offset, found.training_scores(), atol=1e-9)


def test_repeated_eigenvalues_low_rank_and_zero():
    A = np.diag([5.0] * 20 + [1.0] * 180)
    s, residual, _ = leading(lambda V: A @ V, 200, 20)
    np.testing.assert_allclose(s.values, 5)
    assert residual < 1e-7
    s, _, _ = leading(lambda V: 0 * V, 50, 3)
    np.testing.assert_array_equal(s.values, 0)
    thin = components(KernelOperator(Linear(), data(400, 3)), 10, "iterative")
    np.testing.assert_array_equal(thin.values[3:] > 0, False)
    assert np.isfinite(thin.dual).all()
    flat = components(KernelOperator(Gaussian(), np.ones((300, 2))), 2, "iterative")
    assert np.abs(flat.training_scores()).max() < 1e-5


def test_slow_spectra_restart():
    A = np.linspace(1.0, 0.5, 600)
    s, residual, products = leading(lambda V: A[:, None] * V, 600, 2)
    np.testing.assert_allclose(s.values, A[:2], atol=1e-6)
    assert products > 8
    assert residual < 1e-3


def test_float32_rows_and_given_matrices():
    X = data(300)
    whole = components(KernelOperator(Gaussian(3.0), X), 4)
    for op in (
        KernelOperator(Gaussian(3.0), X.astype(np.float32)),
        GivenOperator(Gaussian(3.0)(X)),
    ):
        np.testing.assert_allclose(components(op, 4).values, whole.values, rtol=1e-5)


@pytest.mark.parametrize("most", [0, 5000], ids=["by products", "by a factor"])
def test_the_lowest_eigenvalue_tells_kernels_from_others(most, monkeypatch):
    monkeypatch.setattr("mercer.models.pca.eigenvectors.FACTORED", most)
    n = 150
    A, H = np.random.default_rng(0).normal(size=(n, n)), np.eye(n) - 1 / n
    K = A + A.T
    values = np.linalg.eigvalsh(H @ K @ H)
    assert lowest(GivenOperator(K), values[-1], 1e-9) == pytest.approx(values[0], rel=1e-3)
    assert lowest(GivenOperator(K), values[-1], 2 * abs(values[0])) == 0
    G = Gaussian(2.0)(data(n))
    assert lowest(GivenOperator(G), np.linalg.eigvalsh(H @ G @ H)[-1], 1e-10 * n) == 0
    assert asymmetry(K) == 0
    K[0, -1] += np.abs(K).max()
    assert 0.4 < asymmetry(K) <= 1


# one vector at a time
def grid(m, d):
    axis = np.linspace(-1, 1, m)
    return np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)


def onehot(levels, times, noise):
    X = np.repeat(np.eye(levels), times, axis=0)
    return X + noise * np.random.default_rng(0).normal(size=X.shape)


ALIKE = {
    "grid of 2": grid(17, 2),
    "grid of 4": grid(4, 4),
    "a circle": np.stack([np.cos(a := np.arange(300) * np.pi / 150), np.sin(a)], axis=1),
    "levels": onehot(12, 24, 0),
    "levels and noise": onehot(12, 24, 1e-9),
    "far apart": 100 * grid(17, 2),
    "copies": np.repeat(data(100), 3, axis=0),
    "near-copies": np.repeat(data(100), 3, axis=0) + 1e-8 * data(300, seed=1),
    "an offset": data(300) + 1e6,
}


@pytest.mark.parametrize("k", [2, 5, 13])
@pytest.mark.parametrize("name", ALIKE)
def test_rows_whose_eigenvalues_are_alike(name, k):
    for seed in range(3):
        op = KernelOperator(Gaussian(1.5), ALIKE[name])
        whole, some = components(op, k, "exact"), components(op, k, "iterative", seed)
        np.testing.assert_allclose(
            some.values, whole.values, rtol=1e-9, atol=1e-10 * whole.values[0]
        )
        on = some.values > 0
        np.testing.assert_allclose(
            (some.vectors.T @ some.vectors)[np.ix_(on, on)], np.eye(on.sum()), atol=1e-9
        )


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("first", [0, 2, 4])
def test_a_value_that_comes_again_among_many_that_are_near(first, times):
    n, k = 340, 5
    assert way_of(n, k) == "iterative"
    Q = np.linalg.qr(np.c_[np.ones(n), np.random.default_rng(0).normal(size=(n, n - 1))])[0][:, 1:]
    for seed in range(20):
        values = np.sort(np.random.default_rng(seed).uniform(0.5, 1, n - 1))[::-1]
        values *= np.linspace(1, 0, n - 1) ** 2
        values[first : first + times] = values[first]
        K = (Q * values) @ Q.T
        for way in ("auto", "iterative"):
            found = components(GivenOperator((K + K.T) / 2), k, way, seed)
            np.testing.assert_allclose(found.values, values[:k], rtol=1e-9)
            left = K @ found.vectors - found.vectors * values[:k]
            assert np.linalg.norm(left, axis=0).max() < 1e-6
            np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-9)


@pytest.mark.parametrize("n", [200, 330])
@pytest.mark.parametrize("d", [1, 4, 40, 400])
@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_float32_rows_tell_what_float64_rows_tell(n, d, offset):
    X = (data(n, d) + offset).astype(np.float32)
    for kernel in (Gaussian(np.sqrt(2.0 * d)), Laplace(2.0 * d), Linear(), Polynomial(2)):
        some = components(KernelOperator(kernel, X), 8, "iterative")
        whole = components(KernelOperator(kernel, X.astype(np.float64)), 8, "exact")
        np.testing.assert_allclose(
            some.values, whole.values, rtol=1e-5, atol=1e-9 * whole.values[0]
        )
        if not offset:  # else the smallest are rounding
            np.testing.assert_array_equal(some.values > 0, whole.values > 0)
        assert some.total == pytest.approx(whole.total, rel=1e-4)


def test_what_takes_too_many_vectors_in_float32_is_not_tried_in_float64(monkeypatch):
    X, tried = data(200).astype(np.float32), []

    def slow(product, without, *args, **options):
        tried.append(without.dtype)
        raise TooSlow

    monkeypatch.setattr(eigenvectors, "lanczos", slow)
    op = KernelOperator(Gaussian(3.0), X)
    found, whole = components(op, 4, "iterative"), components(op, 4, "exact")
    assert tried == [np.float32]
    np.testing.assert_allclose(found.values, whole.values, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_do_not_depend_on_threads(dtype, monkeypatch):
    monkeypatch.setattr("mercer.models.pca.eigenvectors.IN_CACHE", 0)
    monkeypatch.setattr(symmetric, "LANE_BYTES", 0)
    op = KernelOperator(Gaussian(3.0), data(500).astype(dtype))
    with limit(1):
        one = components(op, 4, "iterative")
    with limit(2):
        two = components(op, 4, "iterative")
    np.testing.assert_array_equal(one.dual, two.dual)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_matrices_of_any_size(scale):
    K = Gaussian(3.0)(data(200))
    plain, scaled = (components(GivenOperator(c * K), 4, "iterative") for c in (1.0, scale))
    np.testing.assert_allclose(scaled.values, scale * plain.values, rtol=1e-12)
    small = components(GivenOperator((1e-30 * K).astype(np.float32)), 4, "iterative")
    np.testing.assert_allclose(small.values, 1e-30 * plain.values, rtol=1e-5)
