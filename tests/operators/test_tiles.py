"""Fast tiles: of bits, and when they are used."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Laplace, Linear, Matern
from mercer.operators.tiles import BitTiles, GaussianTiles, MappedTiles, PairTiles, tiles_of
from mercer.ops.distances import by_product


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (3.0, 3.25)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "k",
    [Gaussian(1.3), Laplace(1.3), Laplace(5.0, norm=1, exponent=0.7), Laplace(2.0, exponent=1.3)],
    ids=repr,
)
def test_rows_of_two_values_a_column_have_the_kernel_values_of_any_rows(low, high, dtype, k):
    rng = np.random.default_rng(3)
    X, Z = (np.where(rng.random((n, 70)) < 0.2, high, low).astype(dtype) for n in (30, 12))
    X[:, 5] = Z[:, 5] = high
    out = np.empty((30, 12), dtype)
    tiles = tiles_of(k, Table(X), Table(Z), dtype)
    assert isinstance(tiles, BitTiles)
    tiles.fill(tiles.side(Table(X), left=True), tiles.side(Table(Z), left=False), out)
    np.testing.assert_allclose(
        out, k(X.astype(float), Z.astype(float)), rtol=2e-6 if dtype == np.float32 else 1e-13
    )


@pytest.mark.parametrize(
    ("rows", "bandwidth", "apart"),
    [
        ([1 + 2.0**-52, 1 + 2.0**-51], 2.0**-52, np.exp(-0.5)),
        ([-1.7e308, 1.7e308], 1.0, 0.0),
        ([0.0, 5e-324], 1.0, 1.0),
    ],
)
def test_two_values_at_the_ends_of_floating_point(rows, bandwidth, apart):
    X, out = Table(np.array(rows)[:, None]), np.empty((2, 2))
    tiles = tiles_of(Gaussian(bandwidth), X, X, float)
    assert isinstance(tiles, BitTiles)
    tiles.fill(tiles.side(X, left=True), tiles.side(X, left=False), out)
    np.testing.assert_allclose(out, [[1, apart], [apart, 1]], rtol=1e-12)


def test_bits_are_used_only_where_distances_are_counts():
    bits = np.random.default_rng(0).integers(0, 2, (40, 6)).astype(float)
    other, wider = bits.copy(), bits.copy()
    other[17, 2] = 0.5
    wider[:, 3] *= 2
    assert isinstance(tiles_of(Gaussian(), Table(bits), Table(bits), float), BitTiles)
    assert isinstance(tiles_of(Gaussian((2.0,) * 6), Table(bits), Table(bits), float), BitTiles)
    assert isinstance(tiles_of(Gaussian(1e-200), Table(bits), Table(bits), float), BitTiles)
    for k, X, Z in (
        (Gaussian(), other, bits),
        (Gaussian(), bits, other),
        (Gaussian(), wider, wider),
        (Gaussian((1.0, 2) * 3), bits, bits),
    ):
        assert not isinstance(tiles_of(k, Table(X), Table(Z), float), BitTiles)
    assert not isinstance(tiles_of(Linear(), Table(bits), Table(bits), float), BitTiles)


@pytest.mark.parametrize("offset", [0.0, 2.0**12])
@pytest.mark.parametrize("S", [[[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]], [0.5, 1.0, 2.0]])
def test_mapped_rows_have_the_fast_tiles_of_what_they_are_mapped_to(offset, S):
    rng = np.random.default_rng(5)
    X, Z = (
        (np.round(rng.normal(size=(n, 3)) * 64) / 64 + offset).astype(np.float32) for n in (30, 12)
    )
    k, out = Gaussian((1.5,) * len(S)).mapped(S), np.empty((30, 12), np.float32)
    tiles = tiles_of(k, Table(X), Table(Z), np.float32)
    assert isinstance(tiles, MappedTiles)
    tiles.fill(tiles.side(Table(X), left=True), tiles.side(Table(Z), left=False), out)
    np.testing.assert_allclose(out, k(X.astype(float), Z.astype(float)), atol=3e-5)
    assert isinstance(tiles_of(Matern().mapped(S), Table(X), Table(Z), np.float32), PairTiles)
    assert isinstance(tiles_of(k, Table(X), Table(Z), np.float64), PairTiles)


def test_bits_under_factors_are_bits():
    bits = Table(np.random.default_rng(0).integers(0, 2, (40, 6)).astype(float))
    k, out = Laplace(3.0, norm=1).mapped([0.7] * 6), np.empty((40, 40))
    tiles = tiles_of(k, bits, bits, float)
    assert isinstance(tiles, MappedTiles)
    tiles.fill(tiles.side(bits, left=True), tiles.side(bits, left=False), out)
    np.testing.assert_allclose(out, k(bits), rtol=1e-12)
    assert isinstance(tiles_of(k.kernel.mapped(np.eye(6)), bits, bits, float), PairTiles)


def test_flags_of_a_product_are_no_warnings():
    """BLAS may raise floating-point flags in lanes that hold no entry; the size of rows is looked
    at before."""
    tiles, out = GaussianTiles(Gaussian(), np.zeros(2)), np.empty((3, 3), np.float32)
    huge = np.full((3, 4), 1e30, np.float32)
    with np.errstate(all="raise"):
        tiles.fill((huge, huge[:, 0]), (huge, huge[:, 0]), out)
        assert np.isinf(by_product(huge, huge)).all()
    assert out.max() < 1e-30
