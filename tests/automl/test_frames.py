"""Tables in memory: data frames and Arrow tables are fitted and predicted like files, and the
errors speak of arguments."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mercer.automl import fit_table, select
from mercer.automl.frames import as_source, only
from mercer.automl.study import Study
from mercer.tables import DataError

QUICK = 1e-3


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    size, town = rng.uniform(20, 200, n), rng.choice(["north", "south"], n)
    price = 1000 * size * np.where(town == "south", 1.5, 1.0) + 3000 * rng.normal(size=n)
    return pd.DataFrame(
        {"size": size, "town": town, "price": price, "dear": np.where(price > 120_000, "yes", "no")}
    )


@pytest.fixture(scope="module")
def prices():
    return fit_table(frame(), "price", exclude=["dear"], time=QUICK)


@pytest.fixture(scope="module")
def dear():
    return fit_table(
        pa.Table.from_pandas(frame(), preserve_index=False), "dear", exclude=["price"], time=QUICK
    )


def test_a_frame_a_table_a_batch_and_a_file_are_the_same(prices, tmp_path):
    new = frame(50, seed=1)
    path = tmp_path / "new.csv"
    new.to_csv(path, index=False)
    arrow = pa.Table.from_pandas(new, preserve_index=False)
    found = [
        prices.predict(data) for data in (new, arrow, arrow.to_batches()[0], path, [str(path)])
    ]
    assert isinstance(found[0], pd.DataFrame)
    assert all(isinstance(f, pa.Table) for f in found[1:])
    found = [np.asarray(f["prediction"]) for f in found]
    assert all(f.shape == (50,) and np.allclose(f, found[0], rtol=1e-5) for f in found)
    assert np.corrcoef(found[0], new["price"])[0, 1] > 0.8


def test_categories_of_pandas_are_what_they_stand_for(prices):
    new = frame(50, seed=1)
    assert prices.predict(new).equals(
        prices.predict(new.assign(town=new["town"].astype("category")))
    )


def test_intervals_hold_the_prediction_and_classes_have_none(prices, dear):
    new = frame(50, seed=1)
    bounds = prices.predict_interval(new)
    assert bounds.shape == (50, 2)
    middle = prices.predict(new)["prediction"]
    assert (bounds["lower"] < middle).all()
    assert (middle < bounds["upper"]).all()
    with pytest.raises(ValueError, match="predict_proba"):
        dear.predict_interval(new)


def test_probabilities_are_in_the_order_of_the_classes(prices, dear):
    new = frame(50, seed=1)
    P = dear.predict_proba(new)
    assert P.columns.tolist() == ["p_no", "p_yes"]
    P = P.to_numpy()
    assert dear.classes == ("no", "yes")
    assert np.allclose(P.sum(1), 1)
    assert np.array_equal(dear.predict(new)["prediction"], np.array(dear.classes)[P.argmax(1)])
    with pytest.raises(ValueError, match="predict_interval"):
        prices.predict_proba(new)


@pytest.mark.parametrize("kind", [np.int64, bool, str])
def test_labels_have_the_type_of_training(kind):
    x = np.random.default_rng(0).normal(size=150)
    table = pd.DataFrame({"a": x, "y": (x > 0).astype(kind)})
    found = fit_table(table, "y", time=QUICK).predict(table)["prediction"]
    assert np.mean(found.to_numpy() == table["y"].to_numpy()) > 0.9


def test_no_rows_have_no_predictions(prices):
    assert prices.predict(frame(5).iloc[:0]).shape == (0, 4)


def test_a_model_says_what_it_is(prices):
    assert repr(prices).startswith("TableModel(price from 2 columns: ")
    assert len(repr(prices)) < 120


def test_rows_unlike_those_of_training_void_the_intervals(prices):
    far = frame(100, seed=1).assign(size=lambda t: 10 * t["size"])
    with pytest.warns(UserWarning, match="drifted|intervals") as told:
        prices.predict(far)
    assert any("intervals" in str(w.message) and "do not hold" in str(w.message) for w in told)
    with pytest.warns(
        UserWarning, match='unlike those of training in "size"|drifted|unlike any row'
    ):
        prices.predict(frame(3, seed=1).assign(size=np.nan))
    job = prices.predicting(frame(100, seed=1))
    list(job.batches())
    assert not job.oddities()


@pytest.mark.parametrize(
    "data",
    [3, None, np.zeros((3, 2)), {"a": [1]}, [1, 2]],
    ids=["number", "none", "array", "dict", "list"],
)
def test_what_is_no_table_is_refused(data):
    with pytest.raises(TypeError, match="give a path"):
        as_source(data)


def test_names_that_come_again_are_numbered_as_those_of_files_are():
    for data in (
        pa.table([[1], [2]], names=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
    ):
        found = as_source(data)
        assert found.schema.names == ["a", "a_2"]
        assert found.said == (
            'the table has several columns of one name; they were numbered: "a" as "a_2".',
        )
    assert as_source(pd.DataFrame({1: [1], "1": [2]})).schema.names == ["1", "1_2"]


def test_frames_with_names_that_come_again_are_fitted_and_predicted_with_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    data = pd.DataFrame(
        np.c_[X, X @ [1, 2, 0.5] + rng.normal(size=120)],
        columns=["a", "a", "b", "y"],
        index=np.arange(120) * 3,
    )
    found = fit_table(data, "y", time=QUICK)
    assert found.columns.used_ == ("a", "a_2", "b")
    assert any('"a" as "a_2"' in text for text in found.result.warnings)
    with pytest.warns(UserWarning, match='"a" as "a_2"'):
        predicted = found.predict(data)
    assert predicted.index.equals(data.index)
    assert np.corrcoef(predicted["prediction"], data["y"])[0, 1] > 0.8


def test_mixed_columns_are_refused():
    with pytest.raises(
        DataError,
        match=r'^column ".*" of the data frame holds values of several types.*; give it one type.$',
    ):
        as_source(pd.DataFrame({"a": [1, "x", b"y"]}))


def test_a_pass_may_be_made_again_and_of_some_columns():
    source = as_source(frame(100))
    assert [b.num_rows for b in source.batches(30)] == [30, 30, 30, 10]
    assert sum(b.num_rows for b in only(source, ["town"]).batches()) == 100
    assert only(source, ["town"]).schema.names == ["town"]


@pytest.mark.parametrize("time", [0, -1, float("inf"), float("nan"), "60"])
def test_no_time_is_refused(time):
    with pytest.raises(ValueError, match="time must be"):
        fit_table(frame(), "price", time=time)


def test_errors_speak_of_arguments():
    with pytest.raises(DataError, match=r'^target: there is no column "prise"'):
        fit_table(frame(), "prise")


def test_the_training_file_is_no_holdout(tmp_path):
    path, link = tmp_path / "a.csv", tmp_path / "b.csv"
    frame().to_csv(path, index=False)
    os.link(path, link)
    for test in (path, link):
        with pytest.raises(DataError, match="training data as well"):
            fit_table(path, "price", test=test, time=QUICK)


def test_copies_of_training_rows_are_counted_and_the_score_is_not_called_unseen(prices):
    e = fit_table(
        frame(),
        "price",
        exclude=["dear"],
        test=pd.concat([frame()[:30], frame(20, seed=1)]),
        time=QUICK,
    ).result
    assert e.warnings[0].startswith("30 of 50 holdout rows are exact copies")
    assert "nothing was fitted" not in e.verdict
    assert "30 of them copies" in e.verdict
    assert "nothing was fitted" in prices.result.verdict
    twice = fit_table(pd.concat([frame(), frame()]), "price", exclude=["dear"], time=QUICK).result
    assert "exact copies" in twice.warnings[0]


def test_a_wide_table_keeps_every_contender_small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300))
    e = fit_table(
        pd.DataFrame(X, columns=[f"x{i}" for i in range(300)]).assign(y=X[:, 0] + X[:, 1]),
        "y",
        time=QUICK,
    ).result
    assert {"linear", "fourier", "trees"} <= {c.kind for c in e.contenders}
    assert len(e.importance) == 200


def test_few_rows_are_split_exactly_and_too_few_say_how_many_are_needed():
    e = fit_table(frame(60), "dear", exclude=["price"], time=QUICK).result
    assert (e.rows_train, e.rows_holdout) == (48, 12)
    share = np.mean(frame(60)["dear"] == "yes")
    assert np.array(e.confusion).sum(1)[1] == pytest.approx(12 * share, abs=1)
    with pytest.raises(DataError, match="takes 25 rows"):
        fit_table(frame(20), "price", time=QUICK)


def test_a_win_over_starved_trees_is_none(monkeypatch):
    monkeypatch.setattr(Study, "room_for_trees", 30)
    monkeypatch.setattr(select, "TREE_SHARE", 50.0)  # time for folds, but no room
    result = fit_table(frame(), "price", exclude=["dear"], time=QUICK).result
    assert next(c for c in result.contenders if c.kind == "trees").cv is None
    verdict = result.verdict
    assert (
        "Gradient-boosted trees were grown on only 30 rows, so nothing is said of them." in verdict
    )
    assert "beats" not in verdict


def test_equal_rows_of_a_coarse_table_are_no_alarm():
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 3, size=(3, 400))
    coarse = pd.DataFrame(
        {
            "a": a,
            "b": b,
            "c": c,
            "y": np.where((a + b + rng.integers(0, 2, 400)) % 2, "odd", "even"),
        }
    )
    e = fit_table(coarse, "y", time=QUICK).result
    assert "nothing was fitted" in e.verdict
    assert any("equal training rows" in text and "by chance" in text for text in e.warnings)
    assert not any("copies of training rows" in text for text in e.warnings)


@pytest.mark.parametrize("kind", ["text", "whole", "truth"])
def test_batches_and_arrays_give_classes_of_the_same_type(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    labels = {
        "text": np.where(x > 0, "up", "down"),
        "whole": np.where(x > 0, 7, 3),
        "truth": x > 0,
    }[kind]
    model = fit_table(
        pd.DataFrame({"x": x, "z": rng.normal(size=200), "y": labels}), "y", time=QUICK
    )
    new = pd.DataFrame({"x": x[:20], "z": x[:20]})
    batches = pa.Table.from_batches(model.predict_batches(new))["prediction"]
    assert batches.type == model.columns.target_.kind
    assert batches.to_pylist() == model.predict(new)["prediction"].tolist()
    assert isinstance(batches[0].as_py(), {"text": str, "whole": int, "truth": bool}[kind])


def test_a_column_of_which_nothing_can_be_read_stops_a_prediction(prices):
    odd = frame(30, seed=1).assign(size="large")
    for ask in (
        prices.predict,
        prices.predict_interval,
        lambda data: list(prices.predict_batches(data)),
    ):
        with pytest.raises(DataError, match='no value of "size"'):
            ask(odd)


def test_a_time_column_without_times_is_named():
    with pytest.raises(DataError, match='the time column "town"'):
        fit_table(frame(), "price", time_column="town", time=QUICK)
