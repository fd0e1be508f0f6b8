"""Newton's steps: the curvature is the inverse Hessian, and a step too long is halved."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Linear
from mercer.methods import Auto
from mercer.models.linear import Logistic, Problem, feature_rows
from mercer.models.maps import fitted_map
from mercer.models.newton import Curvature


def data(n=300, d=4, classes=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = np.sin(2 * X @ rng.normal(size=(d, classes))) + 0.5 * rng.normal(size=(n, classes))
    return X.astype(dtype), scores.argmax(1)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
@pytest.mark.parametrize("intercept", [True, False])
def test_curvature_is_the_inverse_hessian(shape, intercept):
    rng = np.random.default_rng(0)
    F, q = rng.normal(size=shape) + 1, rng.random(shape[0])
    A = np.hstack([F, np.ones((len(F), 1))]) if intercept else F
    penalty = np.diag([0.3] * shape[1] + [0.0] * intercept)
    r = rng.normal(size=(A.shape[1], 2))
    found = Curvature(F, q, 0.3, every=True, intercept=intercept)(r)
    np.testing.assert_allclose(A.T @ (q[:, None] * (A @ found)) + penalty @ found, r, atol=1e-9)


def test_a_step_that_is_too_long_is_halved():
    X, y = data(50)
    rows, codes = Table(X), np.unique(y, return_inverse=True)[1]
    phi = fitted_map(Linear(), None, Auto(), rows, seed=None, memory=1e9)
    features = feature_rows(phi, rows, intercept=True, limit=1e9)
    p = Problem(features, Logistic(), 2.0 * codes[:, None] - 1, np.ones(len(codes)), 1.0, True)
    x = p.at(p.zero)
    new = p.step(x, -100 * x.gradient, -100 * float(np.vdot(x.gradient, x.gradient)))
    assert new.value < x.value
