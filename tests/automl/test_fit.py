"""From a file to a model: holdouts that stay apart, every kind of column and target, saved models
that predict the same."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mercer.automl import FitResult, TableModel, fit_table
from mercer.automl.budget import Clock
from mercer.automl.data import Roles, prepare_data
from mercer.automl.rows import hashes
from mercer.store import load
from mercer.tables import DataError, open_source

ENOUGH, AT_ONCE = 1e6, 1e-3  # seconds: what is chosen must not depend on how busy the machine is


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    size, town = rng.uniform(20, 200, n), rng.choice(["north", "south", "east"], n)
    when = np.array([f"2023-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)])
    price = 1000 * size * np.where(town == "south", 1.5, 1.0) + 3000 * rng.normal(size=n)
    return {
        "id": [f"house {i}" for i in range(n)],
        "size": [None if i % 17 == 0 else float(s) for i, s in enumerate(size)],
        "town": town.tolist(),
        "sold": when.tolist(),
        "owner": rng.integers(0, 30, n).tolist(),
        "price": price.tolist(),
        "dear": np.where(price > 120_000, "yes", "no").tolist(),
        "weight": rng.uniform(0.5, 2, n).tolist(),
    }


def write(path, values):
    pq.write_table(pa.table(values), path)
    return path


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "houses.parquet", table())


@pytest.fixture(scope="module")
def prices(houses):
    return fit_table(
        houses, "price", id="id", exclude=["dear", "weight"], time=ENOUGH, command="mercer fit ..."
    )


@pytest.fixture(scope="module")
def dear(houses):
    return fit_table(houses, "dear", exclude=["price"], id="id", weight="weight", time=AT_ONCE)


def predictions(model, source):
    return pa.Table.from_batches(model.predict_batches(source))


def test_the_result_of_numbers_is_complete(prices):
    e = prices.result
    assert (e.task, e.metric, e.target) == ("regression", "r2", "price")
    assert e.rows_train + e.rows_holdout == 240
    kinds = {"constant", "linear", "sparse", "explicit", "fourier", "landmarks", "machine", "trees"}
    assert {c.kind for c in e.contenders} - {"ensemble"} == kinds
    assert sum(c.chosen for c in e.contenders) == 1
    assert e.chosen.holdout > 0.7
    assert e.chosen.low < e.chosen.holdout < e.chosen.high <= 1
    assert e.verdict.startswith(e.chosen.name)
    assert {c["name"] for c in e.columns} == set(table(1))
    assert e.importance[0][0] in ("size", "town")
    assert 0.7 < e.interval["coverage_measured"] <= 1
    assert len(e.worst) == 10
    assert set(e.worst[0]["values"]) >= {"size", "town"}
    assert 1000 < e.model_bytes < 2_000_000  # neither rows nor moments travel
    assert e.latency_row_ms > 0
    assert (
        FitResult.from_dict(json.loads(json.dumps(e.as_dict(), allow_nan=False))).verdict
        == e.verdict
    )


def test_the_result_of_classes_is_complete(dear):
    e = dear.result
    assert (e.task, e.metric, e.classes) == ("classification", "accuracy", ("no", "yes"))
    assert np.sum(e.confusion) == e.rows_holdout
    assert sum(c for _, _, c in e.calibration) == e.rows_holdout
    assert "log loss" in e.metric_note
    assert e.chosen.holdout > 0.8


def test_numbers_are_predicted_in_order_with_intervals(prices, houses):
    found = predictions(prices, houses)
    assert found.column_names == ["id", "prediction", "lower", "upper", "unusual"]
    assert found["id"].to_pylist() == table()["id"]
    low, mid, high = (np.array(found[c]) for c in ("lower", "prediction", "upper"))
    y = np.array(table()["price"])
    assert (low < mid).all()
    assert (mid < high).all()
    assert np.mean((low <= y) & (y <= high)) > 0.8


def test_classes_are_predicted_with_probabilities(dear, houses):
    found = predictions(dear, houses)
    assert found.column_names == ["id", "prediction", "p_no", "p_yes", "unusual"]
    assert np.allclose(np.array(found["p_no"]) + np.array(found["p_yes"]), 1)
    assert np.mean(np.array(found["prediction"]) == np.array(table()["dear"])) > 0.8


@pytest.mark.parametrize("which", ["prices", "dear"])
def test_a_saved_model_predicts_the_same(which, houses, tmp_path, request):
    model = request.getfixturevalue(which)
    model.save(tmp_path / "m.mercer")
    again = load(tmp_path / "m.mercer")
    assert isinstance(again, TableModel)
    assert predictions(again, houses).equals(predictions(model, houses))
    assert again.result.as_dict() == model.result.as_dict()


def test_new_tables_are_checked(prices, tmp_path):
    values = table(50, seed=1)
    few = write(tmp_path / "few.parquet", {k: v for k, v in values.items() if k != "size"})
    with pytest.raises(DataError, match='lacks "size"'):
        prices.predicting(few)
    values["size"] = [str(v * 50) if v else "?" for v in values["size"]]
    odd = {"more": [1] * 50, **{k: v for k, v in values.items() if k not in ("price", "id")}}
    job = prices.predicting(write(tmp_path / "odd.parquet", odd))
    assert sum(b.num_rows for b in job.batches()) == 50
    told = " ".join(job.warnings())
    assert '"more"' in told
    assert "drifted" in told
    assert "id column" in told


def test_one_row_at_a_time_is_the_same_as_all(prices, houses, tmp_path):
    one = write(tmp_path / "one.parquet", {k: v[7:8] for k, v in table().items()})
    alone, among = (
        predictions(prices, one)["prediction"][0].as_py(),
        predictions(prices, houses)["prediction"][7].as_py(),
    )
    assert alone == pytest.approx(among, rel=1e-3)  # float32


def gathered(path, target="price", **more):
    roles = Roles(target, **more)
    return prepare_data(
        open_source(path), roles, 0.2, task="auto", memory=4e9, seed=0, clock=Clock(1e9)
    )


def test_the_holdout_does_not_touch_the_treatment(tmp_path):
    values = table()
    first = gathered(write(tmp_path / "a.parquet", values), exclude=("dear",))
    for n in first.held.row_id:
        values["size"][n], values["town"][n], values["price"][n] = 1e6, f"nowhere {n}", 1e9
    second = gathered(write(tmp_path / "b.parquet", values), exclude=("dear",))
    assert first.columns.feature_names_ == second.columns.feature_names_
    assert np.array_equal(first.train.X, second.train.X)
    assert np.array_equal(first.train.row_id, second.train.row_id)


def test_groups_and_times_stay_apart(houses):
    by_group = gathered(houses, group="owner")
    assert not set(by_group.train.group.tolist()) & set(by_group.held.group.tolist())
    by_time = gathered(houses, time_column="sold")
    assert by_time.train.time.max() <= by_time.held.time.min()
    assert 10 < len(by_time.held) < 100


def test_rows_wait_on_disk_where_memory_is_short(houses):
    roles = Roles("price", exclude=("dear",))
    small = prepare_data(
        open_source(houses), roles, 0.2, task="auto", memory=1000.0, seed=0, clock=Clock(1e9)
    )
    assert isinstance(small.train.X, np.memmap)
    assert np.array_equal(small.train.X, gathered(houses, exclude=("dear",)).train.X)


def test_rows_without_a_target_are_dropped_and_counted(tmp_path):
    values = table()
    values["price"][:20] = [None] * 20
    data = gathered(write(tmp_path / "t.parquet", values))
    assert data.dropped == 20
    assert len(data.train) + len(data.held) == 220
    assert min(data.train.row_id.min(), data.held.row_id.min()) == 20


def test_a_file_of_its_own_is_the_holdout(houses, tmp_path):
    test = write(tmp_path / "test.parquet", table(60, seed=5))
    data = prepare_data(
        open_source(houses),
        Roles("price"),
        open_source(test),
        task="auto",
        memory=4e9,
        seed=0,
        clock=Clock(1e9),
    )
    assert (len(data.train), len(data.held)) == (240, 60)
    assert "test.parquet" in data.rule


def test_a_class_that_training_lacks_is_left_out_of_the_score(houses, tmp_path):
    values = table(60, seed=5)
    values["dear"][:3] = ["perhaps"] * 3
    test = open_source(write(tmp_path / "test.parquet", values))
    data = prepare_data(
        open_source(houses), Roles("dear"), test, task="auto", memory=4e9, seed=0, clock=Clock(1e9)
    )
    assert data.unknown == 3
    assert len(data.held) == 57


@pytest.mark.parametrize(
    ("roles", "what"),
    [
        (dict(target="prise"), r'^target: there is no column "prise"; did you mean "price"'),
        (dict(target="price", exclude=("sise",)), r'^exclude.*"size"'),
        (dict(target="price", group="ownr"), r'^group.*"owner"'),
        (dict(target="price", weight="price"), "^weight and target"),
        (dict(target="price", exclude=("price",)), "names the target"),
    ],
)
def test_roles_that_cannot_be_are_refused(houses, roles, what):
    with pytest.raises(DataError, match=what):
        gathered(houses, **roles)


def test_too_few_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match="too few"):
        gathered(write(tmp_path / "t.parquet", {k: v[:9] for k, v in table().items()}))


def test_nothing_to_predict_from_is_refused(tmp_path):
    with pytest.raises(DataError, match="no column"):
        gathered(write(tmp_path / "t.parquet", {"x": [1.0] * 200, "price": np.arange(200.0) * 1.5}))


def test_a_rare_class_is_found_and_the_metric_says_why(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(700, 2))
    rare = x[:, 0] + x[:, 1] + 0.5 * rng.normal(size=700) > 2.6
    path = write(
        tmp_path / "rare.parquet", {"a": x[:, 0], "b": x[:, 1], "y": np.where(rare, "ill", "well")}
    )
    model = fit_table(path, "y", time=AT_ONCE)
    e = model.result
    assert e.metric == "auc"
    assert "rarer class" in e.metric_note
    assert any("F1" in w for w in e.warnings)
    assert np.array(e.confusion)[0, 0] > 0


@pytest.mark.parametrize("role", [{"group": "owner"}, {"time_column": "sold"}])
def test_groups_and_times_go_all_the_way(houses, role):
    e = fit_table(houses, "price", exclude=["dear", "weight", "id"], time=AT_ONCE, **role).result
    assert ("groups" if "group" in role else "last fifth") in e.holdout_rule
    assert next(iter(role.values())) in e.holdout_rule
    assert any("not tried" in w for w in e.warnings)


def test_a_share_that_is_none_is_refused(houses):
    with pytest.raises(ValueError, match="between 0 and 1"):
        fit_table(houses, "price", test=1.5)


def plain(n, **more):
    x = np.random.default_rng(0).normal(size=(n, 2))
    return {"x": x[:, 0], "z": x[:, 1], "label": np.where(x[:, 0] * x[:, 1] > 0, "a", "b"), **more}


@pytest.mark.parametrize(
    ("role", "what"), [("time_column", "one time only"), ("group", "one group only")]
)
def test_training_rows_of_one_time_or_group_are_refused(role, what):
    with pytest.raises(DataError, match=f'{what} in "t".*give another column, or a test file'):
        fit_table(
            pa.table(plain(200, t=np.repeat([0, 1], [150, 50]))),
            "label",
            time=AT_ONCE,
            **{role: "t"},
        )


@pytest.mark.parametrize("counts", [(120, 40, 40), (158, 2, 40)])
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 2])
def test_two_times_and_few_weights_go_all_the_way(counts, every):
    values = plain(200, t=np.repeat([0, 1, 2], counts), w=(np.arange(200) % every == 0) * 1.0)
    model = fit_table(pa.table(values), "label", time_column="t", weight="w", time=ENOUGH)
    assert model.predict_proba(pa.table(values)).to_pandas().sum(
        axis=1
    ).to_numpy() == pytest.approx(1)


def test_rows_of_weight_zero_do_not_count():
    values = plain(200, w=(np.arange(200) % 20 == 0) * 1.0)
    with pytest.raises(DataError, match="of some weight are too few"):
        fit_table(pa.table(values), "label", weight="w", time=AT_ONCE)


def test_a_zero_that_the_search_does_not_see_does_not_stop_it(monkeypatch):
    monkeypatch.setattr("mercer.automl.search.FIRST_ROWS", 200)
    x, rng = np.linspace(-1, 1, 600), np.random.default_rng(0)
    y = np.exp(2 * x + rng.normal(size=600))
    y[np.argsort(hashes(np.arange(600), 0))[-30:]] = 0.0
    model = fit_table(pa.table({"x": x, "y": y}), "y", time=AT_ONCE)
    assert np.isfinite(model.predict(pa.table({"x": x}))["prediction"].to_numpy()).all()


@pytest.mark.parametrize(
    ("metric", "cut", "sought"),
    [
        ("average_precision", 2.0, True),
        pytest.param("auc", 2.0, True, marks=pytest.mark.long),
        pytest.param("log_loss", 2.0, True, marks=pytest.mark.long),
        pytest.param("average_precision", 1.3, True, marks=pytest.mark.long),  # some 14 %
        ("auc", 1.3, False),
        pytest.param("accuracy", 2.0, False, marks=pytest.mark.long),
        pytest.param("balanced_accuracy", 2.0, False, marks=pytest.mark.long),
        ("average_precision", 0.5, False),
    ],
)
def test_a_metric_that_was_asked_for_leaves_a_rare_class_its_threshold(metric, cut, sought):
    """It stayed at 1/2, where the class was never predicted."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 800))
    y = np.where(x + 0.8 * z > cut, "yes", "no")
    table = pa.table({"x": x, "u": rng.normal(size=800), "y": y})
    model = fit_table(table, "y", metric=metric, time=AT_ONCE)
    found = model.decision
    assert (found.code >= 0) is sought
    if not sought:
        return
    assert found.code == 1
    assert 0.05 < found.threshold < 0.5
    told = model.predict(table)["prediction"].to_pandas()
    assert 0.3 < (told == "yes").sum() / (y == "yes").sum() < 3
    assert model.result.decision == {"class": "yes", "threshold": found.threshold}
    assert any("best F1" in text for text in model.result.warnings)
    assert (model.predict(table, threshold=1.0)["prediction"].to_pandas() == "no").all()


@pytest.mark.long
def test_a_threshold_of_validation_rows_is_said_to_be_one(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.automl.select.MAX_BINARY_ROWS", 300)
    monkeypatch.setattr("mercer.automl.validate.Validation.ahead", lambda self, mine, theirs: 9.0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=2400)
    rare = {"x": x, "y": np.where(x + 0.5 * rng.normal(size=2400) > 1.6, "yes", "no")}
    told = " ".join(fit_table(pa.table(rare), "y", time=ENOUGH).result.warnings)
    assert "best F1 on the validation rows" in told


@pytest.mark.parametrize("wins", [True, False])
def test_a_linear_model_that_met_a_machine_is_fitted_to_all_rows(wins, monkeypatch):
    monkeypatch.setattr("mercer.automl.select.MAX_MACHINE_ROWS", 200)
    monkeypatch.setattr(
        "mercer.automl.validate.CLEAR_LEAD", 1e9
    )  # which leaves it to the second round
    monkeypatch.setattr(
        "mercer.automl.validate.Validation.ahead", lambda self, mine, theirs: 2.0 if wins else 0.0
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    found = {
        c.kind: c
        for c in fit_table(
            pa.table({"x": x, "y": x + rng.normal(size=400)}), "y", time=ENOUGH
        ).result.contenders
    }
    assert found["machine"].chosen is wins
    assert found["linear"].note == ""


def test_settings_that_are_none_are_named(houses):
    for options, match in (
        (dict(target=None), "target must be the name of a column, got None"),
        (dict(seed="a"), "seed must be an integer >= 0, got 'a'"),
        (dict(memory="lots"), "^memory must be a number of bytes"),
    ):
        with pytest.raises(ValueError, match=match):
            fit_table(houses, **{"target": "price", "time": 1, **options})


def test_rows_without_a_target_are_told_of_all_rows():
    rng = np.random.default_rng(0)
    for by in (None, "when"):
        frame = pd.DataFrame(
            {"bmi": rng.normal(size=600), "x": rng.normal(size=600), "when": np.arange(600.0)}
        )
        frame["y"] = frame.x + 0.1 * rng.normal(size=600)
        frame.loc[5:10, "y"], frame.loc[590:596, "y"] = np.nan, np.nan
        e = fit_table(frame, "y", exclude="bmi", time=1, time_column=by).result
        assert e.rows_train + e.rows_holdout + e.rows_dropped == 600
        assert e.warnings[0] == '13 of 600 rows have no value of the target "y" and were left out.'
        assert [c["name"] for c in e.columns if c["kind"] == "excluded"] == ["bmi"]


def test_time_decides_over_groups_and_it_is_said(houses):
    settings = dict(exclude=["dear", "weight", "id"], time=AT_ONCE)
    e = fit_table(houses, "price", group="owner", time_column="sold", **settings).result
    assert e.holdout_rule.startswith("the last fifth")
    assert 'a group of "owner" may be on both sides' in e.holdout_rule
    assert any("in the training data and in the holdout" in w for w in e.warnings)


def test_weights_are_said_and_worst_rows_are_as_written(tmp_path):
    rng = np.random.default_rng(0)
    x, w = rng.uniform(0, 9000, 200), rng.choice([1, 4], 200)
    y = np.where(x + 2500 * rng.normal(size=200) > 4500, "hi", "lo")
    cells = [f"{v:,.1f} km".translate(str.maketrans(",.", ".,")) for v in x]
    lines = [f"{a};{b};{c}" for a, b, c in zip(cells, w, y, strict=True)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["x;w;y", *lines]) + "\n")
    e = fit_table(path, "y", weight="w", time=AT_ONCE).result
    assert 'all scores are weighted by "w"' in e.metric_note
    C = np.array(e.confusion_weights)
    assert np.trace(C) / C.sum() == pytest.approx(e.scores["accuracy"])
    assert C.sum() > np.sum(e.confusion) == e.rows_holdout
    assert e.worst
    assert all(row["values"]["x"] == cells[row["row"] - 1] for row in e.worst)
    assert next(c for c in e.columns if c["name"] == "x")["kind"] == "number"
