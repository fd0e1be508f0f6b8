"""Pre-images that map back, scale and move with the rows, in pieces."""

import tracemalloc

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.models.pca.eigenvectors import components
from mercer.models.pca.preimages import PreImages
from mercer.operators import KernelOperator


def data(n=320, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(2, 0.5, d)


@pytest.mark.parametrize(
    ("kernel", "off"),
    [
        (Linear(), 1e-8),
        (Gaussian(4.0), 1e-3),
        (Laplace(4.0), 0.5),
    ],
    ids=["linear", "gaussian", "laplace"],
)
def test_pre_images_come_back(kernel, off):
    X = data(150, 3)
    found = components(KernelOperator(kernel, X), 149)
    back = PreImages.of(kernel, Table(X), found)(
        kernel, Table(X), found, found.training_scores()[:10]
    )
    assert np.abs(back - X[:10]).max() < off


def test_pre_images_denoise():
    gains = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        t = rng.uniform(0, 2 * np.pi, size=200)
        clean = np.column_stack([np.cos(t), np.sin(t)])
        noisy = clean + 0.15 * rng.normal(size=(200, 2))
        found = components(KernelOperator(Gaussian(1.0), noisy), 4)
        way = PreImages.of(Gaussian(1.0), Table(noisy), found)
        back = way(Gaussian(1.0), Table(noisy), found, found.training_scores())
        gains.append(np.square(back - clean).mean() / np.square(noisy - clean).mean())
    assert np.mean(gains) < 0.8


def pre_images(kernel, X, Z=None, k=12):
    found = components(KernelOperator(kernel, X), k)
    Z = found.training_scores() if Z is None else Z
    return PreImages.of(kernel, Table(X), found)(kernel, Table(X), found, Z)


@pytest.mark.parametrize("size", [1e-120, 1e-8, 1e8, 1e120], ids=str)
def test_pre_images_scale_with_the_rows(size):
    X = data(120, 3)
    np.testing.assert_allclose(
        pre_images(Gaussian(2.0 * size), size * X) / size,
        pre_images(Gaussian(2.0), X),
        rtol=1e-6,
        atol=1e-7,
    )


def test_pre_images_move_with_the_rows_and_columns_have_units():
    X, unit = data(120, 3), np.array([1e-6, 1.0, 1e6])
    plain = pre_images(Gaussian(2.0), X)
    np.testing.assert_allclose(pre_images(Gaussian(2.0), X + 1e6) - 1e6, plain, atol=1e-6)
    np.testing.assert_allclose(
        pre_images(Gaussian(tuple(2 * unit)), X * unit) / unit, plain, atol=1e-6
    )


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Linear()], ids=["gaussian", "linear"])
def test_factors_of_a_kernel_move_no_pre_image(kernel):
    X = data(100, 3)
    np.testing.assert_allclose(pre_images(3 * (2 * kernel), X), pre_images(kernel, X), atol=1e-6)


def test_pre_images_are_at_least_as_near_as_the_rows_and_the_regression():
    for seed in range(4):
        for kernel in (Gaussian(0.5), 2 * Gaussian(1.5)):
            X, rng = data(100, 3, seed), np.random.default_rng(seed)
            found = components(KernelOperator(kernel, X), 12)
            Z = rng.normal(size=(50, 12)) * found.training_scores().std(0)
            gamma, way = found.expansion(Z), PreImages.of(kernel, Table(X), found)
            near = lambda x, gamma=gamma, kernel=kernel, X=X: (gamma * kernel(x, X)).sum(1)
            value = near(way(kernel, Table(X), found, Z))
            assert (value >= (gamma @ kernel(X)).max(1) - 1e-9).all()
            assert (value >= near(way.regression(Z)) - 1e-9).all()


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Linear()], ids=["gaussian", "linear"])
def test_pre_images_come_in_pieces(monkeypatch, kernel):
    X = data(60, 3)
    whole = pre_images(kernel, X)
    monkeypatch.setattr("mercer.models.pca.preimages.PIECE_BYTES", 8 * 60 * 7)
    np.testing.assert_allclose(pre_images(kernel, X), whole, atol=1e-10)


@pytest.mark.parametrize(
    "kernel", [Gaussian(2.0), Laplace(2.0), Linear()], ids=["gaussian", "laplace", "linear"]
)
def test_pre_images_of_many_queries_hold_no_queries_by_rows(monkeypatch, kernel):
    monkeypatch.setattr("mercer.models.pca.preimages.PIECE_BYTES", 1 << 17)
    X = data(200, 3)
    found = components(KernelOperator(kernel, X), 3)
    way, Z = PreImages.of(kernel, Table(X), found), np.tile(found.training_scores(), (80, 1))
    way(kernel, Table(X), found, Z[:10])
    tracemalloc.start()
    way(kernel, Table(X), found, Z)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * len(Z) * len(X) / 2  # half of one array of queries by rows
