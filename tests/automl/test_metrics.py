"""Metrics against scikit-learn's, and their intervals against resampling."""

import numpy as np
import pytest
from sklearn import metrics as sk

from mercer.automl import metrics
from mercer.automl.metrics import (
    METRICS,
    Score,
    choose_metric,
    difference,
    influence_error,
    over_folds,
    wilson,
)


def numbers(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n) + 2
    return y, y + 0.5 * rng.normal(size=n), rng.uniform(0.5, 2, size=n)


def classes(n=400, k=3, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), size=n)
    y = np.array([rng.choice(k, p=0.5 * p + 0.5 / k) for p in P])
    return y, P, rng.uniform(0.5, 2, size=n)


PEERS = {
    "r2": lambda y, f, w: sk.r2_score(y, f, sample_weight=w),
    "rmse": lambda y, f, w: sk.root_mean_squared_error(y, f, sample_weight=w),
    "mae": lambda y, f, w: sk.mean_absolute_error(y, f, sample_weight=w),
    "accuracy": lambda y, P, w: sk.accuracy_score(y, P.argmax(1), sample_weight=w),
    "balanced_accuracy": lambda y, P, w: sk.balanced_accuracy_score(
        y, P.argmax(1), sample_weight=w
    ),
    "log_loss": lambda y, P, w: sk.log_loss(y, P, sample_weight=w),
}


@pytest.mark.parametrize("name", PEERS)
def test_the_value_is_that_of_scikit_learn(name):
    m = METRICS[name]
    y, f, w = numbers() if m.task == "regression" else classes()
    assert m(y, f, w).value == pytest.approx(PEERS[name](y, f, w), rel=1e-9)


@pytest.mark.parametrize("k", [2, 4])
def test_auc_is_that_of_scikit_learn_also_with_ties(k):
    y, P, _ = classes(k=k)
    P = np.round(P, 1)
    mine = [sk.roc_auc_score(y == c, P[:, c]) for c in ([1] if k == 2 else range(k))]
    assert METRICS["auc"](y, P).value == pytest.approx(np.mean(mine), rel=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_the_standard_error_is_that_of_a_bootstrap(name):
    m = METRICS[name]
    y, f, _ = numbers() if m.task == "regression" else classes()
    rng = np.random.default_rng(1)
    draws = [m(y[i], f[i]).value for i in rng.integers(0, len(y), size=(400, len(y)))]
    score = m(y, f)
    assert score.error() == pytest.approx(np.std(draws), rel=0.15)
    assert abs(score.influence.sum()) < 1e-9


@pytest.mark.parametrize("name", METRICS)
def test_intervals_of_samples_cover_the_value_of_a_large_population(name):
    m = METRICS[name]
    make = numbers if m.task == "regression" else classes
    y, f, _ = make(20_000, seed=99)
    truth, hits = m(y, f).value, 0
    rng = np.random.default_rng(0)
    for _ in range(150):
        i = rng.choice(len(y), 300, replace=False)
        low, high = m(y[i], f[i]).interval()
        hits += low <= truth <= high
    assert hits / 150 > 0.88


def test_rows_of_one_group_count_once():
    y, f, _ = numbers(200)
    groups = np.repeat(np.arange(200), 5)
    alone, copied = METRICS["r2"](y, f), METRICS["r2"](np.repeat(y, 5), np.repeat(f, 5))
    assert copied.error(groups) == pytest.approx(alone.error(), rel=1e-9)
    assert copied.error() < alone.error() / 2


def test_a_paired_difference_is_surer_than_two_intervals():
    y, f, _ = numbers()
    a, b = METRICS["r2"](y, f), METRICS["r2"](y, f + 0.05)
    value, low, high = difference(a, b)
    assert value == pytest.approx(a.value - b.value)
    assert high - low < (a.interval()[1] - a.interval()[0]) / 2


def test_all_right_is_not_certainty():
    low, high = METRICS["accuracy"](np.zeros(20, int), np.tile([0.9, 0.1], (20, 1))).interval()
    assert low == pytest.approx(wilson(1.0, 20)[0])
    assert low < 0.9
    assert high == 1.0


def test_perfect_numbers_and_constant_targets_have_finite_scores():
    y = np.arange(5.0)
    assert METRICS["r2"](y, y).value == 1
    assert METRICS["rmse"](y, y).interval() == (0.0, 0.0)
    assert np.isfinite(METRICS["r2"](np.ones(5), y).value)


def test_auc_without_one_of_the_classes_is_no_number():
    assert np.isnan(METRICS["auc"](np.zeros(4, int), np.full((4, 2), 0.5)).value)


@pytest.mark.parametrize("seed", range(5))
def test_average_precision_is_scikit_learns_and_its_influence_the_derivative(seed):
    rng = np.random.default_rng(seed)
    y, p, w = rng.integers(0, 2, 60), rng.integers(0, 12, 60) / 12, rng.uniform(0.2, 2, 60)
    P = np.stack([1 - p, p], axis=1)
    mine, rare = METRICS["average_precision"](y, P, w), int(w[y == 1].sum() <= w[y == 0].sum())
    assert mine.value == pytest.approx(
        sk.average_precision_score(y == rare, P[:, rare], sample_weight=w)
    )
    assert mine.influence.sum() == pytest.approx(0, abs=1e-12)
    for j in rng.choice(60, 5, replace=False):
        step = np.where(np.arange(60) == j, 1e-6, 0)
        slope = (METRICS["average_precision"](y, P, w + step).value - mine.value) / 1e-6
        assert w[j] * slope == pytest.approx(mine.influence[j], abs=1e-4)
    assert METRICS["average_precision"](y, np.eye(2)[y], w).value == pytest.approx(1)
    assert np.isnan(METRICS["average_precision"](np.zeros(9, int), P[:9]).value)


def test_defaults_and_their_reasons():
    assert choose_metric("regression")[0].name == "r2"
    assert choose_metric("classification", shares=[0.4, 0.6]) == (METRICS["accuracy"], "")
    metric, why = choose_metric("classification", shares=[0.95, 0.05])
    assert metric.name == "auc"
    assert "5.0%" in why
    assert choose_metric("classification", shares=[0.84, 0.16])[0].name == "auc"
    assert choose_metric("classification", shares=[0.76, 0.24])[0].name == "accuracy"
    assert choose_metric("classification", shares=[0.9, 0.05, 0.05])[0].name == "accuracy"


@pytest.mark.parametrize(
    ("task", "name"), [("regression", "accuracy"), ("classification", "r2"), ("regression", "zzz")]
)
def test_a_metric_of_another_task_is_refused_with_those_there_are(task, name):
    with pytest.raises(ValueError, match=r"metric must be one of .* got"):
        choose_metric(task, name)


def test_names_may_be_written_with_dashes():
    assert choose_metric("classification", "Log-Loss")[0] is METRICS["log_loss"]


def test_one_unit_has_a_finite_spread():
    assert np.isfinite(influence_error(np.array([0.0])))
    assert Score(1.0, np.zeros(1)).error() == 0
    assert metrics.CONFIDENCE == 0.95


def test_intervals_stay_within_what_a_metric_can_be():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [30, 6])
    for seed in range(20):
        p = np.clip(y * 0.8 + 0.3 * np.random.default_rng(seed).uniform(size=36), 0, 1)
        for name in ("auc", "balanced_accuracy"):
            low, high = METRICS[name](y, np.stack([1 - p, p], axis=1)).interval()
            assert 0 <= low < high <= 1
    t = rng.normal(size=6)
    assert METRICS["r2"](t, t + 0.1 * rng.normal(size=6) ** 3).interval()[1] <= 1
    assert METRICS["mae"](t, t + rng.normal(size=6) ** 9).interval()[0] >= 0
    low, high = METRICS["auc"](y, np.eye(2)[y]).interval()
    assert (low < 0.9, high) == (True, 1.0)


def test_areas_are_averaged_over_folds_and_too_rare_classes_left_out():
    rng = np.random.default_rng(0)
    y, fold = np.repeat([0, 1, 2], [50, 48, 2]), np.arange(100) % 5
    P = rng.dirichlet(np.ones(3), 100) + np.eye(3)[y] * (fold[:, None] + 1) / 5
    mine = over_folds(METRICS["auc"], y, P, np.ones(100), fold)
    each = []
    for f in range(5):
        i = np.flatnonzero((fold == f) & (y < 2))
        each.append(np.mean([sk.roc_auc_score(y[i] == c, P[i, c]) for c in (0, 1)]))
    assert mine.value == pytest.approx(np.mean(each))
    assert mine.error() > 0
    assert (
        over_folds(METRICS["accuracy"], y, P, np.ones(100), fold).value
        == METRICS["accuracy"](y, P).value
    )


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_folds_without_a_class_do_not_count_as_right(weight):
    """Four rows of a class in two of five folds, and none, or rows without weight, in the rest."""
    m, fold = METRICS["balanced_accuracy"], np.repeat(np.arange(5), 20)
    y = np.zeros(100, int)
    y[[0, 1, 20, 21]] = 1
    y[40::20] = 1 if weight == 0 else 0
    w = np.ones(100)
    w[40::20] = weight
    constant = over_folds(m, y, np.tile([0.9, 0.1], (100, 1)), w, fold)
    assert constant.value == 0.5
    assert constant.shown_error() == pytest.approx(1 / 8)
    half = np.eye(2)[np.where(np.arange(100) < 20, y, 0)]
    assert over_folds(m, y, half, w, fold).value == 0.75
    assert over_folds(m, y, np.eye(2)[y], w, fold).value == 1.0


def test_a_class_without_weight_is_none():
    y, w = np.array([0, 0, 1, 1, 2]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    P = np.eye(3)[[0, 1, 1, 0, 0]]
    assert METRICS["balanced_accuracy"](y, P, w).value == 0.5
    assert METRICS["balanced_accuracy"](y, np.eye(3)[[0, 1, 1, 1, 0]], w).value == 0.75


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "auc", "average_precision"])
def test_differences_of_shares_are_shares(name):
    y = np.array([0] * 6 + [1] * 2)
    right, wrong = (METRICS[name](y, np.eye(2)[c]) for c in (y, 1 - y))
    value, low, high = difference(right, wrong)
    assert -1 <= low <= value <= high <= 1
    assert difference(wrong, right)[1] >= -1


@pytest.mark.parametrize("n", [*range(1, 40), 1000])
def test_shares_of_all_rows_are_one_exactly(n):
    y, w = np.arange(n) % 2, np.random.default_rng(n).uniform(0.1, 3, n)
    for name in ("accuracy", "balanced_accuracy", *(["auc"] if n > 1 else [])):
        assert METRICS[name](y, np.eye(2)[y], w).value == 1.0
        assert METRICS[name](y, np.eye(2)[y], np.full(n, 0.1)).value == 1.0
    right = np.arange(n) % 3 == 0
    assert (
        METRICS["accuracy"](np.zeros(n, int), np.eye(2)[1 - right], np.ones(n)).value
        == right.sum() / n
    )


def test_a_metric_that_is_no_name_is_refused():
    with pytest.raises(
        ValueError, match=r"^metric must be one of r2, rmse, mae for regression, got 3\.$"
    ):
        choose_metric("regression", 3)
