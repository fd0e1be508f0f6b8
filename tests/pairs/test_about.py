"""Kernels about a point: the same numbers as differences of kernel values, with the digits that
these lose."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import (
    Cauchy,
    Constant,
    Gaussian,
    Laplace,
    Linear,
    Polynomial,
    RationalQuadratic,
    exp,
)
from mercer.operators.tiles import AboutTiles, DifferenceTiles, tiles_about
from mercer.pairs.about import Spread, about

KERNELS = [
    Linear(),
    Linear(metric=((2.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 3.0))),
    Polynomial(3),
    Polynomial(2, bias=0.0),
    Constant(),
    Gaussian(2.0),
    Gaussian((1.0, 2.0, 3.0)),
    Cauchy(),
    RationalQuadratic(),
    0.5 * Linear() + Gaussian(),
    Linear() * Gaussian(3.0),
    (Linear() + 1.0) ** 2,
    exp(0.1 * Linear()),
    Linear().compose([1.0, 0.5, 0.25]),
    Polynomial(2).on_columns([0, 2]),
    2.0 * Constant() + Linear(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_they_are_differences_of_kernel_values(kernel):
    rng = np.random.default_rng(0)
    X, Z, p = rng.normal(size=(7, 3)), rng.normal(size=(5, 3)), rng.normal(size=3)
    found = about(kernel.on, X, Z, p)
    plain = kernel(X, Z) - kernel(X, p[None]) - kernel(p[None], Z) + kernel(p[None], p[None])
    np.testing.assert_allclose(
        np.broadcast_to(found.core, (7, 5)), plain, atol=1e-11 * np.abs(kernel(X, Z)).max()
    )
    np.testing.assert_allclose(np.broadcast_to(found.all, (7, 5)), kernel(X, Z), rtol=1e-9)
    alone = about(kernel.on, X, X, p, paired=True)
    np.testing.assert_allclose(
        np.broadcast_to(alone.core, 7),
        np.diag(about(kernel.on, X, X, p).core * np.ones((7, 7))),
        atol=1e-11,
    )


@pytest.mark.parametrize("far", [1e1, 1e2, 1e3, 1e5, 1e8])
@pytest.mark.parametrize("kernel", [k for k in KERNELS if "exp" not in repr(k)], ids=repr)
def test_far_from_the_point_as_well(kernel, far):
    """Rows near p, far from it, and far from it but near to each other."""
    rng = np.random.default_rng(0)
    X, Z, p = rng.normal(size=(9, 3)), rng.normal(size=(6, 3)), rng.normal(size=3)
    X[3:] *= far
    Z[3:] = X[3:6] + rng.normal(size=(3, 3))
    found, K = about(kernel.on, X, Z, p), kernel(X, Z)
    plain = K - kernel(X, p[None]) - kernel(p[None], Z) + kernel(p[None], p[None])
    size = (
        np.sqrt(kernel.diag(X)[:, None] * kernel.diag(Z))
        + kernel(X, p[None])
        + kernel(p[None], Z)
        + kernel(p[None], p[None])
    )
    assert (np.abs(np.broadcast_to(found.core, (9, 6)) - plain) <= 1e-10 * np.abs(size)).all()
    assert (np.abs(np.broadcast_to(found.all, (9, 6)) - K) <= 1e-10 * np.abs(size)).all()


NEAR_ONE = [
    Cauchy(1e6),
    Cauchy((1e6, 3e6)),
    RationalQuadratic(1e6, 0.3),
    2.0 / 3.0 * Cauchy(1e6) ** 2,
    Gaussian(1e6),
]


@pytest.mark.parametrize("kernel", NEAR_ONE, ids=repr)
def test_profiles_near_one_keep_their_digits(kernel):
    """Of rows near p: k(x, z) about p is x'z times the curvature, to second order."""
    X = np.random.default_rng(0).normal(size=(8, 2))
    p = X.mean(0)
    found = about(kernel.on, X, X, p)
    width = np.broadcast_to(getattr(kernel, "bandwidth", 1e6), 2)
    slope = {"Cauchy": 2.0, "RationalQuadratic": 1.0, "Gaussian": 1.0}.get(
        type(kernel).__name__, 8.0 / 3.0
    )
    want = slope * ((X - p) / width) @ ((X - p) / width).T
    np.testing.assert_allclose(found.core, want, atol=1e-10 * np.abs(want).max())
    assert not found.rounded


def test_differences_of_values_say_so():
    q = Spread(0.5, 1.0, 2.0, 3.0)
    for exact in (q, q * q + 1, q.exp(), 1 / q, q.log(), q**-2):
        assert not exact.rounded
    for rounded in (
        q**0.5,
        2.0 * (1.0 + q**0.5),
        q * q**0.5,
        (q**0.5).exp(),
        1 / q**0.5,
        1 / Spread(0.5, -1.0, 2.0, 3.0),
    ):
        assert rounded.rounded


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_polynomials_far_away_keep_their_digits(degree, offset):
    X = np.random.default_rng(1).normal(size=(6, 2)) + offset
    p = X.mean(0)
    E = np.array([[Fraction(v) for v in row] for row in [*X.tolist(), p.tolist()]], dtype=object)
    K = (1 + E @ E.T) ** degree
    exact = (K[:-1, :-1] - K[:-1, -1:] - K[-1:, :-1] + K[-1, -1]).astype(float)
    found = about(Polynomial(degree).on, X, X, p).core
    assert np.abs(found - exact).max() <= 1e-14 * np.abs(exact).max()


def test_formulas_that_ask_for_more_are_read_by_differences():
    X = Table(np.random.default_rng(0).normal(size=(9, 2)) * 1e-3)
    tiles = tiles_about(Laplace(1.0), X, np.float64)
    assert isinstance(tiles, DifferenceTiles)
    out, p, k = np.empty((9, 9)), tiles.p[None], Laplace(1.0)
    tiles.fill(tiles.side(X, left=True), tiles.side(X, left=False), out)
    np.testing.assert_allclose(out, k(X.data) - k(X.data, p) - k(p, X.data) + k(p), atol=1e-15)
    np.testing.assert_allclose(tiles.diag(X), np.diag(out), atol=1e-15)
    np.testing.assert_allclose(tiles.edge(X), (k(X.data, p) - 1)[:, 0], atol=1e-15)


def test_only_what_shares_most_of_its_values_is_read_so():
    X = np.random.default_rng(0).normal(size=(30, 2))
    for kernel, offset in (
        (Linear(), 0.0),
        (Gaussian(), 1e6),
        (Gaussian(10.0), 0.0),
        (Polynomial(2), 0.0),
    ):
        assert tiles_about(kernel, Table(X + offset), np.float64) is None
    assert isinstance(tiles_about(Linear(), Table(X + 100), np.float32), AboutTiles)
    assert tiles_about("precomputed", Table(X), np.float64) is None


def test_spreads_divide_and_subtract():
    q = Spread(0.5, 1.0, 2.0, 3.0)
    for f in (
        lambda v: 2 - v,
        lambda v: v - 1,
        lambda v: 1 / v,
        lambda v: v / v,
        lambda v: v**0.5,
        lambda v: -v,
        lambda v: v**-2,
    ):
        out = f(q)
        assert out.all == pytest.approx(f(6.5))
        assert out.left + out.base == pytest.approx(f(4.0))
        assert out.core == pytest.approx(f(6.5) - f(4.0) - f(5.0) + f(3.0))
