"""The plan is a function of shapes and settings alone."""

import pytest

from mercer.kernels import Gaussian
from mercer.lifts import Identity
from mercer.methods import Fourier, Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.models.gp.problem import ProcessSettings, choose


@pytest.mark.parametrize(
    ("options", "n", "outputs", "way"),
    [
        ({}, 5000, 1, "exact"),
        ({}, 5001, 1, "landmarks"),
        ({}, 5001, 2, "iterative"),
        (dict(memory_limit=1e6), 400, 1, "landmarks"),
        (dict(via="exact"), 9000, 1, "exact"),
        (dict(via="iterative"), 10, 3, "iterative"),
        (dict(via="features"), 10, 1, "features"),
        (dict(via=Fourier(9)), 10, 1, "features"),
        (dict(via=Landmarks(9)), 10, 1, "landmarks"),
        (dict(lift=Identity()), 10, 1, "features"),
        (dict(kernel="precomputed"), 10, 1, "exact"),
    ],
)
def test_the_way(options, n, outputs, way):
    plan = choose(n, outputs, ProcessSettings.of(GP(**options)))
    assert plan.way == way
    assert plan.why


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(via="exact", memory_limit=1e6), "beyond memory_limit"),
        (dict(kernel="precomputed", via="landmarks"), "no features or landmarks"),
        (dict(via="nearly"), "via must be one of"),
        (dict(kernel=Gaussian(), lift=Identity()), "not both"),
    ],
)
def test_what_is_no_way(options, match):
    with pytest.raises(ValueError, match=match):
        choose(1000, 1, ProcessSettings.of(GP(**options)))


def test_what_is_learnt():
    assert ProcessSettings.of(GP()).learns
    assert not ProcessSettings.of(GP(Gaussian(), 0.1)).learns
    assert ProcessSettings.of(GP(Gaussian(), 0.1, bounds={"bandwidth": (1, 2)})).learns
    assert ProcessSettings.of(GP(noise=0.1)).learns
    assert not ProcessSettings.of(GP("precomputed", 0.1)).learns
