"""Functions, jumps and splines of single columns: their values, names, kernels, and odd columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import SplineTransformer

from mercer.lifts import Basis, Jumps, Splines
from mercer.lifts.columnwise import FUNCTIONS
from mercer.testing import check_lift


def bump(x):
    return np.exp(-(x**2))


LIFTS = {
    "basis": Basis(),
    "every function": Basis(list(FUNCTIONS)),
    "own functions": Basis([bump, np.sin, "x"], columns=[0, 2]),
    "own names": Basis({"bell": bump}),
    "quantiles": Jumps(n=4),
    "distinct": Jumps("distinct"),
    "thresholds": Jumps([0.0, 0.5]),
    "some columns": Jumps({0: [0.1], -1: [0.2, 0.3]}),
    "splines": Splines(),
    "quantile knots": Splines(4, 2, knots="quantile", extrapolation="linear", include_bias=False),
}


@pytest.mark.parametrize("name", LIFTS)
def test_lift_equals_kernel(name):
    check_lift(LIFTS[name])


@pytest.mark.parametrize("name", LIFTS)
def test_constant_columns_and_one_row(name):
    X = np.full((1, 3), 2.5)
    phi = LIFTS[name].fit(X)
    assert phi.n_features_out_ >= 1
    assert np.isfinite(phi.transform(X)).all()
    with pytest.raises(ValueError, match="NaN"):
        LIFTS[name].fit([[np.nan, 1.0, 2.0]])


def test_basis_values_and_names():
    frame = pd.DataFrame({"age": [1.0, 2.0], "income": [3.0, 5.0]})
    phi = Basis(["x", "square", "cos", bump, lambda x: x + 1], columns=["income"]).fit(frame)
    assert phi.get_feature_names_out().tolist() == [
        "income",
        "income^2",
        "cos(income)",
        "bump(income)",
        "f4(income)",
    ]
    np.testing.assert_allclose(phi.transform(frame)[0], [3, 9, np.cos(3), np.exp(-9), 4])
    assert Basis("cos").fit(frame).get_feature_names_out().tolist() == ["cos(age)", "cos(income)"]
    assert Basis({"up": bump}).fit(frame).get_feature_names_out().tolist() == [
        "up(age)",
        "up(income)",
    ]


@pytest.mark.parametrize(
    ("phi", "match"),
    [
        (Basis(["sine"]), "'sine' is not known"),
        (Basis([]), "one or more functions"),
        (Basis([3]), "one or more functions"),
        (Basis(["exp"]), r"exp\(x1\) is not finite"),
        (Basis([np.log]), r"log\(x0\) is not finite"),
        (Basis([np.sum]), "one number a row"),
        (Basis(columns=["age"]), "'age' is not a column"),
        (Jumps("all"), "thresholds must be"),
        (Jumps([]), "one or more numbers"),
        (Jumps([np.nan]), "finite numbers"),
        (Jumps({5: [1.0]}), "5 is not a column"),
        (Jumps(n=0), "n must be"),
        (Jumps("distinct", limit=1), "x0 has 2, more than limit=1"),
        (Splines(n_knots=1), "n_knots must be"),
        (Splines(knots="other"), "knots must be"),
        (Splines(degree=-1), "degree must be"),
    ],
    ids=lambda v: None if "0x" in repr(v) else repr(v),
)
def test_refusals(phi, match):
    with pytest.raises(ValueError, match=match):
        phi.fit([[-1.0, 1.0], [2.0, 800.0], [3.0, 4.0]]).transform([[-1.0, 1.0], [2.0, 800.0]])


def test_jumps_by_quantiles():
    X = np.arange(100.0)[:, None]
    phi = Jumps(n=3).fit(X)
    assert phi.thresholds_[0].tolist() == [25, 50, 75]
    assert phi.transform([[24.0], [25.0], [80.0], [-9.0]]).tolist() == [
        [1, 1, 1],
        [0, 1, 1],
        [0, 0, 0],
        [1, 1, 1],
    ]
    assert phi.get_feature_names_out().tolist() == ["1{x0<25}", "1{x0<50}", "1{x0<75}"]


def test_jumps_of_few_values():
    binary = np.array([0.0, 0, 0, 1])[:, None]
    assert Jumps(n=10).fit(binary).thresholds_[0].tolist() == [1]
    assert Jumps("distinct").fit(binary).thresholds_[0].tolist() == [1]
    assert Jumps().fit(np.full((5, 1), 7.0)).transform([[6.0], [7.0]]).tolist() == [[1], [0]]


def test_jumps_by_name():
    frame = pd.DataFrame({"age": [1.0, 2.0], "income": [3.0, 5.0]})
    phi = Jumps({"income": [4, 3.5]}).fit(frame)
    assert phi.get_feature_names_out().tolist() == ["1{income<3.5}", "1{income<4}"]
    assert phi.transform(frame).tolist() == [[1, 1], [0, 0]]


def test_jumps_compare_in_the_precision_of_the_rows():
    X = np.float32([[0.1], [0.2], [0.3]])
    assert Jumps("distinct").fit(X).transform(X).tolist() == [[1, 1], [0, 1], [0, 0]]


def test_splines_are_those_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(30, 2))
    for knots in ("uniform", "quantile"):
        theirs = SplineTransformer(knots=knots).fit(X)
        np.testing.assert_allclose(
            Splines(knots=knots).fit(X).transform(X), theirs.transform(X), atol=1e-12
        )


def test_splines_sum_to_one_also_on_a_constant_column():
    X = np.column_stack([np.linspace(0, 1, 9), np.full(9, 3.0)])
    phi = Splines().fit(X)
    np.testing.assert_allclose(phi.transform(X).sum(1), 2)
    assert phi.get_feature_names_out()[7] == "spline0(x1)"


def test_huge_columns():
    X = np.array([[1e200], [0.0], [-1e200]])
    assert np.isfinite(Splines().fit_transform(X)).all()
    assert np.isfinite(Jumps().fit_transform(X)).all()
    assert np.isfinite(Basis(["log1p_abs", "tanh", "sin"]).fit_transform(X)).all()


def test_splines_at_given_knots():
    X = np.random.default_rng(0).uniform(0, 1, size=(40, 2))
    each, both = np.array([[0.0, -1.0], [0.2, 0.5], [0.9, 0.6], [1.0, 3.0]]), [0.0, 0.3, 1.0]
    np.testing.assert_array_equal(
        Splines(knots=each).fit_transform(X), SplineTransformer(knots=each).fit_transform(X)
    )
    np.testing.assert_array_equal(
        Splines(knots=both).fit_transform(X),
        Splines(knots=np.array([both, both]).T).fit_transform(X),
    )
    assert clone(Splines(knots=each)).fit(X).n_features_out_ == 2 * (4 + 3 - 1)
    for knots, match in [
        ([0.0], "two or more ascending"),
        ([0.0, 0.0], "two or more ascending"),
        ([1.0, 0.0], "two or more ascending"),
        ([0.0, np.nan], "two or more ascending"),
        (each[:, :1], "knots has 1 columns, but X has 2"),
        (None, "two or more ascending"),
        ([["a"], ["b"]], "two or more ascending"),
        ("other", 'knots must be "uniform"'),
        (3, "two or more ascending"),
    ]:
        with pytest.raises(ValueError, match=match):
            Splines(knots=knots).fit(X)
