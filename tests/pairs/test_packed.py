"""Pairs of few rows, every one once: the distances of a tile, near and far, kept or not."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Cauchy, Gaussian, Laplace, Matern, RationalQuadratic
from mercer.models.gp.likelihood import ByPairs, Rung, WholeTile, reading, stationary
from mercer.pairs import packed as module
from mercer.pairs.packed import Packed, packed, unpacked
from mercer.pairs.side import Side, centre_of
from mercer.pairs.tile import Tile


def rows(kind, n=33, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    if kind == "copies":
        X = np.repeat(X[: n // 3], 3, axis=0) + 1e6
    if kind == "near copies":
        X = np.vstack([X[:-16], X[:16] + 1e-8])
    return Table(X)


@pytest.mark.parametrize("kept", [0, 1 << 18])
@pytest.mark.parametrize("kind", ["plain", "copies", "near copies"])
@pytest.mark.parametrize("bandwidth", [0.7, (0.5, 1.0, 20.0)], ids=str)
def test_distances_are_those_of_differences(kept, kind, bandwidth, monkeypatch):
    monkeypatch.setattr(module, "KEPT", kept)
    X = rows(kind)
    D = X.data[:, None] - X.data
    squares = np.square(D / bandwidth).sum(-1)
    pairs = Packed(X)
    for _ in range(2):  # the second time from what is kept
        np.testing.assert_allclose(
            pairs.sqdist(bandwidth), packed(np.tril(squares)), rtol=1e-9, atol=2e-9
        )
        np.testing.assert_allclose(
            pairs.dist(bandwidth), packed(np.tril(np.sqrt(squares))), rtol=1e-7, atol=3e-9
        )
        pairs.forget()


def test_a_triangle_comes_back():
    A = np.asfortranarray(np.tril(np.random.default_rng(0).normal(size=(7, 7))))
    np.testing.assert_array_equal(unpacked(packed(A), 7), A)
    np.testing.assert_array_equal(packed(A)[Packed(rows("plain", 7)).diagonal], A.diagonal())


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian((0.7, 1.5, 3.0)),
        Matern(0.7, nu=0.5),
        Matern((0.7, 1.5, 3.0), nu=1.5),
        2.0 * Matern(0.7, nu=2.5) * Cauchy((1.0, 2.0, 3.0)),
        Matern(0.7, nu=1.2),
        RationalQuadratic(0.7, 2.0) ** 2 + Laplace((1.0, 2.0, 3.0), exponent=0.5),
        Gaussian(0.7).on_columns([2, 0]) + Gaussian((1.0, 2.0)).on_columns([0, 1]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["plain", "copies"])
@pytest.mark.parametrize("kept", [0, 1 << 18])
def test_values_and_slopes_are_those_of_the_whole_tile(kernel, kind, kept, monkeypatch):
    monkeypatch.setattr(module, "KEPT", kept)
    X = rows(kind)
    rng = np.random.default_rng(1)
    U, V = rng.normal(size=(2, len(X), 2))
    R = np.triu(rng.normal(size=(len(X),) * 2))
    found, wanted = reading(kernel, Rung.of(X)), WholeTile(kernel, X)
    assert isinstance(found, ByPairs)
    np.testing.assert_allclose(
        np.triu(found.matrix()), np.triu(wanted.matrix()), rtol=1e-8, atol=1e-9
    )
    # W of the definition is symmetric; any U and V stand for their mean with their mirror image
    slopes = found.pull(U, V, R, 2), (wanted.pull(U, V, R, 2) + wanted.pull(V, U, R, 2)) / 2
    np.testing.assert_allclose(*slopes, rtol=1e-5, atol=1e-6)


def test_a_formula_of_ones_own_is_read_as_it_is():
    class Own(Gaussian):
        def on(self, p):
            return 1 / (1 + p.dot**2)

    assert stationary(Gaussian())
    assert not stationary(Own())


def test_the_sides_of_rows_are_not_kept_with_every_bandwidth():
    pairs = Packed(rows("plain"))
    pairs._near = False
    for b in np.linspace(0.5, 2, 20):
        pairs.sqdist((b, b, b))
        pairs.forget()
    side: Side = pairs._side
    assert len(side._scaled) <= 1
    assert not pairs._kept
    assert isinstance(pairs._tile(), Tile)
    assert centre_of(side.rows, side.rows) is not None
