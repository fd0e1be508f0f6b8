"""Parameters of kernels: a failed change changes nothing, and names are not kernels."""

import pytest

from mercer import RKHSFunction
from mercer.kernels import Gaussian
from mercer.operators import KernelOperator
from tests.market import rows


def test_a_failed_set_params_changes_nothing():
    k = Gaussian()
    with pytest.raises(ValueError, match="bandwidth must be"):
        k.set_params(bandwidth=-2)
    assert k == Gaussian()
    with pytest.raises(ValueError, match="'bandwidth__0' does not name a part"):
        k.set_params(bandwidth__0=2.0)


@pytest.mark.parametrize(
    "make",
    [lambda: KernelOperator("rbf", rows(3)), lambda: RKHSFunction("rbf", rows(3), [1, 2, 3])],
)
def test_names_are_not_kernels(make):
    with pytest.raises(ValueError, match="kernel must be a kernel, got 'rbf'"):
        make()
