"""The kernel and penalty of a machine, and the size that its time allows."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.automl import candidates, select, tuning
from mercer.automl.budget import Clock
from mercer.automl.candidates import machine_candidate
from mercer.automl.learned import LearnedSetting
from mercer.automl.machines import MachineSetting
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import IdentityTarget
from mercer.automl.recipes import LINEAR
from mercer.automl.search import try_recipe
from mercer.automl.tuning import TunedMachine, tune_machine
from mercer.kernels import Gaussian
from mercer.models.feature_machine.paths import MetricPath, PathSetting
from mercer.ops.threads import limit
from tests.automl.arrays import SETTING, checkers, forever, problem


@pytest.mark.parametrize("classes", [0, 2])
def test_a_fold_without_weight_is_left_out(classes):
    w = np.zeros(300)
    w[:5] = 1.0
    p = problem(300, classes=classes, weight=w, time=np.arange(300.0))
    f = machine_candidate(p, TunedMachine(SETTING, IdentityTarget(), 1.0, 300), 1e9)
    assert np.isfinite(f.alpha)
    trial = p, candidates.folds_of(p)
    assert (
        tuning._loss(trial, SETTING, IdentityTarget(), 1e9)[0] == np.inf
    )  # no tested row has weight


@pytest.mark.parametrize("column", range(3))
def test_kernels_do_not_depend_on_the_order_of_a_table(column):
    X = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32) * np.float32([1, 1, 50])
    widths = [tuning.kernel_candidates(A)[0].bandwidth for A in (X, X[np.argsort(X[:, column])])]
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_the_search_prefers_what_fits_and_is_timed():
    p = checkers(900)
    tuned = tune_machine(p, IdentityTarget(), forever(), 1.0, 1e9)
    trial = p, candidates.folds_of(p)
    found, poor = (
        tuning._loss(trial, s, IdentityTarget(), 1e9)[0]
        for s in (tuned.setting, MachineSetting(Gaussian(20.0), 1.0))
    )
    assert found < 0.5 * poor
    assert tuned.seconds > 0
    assert tuned.rows > 500
    first = tuning.hinge_settings(p, p.rows.X)
    assert found <= 1.06 * min(tuning._loss(trial, s, IdentityTarget(), 1e9)[0] for s in first[:3])


def test_support_vectors_are_taken_where_they_are_clearly_better(monkeypatch):
    p = problem(200, classes=2)
    hinge = tuning.hinge_settings(p, p.rows.X)[0]
    for loss, kind in ((0.5, MachineSetting), (0.99, LearnedSetting)):

        def judged(trial, setting, loss=loss, **more):
            return (1.0 if isinstance(setting, LearnedSetting) else loss), 100

        monkeypatch.setattr(tuning, "_loss", judged)
        tuned = tune_machine(p, IdentityTarget(), forever(), 1.0, 1e9)
        assert isinstance(tuned.setting, kind)
    assert hinge.loss == "hinge"


@pytest.mark.parametrize(
    ("classes", "metric", "tried"),
    [
        (0, "r2", False),
        (2, "accuracy", True),
        (2, "log_loss", False),
        (2, "auc", False),
        (3, "accuracy", True),
        (12, "accuracy", False),  # a machine for every two would take too long
    ],
)
def test_support_vectors_are_tried_where_labels_count(classes, metric, tried):
    p = replace(problem(40, classes=classes), metric=METRICS[metric])
    assert bool(tuning.hinge_settings(p, p.rows.X)) == tried


def test_a_search_without_time_tries_one_setting_a_round(monkeypatch):
    tried = []
    loss = tuning._loss
    monkeypatch.setattr(
        tuning,
        "_loss",
        lambda trial, setting, **more: tried.append(setting) or loss(trial, setting, **more),
    )
    tune_machine(problem(300, classes=2), IdentityTarget(), Clock(1.0, start=0.0), 1.0, 1e9)
    assert len(tried) == 1


@pytest.mark.parametrize(
    ("left", "rows", "cell"), [(1e9, 10_000, 10_000), (15.0, 10_000, 4_000), (3.0, 3_800, 2_000)]
)
def test_the_size_follows_the_time(left, rows, cell):
    with limit(2):
        found = TunedMachine(SETTING, IdentityTarget(), 1.0, 2_000).size(10_000, left, 4e9)
    assert found[1] == cell
    assert found[0] == pytest.approx(rows, rel=0.2)
    assert (
        TunedMachine(SETTING, IdentityTarget(), 1.0, 2_000).size(10_000, 1e9, 4e8)[1] <= 4_000
    )  # kernel values of a cell must fit memory


def test_a_larger_fit_tells_how_seconds_grow():
    tuned = TunedMachine(SETTING, IdentityTarget(), 1.0, 1_000)
    assert tuned.timed(2**2.5, 2_000).power == pytest.approx(2.5)
    assert tuned.timed(2**2.5, 2_000).guess(4_000, 4_000) == pytest.approx(4**2.5)
    assert tuned.timed(100.0, 2_000).power == tuning.MAX_POWER
    assert tuned.timed(9.0, 1_100) is tuned
    assert replace(tuned, power=2.7).timed(2.0, 2_000).power == 2.7  # what small fits do not tell


def test_of_a_mean_of_machines_the_best_alone_takes_its_share_of_the_seconds():
    paths = [
        MetricPath(PathSetting("standard", 1, 1.0, 1.0, "diagonal", 1.0), (0.1,) * k)
        for k in (3, 2, 2)
    ]
    setting = LearnedSetting(tuple(zip(paths, (0.5, 0.3, 0.2), strict=True)), 0)
    tuned = TunedMachine(setting, IdentityTarget(), 3.0, 1000)
    one = tuned.alone()
    assert one.setting.members == ((paths[0], 1.0),)
    assert 1.0 < one.seconds < 2.0
    assert one.alone() is one
    plain = TunedMachine(SETTING, IdentityTarget(), 3.0, 1000)
    assert plain.alone() is plain


def test_a_mean_of_machines_too_slow_to_compare_gives_way_to_the_best(monkeypatch):
    p, paths = (
        problem(300),
        [MetricPath(PathSetting("standard", 1, 1.0, 1.0, "diagonal", 1.0), (0.1,))],
    )
    setting = LearnedSetting(((paths[0], 0.5),) + ((paths[0], 0.1),) * 5, 0)
    seen, best = [], try_recipe(p, LINEAR, 3)
    for seconds in (0.1, 3.0, 90.0):
        tuned = TunedMachine(setting, IdentityTarget(), seconds, 240)
        monkeypatch.setattr(select, "tune_machine", lambda *given, t=tuned: t)
        found = []
        machine, why = select._machine(p, p, best, Clock(10.0), 4e9, found)
        seen.append((len(machine.setting.members), len(found), why is None))
    assert seen[1:] == [(1, 1, True), (1, 0, False)]
    assert seen[0] == (6, 1, True)
