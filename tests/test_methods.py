"""Methods are values."""

import pytest

from mercer.kernels import Gaussian
from mercer.lifts import Nystrom, RandomFourier
from mercer.methods import Auto, Fourier, Landmarks
from tests.market import rows

X = rows(10)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (Fourier(32), RandomFourier),
        ("fourier", RandomFourier),
        (Landmarks(5), Nystrom),
        ("landmarks", Nystrom),
        (Auto(), RandomFourier),
    ],
)
def test_methods_are_values(method, kind):
    assert isinstance(Gaussian().lift(10, method=method, random_state=0).fit(X).map_, kind)
