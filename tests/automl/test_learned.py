"""Feature machines in the contest."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.automl import learned
from mercer.automl.budget import Clock
from mercer.automl.learned import LearnedSetting, find_machines, targets
from mercer.automl.machines import fit_machine
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import IdentityTarget
from mercer.automl.tuning import TunedMachine
from mercer.models.feature_machine.paths import MetricPath, PathSetting
from tests.automl.arrays import forever, problem

PATH = MetricPath(PathSetting("standard", 1, 1.0, 1.0, "diagonal", 1.0), (0.01, 0.01))
OTHER = MetricPath(PathSetting("rank", 2, 2.0, 1.0, "full"), (0.1,))
SETTING = LearnedSetting(((PATH, 0.7), (OTHER, 0.3)), 0)


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("most", [120, 400])
def test_a_machine_with_cells_of_its_own(classes, most):
    p = problem(400, classes=classes)
    m = fit_machine(p.rows, p.rows.y, classes, SETTING, most, 1e9)
    assert len(m.models) == 1
    assert (m.n_cells > 1) == (most < 400)
    if not classes:
        assert np.mean((m.predict(p.rows.X) - p.rows.y) ** 2) < 0.2 * np.var(p.rows.y)
    else:
        assert np.mean(m.scores(p.rows.X).argmax(1) == p.rows.y) > 0.8
    assert m.importances_.shape == (3,)
    assert m.importances_[2] < 0.25
    assert "rounds" in m.plan_


def test_a_class_that_rows_lack_is_never_the_highest():
    p = problem(200, classes=4)
    some = p.rows.take(np.flatnonzero(p.rows.y != 2))
    m = fit_machine(some, some.y, 4, SETTING, 200, 1e9)
    assert (m.scores(p.rows.X).argmax(1) != 2).all()


def test_weights_of_zero_are_left_out():
    p = problem(150)
    w = (np.arange(150) < 100).astype(float)
    a = fit_machine(replace(p.rows, weight=w), p.rows.y, 0, SETTING, 150, 1e9)
    b = fit_machine(p.rows.take(np.arange(100)), p.rows.y[:100], 0, SETTING, 150, 1e9)
    np.testing.assert_allclose(a.predict(p.rows.X), b.predict(p.rows.X), atol=1e-3)


def test_targets_are_about_zero():
    y, w = np.array([0, 1, 1, 3]), np.array([1.0, 2.0, 1.0, 4.0])
    Y, centre, scale, codes = targets(y, w, 4)
    np.testing.assert_allclose(np.average(Y, axis=0, weights=w), 0, atol=1e-7)
    assert codes == (0, 1, 3)
    np.testing.assert_allclose(centre + scale * Y, [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    Y, centre, scale, codes = targets(y.astype(float), w, 0)
    np.testing.assert_allclose(centre + scale * Y[:, 0], y, atol=1e-6)
    assert codes == ()


def test_seconds_grow_with_rows_and_cells():
    tuned = TunedMachine(SETTING, IdentityTarget(), 1.0, 2_000)
    assert tuned.guess(2_000, 2_000) == pytest.approx(1.0)
    assert tuned.guess(100_000, 2_000) < 0.5 * tuned.guess(100_000, 8_000)
    few = TunedMachine(replace(SETTING, metric_rows=2_000), IdentityTarget(), 1.0, 2_000)
    assert few.guess(8_000, 8_000) < 16  # the metric is of as many rows as before
    later = tuned.timed(8.0, 8_000)
    assert later.guess(8_000, 8_000) == pytest.approx(8.0)


@pytest.mark.parametrize("metric", ["auc", "average_precision", "log_loss", "accuracy"])
def test_the_search_is_judged_by_the_metric(metric, monkeypatch):
    p = replace(problem(150, classes=2), metric=METRICS[metric])
    seen = []
    monkeypatch.setattr(
        learned, "search", lambda found: seen.append(found) or learned.without_search(150)
    )
    find_machines(p, IdentityTarget(), forever(), 1.0, 1e9)
    q = seen[0]
    assert (q.judge is not None) == (metric in learned.RANKING_METRICS)
    noise = np.random.default_rng(0).normal(size=q.Y.shape)
    assert q.loss(q.Y, q.Y, None) < q.loss(q.Y + noise, q.Y, None) < q.loss(-q.Y, q.Y, None)


def test_groups_and_times_reach_the_search(monkeypatch):
    seen = []
    monkeypatch.setattr(
        learned, "search", lambda found: seen.append(found) or learned.without_search(60)
    )
    group = np.repeat(np.arange(12), 5)
    find_machines(problem(60, group=group), IdentityTarget(), Clock(1.0), 1.0, 1e9)
    assert np.array_equal(seen[0].group, group)


def test_few_rows_need_no_search():
    assert find_machines(problem(4), IdentityTarget(), forever(), 1.0, 1e9).tried == 0
