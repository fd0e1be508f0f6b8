"""A fitted ridge regression answers by the settings and rows of its fit."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from mercer import load
from mercer.kernels import Gaussian
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelRidge

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=150)
T = rng.normal(size=(40, 3))
MODELS = [
    KernelRidge(Gaussian(1.0), via=Fourier(64), random_state=0),
    KernelRidge(Gaussian(1.0), via=Landmarks(30), random_state=0),
    KernelRidge(Gaussian(1.0), via=Fourier(300), random_state=0, memory_limit="1MB"),
    KernelRidge("precomputed"),
]


@pytest.mark.parametrize(
    "later", [{"fit_intercept": False}, {"via": "features"}, {"alphas": [7.0]}, {"tol": 0.5}]
)
def test_settings_of_later_change_no_answer(later):
    model = KernelRidge(Gaussian(1.0), alpha=0.1, via="exact", cv=3).fit(X, y + 3)
    again = (
        KernelRidge(Gaussian(1.0), alpha=0.1, via="exact", cv=3).fit(X, y + 3).set_params(**later)
    )
    for m in (again, pickle.loads(pickle.dumps(again))):
        np.testing.assert_array_equal(m.loo_predictions_, model.loo_predictions_)
        np.testing.assert_array_equal(m.cv_scores(), model.cv_scores())
        for method in ("split", "jackknife+"):
            np.testing.assert_array_equal(
                m.predict_interval(T, method=method), model.predict_interval(T, method=method)
            )


def test_settings_of_later_are_not_those_of_a_saved_model(tmp_path):
    model = KernelRidge(Gaussian(1.0), alpha=0.1, via="exact", cv=3).fit(X, y + 3)
    expected = model.loo_predictions_
    model.set_params(fit_intercept=False).save(tmp_path / "m.mercer")
    loaded = load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(loaded.loo_predictions_, expected)


@pytest.mark.parametrize("model", MODELS)
def test_copies_keep_the_rows_and_files_say_that_they_do_not(model):
    A = Gaussian(1.0)(X) if model.kernel == "precomputed" else X
    model = clone(model).fit(A, y)
    for other in (copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.loo_predictions_, model.loo_predictions_)
        np.testing.assert_array_equal(other.predict(A), model.predict(A))
    with pytest.raises(AttributeError, match=r"loaded ones of a given kernel matrix .* have none"):
        pickle.loads(pickle.dumps(model)).loo_predictions_  # noqa: B018
