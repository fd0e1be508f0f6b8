"""The benchmark harness: fair order, and no ratio without equal quality."""

from types import SimpleNamespace

import numpy as np
import pytest

from bench.harness import Case, Measure, Quality
from bench.report import line, table


class Clock:
    """Time that passes only when someone sleeps."""

    now = 0.0

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("bench.harness.perf_counter", lambda: clock.now)
    monkeypatch.setattr("bench.harness.gc", SimpleNamespace(collect=lambda: 0))
    return clock


def case(name="c", ours=lambda: 1, peer=lambda: 2, check=lambda ours, peer: None, **options):
    return Case(name, ours, peer, check, **options)


def test_warms_both_then_interleaves_with_alternating_first_place():
    calls = []
    case(ours=lambda: calls.append("ours"), peer=lambda: calls.append("peer"), repeats=3).run()
    assert calls[:2] == ["ours", "peer"]
    assert calls[2:] == ["ours", "peer", "peer", "ours", "ours", "peer"]


def test_the_first_call_is_not_timed_and_the_best_counts(clock):
    naps = iter([1, 5, 3, 4])
    assert case(ours=lambda: clock.sleep(next(naps)), repeats=3).run().ours == 3


def test_warmup_replaces_the_first_calls():
    calls = []
    case(
        ours=lambda: calls.append("ours"), peer=None, repeats=1, warmup=lambda: calls.append("warm")
    ).run()
    assert calls == ["warm", "ours"]


def test_setup_runs_before_every_call_outside_the_clock(clock):
    calls = []
    row = case(
        setup=lambda: (calls.append(1), clock.sleep(9)), ours=lambda: clock.sleep(1), repeats=2
    ).run()
    assert len(calls) == 6
    assert row.ours == 1


def test_check_sees_the_results_of_both_sides():
    seen = []
    case(
        ours=lambda: "a", peer=lambda: "b", check=lambda ours, peer: seen.append((ours, peer))
    ).run()
    assert seen == [("a", "b")]


@pytest.mark.parametrize(("target", "met"), [(3.0, True), (3.1, False), (None, None)])
def test_ratio_is_peer_over_ours(clock, target, met):
    row = case(ours=lambda: clock.sleep(2), peer=lambda: clock.sleep(6), target=target).run()
    assert (row.ratio, row.met) == (3, met)


@pytest.mark.parametrize(
    "verdict", ["results differ", Quality("accuracy", 0.5, 0.9, 0.01), Quality("r2", np.nan, 0.9)]
)
def test_no_ratio_when_the_check_fails(verdict):
    row = case(check=lambda ours, peer: verdict).run()
    reason = verdict if isinstance(verdict, str) else verdict.failure
    assert (row.ratio, row.met, row.failure) == (None, None, reason)
    assert reason in line(row)
    assert "refused" in table([row])
    assert "x," not in line(row)


def test_a_check_that_returns_something_else_is_an_error():
    with pytest.raises(TypeError, match="returned True"):
        case(check=lambda ours, peer: True).run()


def test_quality_counts_in_its_own_direction():
    assert Quality("accuracy", 0.9, 0.905, slack=0.01).failure is None
    assert Quality("error", 0.2, 0.1, higher_is_better=False).failure
    assert Quality("error", 0.1, 0.2, higher_is_better=False).failure is None


@pytest.mark.parametrize(("lower_is_better", "ratio"), [(True, 4.0), (False, 0.25)])
def test_measure_ratio_is_above_one_where_ours_is_better(lower_is_better, ratio):
    assert Measure("error", 1.0, 4.0, lower_is_better=lower_is_better).run().ratio == ratio


def test_measure_of_zero_is_infinitely_better_or_equal():
    assert Measure("error", 0.0, 1.0).run().ratio == float("inf")
    assert Measure("error", 0.0, 0.0).run().ratio == 1.0


def test_without_a_peer_there_is_no_ratio():
    row = case(peer=None).run()
    assert row.ratio is None
    assert row.failure is None
    assert "ratio -" in line(row)


def test_repeats_must_be_positive():
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        case(repeats=0)
