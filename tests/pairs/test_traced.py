"""Powers are traced or refused."""

import numpy as np
import pytest

from mercer.inputs import table
from mercer.kernels import Kernel, Linear, exp
from mercer.pairs import Side
from tests.market import rows


class Inverse(Kernel):
    width: float = 1.0

    def on(self, p):
        return (1 + p.sqdist(self.width)) ** -1


class Root(Kernel):
    def on(self, p):
        return (1 + p.sqdist(1.0)) ** -0.5


def test_powers_are_traced_or_refused():
    X = table(rows(5))
    np.testing.assert_allclose(Inverse().source().evaluate(Side(X), Side(X)), Inverse()(X))
    with pytest.raises(NotImplementedError, match=r"a power -0\.5 has no GPU source"):
        Root().source()


def test_sides_of_sides_are_themselves():
    k, X, Z = exp(0.5 * Linear().normalized()).normalized(), table(rows(5)), table(rows(4, seed=1))
    np.testing.assert_allclose(k.source().evaluate(Side(X), Side(Z)), k(X, Z))
