"""Classes of which the holdout has few rows or none."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from mercer.automl import fit_table, rare
from mercer.automl.decisions import decision_of, why_decided
from mercer.automl.evaluate import Decision
from mercer.automl.metrics import METRICS
from mercer.automl.rows import TableRows
from mercer.automl.study import StudyResult
from mercer.tables import DataError

AT_ONCE = 1e-3


def table(positives, n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    last = np.argsort(x)[n - positives :]
    label = np.where(np.isin(np.arange(n), last), "yes", "no")
    return pd.DataFrame({"x": x, "z": rng.normal(size=n), "label": label})


def rows(y, weight=None):
    y = np.asarray(y)
    return TableRows(np.zeros((len(y), 1)), y, np.arange(len(y)), weight=weight)


@pytest.mark.parametrize("metric", ["auc", "average_precision"])
def test_a_ranking_of_one_class_is_refused_before_anything_is_fitted(metric, monkeypatch):
    monkeypatch.setattr("mercer.automl.study.Study.run", lambda study: pytest.fail("fitted"))
    with pytest.raises(
        DataError, match=rf'^metric .{metric}. is undefined .* no row of "yes".*log_loss'
    ):
        fit_table(table(20), "label", test=table(0, 60), metric=metric, time=AT_ONCE)


@pytest.mark.parametrize("metric", [None, "balanced_accuracy"])
def test_what_is_scored_without_a_class_says_so(metric):
    e = fit_table(table(20), "label", test=table(0, 60), metric=metric, time=AT_ONCE).result
    assert e.metric == (metric or "log_loss")
    assert any('the holdout has no row of "yes"' in text for text in e.warnings)
    assert "nan" not in e.verdict + e.metric_note
    assert all(c.holdout is None or np.isfinite(c.holdout) for c in e.contenders)


def test_few_rows_of_a_class_are_named():
    e = fit_table(table(20), "label", test=table(2, 60), time=AT_ONCE).result
    assert any('only 2 rows of "yes"' in text for text in e.warnings)
    e = fit_table(table(20), "label", test=table(15, 60), time=AT_ONCE).result
    assert not any("the holdout has" in text for text in e.warnings)
    for c in e.contenders:
        if c.difference is not None:
            assert -1 <= c.difference[1] <= c.difference[2] <= 1


def test_rows_without_weight_are_none():
    held = rows([0, 0, 1], np.array([1.0, 1.0, 0.0]))
    found = rare.defined_metric(METRICS["auc"], "rare", False, held, ("a", "b"))
    assert found[0] is METRICS["log_loss"]
    assert '"b"' in found[1]
    held = rows([0, 0, 1], np.array([1.0, 1.0, 0.5]))
    assert rare.defined_metric(METRICS["auc"], "rare", False, held, ("a", "b"))[1] == "rare"
    assert rare.rare_warnings(held, ("a", "b"))[0].startswith('the holdout has only 1 row of "b"')


def test_many_classes_are_not_all_named():
    text = rare.lacking_classes(rows([0]), [f"c{k}" for k in range(9)])
    assert text == 'the holdout has no row of "c1", "c2", "c3" and 5 more classes'
    assert rare.lacking_classes(rows([0, 1]), ("a", "b")) == ""
    assert rare.rare_warnings(rows([0.5]), ()) == []


def found(y, P):
    """A result of which only the validation rows are looked at."""
    return StudyResult(None, (), "linear", (y, P, None), (), None, ())


@pytest.mark.parametrize(
    ("count", "apart", "told"),
    [
        (9, True, "rest on 9 rows of it on the validation rows"),
        (10, True, "which had the best F1 on the validation rows"),
        (10, False, "predicting it for every row"),
    ],
)
def test_a_threshold_needs_rows_and_to_tell_some_apart(count, apart, told):
    y = (np.arange(200) < count).astype(int)
    p = np.where(y, 0.2, 0.1) if apart else np.full(200, 0.05)
    study = SimpleNamespace(metric=METRICS["auc"], n_classes=2, rarest=0.05)
    result = found(y, np.stack([1 - p, p], axis=1))
    rule = decision_of(study, result)
    assert rule == Decision(1, 0.2 if told.startswith("which") else 0.5)
    said = why_decided(result, rule, ["no", "yes"])
    assert said.startswith('"yes" is rare')
    assert told in said
