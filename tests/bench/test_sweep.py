"""The sweep over random shapes: what a seed draws, that both sides agree there, and what is told."""

import warnings
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp

from bench.sweep import Found, Trial, cases, problems, summary
from bench.sweep_least import Least
from bench.sweep_problems import OPERATIONS, Problem
from bench.sweep_rows import Draw, Shape, TooLarge
from mercer.ops.threads import limit


def first(name, seed, count=3):
    draws = problems(name, seed, 0.05 if name == "GP learnt" else 0.004)
    return [next(draws) for _ in range(count)]


@pytest.mark.parametrize("name", [n for n in OPERATIONS if n not in ("SVC", "SVR")])
def test_both_sides_are_equally_good(name):
    problem = first(name, 5, 1)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = problem.check(problem.ours(), problem.peer())
    assert getattr(verdict, "failure", verdict) is None


def test_a_seed_draws_the_same_shapes():
    assert [p.name for p in first("Gram", 1)] == [p.name for p in first("Gram", 1)]
    assert [p.name for p in first("Gram", 1)] != [p.name for p in first("Gram", 2)]


def test_shapes_are_given_up_before_there_are_rows():
    draw = Draw(np.random.default_rng(0), 1e-9)
    with pytest.raises(TooLarge):
        Shape.of(draw)


def trial(ours, peer, check=lambda a, b: None, ways=None):
    times = iter(t for s in (ours, peer) for t in (0.0, s))
    found = Found()
    made = Trial("op", Problem("p", int, int, check, ways or {}), lambda: next(times), found, True)
    return made, found


def test_a_trial_counts_where_the_peer_takes_long_enough():
    made, found = trial(10.0, 30.0)
    assert made.run().ratio == 3.0
    assert found.ratios == [3.0]
    made, found = trial(25.0, 1e-3)
    made.run()
    assert found.ratios == []


def test_what_is_compiled_in_the_first_call_does_not_count():
    seconds = [2.5, 0.3, 0.3, 0.1]  # ours and the peer, then the peer first
    times = iter(t for s in seconds for t in (0.0, s))
    made = Trial("op", Problem("p", int, int, lambda a, b: None, {}), times.__next__, Found(), True)
    assert made.run().ratio == pytest.approx(3.0)


def test_a_trial_of_unequal_results_has_no_ratio():
    made, found = trial(10.0, 30.0, check=lambda a, b: "they differ")
    assert made.run().failure == "they differ"
    assert (found.ratios, found.refused) == ([], 1)


def test_a_trial_tells_how_far_it_is_from_the_least():
    made, found = trial(10.0, 30.0)
    problem = replace(made.problem, least=lambda least, result: 2.0 + result)
    row = replace(made, problem=problem).run()
    assert (row.quality, found.perfect) == ("5.00 of the least", [15.0])
    names = [m.name for m in summary("Gram", found)]
    assert names[-2:] == [f"Gram: a perfect one would have, {at}" for at in ("10 %", "median")]


def test_the_least_work_is_half_where_rows_meet_themselves():
    ticks = count()
    least, X = Least(lambda: float(next(ticks))), np.ones((256, 3))  # every part takes a second
    with limit(1):
        assert least.gram(X, X[:128]) == 1 + 128 / 256 + 1  # products, values, pages
        assert least.gram(X, kept=False) == (1 + 1) * (1 + 1 / 256) / 2
        assert least.gram(sp.csr_array(X), sp.csr_array(X[:128])) == 2.5
    with limit(2):
        assert least.gram(X, X[:128]) == 1 + 0.25 + 0.5
    assert [least.solution(20, steps) for steps in (None, 3)] == [1.0, 1.0]


def test_the_summary_tells_worst_quantile_median_and_choices():
    rows = [m.run() for m in summary("Gram", Found([0.5, 2.0, 8.0], distances=[1.0, 2.0]))]
    assert [row.ratio for row in rows] == [0.5, pytest.approx(0.8), 2.0, 0.5]
    assert [row.met for row in rows] == [False, False, False, False]


def test_only_the_operations_that_are_asked_for_run():
    trials = [c for c, _ in zip(cases(0, quick=True, only=("Gram",)), range(2), strict=False)]
    assert {t.operation for t in trials} == {"Gram"}
