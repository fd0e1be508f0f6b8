"""Feature machines in the contest."""

import tracemalloc
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
from mercer.ops.tiles import settle_allocator
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


@pytest.mark.parametrize(
    "metric", ["auc", "average_precision", "log_loss", "balanced_accuracy", "accuracy"]
)
def test_the_search_is_judged_by_the_metric(metric, monkeypatch):
    p = replace(problem(150, classes=2), metric=METRICS[metric])
    seen = []
    monkeypatch.setattr(
        learned, "search", lambda found: seen.append(found) or learned.without_search(150)
    )
    find_machines(p, IdentityTarget(), forever(), 1.0, 1e9)
    q = seen[0]
    assert (q.judge is not None) == (metric != "accuracy")
    noise = np.random.default_rng(0).normal(size=q.Y.shape)
    assert q.loss(q.Y, q.Y, None) < q.loss(q.Y + noise, q.Y, None) < q.loss(-q.Y, q.Y, None)


def judged(metric, p, monkeypatch):
    """The problem that a search of these rows gets."""
    seen = []
    monkeypatch.setattr(
        learned, "search", lambda found: seen.append(found) or learned.without_search(150)
    )
    find_machines(replace(p, metric=METRICS[metric]), IdentityTarget(), forever(), 1.0, 1e9)
    return seen[0]


def rare(classes, **more):
    """Three rows in twenty are of other classes than the first."""
    p = problem(400, classes=classes, **more)
    y = np.arange(400) % 20
    return replace(p, rows=replace(p.rows, y=np.where(y < classes, y, 0)))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_accuracy_asks_for_every_class(classes, weighted, monkeypatch):
    """One that finds the rare classes, at the price of some errors in the frequent one, is better
    than one that never names them; by plain errors it is not."""
    p = rare(classes)
    shares = np.eye(classes)[p.rows.y]
    rng = np.random.default_rng(0)
    never = 0.02 * rng.normal(size=shares.shape) + np.eye(classes)[0]
    finds = shares.copy()
    wrong = np.flatnonzero(p.rows.y == 0)[: 12 * classes * 4]
    finds[wrong] = np.eye(classes)[1]
    columns = slice(1, 2) if classes == 2 else slice(None)
    w = np.linspace(0.5, 1.5, 400) if weighted else None
    losses = {}
    for metric in ("balanced_accuracy", "accuracy"):
        q = judged(metric, p, monkeypatch)
        losses[metric] = [q.loss((P[:, columns] - q.offset), q.Y, w) for P in (finds, never)]
    assert losses["balanced_accuracy"][0] < losses["balanced_accuracy"][1]
    assert losses["accuracy"][0] > losses["accuracy"][1]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_log_loss_is_searched_by_log_loss_alone(classes, weighted, monkeypatch):
    """The least mean of -log p over the slopes of the scores, and no share of errors."""
    q = judged("log_loss", rare(classes), monkeypatch)
    w = np.linspace(0.5, 1.5, 400) if weighted else None
    F = q.Y + 0.4 * np.random.default_rng(0).normal(size=q.Y.shape)
    S, T = F + q.offset, q.Y + q.offset
    if classes == 2:
        S, T = (np.hstack([0.5 - A, A - 0.5]) for A in (S, T))
    z = np.exp(np.linspace(-2, 5, 2_000))[:, None, None] * S
    log_p = z - np.log(np.exp(z - z.max(2, keepdims=True)).sum(2, keepdims=True))
    log_p -= z.max(2, keepdims=True)
    mine = -log_p[:, np.arange(400), T.argmax(1)]
    assert q.loss(F, q.Y, w) == pytest.approx(np.average(mine, axis=1, weights=w).min(), rel=1e-3)


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


def test_a_metric_is_learnt_within_the_memory_of_the_fit():
    memory = 3e7
    p = problem(4_000)
    settle_allocator()  # asks once for a block that it never touches
    setting = SETTING.alone().in_cells(600)
    setting.fit(p.rows.X[:300], p.rows.y[:300], None, 0, memory)  # loops are loaded or compiled
    tracemalloc.start()
    m = setting.fit(p.rows.X, p.rows.y, None, 0, memory)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert m.n_cells > 5
    assert most < memory
