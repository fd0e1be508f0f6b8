"""Powers in formulas: every reading knows them, of distances and of others."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Kernel
from mercer.operators.tiles import tiles_about
from mercer.pairs import Side
from mercer.pairs.about import about
from mercer.pairs.logs import LogTile, log
from mercer.testing import check_kernel
from tests.market import rows


class Multiquadric(Kernel):
    width: float = 1.0

    def on(self, p):
        return 1 / p.xp.power(1 + p.sqdist(self.width), 0.7)


class Squared(Kernel):
    """(exp(-r^2 / 2))^.7, a power of an exponential."""

    width: float = 1.0

    def on(self, p):
        return p.xp.power(p.xp.exp(-0.5 * p.sqdist(self.width)), 0.7)


class Rough(Kernel):
    width: float = 1.0

    def on(self, p):
        return p.xp.exp(-p.xp.power(p.dist(self.width), 0.6))


KERNELS = [Multiquadric(0.8), Squared(0.8), Rough(0.8)]


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_the_contract(k):
    check_kernel(k, rows(11))


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_logs(k):
    X, Z = rows(9), rows(5, seed=1)
    found = log(k.on(LogTile(Side(Table(X)), Side(Table(Z)))))
    np.testing.assert_allclose(found, np.log(k(X, Z)), atol=1e-9)


@pytest.mark.parametrize("k", KERNELS[:2], ids=repr)
def test_about_a_point(k):
    X, p = rows(9), np.array([0.1, 0.2, 0.3])
    found = about(k.on, X, X, p)
    plain = k(X) - k(X, p[None]) - k(p[None], X) + k(p[None], p[None])
    np.testing.assert_allclose(found.core, plain, atol=1e-12)
    assert tiles_about(Rough(), Table(X), np.float64) is None


@pytest.mark.parametrize(("k", "slope"), [(KERNELS[0], 1.4), (KERNELS[1], 0.7)])
def test_near_rows(k, slope):
    """k(x, x) + k(z, z) - 2 k(x, z) is slope r^2 to second order."""
    X = rows(4) + 1e3
    Z = X + 2.0**-30
    r = np.sqrt(3) * 2.0**-30 / 0.8
    np.testing.assert_allclose(np.diag(k.distance(X, Z)), r * np.sqrt(slope), rtol=1e-8)
    found = Rough().distance([[0.0, 0.0]], [[1e-10, 0.0]])
    np.testing.assert_allclose(found, np.sqrt(-2 * np.expm1(-1e-6)), rtol=1e-8)
