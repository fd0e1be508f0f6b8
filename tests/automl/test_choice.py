"""Which candidate is chosen: robustly, and a simpler one only where nothing speaks against it."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.automl.candidates import ModelCandidate, score_of
from mercer.automl.choice import (
    best_candidate,
    choose_candidate,
    mean_score,
    paired_scores,
    row_losses,
    worse_at_worst,
    worse_by_rows,
)
from mercer.automl.metrics import METRICS, difference_error
from mercer.automl.predictors import IdentityTarget
from tests.automl.arrays import problem


def candidate(p, kind, predicted, seconds=1.0):
    return ModelCandidate(
        kind, None, 0, 0.0, IdentityTarget(), score_of(p, predicted), seconds, predicted
    )


def test_a_few_extreme_rows_do_not_hide_that_nearly_every_row_is_worse():
    p, kept = problem(600), 0
    y = p.rows.y
    for seed in range(20):
        rng = np.random.default_rng(seed)
        noise, wild = rng.normal(size=600), np.zeros(600)
        wild[:4] = 20 * rng.choice([-1.0, 1.0], 4)  # so that the error of a difference is wide
        machine, line = y + 0.1 * noise + wild, y + 0.2 * noise + wild * rng.normal(1, 0.1, 600)
        found = [candidate(p, "linear", line, 0.01), candidate(p, "machine", machine)]
        assert found[0].score.error() > abs(found[0].score.value - found[1].score.value)
        kept += choose_candidate(p, found).kind == "linear"
    assert kept <= 8  # where it is surely better on the wild rows, by chance, it is the best
    even = [
        choose_candidate(
            p,
            [
                candidate(p, "linear", y + 0.1 * np.random.default_rng(s).normal(size=600)),
                candidate(p, "machine", y + 0.1 * np.random.default_rng(s + 99).normal(size=600)),
            ],
        ).kind
        for s in range(20)
    ]
    assert even.count("linear") >= 14


def test_worse_errors_at_worst_keep_a_simple_model_out():
    p, rng = problem(600), np.random.default_rng(0)
    y = p.rows.y
    machine = y + 0.3 * rng.normal(size=600)
    line = y + 0.3 * rng.normal(size=600)
    line[:3] = y[:3] + 2.5
    line[3:] = y[3:] + 0.985 * (line[3:] - y[3:])
    found = [candidate(p, "linear", line), candidate(p, "machine", machine)]
    if best_candidate(p, found).kind == "machine":
        assert choose_candidate(p, found).kind == "machine"
    assert worse_at_worst((line - y) ** 2, (machine - y) ** 2)
    assert not worse_at_worst((machine - y) ** 2, (machine - y) ** 2)


def test_a_simpler_model_must_be_readable_or_ten_times_as_fast():
    p, rng = problem(600), np.random.default_rng(0)
    errors = rng.normal(size=(2, 600))
    errors *= np.array([[1.04], [1.0]]) / errors.std(1, keepdims=True)
    even = p.rows.y + 0.3 * errors
    for kind, seconds, wins in (
        ("linear", 1.0, True),
        ("fourier", 1.0, False),
        ("fourier", 0.09, True),
    ):
        found = [candidate(p, kind, even[0], seconds), candidate(p, "machine", even[1], 1.0)]
        assert (choose_candidate(p, found).kind == kind) is wins


def test_ties_of_the_metric_are_decided_by_the_log_loss():
    p = problem(400, classes=2)
    sure, timid = (np.where(np.eye(2)[p.rows.y] > 0, q, 1 - q) for q in (0.95, 0.6))
    found = [candidate(p, "fourier", timid), candidate(p, "machine", sure)]
    assert found[0].score.value == found[1].score.value == 1.0
    assert best_candidate(p, found).kind == "machine"
    assert best_candidate(p, found[::-1]).kind == "machine"


def test_signed_ranks_look_at_groups_where_there_are_some():
    rng = np.random.default_rng(0)
    best = rng.exponential(size=400)
    worse = best + np.where(np.arange(400) < 200, 0.1, -0.05)
    assert worse_by_rows(best + 0.05, best)
    assert not worse_by_rows(best, best)
    assert worse_by_rows(worse, best) != worse_by_rows(worse, best, np.arange(400) // 200)


def test_repeats_average_scores():
    p = problem(200)
    scores = [candidate(p, "linear", p.rows.y + e).score for e in (0.1, 0.2)]
    mean = mean_score(scores)
    assert mean.value == pytest.approx(np.mean([s.value for s in scores]))
    assert mean.influence == pytest.approx(np.mean([s.influence for s in scores], axis=0))
    assert replace(mean, value=0.0).high == 1.0
    assert METRICS["r2"].gain(mean.value) == mean.value


def repeated(p, kind, told):
    """A candidate on as many repeats of the folds."""
    one = candidate(p, kind, told[0])
    if len(told) == 1:
        return one
    scores = [score_of(p, out) for out in told]
    return replace(one, score=mean_score(scores), repeats=tuple(zip(scores, told, strict=True)))


def test_differences_are_of_the_repeats_that_both_have():
    """The first cut was kind to all; who was cut again is not behind who was not."""
    p, rng = problem(600), np.random.default_rng(0)
    y, noise = p.rows.y, rng.normal(size=(3, 600))
    kind, harsh = 0.30, 0.36  # errors of the same model on one cut and on others
    machine = repeated(p, "machine", [y + s * noise[0] for s in (kind, harsh, harsh)])
    other = repeated(p, "fourier", [y + 1.02 * kind * noise[0]])
    assert other.score.value > machine.score.value  # of different cuts
    mine, theirs = paired_scores(machine, other)
    assert mine.value > theirs.value == other.score.value
    assert best_candidate(p, [machine, other]) is machine is best_candidate(p, [other, machine])
    assert choose_candidate(p, [other, machine]) is machine
    better = repeated(p, "fourier", [y + 0.8 * kind * noise[0]])
    assert best_candidate(p, [machine, better]) is better


def test_repeats_are_no_more_rows():
    """Repeats of one cut give the errors and losses of that cut; of several, rows' means."""
    p, rng = problem(600), np.random.default_rng(1)
    y, noise = p.rows.y, rng.normal(size=(2, 600))
    once = [
        repeated(p, k, [y + 0.3 * e]) for k, e in zip(("linear", "machine"), noise, strict=True)
    ]
    often = [
        repeated(p, k, [y + 0.3 * e] * 3) for k, e in zip(("linear", "machine"), noise, strict=True)
    ]
    errors = [difference_error(*paired_scores(*pair)) for pair in (once, often)]
    assert errors[0] == pytest.approx(errors[1])
    assert choose_candidate(p, once).kind == choose_candidate(p, often).kind
    apart = repeated(p, "linear", [y + 0.3 * noise[0], y + 0.1 * noise[1]])
    expected = (0.09 * noise[0] ** 2 + 0.01 * noise[1] ** 2) / 2
    assert row_losses(p, apart, 2) == pytest.approx(expected)
    assert row_losses(p, apart) == pytest.approx(0.09 * noise[0] ** 2)
    assert row_losses(p, replace(apart, repeats=((apart.score, None),))) is None


def test_rows_count_by_their_weights():
    """A hundred heavy rows say one thing, a thousand light ones another."""
    heavy = np.arange(1100) < 100
    w = np.where(heavy, 1.0, 1e-4)
    p = problem(1100, weight=w)
    rng = np.random.default_rng(0)
    good, bad = 0.1 * rng.normal(size=1100), 0.3 * rng.normal(size=1100)
    machine, line = np.where(heavy, good, bad), np.where(heavy, bad, good)
    assert worse_by_rows(line**2, machine**2, None, w)
    assert not worse_by_rows(line**2, machine**2)
    assert worse_by_rows(line**2, machine**2, np.arange(1100) // 2, w)
    spoilt = np.where(heavy, good, 9.0)
    assert worse_at_worst(spoilt**2, good**2)
    assert not worse_at_worst(
        np.where(rng.uniform(size=1100) < 0.2, spoilt, good) ** 2, good**2, np.where(heavy, 1, 1e-7)
    )
    assert worse_at_worst(np.where(heavy, 9.0, good) ** 2, good**2, w)
    tied = [candidate(p, "fourier", p.rows.y + line), candidate(p, "machine", p.rows.y + machine)]
    tied = [replace(f, score=tied[0].score) for f in tied]  # a tie, decided by the losses of rows
    assert best_candidate(p, tied).kind == "machine"


@pytest.mark.parametrize("scale", [1.0, 1e-6, 3e5])
@pytest.mark.parametrize("group", [None, np.arange(333) // 3])
def test_equal_weights_change_nothing(scale, group):
    rng = np.random.default_rng(3)
    for gain in (0.9, 1.0, 1.03, 1.1):
        best = rng.exponential(size=333)
        mine = gain * best * rng.choice([0.9, 1.0, 1.2], 333)
        w = np.full(333, scale)
        assert worse_by_rows(mine, best, group, w) == worse_by_rows(mine, best, group)
        assert worse_at_worst(mine, best, w) == worse_at_worst(mine, best)
