import math

import numpy as np
import pytest

from mercer import bounds
from mercer.kernels import Gaussian, Laplace, Matern
from mercer.lifts.fourier import RandomFourier

X = np.random.default_rng(0).normal(size=(12, 3))


def worst(k, D, form, seeds):
    """The largest error over all pairs, diagonal included, for each seed."""
    K = k(X)
    features = (
        RandomFourier(k, D, form=form, frequencies="iid", random_state=s).fit_transform(X)
        for s in range(seeds)
    )
    return np.array([np.abs(F @ F.T - K).max() for F in features])


@pytest.mark.parametrize("k", [Gaussian(1.5), Laplace(1.5)], ids=repr)
@pytest.mark.parametrize(
    ("form", "bound"), [("pairs", "hoeffding"), ("pairs", "bernstein"), ("shift", "hoeffding")]
)
def test_the_promise_holds_for_iid_frequencies(k, form, bound):
    delta = 0.2
    D = bounds.fourier_features(len(X), 0.2, delta, form, bound=bound, kernel=k)
    assert np.mean(worst(k, D, form, 60) > 0.2) <= delta


def test_the_bounds_are_not_absurdly_loose():
    """With a sixteenth of the features the promise is broken: it could not be that much smaller."""
    D = bounds.fourier_features(len(X), 0.2, 0.2, bound="bernstein", kernel=Gaussian())
    assert np.mean(worst(Gaussian(1.5), D // 16 // 2 * 2, "pairs", 30) > 0.2) > 0.2


def test_relative_distances_at_every_scale():
    eps, delta = 0.25, 0.2
    D = bounds.distance_features(len(X), eps, delta)
    for scale in (1e-4, 1e-2, 1.0, 10.0):
        exact = Gaussian(1.5).distance(scale * X)[np.triu_indices(len(X), 1)]
        broken = 0
        for s in range(40):
            F = RandomFourier(Gaussian(1.5), D, frequencies="iid", random_state=s).fit_transform(
                scale * X
            )
            found = np.linalg.norm(F[:, None] - F, axis=-1)[np.triu_indices(len(X), 1)]
            broken += np.abs(found / exact - 1).max() > eps
        assert broken / 40 <= delta


def test_the_chi_squared_limit_is_the_worst_distance():
    """Chernoff's rate of (1 - cos rg)/(1 - k(r)), by quadrature, is at least that of g^2, its limit
    at r = 0."""
    g, w = np.polynomial.hermite_e.hermegauss(201)
    w = w / w.sum()
    for u in (0.1, 0.4, -0.1, -0.3):
        limit = bounds._rate(u)
        for r in (0.1, 0.3, 1.0, 2.0, 5.0):
            Y = (1 - np.cos(r * g)) / (1 - math.exp(-r * r / 2))
            rate = max(
                s * (1 + u) - math.log(w @ np.exp(s * Y))
                for s in np.sign(u) * np.geomspace(1e-3, 5, 400)
                if s * Y.max() < 600
            )
            assert rate >= limit * 0.98


def test_slip_relative_distances_need_a_smooth_kernel():
    """At m = 512 the relative error of the Laplace kernel's distance grows as points come near; the
    Gaussian's does not."""

    def error(k, r):
        Z = np.array([[0.0, 0.0, 0.0], [r, 0.0, 0.0]])
        maps = (RandomFourier(k, 1024, frequencies="iid", random_state=s) for s in range(40))
        found = [np.linalg.norm(np.diff(phi.fit_transform(Z), axis=0)) for phi in maps]
        return np.abs(np.array(found) / k.distance(Z)[0, 1] - 1).mean()

    assert error(Laplace(), 1e-3) > 0.5 > 0.1 > error(Laplace(), 1.0)
    assert error(Gaussian(), 1e-3) < 0.1
    assert bounds.smooth(Gaussian())
    assert bounds.smooth(Matern(nu=2.5))
    assert not bounds.smooth(Laplace())
    assert not bounds.smooth(Laplace(exponent=1.9))
    assert bounds.smooth(Laplace(exponent=2.0).mapped([[1.0, 2.0]]))


def test_one_point_needs_next_to_nothing():
    assert bounds.fourier_features(1, 0.1) == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((0, 0.1), "n must be"),
        ((5, 0), "eps must be"),
        ((5, 0.1, 2), "delta must be"),
        ((5, 0.1, 0.1, "sin"), "form must be"),
    ],
)
def test_refusals(args, says):
    with pytest.raises(ValueError, match=says):
        bounds.fourier_features(*args)
