"""Formulas evaluate to predictions, whatever the lift and the units."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import PolynomialFeatures

from mercer import SparseClassifier, SparseRegressor
from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.lifts import (
    Basis,
    Identity,
    Interactions,
    Jumps,
    KitchenSink,
    Monomials,
    RandomFourier,
    Splines,
    Subsets,
)
from mercer.models.sparse.frame import UnitFrame
from mercer.models.sparse.terms import JUMP, Term, Units

RNG = np.random.default_rng(4)
N = 90
X = np.column_stack(
    [
        RNG.normal(size=N) * 1e3,
        RNG.random(N) + 2005.0,  # far from zero
        RNG.integers(2, size=N),
        np.exp(RNG.normal(size=N)),
    ]
)
Y = (
    X[:, 0] / 1e3 * X[:, 3]
    + 4 * (X[:, 1] - 2005) * X[:, 2]
    + (X[:, 3] < 1)
    + 0.1 * RNG.normal(size=N)
)
LIFTS = {
    "sink": None,
    "few": KitchenSink(n_knots=0),
    "columns": Identity(),
    "cubic": Monomials(3, include_bias=False),
    "weighted": Monomials(2, weights="kernel"),
    "from degree 2": Monomials((2, 3)),
    "capped": Monomials(3, degree_per_column={0: 1}),
    "pairs": Interactions(2, columns=[3, 0, 1]),
    "subsets": Subsets(),
    "functions": Basis(["x", "cube", "tanh", "log1p_abs"], columns=[3, 2]),
    "own functions": Basis({"root": lambda x: np.sqrt(np.abs(x))}),
    "jumps": Jumps(n=6),
    "splines": Splines(4),
    "random": RandomFourier(Gaussian(2.0), 20, random_state=0),
    "sum": Identity() + Jumps(n=3),
    "scikit-learn": PolynomialFeatures(2, include_bias=False),
}
QUICK = dict(n_alphas=12, eps=0.01, rule="min")


@pytest.mark.parametrize("scale", ["unit", "columns", None])
@pytest.mark.parametrize("name", LIFTS)
def test_a_formula_evaluates_to_the_prediction(name, scale):
    m = SparseRegressor(LIFTS[name], scale=scale, **QUICK).fit(X, Y)
    new = np.vstack([X, X * [1.0, 1.0, 1.0, 2.0]])
    size = np.abs(Y).max()
    np.testing.assert_allclose(m.formula_(new), m.predict(new), rtol=1e-10, atol=1e-10 * size)
    assert len(m.formula_.terms) == len(m.support_) == len(m.names_)
    assert len(m.support_) or name in ("random", "own functions")


def test_the_text_itself_evaluates_to_the_prediction():
    """By its own words alone: powers, products, functions and jumps of columns by their names."""
    names = {"a": X[:, 0], "year": X[:, 1], "flag": X[:, 2], "d": X[:, 3]}
    frame = pd.DataFrame(names)
    m = SparseRegressor(KitchenSink(n_knots=0), **QUICK).fit(frame, Y)
    text = m.formula_.text(17)
    assert "1{" in text
    code = re.sub(r"([0-9.]+(?:e[+-]?[0-9]+)?) (?=[a-z1(])", r"\1*", text)  # "2.5 x" is a product
    code = re.sub(r"1\{([^}]*)\}", r"(\1)", code).replace("^", "**")
    known = {f: getattr(np, f) for f in ("sin", "cos", "abs")}
    known["log1p_abs"] = lambda x: np.log1p(np.abs(x))
    value = eval(code, {**known, **names})
    np.testing.assert_allclose(value, m.predict(frame), rtol=1e-10, atol=1e-10)
    python = {"x": [names[c] for c in names], **known}
    np.testing.assert_allclose(
        eval(m.formula_.code, python), m.predict(frame), rtol=1e-10, atol=1e-10
    )


def test_names_and_signs_are_in_the_users_units():
    frame = pd.DataFrame({"age {y}": RNG.integers(20, 80, size=N), "b": RNG.normal(size=N)})
    y = 3.0 * (frame["age {y}"] < 40) - 2 * frame["b"] * frame["age {y}"] / 80
    m = SparseRegressor(KitchenSink(n_knots=0, functions=[]), **QUICK).fit(frame, y)
    table = m.table_
    at = table["feature"].index("age {y}*b")
    assert table["sign"][at] == -1
    b = {t.text(m.formula_.names): b for b, t in m.formula_.terms}
    assert b["age {y}*b"] == pytest.approx(-2 / 80, rel=0.3)
    assert any(name.startswith(("1{age {y} < 4", "1{age {y} < 3")) for name in b)
    assert table["effect"] == sorted(table["effect"], key=abs, reverse=True)
    assert str(m.formula_).count("age {y}*b") == 1


def test_a_threshold_just_below_zero_has_words():
    """The number next to zero: no share of a span of 3 that floats can hold."""
    x = np.repeat([-1.0, -0.0, 0.0, 2.0], 15)[:, None]
    term = Term(1.0, JUMP, "", (0,), (-5e-324,), (3.0,))
    assert term.text(["x0"]) == "1{x0 < -4.94066e-324}"
    assert Term(1.0, JUMP, "", (0,), (1e300,), (5e-324,)).text(["x0"]).endswith("e+300}")
    m = SparseRegressor(Jumps(n=5), **QUICK).fit(x, (x[:, 0] < 0) * 1.0)
    assert all(name.startswith("1{x0 < ") for name in m.names_)


def test_sparse_rows():
    Z = sp.random_array((N, 30), density=0.2, random_state=RNG, format="csr")
    y = Z.toarray()[:, :3].sum(1)
    m = SparseRegressor(**QUICK).fit(Z, y)
    assert set(m.names_) >= {"x0", "x1", "x2"}
    np.testing.assert_allclose(m.formula_(Z), m.predict(Z), atol=1e-12)
    np.testing.assert_allclose(m.formula_(Z), m.formula_(Z.toarray()), atol=1e-12)


def test_one_formula_a_class():
    y = np.array(["no", "yes"])[(np.median(Y) < Y).astype(int)]
    quick = dict(QUICK, n_alphas=5, eps=0.1)
    two = SparseClassifier(Identity(), **quick).fit(X, y)
    np.testing.assert_allclose(two.formula_(X), two.decision_function(X), rtol=1e-10, atol=1e-10)
    assert "class" not in two.table_
    three = SparseClassifier(Identity(), **quick).fit(X, np.digitize(Y, np.quantile(Y, [0.3, 0.7])))
    F = three.decision_function(X)
    for k in range(3):
        np.testing.assert_allclose(three.formula_[k](X), F[:, k], rtol=1e-10, atol=1e-10)
    assert set(three.table_["class"]) <= {0, 1, 2}


@pytest.mark.parametrize("units", [1e-150, 1e90])
def test_products_of_columns_of_extreme_units(units):
    Z = X[:, [0, 3]] * units
    m = SparseRegressor(Monomials(3, include_bias=False), **QUICK).fit(Z, Y)
    assert len(m.support_)
    np.testing.assert_allclose(m.formula_(Z), m.predict(Z), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 3.0, 0.1, 7e8])
def test_thresholds_divide_rows_as_the_lift_does(scale):
    x = np.sort(RNG.normal(size=1500) * scale + 100 * scale * (scale == 3.0))
    frame = UnitFrame.of(_table(x))
    Z = frame(_table(x)).data
    units = Units(frame.shift, frame.scale)
    for z in Z[1:, 0].tolist():
        t = units.jump(0, z)
        np.testing.assert_array_equal(eval(t.code, {"x": [x]}), Z[:, 0] < z)


def _table(x):
    return Table(x[:, None])


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_constants_that_are_nothing_beside_the_terms_are_not_shown(unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = 3 * X[:, 0] * X[:, 1] - 2 * X[:, 2] + 1e-5 * rng.normal(size=300)
    lift = KitchenSink(n_knots=0, n_jumps=0, functions=())
    m = SparseRegressor(lift).fit(X, unit * y)
    assert m.intercept_ != 0
    assert re.fullmatch(r"-\S+ x2 \+ \S+ x0\*x1", str(m.formula_))
    moved = str(SparseRegressor(lift).fit(X, unit * (y + 0.25)).formula_)
    assert float(moved.split(" ")[0]) == pytest.approx(0.25 * unit, rel=4e-3)
    # an offset beyond the digits of terms is told as exactly as these are
    far = str(SparseRegressor(lift).fit(X, y + 123456.75).formula_)
    assert far.startswith("123456.75 - ")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_beside_a_column_far_from_zero_have_digits_of_its_span(dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 2)) + 1e6).astype(dtype)
    y = (X[:, 0] - 1e6) * (X[:, 1] - 1e6) + 3 * (X[:, 0] < 1e6)
    m = SparseRegressor(KitchenSink(n_knots=0, functions=()), rule="min").fit(X, y)
    code = re.sub(r"1\{([^}]*)\}", r"(\1)", m.formula_.text(9)).replace("^", "**")
    code = re.sub(r"(\d) (?=[x(])", r"\1*", code)
    told = eval(code, {"x0": X[:, 0].astype(float), "x1": X[:, 1].astype(float)})
    np.testing.assert_allclose(told, m.predict(X.astype(float)), atol=1e-4)
    assert len(set(m.names_)) == len(m.names_)


def framed_rows(n=120, seed=5):
    X = np.random.default_rng(seed).uniform(1, 9, size=(n, 3))
    return pd.DataFrame(X, columns=["age", "in come", "größe"]), X[:, 0] * X[:, 1] + np.sin(X[:, 2])


def test_columns_of_a_frame_are_found_by_name():
    X, y = framed_rows()
    m = SparseRegressor(n_alphas=20).fit(X, y)
    said = m.predict(X)
    for other in (X, X[X.columns[::-1]], X.assign(more=1.0)):
        np.testing.assert_allclose(m.formula_(other), said, rtol=1e-12)
    np.testing.assert_allclose(m.formula_(X.to_numpy()), said, rtol=1e-12)
    np.testing.assert_allclose(m.formula_(X.to_numpy().tolist()), said)
    with pytest.raises(ValueError, match=r"no column 'in come'.*give the columns of the fit"):
        m.formula_(X.rename(columns={"in come": "income"}))
    with pytest.raises(ValueError, match="2 columns, 3 expected"):
        m.formula_(X.to_numpy()[:, :2])
    with pytest.raises(ValueError, match="X must"):
        m.formula_(X.to_numpy()[0])
    nameless = SparseRegressor(n_alphas=20).fit(X.to_numpy(), y)
    np.testing.assert_allclose(nameless.formula_(X), said)


def test_a_prompt_shows_the_formula():
    X, y = framed_rows()
    m = SparseRegressor(Monomials(2), n_alphas=20).fit(X, X["age"] * X["in come"])
    assert repr(m.formula_) == str(m.formula_) == m.formula_.text()
    assert "age*in come" in repr(m.formula_)
    three = SparseClassifier(Monomials(1), n_alphas=10).fit(X, np.digitize(y, [20, 40]))
    assert repr(three.formula_).startswith("{0: ")
    assert "Term(" not in repr(three.formula_)
    assert len(repr(three.formula_)) < 300


def test_names_that_read_as_arithmetic_are_quoted():
    X, _ = framed_rows()
    X.columns = ["a*b", "2nd", "c-d"]
    m = SparseRegressor(Monomials(2), n_alphas=20).fit(X, X["a*b"] * X["2nd"] + 9 * X["c-d"])
    assert '"a*b"*"2nd"' in str(m.formula_)
    assert " c-d" in str(m.formula_)
    np.testing.assert_allclose(m.formula_(X[X.columns[::-1]]), m.predict(X), rtol=1e-12)
