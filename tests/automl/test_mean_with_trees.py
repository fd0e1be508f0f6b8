"""A mean of which boosted trees are a part, from the table to the saved model."""

import json

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import fit_table
from mercer.automl import everything, select
from mercer.automl.boosted import BoostedTrees
from mercer.automl.ensemble import MeanRule, ensemble_candidate
from mercer.automl.predictors import WeightedMean
from mercer.cli import check
from tests.automl.arrays import problem
from tests.automl.test_choice import candidate


def steps(n=500, seed=0, classes=False):
    """A wave and steps of as much weight, a category, and cells that are missing: what either
    learner lacks the other has."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(0, 4, (3, n))
    level = rng.choice(list("pqrstu"), n)
    y = 2 * np.sin(3 * a) + np.floor(b) * (np.floor(c) % 2) + np.isin(level, ["p", "s"])
    a = np.where(rng.random(n) < 0.05, np.nan, a)
    y = y + 0.3 * rng.normal(size=n)
    target = np.where(y > np.median(y), "high", "low") if classes else y
    return pd.DataFrame({"a": a, "b": b, "c": c, "level": level, "y": target})


@pytest.fixture(scope="module", params=[False, True], ids=["numbers", "classes"])
def fitted(request):
    """With as much time for trees as they want, and none for a feature machine, which where there
    is time may be as good as the mean; the model, and rows of a holdout file."""
    table, test = steps(classes=request.param), steps(300, 7, request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "TREE_SHARE", 50.0)
        patch.setattr(select, "MAX_MACHINE_CLASSES", -1)
        model = fit_table(table, "y", test=test, time=1)
    return model, test


def test_trees_are_part_of_the_mean_and_it_is_said(fitted):
    model, _ = fitted
    mean = model.predictor
    assert isinstance(mean, WeightedMean)
    assert any(isinstance(m, BoostedTrees) for m in mean.members)
    assert not all(isinstance(m, BoostedTrees) for m in mean.members)
    chosen = model.result.chosen
    assert "gradient-boosted trees (0." in chosen.note
    assert dict(model.result.members)["trees"] == pytest.approx(
        sum(
            w
            for w, m in zip(mean.weights, mean.members, strict=True)
            if isinstance(m, BoostedTrees)
        )
    )
    assert model.result.verdict.startswith("Mean of models (")
    assert "gradient-boosted trees" in model.result.verdict.split(":")[0]
    assert "boosted trees" in model.result.plan
    trees = next(c for c in model.result.contenders if c.kind == "trees")
    assert trees.cv is not None
    others = [c.cv for c in model.result.contenders if c.kind not in ("trees", "ensemble")]
    assert chosen.cv > max(v for v in others if v is not None)
    assert trees.cv_difference is not None


def test_every_score_is_of_what_is_predicted(fitted):
    model, test = fitted
    for name, value in model.result.scores.items():
        assert model.score(test, name) == pytest.approx(value, rel=1e-9)
    assert model.result.chosen.holdout == pytest.approx(model.score(test), rel=1e-9)
    out = model.predict(test)
    if model.classes:
        assert np.allclose(out[[f"p_{c}" for c in model.classes]].sum(axis=1), 1)
    else:
        inside = (out.lower <= test.y) & (test.y <= out.upper)
        assert inside.mean() == pytest.approx(model.result.interval["coverage_measured"], abs=0.02)


def test_it_is_saved_streamed_and_audited(fitted, tmp_path, capsys):
    model, test = fitted
    model.save(tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    expected = model.predict(test)
    assert again.predict(test).equals(expected)
    parts = [again.predict(test[i : i + 70]) for i in range(0, len(test), 70)]
    # values near 4, and limits near nothing that come from them
    pd.testing.assert_frame_equal(pd.concat(parts), expected, rtol=1e-6, atol=1e-7)
    found = check.run(tmp_path / "m", as_json=True)
    assert any("TreeEnsemble" in name for name in found.classes)
    assert json.loads(capsys.readouterr().out)["arrays"]


def test_all_rows_are_fitted_again_where_that_is_asked_for(monkeypatch):
    grown, own = [], everything.grow_like
    monkeypatch.setattr(select, "TREE_SHARE", 50.0)
    monkeypatch.setattr(everything, "MIN_SECONDS", 1e6)
    monkeypatch.setattr(everything, "grow_like", lambda *a: grown.append(own(*a)) or grown[-1])
    table = steps()
    model = fit_table(table, "y", time=1, refit=True)
    assert model.result.rows_refitted == len(table)
    (last,) = grown
    assert last.rows == len(table)
    assert any(m is last.predictor for m in model.predictor.members)


# the rule
def test_trees_help_a_candidate_and_are_never_alone():
    p, rng = problem(600), np.random.default_rng(0)
    noise = 0.7 * rng.normal(size=(2, 600))
    best, trees = (
        candidate(p, k, p.rows.y + e) for k, e in zip(("machine", "trees"), noise, strict=True)
    )
    mean = ensemble_candidate(p, [best], best, trees)
    assert dict(mean.members)["trees"] == pytest.approx(0.5, abs=0.15)
    assert ensemble_candidate(p, [best], best) is None
    sure = candidate(p, "trees", p.rows.y + 0.01 * noise[1])
    far = ensemble_candidate(p, [best], best, sure)
    assert dict(far.members) == pytest.approx({"machine": 0.1, "trees": 0.9})
    assert ensemble_candidate(p, [candidate(p, "machine", p.rows.y)], best, trees) is None


def test_the_rule_leaves_other_means_as_they_are():
    y, rng = np.random.default_rng(1).normal(size=900), np.random.default_rng(0)
    parts = [y + rng.normal(size=900) for _ in range(3)]
    w = np.ones(900)
    rule = MeanRule(("linear", "machine", "trees"), 0)
    assert rule([parts[0], (y + parts[0]) / 2, y], y, w) == pytest.approx((0.0, 0.1, 0.9))
    assert sum(rule(parts, y, w)) == pytest.approx(1)
    assert min(rule(parts, y, w)) > 0.2
    assert rule([parts[0], y, parts[1]], y, w) == (0.0, 1.0, 0.0)
    assert rule([parts[0], parts[1], y], y, w) == pytest.approx((0.1, 0.0, 0.9))
