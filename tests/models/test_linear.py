"""Losses of linear models: slopes and curvatures are those of the value."""

import numpy as np
import pytest

from mercer.models.linear import Logistic, Softmax


@pytest.mark.parametrize("loss", [Logistic(), Softmax()])
def test_slopes_and_curvatures_are_those_of_the_value(loss):
    rng = np.random.default_rng(0)
    K = 1 if isinstance(loss, Logistic) else 3
    f, w, e = rng.normal(size=(1, K)), np.array([1.7]), 1e-5 * np.eye(K)
    Y = np.ones((1, 1)) if K == 1 else np.eye(3)[:1]
    slope = [(loss.value(f + v, Y, w) - loss.value(f - v, Y, w)) / 2e-5 for v in e]
    np.testing.assert_allclose(loss.slope(f, Y, w)[0], slope, atol=1e-8)
    bend = sum((loss.slope(f + v, Y, w) - loss.slope(f - v, Y, w))[0] @ v / 2e-10 for v in e)
    assert loss.curvature(f, Y, w)[0] * max(1, K - 1) == pytest.approx(bend, rel=1e-6)
