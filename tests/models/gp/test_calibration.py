"""Leave-one-out and calibration: n refits, shapes, constants, intervals that cover, and what cannot
be asked."""

import importlib.util

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

from mercer.kernels import Gaussian
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from tests.models.gp.examples import data


@pytest.mark.parametrize(
    "via", ["exact", "iterative", Landmarks(20)], ids=["exact", "iterative", "landmarks"]
)
def test_calibration_of_a_column_is_that_of_a_row(via):
    (X, y), (Z, z) = data(), data(200, 1)
    m = GP(Gaussian(0.7), 0.1, via, random_state=0).fit(X, y)
    mean, std = m.predict(Z, return_std=True)
    wanted = np.mean(np.abs(z - mean) <= 1.6448536269514722 * std)
    assert (
        m.calibration(Z, z)[0.9]
        == m.calibration(Z, z[:, None])[0.9]
        == m.calibration(Z, z.tolist())[0.9]
        == wanted
    )


def test_calibration_of_several_outputs():
    X, y = data()
    Y = np.column_stack([y, 3 * y])
    assert GP(Gaussian(0.7), 0.1).fit(X, Y).calibration(X, Y).keys() == {0.5, 0.8, 0.9, 0.95}
    assert GP(Gaussian(0.7), 0.1).fit(X, y[:, None]).calibration(X, y) == GP(
        Gaussian(0.7), 0.1
    ).fit(X, y).calibration(X, y)


def test_calibration_is_asked_rightly():
    X, y = data()
    m, far = GP(Gaussian(0.7), 0.1).fit(X, y), GP(Gaussian(0.7), 0.1, Landmarks(20)).fit(X, y)
    for ask, match in (
        (lambda: m.calibration(X, y, [95]), "coverages must be between 0 and 1"),
        (lambda: m.calibration(y=y), "both X and y"),
        (lambda: m.calibration(X), "both X and y"),
        (lambda: m.calibration(X, y[:-1]), r"y has shape \(59,\)"),
        (lambda: m.calibration(X, np.column_stack([y, y])), "one y a row"),
        (lambda: far.calibration(), "give X and y"),
        (lambda: GP(Gaussian(0.7), 0.1, "iterative").fit(X, y).calibration(), "give X and y"),
        (lambda: m.predict_interval(X, "90"), "coverage must be between 0 and 1"),
        (lambda: m.sample_y(X, -1), "n_samples must be"),
        (lambda: m.sample_functions(0), "n_samples must be"),
        (lambda: far.sample_y(X, 1.5), "n_samples must be"),
    ):
        with pytest.raises(ValueError, match=match):
            ask()


@pytest.mark.parametrize(
    "name", ["kernel_", "noise_", "scale_", "prior_mean_", "log_marginal_likelihood_", "loo_score_"]
)
def test_what_is_not_fitted_says_so(name):
    with pytest.raises(NotFittedError):
        getattr(GP(), name)


# leave-one-out
def test_rows_are_left_out_once(monkeypatch):
    """However often it is asked."""
    X, y = data()
    m = GP(Gaussian(0.7), 0.1).fit(X, y)
    first = m.loo_predictions_
    monkeypatch.setattr("mercer.models.gp.systems.dpotri", None)
    np.testing.assert_array_equal(m.loo_predictions_, first)
    assert m.loo_variances_.shape == (60,)


def test_the_score_is_the_mean_over_outputs():
    X, y = data()
    Y = np.column_stack([y, 100 * np.random.default_rng(0).normal(size=60), np.full(60, 2.0)])
    m = GP(Gaussian(0.7), 0.1).fit(X, Y)
    assert m.loo_score_ == pytest.approx(r2_score(Y, m.loo_predictions_))
    alone = [GP(Gaussian(0.7), 0.1).fit(X, Y[:, j]).loo_score_ for j in range(3)]
    assert m.loo_score_ == pytest.approx(np.mean(alone))


@pytest.mark.parametrize("n", [1, 2, 20])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e12])
def test_the_score_of_a_constant(n, value):
    """1 where it is met, else 0; a warning would be an error here."""
    X = data(n)[0]
    assert GP(Gaussian(), 0.1, prior_mean=value).fit(X, np.full(n, value)).loo_score_ == 1.0
    assert GP(Gaussian(), 0.1, prior_mean=value + 1e3).fit(X, np.full(n, value)).loo_score_ == 0.0


# leave-one-out and calibration
def test_leave_one_out_is_n_refits():
    X, y = data(25)
    m = GP(Gaussian(0.6), 0.1, prior_mean=0.5).fit(X, y)
    for i in range(25):
        rest = np.arange(25) != i
        mean, std = (
            GP(Gaussian(0.6), 0.1, prior_mean=0.5)
            .fit(X[rest], y[rest])
            .predict(X[[i]], return_std=True)
        )
        assert m.loo_predictions_[i] == pytest.approx(mean[0])
        assert m.loo_variances_[i] == pytest.approx(std[0] ** 2)
        assert m.loo_log_densities_[i] == pytest.approx(norm.logpdf(y[i], mean[0], std[0]))


def test_intervals_cover_what_they_say():
    covered = {c: [] for c in (0.5, 0.8, 0.9, 0.95)}
    for seed in range(5):
        (X, y), (Z, z) = data(150, seed), data(400, 100 + seed)
        m = GP(Gaussian(1.0), random_state=0).fit(X, y)
        for c, share in m.calibration(Z, z).items():
            covered[c].append(share)
        assert abs(m.calibration()[0.9] - 0.9) < 0.1
    for c, shares in covered.items():
        assert np.mean(shares) == pytest.approx(c, abs=0.05)


def test_the_plot_is_the_calibration():
    class Axes:
        lines = []

        def plot(self, x, y, **_):
            self.lines.append((x, y))

        def set(self, **_):
            return None

    X, y = data(80)
    m = GP(Gaussian(0.6), 0.1).fit(X, y)
    (_, diagonal), (nominal, found) = m.plot_calibration(X, y, ax=Axes()).lines
    assert diagonal == [0, 1]
    assert found[49] == m.calibration(X, y, [nominal[49]])[nominal[49]]
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(ImportError, match="pip install matplotlib"):
            m.plot_calibration(X, y)
