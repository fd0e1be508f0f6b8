"""The formula of a table: what is shown is what predicts, in the units of the table."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from mercer import fit_table, load
from mercer.automl import readable
from mercer.automl.budget import Clock, OutOfTime
from mercer.automl.candidates import FormulaPlan
from mercer.automl.formulas import (
    NORMAL_SCORE,
    SLOG,
    ReadableModel,
    significant,
    spelled_formula,
)
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import ConstantPredictor, transformations
from mercer.automl.readable import (
    compare_formula,
    fit_formula,
    formula_candidate,
    formula_size,
)
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.automl.terms import CLASS_RIDGE, MAX_TERMS, certain_terms, class_fits, fitted_again
from mercer.automl.units import ColumnUnits, Unit
from mercer.inputs import Table
from mercer.models.sparse.problem import WeighedRows
from mercer.tables import Columns

from .arrays import forever


def units(d, per=2.0, shift=3.0):
    return ColumnUnits.listed([Unit(f"c{j}", per, shift, f"c{j}") for j in range(d)])


def problem(y, X, classes=0, metric=None, **more):
    name = metric or ("accuracy" if classes else "r2")
    rows = TableRows(X.astype(np.float32), y, np.arange(len(y)), **more)
    return SearchProblem(rows, METRICS[name], classes, units=units(X.shape[1]))


def planted(n=400, d=4, seed=0, noise=0.1, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    C = units(d)(X)
    return X, offset + 3 * C[:, 0] * C[:, 1] - 2 * C[:, 2] + noise * rng.normal(size=n)


def fitted(p, targets=None):
    f = formula_candidate(p, 60, targets or (transformations(p.rows.y)))
    return f, fit_formula(p, f, 60)


def evaluated(text, C):
    """The right side of a formula of columns c0, c1, ... as Python reads it."""
    code = re.sub(r"1\{(c\d+) < ([-\d.e+]+)\}", r"(\1 < \2)", text.replace("^", "**"))
    code = re.sub(r"([\d.]+(?:e[-+]?\d+)?) (?=[c(])", r"\1*", code)
    return eval(code, {f"c{j}": C[:, j] for j in range(C.shape[1])})


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_the_planted_terms_are_shown_and_predict(seed, offset):
    X, y = planted(seed=seed, offset=offset)
    f, predictor = fitted(problem(y, X))
    text = spelled_formula(predictor, "y", ())
    assert text.startswith("y = ")
    assert "c0*c1" in text
    assert "c2" in text
    C = units(4)(X)
    told, said = evaluated(text.removeprefix("y = "), C), predictor(X)
    np.testing.assert_allclose(told, said, rtol=0, atol=1e-4 * y.std() * 1e-2)
    assert f.score.value > 0.99


def test_rounding_keeps_the_score_and_says_no_more_digits_than_it_needs():
    X, y = planted(noise=2.0)
    p = problem(y, X)
    _, predictor = fitted(p)
    model = predictor.estimator
    assert isinstance(model, ReadableModel)
    assert model.digits <= 4
    for b, _ in model.formulas[0].terms:
        b *= predictor.target.scale
        assert b == pytest.approx(float(significant(np.array([b]), model.digits)[0]), rel=1e-12)
    score = p.metric(y, predictor(X))
    # the same terms by least squares, none of them rounded
    F = model.estimator.model_.map.columns(
        readable.Table(model.units(X)), model.estimator.model_.ids
    )
    A = np.column_stack([F, np.ones(len(y))])
    best = p.metric(y, A @ np.linalg.lstsq(A, y, rcond=None)[0])
    assert best.value - score.value < 0.1 * best.error()


def test_noise_has_no_formula():
    empty = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
        _, predictor = fitted(problem(y, X))
        empty += spelled_formula(predictor, "y", ()) == ""
    assert empty >= 8


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(classes):
    X, y = planted(n=300, noise=0.5)
    codes = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    p = problem(codes, X, classes)
    f = formula_candidate(p, 40)
    predictor = fit_formula(p, f, 40)
    P = predictor(X)
    assert P.shape == (300, classes)
    np.testing.assert_allclose(P.sum(1), 1)
    assert f.score.value > 0.75
    text = spelled_formula(predictor, "t", ("no", "yes", "so")[:classes])
    C = units(4)(X)
    if classes == 2:
        assert text.startswith("log odds of t = yes: ")
        told = evaluated(text.split(": ")[1], C)
        np.testing.assert_allclose(told, np.log(P[:, 1] / P[:, 0]), rtol=1e-3, atol=1e-3)
    else:
        told = np.stack([evaluated(part.split(": ")[1], C) for part in text.split("; ")], axis=1)
        np.testing.assert_allclose(told.argmax(1), P.argmax(1))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_terms_of_classes_are_thinned_out(classes, seed):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(600, 20))
    G[:, 5] = G[:, 0] + 0.01 * rng.normal(size=600)
    f = 2 * G[:, 0] - 2 * G[:, 1] + rng.logistic(size=600)
    y = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))
    kept = certain_terms(G, WeighedRows.of(Table(G), y, None, classes, None))
    assert 1 in kept
    assert {0, 5} & set(kept.tolist())
    assert len(kept) <= 5
    noise = WeighedRows.of(Table(G), rng.permutation(y), None, classes, None)
    coef, b0 = fitted_again(G, noise)
    assert np.count_nonzero(coef) <= 2 * classes
    assert np.isfinite(b0).all()


def test_terms_that_part_classes_stay_though_none_is_certain():
    rng = np.random.default_rng(1)
    G = rng.normal(size=(150, 4))
    y = (G[:, 0] + G[:, 1] > 0) * 1 + (G[:, 0] - G[:, 1] > 1)
    kept = certain_terms(G, WeighedRows.of(Table(G), y, None, 3, None))
    assert {0, 1} <= set(kept.tolist())


def test_certainty_of_terms_is_that_of_logistic_regression():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(400, 3))
    y = (A @ [1.0, -0.5, 0.0] + rng.logistic(size=400) > 0) * 1
    A = (A - A.mean(0)) / A.std(0)
    (fit,) = class_fits(A, WeighedRows.of(Table(A), y, None, 2, None))
    m = LogisticRegression(C=1 / (400 * CLASS_RIDGE), tol=1e-10).fit(A, y)
    B, P = np.column_stack([A, np.ones(400)]), m.predict_proba(A)[:, 1]
    H = B.T @ (B * (P * (1 - P))[:, None]) / 400 + np.diag([CLASS_RIDGE] * 3 + [0.0])
    errors = np.sqrt(np.linalg.inv(H).diagonal()[:3] / 400)
    want = np.abs(m.coef_[0]) / errors
    np.testing.assert_allclose(fit.certain(np.arange(3), 400.0), want, rtol=1e-3)


def test_functions_of_a_formula_are_told_in_words():
    X, y = planted()
    p = problem(y, X)
    named = [Unit(f"normal_score(c{j})" if j else "slog(c0/2)", 2.0, 3.0) for j in range(4)]
    p = replace(p, units=ColumnUnits.listed([u._replace(own=u.name) for u in named]))
    text = spelled_formula(fitted(p)[1], "y", ())
    assert text.endswith("; ".join([SLOG, NORMAL_SCORE]))
    assert SLOG not in spelled_formula(fitted(problem(y, X))[1], "y", ())


def test_a_skewed_target_is_told_by_its_logarithm():
    X, z = planted(noise=0.05)
    y = np.exp(z / 10)
    _, predictor = fitted(problem(y, X))
    text = spelled_formula(predictor, "y", ())
    assert text.startswith("log(y) = ")
    inside = evaluated(text.split("; ")[0].removeprefix("log(y) = "), units(4)(X))
    factor = predictor.target.retransformation
    np.testing.assert_allclose(
        np.clip(factor * np.exp(inside), predictor.low, predictor.high), predictor(X), rtol=1e-3
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda X: np.hstack([X, X[:, :1], X[:, :1] + 1e-7]),  # copies and nearly
        lambda X: np.hstack([X[:, :1]] * 4),  # a line
        lambda X: X + 1e6,
        lambda X: np.repeat(X[:20], 20, axis=0),
        lambda X: X * 0,
    ],
)
def test_hostile_columns(spoil):
    X, y = planted()
    X = spoil(X)
    _, predictor = fitted(problem(y, X))
    assert np.isfinite(predictor(X.astype(np.float32))).all()
    model = predictor.estimator
    assert model.n_terms <= MAX_TERMS


def test_weights_count_and_rows_without_any_do_not():
    X, y = planted()
    wild, w = y.copy(), np.ones(len(y))
    wild[::3], w[::3] = 1e3, 0.0
    f, predictor = fitted(problem(wild, X, weight=w))
    assert METRICS["r2"](y, predictor(X)).value > 0.98
    assert f.score.value > 0.98


def test_a_class_that_a_fold_lacks_and_rows_of_one_class():
    X, y = planted(n=60)
    codes = (y > np.median(y)).astype(int)
    codes[0] = 2
    f = formula_candidate(problem(codes, X, 3), 30)
    np.testing.assert_allclose(f.predicted.sum(1), 1)
    one = problem(np.zeros(60, int), X, 2)
    assert isinstance(fit_formula(one, formula_candidate(one, 30), 30), ConstantPredictor)


def test_what_is_too_much_to_be_read_is_left_out_with_a_reason():
    X, y = planted(n=50)
    codes = np.arange(50) % 7
    found = []
    (many,) = compare_formula(problem(codes, X, 7), forever(), found, ())
    assert "7 classes are too many" in many.sentence
    wide = problem(y, np.tile(X, 50))
    (wide,) = compare_formula(wide, forever(), found, ())
    assert "200 columns are too many" in wide.sentence
    (late,) = compare_formula(problem(y, X), Clock(-1.0), found, transformations(y))
    assert late.lack == "time"
    assert (
        compare_formula(
            SearchProblem(TableRows(X, y, np.arange(50)), METRICS["r2"], 0), forever(), found, ()
        )
        == []
    )
    assert found == []
    with pytest.raises(OutOfTime):
        formula_candidate(problem(y, X), 30, transformations(y), Clock(-1.0))


def test_size_follows_the_seconds():
    X, y = planted()
    p = problem(y, X)
    assert formula_size(p, 0.0) == 16
    assert formula_size(p, 1e9) == 600
    assert 16 < formula_size(p, 0.005) < 600


# from a table
@pytest.fixture(scope="module")
def houses():
    rng = np.random.default_rng(0)
    n = 400
    table = pd.DataFrame(
        {
            "width": rng.uniform(4, 20, n),
            "depth": rng.uniform(5, 9, n),
            "city": rng.choice(["Oslo", "Rome", "Bern"], n),
            "new": rng.random(n) < 0.3,
            "year": rng.integers(1950, 2020, n),
        }
    )
    area = table.width * table.depth
    table["price"] = 3.1 * area + 40 * (table.city == "Oslo") - 25 * table.new + rng.normal(size=n)
    return table


def test_a_table_of_structure_gets_a_formula_in_its_units(houses, tmp_path):
    model = fit_table(houses, "price", time=1e6)
    text = model.result.formula
    assert re.search(r"3\.1\d* width\*depth", text)
    assert re.search(r"(40|39\.\d+|4[01]\.\d+) 1\{city = Oslo\}", text)
    assert re.search(r"- 2[45]\.?\d* 1\{new = ", text)
    assert model.result.chosen.kind == "sparse"
    assert "It is a formula of " in model.result.verdict
    said = np.asarray(model.predict(houses)["prediction"])
    np.testing.assert_allclose(read(text, houses), said, atol=1e-4)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.result.formula == text
    assert spelled_formula(again.predictor, "price", ()) == text
    np.testing.assert_array_equal(np.asarray(again.predict(houses)["prediction"]), said)


def read(text, table):
    """The right side of a formula in words, as a reader with the table would compute it."""
    code = text.split(" = ", 1)[1].split("; ")[0].replace("^", "**")
    code = re.sub(r"1\{(\w+) = (\w+)\}", r"(\1 == '\2')", code)
    code = re.sub(r"1\{([^}]*)\}", r"(\1)", code)
    code = re.sub(r"(\d) (?=[a-z(])", r"\1*", code)
    values = dict(table.items())
    values |= {n: v.astype(str).str.lower() for n, v in values.items() if v.dtype == bool}
    return eval(code, {"slog": lambda t: np.sign(t) * np.log1p(np.abs(t)), **values})


@pytest.mark.parametrize("seed", range(2))
def test_jumps_are_told_by_short_numbers_of_the_column_itself(seed):
    rng = np.random.default_rng(seed)
    n = 300
    table = pd.DataFrame(
        {
            "year": rng.integers(1950, 2020, n),
            "wealth": rng.lognormal(3, 3, n),
            "hour": np.round(rng.uniform(0, 24, n), 3),
        }
    )
    jumps = 5.0 * (table.year < table.year.median()) - 7 * (table.wealth < table.wealth.median())
    table["y"] = jumps + 0.3 * table.hour + 0.1 * rng.normal(size=n)
    batch = pa.RecordBatch.from_pandas(table)
    columns = Columns("y").fit([batch])
    found = columns.transform(batch)
    p = SearchProblem(
        TableRows(found.X, table.y.to_numpy(), np.arange(n)),
        METRICS["r2"],
        0,
        units=ColumnUnits.of(columns),
    )
    _, predictor = fitted(p)
    text = spelled_formula(predictor, "y", ())
    year, wealth = (float(re.search(name + r" < ([\d.]+)", text)[1]) for name in ("year", "wealth"))
    assert len(f"{year:g}") <= 6
    assert len(f"{wealth:g}") <= 5
    np.testing.assert_allclose(read(text, table), predictor(found.X), atol=1e-4)


def test_a_table_without_structure_gets_none():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(150, 3)), columns=["a", "b", "y"])
    result = fit_table(table, "y", time=1e6).result
    assert "sparse" in {c.kind for c in result.contenders}
    assert result.formula == ""
    assert "formula" not in result.verdict


def test_candidates_say_how_their_numbers_came():
    X, y = planted()
    f, _ = fitted(problem(y, X))
    assert f.formula == FormulaPlan(relaxed=True)
    assert "jumps" in f.recipe.detail(f.size)


def test_a_formula_of_all_rows_is_the_one_that_is_shown(houses):
    few = houses[:150]
    model = fit_table(few, "price", time=1e6, refit=True)
    assert model.result.rows_refitted == 150
    assert model.result.chosen.kind == "sparse"
    assert model.result.formula == spelled_formula(model.predictor, "price", ())
