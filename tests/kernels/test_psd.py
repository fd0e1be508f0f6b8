"""The search for counterexamples: none in rounding, and functions as they are."""

import numpy as np
import pytest

from mercer import check_psd
from mercer.kernels import ArcCosine, Gaussian, Linear
from tests.market import rows

rng = np.random.default_rng(0)


@pytest.mark.parametrize("k", [Linear(), Gaussian(), ArcCosine(2)], ids=repr)
def test_no_counterexample_in_float32(k):
    assert check_psd(k, rng.normal(size=(100, 3)).astype(np.float32), trials=3) is None


def test_functions_may_be_checked_as_they_are():
    assert check_psd(lambda X, Z: np.tanh(X @ Z.T), rows(30)).eigenvalue < 0
