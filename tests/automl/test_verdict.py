"""Sentences on who won, and on scores that disagree."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from mercer.automl import fit_table, verdict
from mercer.automl.metrics import METRICS
from mercer.automl.select import Selection
from mercer.cli.summary import summary
from mercer.report import html
from tests.automl.arrays import problem
from tests.automl.test_choice import candidate


def rival(value, low, high):
    return verdict.Rival("x", 0.8, (value, low, high))


def test_the_verdict_says_who_won():
    m = METRICS["r2"]
    first = verdict.sentence(m, "Fourier features", 0.75, 0.7, 0.8, 1000)
    assert "0.750" in first
    assert "1,000 rows" in first
    assert "trees are better" in verdict.verdict(
        m, "fourier", first, rival(0.1, 0.05, 0.15), rival(-0.05, -0.08, -0.02)
    )
    assert "beats" in verdict.verdict(m, "fourier", first, None, rival(0.05, 0.02, 0.08))
    assert "about as good" in verdict.verdict(m, "fourier", first, None, rival(0.01, -0.02, 0.04))
    assert "constant" in verdict.verdict(m, "constant", first, None, None)
    assert "linear model was kept" in verdict.verdict(m, "linear", first, None, None)


@pytest.mark.parametrize("name", ["r2", "rmse", "accuracy"])
@pytest.mark.parametrize("gap", [1e-9, -1e-9, 1e-4, -1e-4])
def test_a_difference_that_rounds_to_zero_is_none(name, gap):
    size = 10_000.0 if name == "rmse" else 1.0
    other = verdict.Rival(
        "x", 0.81249 * size, (gap * size * 0.1, 0.5 * gap * size * 0.1, 1.5 * gap * size * 0.1)
    )
    for text in (
        verdict.against_linear(METRICS[name], other),
        verdict.against_trees(METRICS[name], other),
    ):
        assert "no difference in the digits shown" in text
        assert " by " not in text


def test_where_less_is_better_the_verdict_turns_round():
    m = METRICS["rmse"]
    assert "trees are better" in verdict.against_trees(m, rival(2.0, 1.0, 3.0))
    assert "beats" in verdict.against_trees(m, rival(-2.0, -3.0, -1.0))


def test_nothing_is_said_of_starved_rivals_unless_they_win():
    m = METRICS["r2"]
    for value, low, high in ((0.05, 0.02, 0.08), (0.01, -0.02, 0.04)):
        text = verdict.against_trees(
            m, verdict.Rival("x", 0.8, (value, low, high), "grown on only 1,000 rows")
        )
        assert (
            text
            == "Gradient-boosted trees were grown on only 1,000 rows, so nothing is said of them."
        )
    assert "trees are better here, though grown on only 1,000 rows: 0.8" in verdict.against_trees(
        m, verdict.Rival("x", 0.8, (-0.05, -0.08, -0.02), "grown on only 1,000 rows")
    )
    assert "nothing is said" in verdict.against_linear(
        m, verdict.Rival("x", 0.8, (0.05, 0.02, 0.08), "fitted on only 1,000 rows")
    )


@pytest.mark.parametrize(("name", "gap", "word"), [("auc", -0.1, "higher"), ("rmse", 0.1, "lower")])
def test_starved_trees_that_are_ahead_are_told(name, gap, word):
    other = verdict.Rival("x", 0.8, (gap, gap - 0.3, gap + 0.3), "stopped after 85 of 100 rounds")
    text = verdict.against_trees(METRICS[name], other)
    assert "stopped after 85 of 100 rounds, and even so scored 0.8" in text
    assert f"{word} by 0.1" in text
    assert "nothing is said" not in text


def test_scores_far_apart_are_not_called_alike():
    text = verdict.against_trees(METRICS["auc"], verdict.Rival("x", 0.306, (0.194, -0.1, 0.5)))
    assert "about as good" not in text
    assert "do not tell" in text
    assert "about as good" in verdict.against_trees(
        METRICS["rmse"], verdict.Rival("x", 1000.0, (10.0, -20, 40))
    )


AT_ONCE = 1e-3


def shifted(slope, n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {"x": x, "z": rng.normal(size=n), "y": slope * x + 0.3 * rng.normal(size=n)}
    )


def test_where_cross_validation_and_holdout_disagree_it_is_said_loudly():
    e = fit_table(shifted(1.0, 300, 0), "y", test=shifted(0.2, 200, 1), time=AT_ONCE).result
    assert e.warnings[0].startswith("cross-validation and holdout disagree: Linear has R²")
    assert e.verdict.startswith(
        "Cross-validation and holdout disagree on the score of linear, so none of this is firm"
    )
    assert "cross-validation and holdout disagree" in summary(e)
    assert "cross-validation and holdout disagree" in html(e)
    assert "cross-validation and holdout disagree" in json.dumps(e.as_dict())


def test_where_they_agree_nothing_is_said():
    said = 0
    for seed in range(3):
        e = fit_table(
            shifted(1.0, 200, seed), "y", test=shifted(1.0, 100, 100 + seed), time=AT_ONCE
        ).result
        said += any("disagree" in text for text in (*e.warnings, e.verdict))
    assert said == 0


@pytest.mark.parametrize(("late", "alarm"), [(0.1, False), (2.0, True)])
def test_folds_of_a_time_that_had_fewer_rows_are_no_alarm(late, alarm):
    """Forward folds learn from a sixth of the rows on: the first err more, and only the last is
    like the model of all rows, which errs as much on the holdout, or far more."""
    p, held = problem(600, time=np.arange(600.0)), problem(300, seed=1)
    noise = np.random.default_rng(0).normal(size=900)
    scale = np.repeat([1.0, 0.8, 0.6, 0.4, 0.2, 0.1], 100)
    f = candidate(p, "machine", p.rows.y + scale * noise[:600])
    told = held.metric(held.rows.y, held.rows.y + late * noise[600:])
    assert abs(told.value - f.score.value) > 3 * np.hypot(told.error(), f.score.error())
    e = SimpleNamespace(kind="machine", evaluation=SimpleNamespace(score=told), rows=600)
    found = SimpleNamespace(
        entries=(e,), kind="machine", validation=None, selection=Selection(p, (f,), f, ())
    )
    study = SimpleNamespace(metric=p.metric, data=SimpleNamespace(held=held.rows))
    texts = [text for _, text in verdict.doubts(study, found)]
    assert len(texts) == alarm
    assert all("in the last fold by time" in text and "unlike" not in text for text in texts)


def test_exact_fits_do_not_disagree_over_rounding():
    x = np.random.default_rng(0).normal(size=(100, 4))[:, :3]
    e = fit_table(
        pd.DataFrame(x, columns=list("abc")).assign(y=x @ [1.0, 0.0, 0.1]), "y", time=AT_ONCE
    ).result
    assert not any("disagree" in text for text in (*e.warnings, e.verdict))


def test_a_baseline_whose_scores_disagree_is_named_too():
    """The chosen model is not linear, and the linear one is what fails on the held-out rows."""

    def bent(n, seed, slope):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, size=n) if slope else rng.uniform(-0.1, 0.1, size=n) + 2.0
        return pd.DataFrame(
            {
                "x": x,
                "z": rng.normal(size=n),
                "y": np.exp(1.2 * x) * (1 + 0.01 * rng.normal(size=n)) - 3.0,
            }
        )

    e = fit_table(
        bent(400, 0, True), "y", test=bent(200, 1, False), metric="rmse", time=AT_ONCE
    ).result
    assert e.chosen.kind != "linear"
    assert any("disagree" in text and "Linear has RMSE" in text for text in e.warnings)
    assert "linear" in e.verdict.split(", so none of this is firm")[0]


@pytest.mark.parametrize("wins", [True, False])
def test_scores_of_validation_rows_that_the_holdout_does_not_bear_out_are_named(wins, monkeypatch):
    """A machine chosen on rows set aside has no score by folds, and nothing was said of it."""
    monkeypatch.setattr("mercer.automl.select.MAX_MACHINE_ROWS", 200)
    ahead = 9.0 if wins else -9.0
    monkeypatch.setattr("mercer.automl.validate.Validation.ahead", lambda self, a, b: ahead)
    monkeypatch.setattr("mercer.automl.validate.Validation.mean_members", lambda self, fits: ())
    near, far = (shifted(s, n, i) for s, n, i in ((1.0, 600, 0), (0.2, 200, 1)))
    e = fit_table(near, "y", test=far, time=2).result
    assert (e.chosen.kind == "machine") is wins
    told = [text for text in e.warnings if "disagree" in text]
    assert any("Kernel machine has R²" in t and "on the validation rows" in t for t in told)
    first = e.verdict.split(", so none of this is firm")[0]
    assert first.startswith(
        f"Cross-validation and holdout disagree on the score of {e.chosen.name.lower()}"
    )
    assert "kernel machine" in first


def test_doubts_of_a_model_that_nothing_rests_on_leave_the_rest_firm():
    m = METRICS["r2"]
    text = verdict.verdict(m, "machine", "First.", None, None, ["Landmarks"])
    assert text.startswith(
        "Cross-validation and holdout disagree on the score of landmarks: see the warnings. First."
    )
    text = verdict.verdict(m, "machine", "First.", None, None, ["Kernel machine", "Landmarks"])
    assert "of kernel machine and of landmarks, so none of this is firm" in text


def test_no_verdict_on_models_that_were_never_tried():
    """Hundreds of classes in no time: that only a constant was tried says nothing of the
    columns."""
    rng = np.random.default_rng(0)
    i = rng.permutation(np.repeat(np.arange(300), 4))
    X = 5 * rng.normal(size=(300, 4))[i] + 0.1 * rng.normal(size=(1200, 4))
    e = fit_table(
        pd.DataFrame(X, columns=list("abcd")).assign(label=[f"c{j}" for j in i]),
        "label",
        time=AT_ONCE,
    ).result
    assert e.chosen.kind == "constant"
    assert "tell little" not in e.verdict
    assert "could be tried in the time given" in e.verdict
    assert "--time" in e.verdict


@pytest.mark.parametrize("kind", ["constant", "linear"])
def test_the_verdict_tells_what_was_left_out_for_time_and_memory(kind):
    m, short = METRICS["r2"], {"Landmarks": "time", "Explicit lift": "memory"}
    alone, some = (
        verdict.verdict(m, kind, "First.", None, None, (), short, alone) for alone in (True, False)
    )
    assert "could be tried in the time and memory given" in alone
    assert "tell little" not in alone + some
    assert "landmarks, explicit lift" in some
    assert all("(--time and --memory)" in text for text in (alone, some))
    assert "--time" not in verdict.verdict(m, kind, "First.", None, None)
