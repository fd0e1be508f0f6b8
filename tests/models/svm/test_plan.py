"""The way of a classifier follows from its settings and the number of rows alone."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Constant, Gaussian
from mercer.lifts import Monomials
from mercer.methods import Fourier
from mercer.models.svm import forecast, plan
from mercer.models.svm.classifier import KernelSVC
from mercer.models.svm.plan import EXACT_ROWS, ClassifierSettings, LabelledRows, choose


def settings(**options):
    return ClassifierSettings.of(KernelSVC(**options))


@pytest.mark.parametrize(
    ("options", "n", "way"),
    [
        ({}, EXACT_ROWS, "exact"),
        ({}, EXACT_ROWS + 1, "features"),
        ({"via": "exact"}, 10**9, "exact"),
        ({"via": Fourier(10)}, 5, "features"),
        ({"via": "landmarks"}, 5, "features"),
        ({"lift": Monomials(2)}, 5, "features"),
        ({"kernel": "precomputed"}, 10**9, "exact"),
        ({"kernel": Constant()}, 10**9, "exact"),
    ],
)
def test_ways(options, n, way):
    plan = choose(n, settings(**options))
    assert plan.way == way
    assert bool(plan.rejected) == (options == {} and way == "features")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kernel": "precomputed", "via": "features"}, "need via='exact'"),
        ({"via": "features", "multiclass": "ovo"}, "need via='exact'"),
        ({"lift": Monomials(2), "via": "exact"}, "a lift is the feature map itself"),
        ({"lift": Monomials(2), "kernel": Gaussian()}, "kernel or a lift"),
    ],
)
def test_ways_that_are_none(options, match):
    with pytest.raises(ValueError, match=match):
        choose(10, settings(**options))


def test_rows_of_weight_zero_are_as_absent():
    X, y, w = (
        np.arange(8.0).reshape(4, 2),
        np.array(["b", "a", "a", "c"]),
        np.array([1.0, 0.0, 2.0, 3.0]),
    )
    rows = LabelledRows.of(Table(X), y, w, gram=False)
    assert rows.kept.tolist() == [0, 2, 3]
    assert rows.classes[rows.codes].tolist() == ["b", "a", "c"]
    np.testing.assert_array_equal(rows.X.data, X[[0, 2, 3]])
    given = LabelledRows.of(Table(np.arange(16.0).reshape(4, 4)), y, w, gram=True)
    np.testing.assert_array_equal(
        given.X.data, np.arange(16.0).reshape(4, 4)[np.ix_([0, 2, 3], [0, 2, 3])]
    )
    with pytest.raises(ValueError, match="1 class among rows of positive weight"):
        LabelledRows.of(Table(X), y, np.array([0.0, 1, 1, 0]), gram=False)


def data(n=300, d=3, classes=2, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (
        np.tanh(X @ rng.normal(size=(d, classes))) + noise * rng.normal(size=(n, classes))
    ).argmax(1)


def test_auto_is_exact_for_few_rows_and_features_beyond(monkeypatch):
    X, y = data(100)
    assert KernelSVC().fit(X, y).plan_.way == "exact dual"
    assert hasattr(KernelSVC(lift=Monomials(2)).fit(X, y), "coef_")
    monkeypatch.setattr(plan, "EXACT_ROWS", 50)
    monkeypatch.setattr(forecast, "SWEEPS", 0)  # whatever the exact dual takes is too much
    m = KernelSVC(random_state=0).fit(X, y)
    assert "not exact dual: 100 rows are more than 50" in str(m.plan_)
    assert hasattr(m, "coef_")
    assert not hasattr(m.set_params(via="exact").fit(X, y), "coef_")
    assert not hasattr(m.set_params(via=Fourier(50)).fit(X, y), "dual_coef_")
