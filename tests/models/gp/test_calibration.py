"""Leave-one-out and calibration: shapes, constants, what cannot be asked; and functions drawn over landmarks."""
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

from mercer.kernels import Gaussian, Kernel
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.models.gp import VarianceStarvationWarning


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("via", ["exact", "iterative", Landmarks(20)], ids=["exact", "iterative", "landmarks"])
def test_calibration_of_a_column_is_that_of_a_row(via):
    (X, y), (Z, z) = data(), data(200, 1)
    m = GP(Gaussian(0.7), 0.1, via, random_state=0).fit(X, y)
    mean, std = m.predict(Z, return_std=True)
    wanted = np.mean(np.abs(z - mean) <= 1.6448536269514722 * std)
    assert m.calibration(Z, z)[0.9] == m.calibration(Z, z[:, None])[0.9] == m.calibration(Z, z.tolist())[0.9] == wanted


def test_calibration_of_several_outputs():
    X, y = data()
    Y = np.column_stack([y, 3 * y])
    assert GP(Gaussian(0.7), 0.1).fit(X, Y).calibration(X, Y).keys() == {0.5, 0.8, 0.9, 0.95}
    assert GP(Gaussian(0.7), 0.1).fit(X, y[:, None]).calibration(X, y) == GP(Gaussian(0.7), 0.1).fit(X, y).calibration(X, y)


def test_calibration_is_asked_rightly():
    X, y = data()
    m, far = GP(Gaussian(0.7), 0.1).fit(X, y), GP(Gaussian(0.7), 0.1, Landmarks(20)).fit(X, y)
    for ask, match in (
        (lambda: m.calibration(X, y, [95]), "coverages must be between 0 and 1"), (lambda: m.calibration(y=y), "both X and y"),
        (lambda: m.calibration(X), "both X and y"), (lambda: m.calibration(X, y[:-1]), r"y has shape \(59,\)"),
        (lambda: m.calibration(X, np.column_stack([y, y])), "one y a row"), (lambda: far.calibration(), "give X and y"),
        (lambda: GP(Gaussian(0.7), 0.1, "iterative").fit(X, y).calibration(), "give X and y"),
        (lambda: m.predict_interval(X, "90"), "coverage must be between 0 and 1"), (lambda: m.sample_y(X, -1), "n_samples must be"),
        (lambda: m.sample_functions(0), "n_samples must be"), (lambda: far.sample_y(X, 1.5), "n_samples must be"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            ask()


@pytest.mark.parametrize("name", ["kernel_", "noise_", "scale_", "prior_mean_", "log_marginal_likelihood_", "loo_score_"])
def test_what_is_not_fitted_says_so(name):
    with pytest.raises(NotFittedError):
        getattr(GP(), name)


# leave-one-out
def test_rows_are_left_out_once(monkeypatch):
    """However often it is asked."""
    X, y = data()
    m = GP(Gaussian(0.7), 0.1).fit(X, y)
    first = m.loo_predictions_
    monkeypatch.setattr("mercer.models.gp.exact.dpotri", None)
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


# functions over landmarks
def test_functions_over_landmarks_vary_far_from_the_data():
    (X, y), (Z, _) = data(), data(5, 1)
    m = GP(Gaussian(0.7), 0.1, Landmarks(20), prior_mean=1.0, random_state=0).fit(X, y)
    Z = np.vstack([Z, [[2.0, 2.0], [30.0, 30.0]]])
    mean, cov = m.predict(Z, return_cov=True, of="f")
    for posterior in (True, False):
        values = np.concatenate([m.sample_functions(1500, posterior=posterior, random_state=s)(Z) for s in range(3)], axis=1)
        np.testing.assert_allclose(values.mean(1), mean if posterior else 1.0, atol=0.08)
        np.testing.assert_allclose(np.cov(values), cov if posterior else Gaussian(0.7)(Z), atol=0.12)
    F = m.sample_functions(3)
    np.testing.assert_allclose(F(Z[4:5])[0], F(Z)[4], atol=1e-9)
    assert F(Z.astype(np.float32)).dtype == np.float32


class Own(Kernel):
    """1 / (1 + |x - z|^2), of which no random features are known."""

    def on(self, p):
        return 1 / (1 + p.sqdist(1.0))


def test_functions_of_a_kernel_without_random_features_warn():
    X, y = data()
    m = GP(Own(), 0.1, Landmarks(20), random_state=0).fit(X, y)
    with pytest.warns(VarianceStarvationWarning, match="no feature map is known"):
        assert m.sample_functions(2)(X).shape == (60, 2)
    with pytest.raises(ValueError, match="use sample_y"):
        GP(Own(), 0.1).fit(X, y).sample_functions(2)
