"""Printed numbers are those of the predictions: scores and thresholds, recomputed from files."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn import metrics as sk

from mercer.automl import FitResult, fit_table
from mercer.automl.evaluate import Decision
from mercer.cli.summary import summary
from mercer.report import html
from tests.cli.calls import call

AT_ONCE = 1e-3


def rare(rng, n):
    x = rng.normal(size=(n, 2))
    ill = x[:, 0] + x[:, 1] + 0.8 * rng.normal(size=n) > 2.3
    return {"a": x[:, 0], "b": x[:, 1], "y": np.where(ill, "ill", "well")}


def even(rng, n):
    return {
        **rare(rng, n),
        "y": np.where(rng.normal(size=n) + (z := rng.normal(size=n)) > 0, 1, 0),
        "z": z,
    }


def several(rng, n):
    x = rng.normal(size=n)
    return {
        "a": x,
        "b": rng.normal(size=n),
        "y": np.array(["low", "mid", "top"])[
            np.digitize(x + 0.3 * rng.normal(size=n), (-0.6, 0.6))
        ],
    }


def plain(rng, n):
    x = rng.normal(size=n)
    return {"a": x, "b": rng.normal(size=n), "y": x + 0.5 * rng.normal(size=n)}


def logarithmic(rng, n):
    x = rng.normal(size=n)
    return {"a": x, "b": rng.normal(size=n), "y": np.exp(1.2 * x + 0.3 * rng.normal(size=n))}


def of_classes(found, held, labels):
    """Every metric of the file of predictions, by scikit-learn."""
    y, w = held["y"].astype(str).to_numpy(), held.get("w")
    P, said = (
        found[[f"p_{c}" for c in labels]].to_numpy(),
        found["prediction"].astype(str).to_numpy(),
    )
    ranks = P[:, 1] if len(labels) == 2 else P
    auc = sk.roc_auc_score(
        y if len(labels) > 2 else y == labels[1],
        ranks,
        sample_weight=w,
        multi_class="ovr",
        labels=labels,
    )
    counts = [np.sum((1.0 if w is None else w) * (y == c)) for c in labels]
    asked = range(len(labels)) if len(labels) > 2 else [1 if counts[1] <= counts[0] else 0]
    precision = [
        sk.average_precision_score(y == labels[c], P[:, c], sample_weight=w) for c in asked
    ]
    return {
        "average_precision": np.mean(precision),
        "accuracy": sk.accuracy_score(y, said, sample_weight=w),
        "balanced_accuracy": sk.balanced_accuracy_score(y, said, sample_weight=w),
        "log_loss": sk.log_loss(y, P, sample_weight=w, labels=labels),
        "auc": auc,
    }


def of_numbers(found, held):
    y, f, w = held["y"], found["prediction"], held.get("w")
    return {
        "r2": sk.r2_score(y, f, sample_weight=w),
        "rmse": sk.mean_squared_error(y, f, sample_weight=w) ** 0.5,
        "mae": sk.mean_absolute_error(y, f, sample_weight=w),
    }


TASKS = [
    (rare, False),
    (rare, True),
    (even, True),
    (several, False),
    (plain, False),
    (logarithmic, True),
]


@pytest.mark.parametrize(("make", "weighted"), TASKS)
def test_every_printed_score_is_that_of_the_file_of_predictions(make, weighted, tmp_path):
    rng = np.random.default_rng(3)
    train, held = (
        pd.DataFrame({**make(rng, n), **({"w": rng.uniform(0, 2, n)} if weighted else {})})
        for n in (300, 160)
    )
    train.to_csv(tmp_path / "train.csv", index=False)
    held.to_csv(tmp_path / "held.csv", index=False)
    flags = [
        "--test",
        tmp_path / "held.csv",
        "--time",
        AT_ONCE,
        "--out",
        tmp_path / "m.mercer",
        *(["--weight", "w"] if weighted else []),
    ]
    done = call("fit", tmp_path / "train.csv", "-t", "y", *flags, "--json")
    assert done.exit_code == 0, done.output
    assert (
        call(
            "predict", tmp_path / "m.mercer", tmp_path / "held.csv", "-o", tmp_path / "p.csv"
        ).exit_code
        == 0
    )
    e, found = FitResult.from_dict(json.loads(done.stdout)), pd.read_csv(tmp_path / "p.csv")
    truth = of_classes(found, held, list(e.classes)) if e.classes else of_numbers(found, held)
    assert e.scores == pytest.approx(truth, rel=1e-5, abs=1e-7)
    assert e.chosen.holdout == pytest.approx(truth[e.metric], rel=1e-5)
    page, text = html(e), summary(e)
    for name, value in re.findall(
        r"(accuracy|log loss|area under the curve) (\d\.\d{3})", e.metric_note
    ):
        key = {"log loss": "log_loss", "area under the curve": "auc"}.get(name, name)
        assert value == f"{truth[key]:.3f}"
        assert f"{name} {value}" in text
        assert f"{name} {value}" in page
    if e.classes:
        seen = pd.crosstab(held["y"].astype(str), found["prediction"].astype(str))
        assert np.array_equal(
            e.confusion, seen.reindex(index=e.classes, columns=e.classes, fill_value=0)
        )
        assert all(
            row["predicted"].startswith(f"{found['prediction'][row['row'] - 1]} (")
            for row in e.worst
        )
    else:
        assert e.interval["median_width"] == pytest.approx(
            np.median(found["upper"] - found["lower"]), rel=1e-6
        )
        assert [row["predicted"] for row in e.worst] == pytest.approx(
            [found["prediction"][row["row"] - 1] for row in e.worst], rel=1e-5
        )


@pytest.fixture(scope="module")
def ill():
    table = pa.table(rare(np.random.default_rng(0), 500))
    return fit_table(table, "y", time=AT_ONCE), table


def test_the_threshold_is_shown_stored_and_settable(ill, tmp_path):
    model, table = ill
    told = model.result.decision
    assert told == {"class": "ill", "threshold": model.decision.threshold}
    shown = f'"ill" is predicted from a probability of {told["threshold"]:.3g} on'
    assert shown in summary(model.result)
    assert shown.replace('"', "&quot;") in html(model.result)
    found = model.predict(table).to_pandas()
    assert ((found["p_ill"] >= told["threshold"]) == (found["prediction"] == "ill")).all()
    for t in (0.0, 0.3, 1.0):
        other = model.predict(table, threshold=t).to_pandas()
        assert ((other["p_ill"] >= t) == (other["prediction"] == "ill")).all()
    assert model.score(table, "accuracy") == pytest.approx(
        np.mean(found["prediction"] == table["y"].to_pandas())
    )


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "0.5", True])
def test_a_threshold_that_is_no_probability_is_refused(ill, value):
    with pytest.raises(ValueError, match=r"^threshold must be a probability from 0 to 1, got"):
        ill[0].predict(ill[1], threshold=value)


@pytest.mark.parametrize("classes", [0, 3])
def test_a_threshold_needs_two_classes(classes):
    with pytest.raises(ValueError, match="two classes"):
        Decision().at(0.5, classes)


def test_the_threshold_of_the_command_line(ill, tmp_path):
    model, table = ill
    model.save(tmp_path / "m.mercer")
    table.to_pandas().to_csv(tmp_path / "d.csv", index=False)
    words = [
        "predict",
        tmp_path / "m.mercer",
        tmp_path / "d.csv",
        "-o",
        tmp_path / "p.csv",
        "--overwrite",
    ]
    assert call(*words, "--threshold", "0.02").exit_code == 0
    found = pd.read_csv(tmp_path / "p.csv")
    assert ((found["p_ill"] >= 0.02) == (found["prediction"] == "ill")).all()
    before = (tmp_path / "p.csv").read_bytes()
    for bad in ("2", "-1", "nan", "half"):
        refused = call(*words, "--threshold", bad)
        assert refused.exit_code == 2
        assert refused.stderr.startswith(
            "mercer: --threshold must be a probability from 0 to 1, got"
        )
        assert refused.stderr.count("\n") == 1
    assert (tmp_path / "p.csv").read_bytes() == before
