"""Printed numbers are those of the predictions: scores, thresholds, intervals recomputed from files; robust ways back from a logarithm."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn import metrics as sk

from mercer.automl import FitResult, fit_table, verdict
from mercer.automl.evaluate import Decision
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import LogTarget, robust_retransformation
from mercer.cli.summary import summary
from mercer.report import html
from tests.cli.calls import call

AT_ONCE = 1e-3


def rare(rng, n):
    x = rng.normal(size=(n, 2))
    ill = x[:, 0] + x[:, 1] + 0.8 * rng.normal(size=n) > 2.3
    return {"a": x[:, 0], "b": x[:, 1], "y": np.where(ill, "ill", "well")}


def even(rng, n):
    return {**rare(rng, n), "y": np.where(rng.normal(size=n) + (z := rng.normal(size=n)) > 0, 1, 0), "z": z}


def several(rng, n):
    x = rng.normal(size=n)
    return {"a": x, "b": rng.normal(size=n), "y": np.array(["low", "mid", "top"])[np.digitize(x + 0.3 * rng.normal(size=n), (-0.6, 0.6))]}


def plain(rng, n):
    x = rng.normal(size=n)
    return {"a": x, "b": rng.normal(size=n), "y": x + 0.5 * rng.normal(size=n)}


def logarithmic(rng, n):
    x = rng.normal(size=n)
    return {"a": x, "b": rng.normal(size=n), "y": np.exp(1.2 * x + 0.3 * rng.normal(size=n))}


def of_classes(found, held, labels):
    """Every metric of the file of predictions, by scikit-learn."""
    y, w = held["y"].astype(str).to_numpy(), held.get("w")
    P, said = found[[f"p_{c}" for c in labels]].to_numpy(), found["prediction"].astype(str).to_numpy()
    ranks = P[:, 1] if len(labels) == 2 else P
    auc = sk.roc_auc_score(y if len(labels) > 2 else y == labels[1], ranks, sample_weight=w, multi_class="ovr", labels=labels)
    return {
        "accuracy": sk.accuracy_score(y, said, sample_weight=w), "balanced_accuracy": sk.balanced_accuracy_score(y, said, sample_weight=w),
        "log_loss": sk.log_loss(y, P, sample_weight=w, labels=labels), "auc": auc,
    }  # fmt: skip


def of_numbers(found, held):
    y, f, w = held["y"], found["prediction"], held.get("w")
    return {
        "r2": sk.r2_score(y, f, sample_weight=w), "rmse": sk.mean_squared_error(y, f, sample_weight=w) ** 0.5,
        "mae": sk.mean_absolute_error(y, f, sample_weight=w),
    }  # fmt: skip


TASKS = [(rare, False), (rare, True), (even, True), (several, False), (plain, False), (logarithmic, True)]


@pytest.mark.parametrize(("make", "weighted"), TASKS)
def test_every_printed_score_is_that_of_the_file_of_predictions(make, weighted, tmp_path):
    rng = np.random.default_rng(3)
    train, held = (pd.DataFrame({**make(rng, n), **({"w": rng.uniform(0, 2, n)} if weighted else {})}) for n in (300, 160))
    train.to_csv(tmp_path / "train.csv", index=False)
    held.to_csv(tmp_path / "held.csv", index=False)
    flags = ["--test", tmp_path / "held.csv", "--time", AT_ONCE, "--out", tmp_path / "m.mercer", *(["--weight", "w"] if weighted else [])]
    done = call("fit", tmp_path / "train.csv", "-t", "y", *flags, "--json")
    assert done.exit_code == 0, done.output
    assert call("predict", tmp_path / "m.mercer", tmp_path / "held.csv", "-o", tmp_path / "p.csv").exit_code == 0
    e, found = FitResult.from_dict(json.loads(done.stdout)), pd.read_csv(tmp_path / "p.csv")
    truth = of_classes(found, held, list(e.classes)) if e.classes else of_numbers(found, held)
    assert e.scores == pytest.approx(truth, rel=1e-5, abs=1e-7)
    assert e.chosen.holdout == pytest.approx(truth[e.metric], rel=1e-5)
    page, text = html(e), summary(e)
    for name, value in re.findall(r"(accuracy|log loss|area under the curve) (\d\.\d{3})", e.metric_note):
        key = {"log loss": "log_loss", "area under the curve": "auc"}.get(name, name)
        assert value == f"{truth[key]:.3f}"
        assert f"{name} {value}" in text
        assert f"{name} {value}" in page
    if e.classes:
        seen = pd.crosstab(held["y"].astype(str), found["prediction"].astype(str))
        assert np.array_equal(e.confusion, seen.reindex(index=e.classes, columns=e.classes, fill_value=0))
        assert all(row["predicted"].startswith(f"{found['prediction'][row['row'] - 1]} (") for row in e.worst)
    else:
        assert e.interval["median_width"] == pytest.approx(np.median(found["upper"] - found["lower"]), rel=1e-6)
        assert [row["predicted"] for row in e.worst] == pytest.approx([found["prediction"][row["row"] - 1] for row in e.worst], rel=1e-5)


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
    assert model.score(table, "accuracy") == pytest.approx(np.mean(found["prediction"] == table["y"].to_pandas()))


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
    words = ["predict", tmp_path / "m.mercer", tmp_path / "d.csv", "-o", tmp_path / "p.csv", "--overwrite"]
    assert call(*words, "--threshold", "0.02").exit_code == 0
    found = pd.read_csv(tmp_path / "p.csv")
    assert ((found["p_ill"] >= 0.02) == (found["prediction"] == "ill")).all()
    before = (tmp_path / "p.csv").read_bytes()
    for bad in ("2", "-1", "nan", "half"):
        refused = call(*words, "--threshold", bad)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("mercer: --threshold must be a probability from 0 to 1, got")
        assert refused.stderr.count("\n") == 1
    assert (tmp_path / "p.csv").read_bytes() == before


def dirty(n=1200, bad=3, seed=0, price=False):
    """Stones whose price is a logarithm of their side; in a few rows the side is 0, or the price is a hundred times too high."""
    rng = np.random.default_rng(seed)
    side = rng.normal(5.7, 0.6, n)
    y = np.exp(-1.5 + 1.6 * side + 0.15 * rng.normal(size=n))
    where = rng.choice(n, bad, replace=False)
    side[where] = 0.0
    y[where[: bad if price else 0]] *= 100
    return pa.table({"side": side, "depth": rng.normal(61, 1.4, n), "price": y})


def test_a_few_dirty_rows_do_not_spoil_a_linear_model_of_a_logarithm():
    e = fit_table(dirty(4000), "price", test=dirty(400, 0, seed=9), time=AT_ONCE).result
    found = {c.kind: c for c in e.contenders}
    assert "log of the target" in found["linear"].detail
    assert found["linear"].holdout > 0.9  # with the mean of exp(residual), below 0.6
    assert not re.search(r"better than a linear model .* by 0\.[2-9]", e.verdict)


@pytest.mark.parametrize("bad", [0, 3, 30])
@pytest.mark.parametrize("sigma", [0.1, 0.6, 1.2])
def test_the_smear_is_that_of_the_clean_rows_whatever_the_dirty_ones(bad, sigma):
    rng = np.random.default_rng(bad)
    r = sigma * rng.normal(size=4000)
    wild = np.append(r, rng.uniform(8, 30, bad) * rng.choice([-1, 1], bad))
    assert robust_retransformation(wild) == pytest.approx(np.exp(sigma**2 / 2), rel=0.12)


@pytest.mark.parametrize("metric", ["r2", "rmse", "mae"])
def test_the_way_back_is_never_worse_than_none(metric):
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    for noise in (rng.normal(size=2000), rng.standard_t(2, size=2000), rng.exponential(size=2000)):
        y, m = np.exp(z + 0.5 * noise), METRICS[metric]
        back = LogTarget().retransformed(y, z, metric=m)
        assert m.gain(m(y, back.back(z)).value) >= m.gain(m(y, np.exp(np.minimum(z, back.top))).value) - 1e-12


def test_weights_count_in_the_smear():
    r, w = np.array([0.0, 1.0] * 100), np.array([1.0, 0.0] * 100)
    assert robust_retransformation(r, w) == pytest.approx(1.0)


def shifted(slope, n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "z": rng.normal(size=n), "y": slope * x + 0.3 * rng.normal(size=n)})


def test_where_cross_validation_and_holdout_disagree_it_is_said_loudly():
    e = fit_table(shifted(1.0, 300, 0), "y", test=shifted(0.2, 200, 1), time=AT_ONCE).result
    assert e.warnings[0].startswith("cross-validation and holdout disagree: Linear has R²")
    assert e.verdict.startswith("Cross-validation and holdout disagree on the score of linear, so none of this is firm")
    assert "cross-validation and holdout disagree" in summary(e)
    assert "cross-validation and holdout disagree" in html(e)
    assert "cross-validation and holdout disagree" in json.dumps(e.as_dict())


def test_where_they_agree_nothing_is_said():
    said = 0
    for seed in range(3):
        e = fit_table(shifted(1.0, 200, seed), "y", test=shifted(1.0, 100, 100 + seed), time=AT_ONCE).result
        said += any("disagree" in text for text in (*e.warnings, e.verdict))
    assert said == 0


def test_exact_fits_do_not_disagree_over_rounding():
    x = np.random.default_rng(0).normal(size=(100, 4))[:, :3]
    e = fit_table(pd.DataFrame(x, columns=list("abc")).assign(y=x @ [1.0, 0.0, 0.1]), "y", time=AT_ONCE).result
    assert not any("disagree" in text for text in (*e.warnings, e.verdict))


def test_a_baseline_whose_scores_disagree_is_named_too():
    """The chosen model is not linear, and the linear one is what fails on the held-out rows."""
    def bent(n, seed, slope):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, size=n) if slope else rng.uniform(-0.1, 0.1, size=n) + 2.0
        return pd.DataFrame({"x": x, "z": rng.normal(size=n), "y": np.exp(1.2 * x) * (1 + 0.01 * rng.normal(size=n)) - 3.0})

    e = fit_table(bent(400, 0, True), "y", test=bent(200, 1, False), metric="rmse", time=AT_ONCE).result
    assert e.chosen.kind != "linear"
    assert any("disagree" in text and "Linear has RMSE" in text for text in e.warnings)
    assert "linear" in e.verdict.split(", so none of this is firm")[0]


def test_no_verdict_on_models_that_were_never_tried():
    """Hundreds of classes in no time: that only a constant was tried says nothing of the columns."""
    rng = np.random.default_rng(0)
    i = rng.permutation(np.repeat(np.arange(300), 4))
    X = 5 * rng.normal(size=(300, 4))[i] + 0.1 * rng.normal(size=(1200, 4))
    e = fit_table(pd.DataFrame(X, columns=list("abcd")).assign(label=[f"c{j}" for j in i]), "label", time=AT_ONCE).result
    assert e.chosen.kind == "constant"
    assert "tell little" not in e.verdict
    assert "could be tried in the time given" in e.verdict
    assert "--time" in e.verdict


@pytest.mark.parametrize("kind", ["constant", "linear"])
def test_the_verdict_tells_what_was_left_out_for_time_and_memory(kind):
    m, short = METRICS["r2"], {"Landmarks": "time", "Explicit lift": "memory"}
    alone, some = (verdict.verdict(m, kind, "First.", None, None, (), short, alone) for alone in (True, False))
    assert "could be tried in the time and memory given" in alone
    assert "tell little" not in alone + some
    assert "landmarks, explicit lift" in some
    assert all("(--time and --memory)" in text for text in (alone, some))
    assert "--time" not in verdict.verdict(m, kind, "First.", None, None)
