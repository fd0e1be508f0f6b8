"""The search for feature machines."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from mercer.models.feature_machine import search as s
from mercer.models.feature_machine.dense import PathRows
from mercer.models.feature_machine.paths import MetricPath, PathSetting
from mercer.models.feature_machine.search import MetricProblem, PathTrial, Split, ensemble, search
from mercer.ops.threads import limit


def problem(seed: int = 0, n: int = 120, classes: int = 0) -> MetricProblem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    if not classes:
        Y = (f - f.mean())[:, None] / f.std()
        return MetricProblem(X, Y.astype(np.float32), None, np.zeros(1), 0, seed)
    codes = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))
    hot = np.eye(classes)[codes][:, 1:] if classes == 2 else np.eye(classes)[codes]
    return MetricProblem(
        X, (hot - hot.mean(0)).astype(np.float32), None, hot.mean(0), classes, seed
    )


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_a_search_is_the_same_on_one_thread_or_many(classes: int) -> None:
    p = problem(1, 90, classes)
    a = search(p)
    with limit(1):
        b = search(p)
    assert [m[0].setting for m in a.members] == [m[0].setting for m in b.members]
    np.testing.assert_allclose([m[1] for m in a.members], [m[1] for m in b.members])
    assert a.loss == pytest.approx(b.loss, rel=1e-3)
    assert sum(w for _, w in a.members) == pytest.approx(1)


def test_fitted_and_held_out_rows_share_none() -> None:
    p = problem(2)
    p.X[:, 2] = np.arange(len(p.X))
    split = Split.of(p, np.arange(len(p.X)), 0.6, ("standard", "rank"))
    assert not set(split.fitted["standard"].U[:, 2]) & set(split.held["standard"].U[:, 2])
    assert len(split) == 72


def test_groups_stay_together_and_later_rows_are_held_out() -> None:
    p, rng = problem(6, 200), np.random.default_rng(0)
    group, when = rng.integers(0, 12, 200), rng.permutation(200)
    grouped, timed = replace(p, group=group), replace(p, time=when)
    for turn in range(4):
        rows = s.cut_order(grouped, np.arange(200), turn, 3)
        assert sorted(rows) == list(range(200))
        fitted = len(Split.of(grouped, rows, 0.6, ("standard",)))
        assert not set(group[rows[:fitted]]) & set(group[rows[fitted:]])
        assert 80 < fitted < 160
    later = s.cut_order(timed, rng.permutation(200), 0, 1)
    assert (np.diff(when[later]) > 0).all()
    assert search(timed).tried > 20
    assert search(grouped).tried > 20


def test_classification_loss_is_least_at_the_truth() -> None:
    p = problem(3, 200, 3)
    right, noise = p.Y, np.random.default_rng(0).normal(size=p.Y.shape)
    assert p.loss(right, p.Y, None) < p.loss(right + noise, p.Y, None) < p.loss(-right, p.Y, None)
    two = problem(3, 200, 2)
    assert two.loss(two.Y, two.Y, None) < 0.05 < 1 < two.loss(-two.Y, two.Y, None)


def test_machines_that_err_apart_are_averaged() -> None:
    p = problem(4)
    noise = np.random.default_rng(1).normal(size=(2, *p.Y.shape)) / 2
    paths = [MetricPath(PathSetting("standard", n, 1.0, 1.0, "diagonal"), (0.1,)) for n in (1, 2)]
    trials = [
        PathTrial(path, p.loss(p.Y + e, p.Y, None), p.Y + e)
        for path, e in zip(paths, noise, strict=True)
    ]
    trials.sort(key=lambda t: t.loss)
    members, loss = ensemble(p, trials, PathRows(p.X, p.Y))
    assert len(members) == 2
    assert loss < 0.7 * trials[0].loss
    alone, _ = ensemble(p, [trials[0], PathTrial(paths[0], 9.0, p.Y + 9)], PathRows(p.X, p.Y))
    assert len(alone) == 1


def test_time_ends_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(s.time, "perf_counter", lambda: next(clock))
    full = search(problem(5)).tried
    cut = search(
        MetricProblem(**{**vars(problem(5)), "deadline": 40.0})
    ).tried  # seconds of a clock that goes by one a look
    assert 0 < cut < full / 3


def test_indicators_have_no_ranks() -> None:
    X = (np.random.default_rng(0).random((50, 3)) > 0.5).astype(float)
    assert s.kinds_of(X) == ("standard",)
    assert s.kinds_of(X + np.random.default_rng(0).random((50, 3))) == ("standard", "rank")


@pytest.mark.parametrize("threads", [1, 2, 16, 64])
def test_rows_of_the_second_look_do_not_depend_on_cores(threads: int) -> None:
    with limit(threads):
        assert s.promoted_rows(problem(), 100_000, 0.1, 1_200) == s.promoted_rows(
            problem(), 100_000, 9.0, 1_200
        )
        assert s.promoted_rows(problem(), 100_000, 0.1, 1_200) > 7_000


def test_a_search_keeps_to_its_memory() -> None:
    memory = 6e7
    p = replace(problem(4, 3_000), memory=memory, deadline=time.perf_counter() + 1e4)
    with limit(1):
        search(problem(4), most_rounds=1)  # loops are loaded or compiled
        tracemalloc.start()
        found = search(p, most_rounds=1)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found.rows == s.screened_rows(memory)
    assert most < memory
