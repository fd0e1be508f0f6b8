"""Newton rounds: merged, and derivatives of their losses."""

import numpy as np
import pytest

from mercer.stats import Newton, fold, logistic, squared_hinge

rng = np.random.default_rng(0)
A = rng.normal(size=(300, 4)) + 3


@pytest.mark.parametrize("loss", [logistic, squared_hinge])
def test_newton_rounds_merge_and_are_derivatives(loss):
    y, at = np.sign(rng.normal(size=300)), 0.1 * rng.normal(size=4)
    whole = loss(at, A, y)
    parts = fold(
        [slice(0, 100), slice(100, 250), slice(250, 300)],
        lambda s: loss(at, A[s], y[s]),
        Newton.zero(4),
    )
    np.testing.assert_allclose(parts.hessian, whole.hessian)
    h = 1e-6 * np.eye(4)
    numeric = [(loss(at + e, A, y).value - loss(at - e, A, y).value) / 2e-6 for e in h]
    np.testing.assert_allclose(whole.gradient, numeric, rtol=1e-5, atol=1e-4)
    slopes = [(loss(at + e, A, y).gradient - loss(at - e, A, y).gradient) / 2e-6 for e in h]
    np.testing.assert_allclose(whole.hessian, slopes, rtol=1e-3, atol=1e-2)
