"""A fitted ridge regression answers by the settings and rows of its fit."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from mercer import load
from mercer.inputs import Table
from mercer.invariants import check
from mercer.kernels import Gaussian
from mercer.methods import Fourier, Landmarks
from mercer.models import KernelRidge
from mercer.models.ridge import fit

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


@pytest.mark.parametrize("model", MODELS)
def test_a_model_holds_one_value_whatever_it_was_asked(model):
    A = Gaussian(1.0)(X) if model.kernel == "precomputed" else X
    model = clone(model).fit(A, y, np.arange(150) % 5 > 0)
    held = {"fitted_", "n_features_in_", "_of_items"}
    for m in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        m.predict_interval(A[:3])
        assert vars(m).keys() - m.get_params().keys() == held
        assert m.fitted_.solution is m.solution_
        assert (m.fitted_.rows is None) == (not hasattr(m, "loo_predictions_"))


def test_rows_that_a_solution_is_a_sum_over_are_held_once():
    model = KernelRidge(Gaussian(1.0), via="exact").fit(X, y)
    assert len(model.fitted_.rows.X) == 0
    assert model.fitted_.at_hand().X is model.solution_.over.points
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.loo_predictions_, model.loo_predictions_)


def test_a_calibration_is_found_once(monkeypatch):
    model = clone(MODELS[0]).fit(X, y)
    first = model.predict_interval(T)
    monkeypatch.setattr(fit, "calibrated", None)
    np.testing.assert_array_equal(model.predict_interval(T), first)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_interval(T), first)


def test_a_value_that_is_not_calibrated_says_so():
    with pytest.raises(ValueError, match="nothing calibrates the model yet"):
        KernelRidge().fit(X, y).fitted_.by_split(Table(T), 0.9)


@pytest.mark.parametrize("method", ["split", "jackknife+"])
def test_a_warning_of_intervals_is_where_they_were_asked_for(method):
    model = KernelRidge(Gaussian(1.0), alpha=0.1).fit(X[:6], y[:6])
    with pytest.warns(UserWarning, match="the intervals are infinite") as found:
        model.predict_interval(T, 0.95, method)
    assert {w.filename for w in found} == {__file__}


def damaged(fitted):
    """Values whose parts do not belong together, and why."""
    rows, split = fitted.rows, fitted.calibrated(fitted.settings).split
    yield replace(fitted, rows=replace(rows, Y=np.hstack([rows.Y] * 2))), "targets of 2 outputs"
    yield replace(fitted, rows=replace(rows, Y=rows.Y[:5])), "not those of its targets"
    yield replace(fitted, columns=np.arange(2)), "not those that it takes"
    other = replace(split.model.over, points=Table(X[:, :2][: split.model.weights.size]))
    wrong = replace(split, model=replace(split.model, over=other))
    yield replace(fitted, split=wrong), "calibrated by a model of 2 columns"


def test_parts_that_do_not_belong_together_are_refused():
    fitted = KernelRidge(Gaussian(1.0), via="exact").fit(X, y).fitted_
    check(fitted)
    for value, says in damaged(fitted):
        with pytest.raises(ValueError, match=says):
            check(value)
    given = KernelRidge("precomputed").fit(np.eye(4), y[:4], [1, 0, 1, 1])
    assert list(given.fitted_.columns) == [0, 2, 3]
    check(given)
    given.fitted_ = replace(given.fitted_, columns=np.array([0, 2, 9]))
    with pytest.raises(ValueError, match="over columns that are not the 4 it takes"):
        check(given)
