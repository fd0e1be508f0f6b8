"""The reading by logarithms is the logarithm of the tile, and goes on where that underflows."""

import numpy as np
import pytest
from scipy.special import gamma

from mercer.inputs import Table
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Periodic
from mercer.kernels.defaults import scaled
from mercer.models.smoothing.voters import nonnegative
from mercer.ops import distances
from mercer.pairs import Side
from mercer.pairs.logs import LogTile, log
from tests.market import KERNELS, rows


def tile(X, Z):
    return LogTile(Side(Table(X)), Side(Table(Z)))


@pytest.mark.parametrize("name", KERNELS)
def test_logs_are_those_of_the_values(name):
    X, Z = rows(9), rows(6, seed=1)
    K = KERNELS[name](X, Z)
    if K.min() < 0:
        with pytest.raises(ValueError, match="negative for some pairs"):
            log(KERNELS[name].on(tile(X, Z)))
    else:
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(
                np.broadcast_to(log(KERNELS[name].on(tile(X, Z))), K.shape), np.log(K), atol=1e-7
            )


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_said_to_be_nonnegative_is(name):
    X = np.random.default_rng(0).normal(size=(200, 3)) * 3
    if nonnegative(KERNELS[name]):
        assert KERNELS[name](X).min() >= 0


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Gaussian(0.5), lambda r: -2 * r**2),
        (2 * Gaussian(1.0) * Laplace(2.0), lambda r: np.log(2) - r**2 / 2 - r / 2),
        (Gaussian(1.0) + Gaussian(2.0), lambda r: -(r**2) / 8),
        (Gaussian() ** 3, lambda r: -1.5 * r**2),
        (Matern(nu=1.5), lambda r: np.log1p(np.sqrt(3) * r) - np.sqrt(3) * r),
        (Gaussian().normalized(), lambda r: -(r**2) / 2),
        (
            Matern(nu=0.8),
            lambda r: (
                np.log(np.sqrt(np.pi / 2) * 2**0.2 / gamma(0.8) * (1.6**0.5 * r) ** 0.3)
                - 1.6**0.5 * r
            ),
        ),
    ],
    ids=["gaussian", "product", "sum", "power", "matern", "normalized", "bessel"],
)
def test_far_pairs_have_finite_logs(kernel, expected):
    r = np.array([2e3, 5e3])
    assert kernel([[0.0]], r[:, None]).max() == 0
    np.testing.assert_allclose(
        log(kernel.on(tile(np.zeros((1, 1)), r[:, None])))[0], expected(r), rtol=1e-4
    )


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian((0.5, 1.0, 3.0)),
        Laplace((0.5, 1.0, 3.0), norm=1),
        Periodic((0.5, 1.0, 3.0), 2.0),
        Laplace(0.7),
    ],
    ids=repr,
)
def test_bandwidths_in_proportion_share_their_distances(kernel, monkeypatch):
    calls = []

    def counted(f):
        return lambda *a: calls.append(1) or f(*a)

    for name in ("by_product", "absdist"):
        monkeypatch.setattr(distances, name, counted(getattr(distances, name)))
    t = tile(rows(9), rows(6, seed=1))
    for c in (0.25, 0.5, 1.0, 4.0):
        np.testing.assert_allclose(
            np.exp(log(scaled(kernel, c).on(t))),
            scaled(kernel, c)(rows(9), rows(6, seed=1)),
            atol=1e-9,
        )
    measured = len(calls)
    calls.clear()
    for c in (0.25, 0.5, 1.0, 4.0):
        scaled(kernel, c)(rows(9), rows(6, seed=1))
    assert (measured - len(calls), len(calls)) == (1, 4)


def test_scaled_changes_bandwidths_alone():
    assert scaled(2 * Gaussian((1.0, 2.0)) + Linear() * Matern(nu=2.5), 3.0) == 2 * Gaussian(
        (3.0, 6.0)
    ) + Linear() * Matern(3.0, nu=2.5)
