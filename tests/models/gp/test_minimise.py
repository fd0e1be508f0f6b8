"""Quasi-Newton steps within bounds: against SciPy's, on bent valleys, at bounds, and where the loss
is no number."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from mercer.models.gp.minimise import Iterate, learnt, minimise


def found(f, z, low=-5.0, high=5.0, tol=1e-12, steps=500, curvature=None):
    z = np.array(z, float)
    low, high = np.broadcast_to(low, z.shape), np.broadcast_to(high, z.shape)

    def lazily(z):
        value, slope = f(z)
        return value, lambda: slope

    return minimise(lazily, Iterate(z, *f(z), curvature), low, high, tol=tol, steps=steps)


def valley(z):
    return rosen(z), rosen_der(z)


@pytest.mark.parametrize("high", [5.0, 0.6, [0.3, 5.0, 5.0, 5.0]], ids=str)
def test_a_bent_valley_ends_where_scipys_does(high):
    start = np.array([-1.2, 0.5, -0.7, 0.1])
    bounds = [(-5.0, h) for h in np.broadcast_to(high, 4)]
    theirs = minimize(
        rosen, start, jac=rosen_der, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15}
    )
    ours = found(valley, start, high=high)
    assert ours.loss <= theirs.fun + 1e-6
    assert (ours.z <= np.asarray(high)).all()


def test_a_known_curvature_ends_at_once():
    A = np.array([[2.0, 1.9], [1.9, 2.0]])
    end = found(lambda z: (0.5 * z @ A @ z, A @ z), [1.0, -1.0], curvature=A)
    assert end.tried <= 3
    assert np.abs(end.z).max() < 1e-9


def test_places_where_the_loss_is_no_number_are_left():
    def f(z):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(z[0] - np.log(z[0])), 1 - 1 / z

    assert found(f, [0.05], curvature=np.eye(1)).z[0] == pytest.approx(1.0, abs=1e-4)


def test_curvature_stays_positive_where_the_function_bends_down():
    at = Iterate(np.zeros(2), 0.0, np.ones(2), np.eye(2))
    B = learnt(at, np.array([1.0, 0.0]), np.array([-3.0, 0.5]))
    assert np.linalg.eigvalsh(B).min() > 0


def test_flat_ground_is_no_error():
    end = found(lambda z: (1.0, np.zeros(2)), [1.0, 2.0])
    assert end.tried == 1
    assert end.loss == 1.0


def test_all_variables_on_their_bounds():
    end = found(lambda z: (float(z.sum()), np.ones(2)), [3.0, 3.0], low=-1.0)
    np.testing.assert_array_equal(end.z, [-1.0, -1.0])


def test_slopes_are_asked_for_where_the_search_goes_on_from():
    asked, tried = [], []

    def f(z):
        tried.append(z)
        return rosen(z), lambda: asked.append(z) or rosen_der(z)

    z = np.array([-1.2, 0.5])
    low, high = np.full(2, -5.0), np.full(2, 5.0)
    end = minimise(f, Iterate(z, *valley(z)), low, high, tol=1e-12, steps=200)
    assert end.loss < 1e-6
    assert len(tried) == end.tried - 1 > len(asked)  # some steps were too long
    np.testing.assert_array_equal(asked[-1], end.z)
