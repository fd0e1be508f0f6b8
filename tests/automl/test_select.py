"""Selection in the time given: cheap kinds take part, slow ones are given up."""

import time
from dataclasses import replace

import numpy as np
import pytest

from mercer.automl import search, select
from mercer.automl.budget import Clock, OutOfTime
from mercer.automl.candidates import constant_candidate, feature_candidate
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import IdentityTarget
from mercer.automl.reasons import LeftOut, out_of_time
from mercer.automl.recipes import EXPLICIT, LINEAR, Recipe
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem, try_recipe
from mercer.automl.select import select_candidate
from mercer.kernels import Gaussian
from tests.automl.arrays import forever, problem


def test_cheap_contenders_take_part_however_short_the_time_is():
    p = problem(300)
    found = select_candidate(p, Clock(1e3, start=time.perf_counter() - 1e4))
    assert {"linear", "explicit", "fourier", "landmarks"} <= {f.kind for f in found.candidates}
    assert [one.name for one in select_candidate(p, Clock(1e-6)).left_out] == [
        "Explicit lift",
        "Landmarks",
        "Kernel machine",
    ]


def test_reasons_tell_what_was_needed_and_what_was_left():
    """ "No time was left" was said with a third of it left."""
    p = problem(300)
    best = try_recipe(p, Recipe("fourier", Gaussian(1.0)), 64)
    dear = replace(best, seconds=50.0)
    for left, there in ((10.0, "7 s were left"), (-5.0, "1 s were left")):
        clock = Clock(10.0 if left > 0 else 20.0, start=time.perf_counter() - 10.0 + left)
        one = select._skipped(p, Recipe("landmarks", Gaussian(1.0)), dear, clock)
        assert one is not None
        assert one.lack == "time"
        assert there in one.why, one.why
        assert "it would have taken about" in one.why
    found = select_candidate(p, Clock(1e-6))
    assert {one.lack for one in found.left_out} == {"time"} == set(found.short.values())
    assert all(" s" in one.why for one in found.left_out), found.left_out


def test_what_was_left_out_for_time_is_compared_where_the_others_left_some():
    p, marks = problem(300), Recipe("landmarks", Gaussian(1.0))
    best = try_recipe(p, Recipe("fourier", Gaussian(1.0)), 64)
    one, found = out_of_time("landmarks", 5.0, 1.0), [constant_candidate(p)]
    late = lambda clock, trial: select._late(
        p, one, [marks], trial, clock, found, (IdentityTarget(),)
    )
    told = late(Clock(10.0), replace(best, seconds=1e4))
    assert told is not None
    assert told.lack == "time"
    assert told.why != one.why  # what is left by then
    assert [f.kind for f in found] == ["constant"]
    assert late(forever(), best) is None
    assert [f.kind for f in found] == ["constant", "landmarks"]
    others = [LeftOut("landmarks", "why"), LeftOut("explicit", "why", "memory")]
    assert all(
        select._late(p, o, [marks], best, forever(), found, (IdentityTarget(),)) is o
        for o in others
    )
    spent = [replace(found[0], seconds=7.0)]
    assert 2.4 < select.spare_seconds(Clock(10.0), spent) <= 2.5


@pytest.mark.parametrize("classes", [0, 2])
def test_a_kind_that_takes_too_long_is_given_up_between_folds(classes, monkeypatch):
    with pytest.raises(OutOfTime):
        feature_candidate(problem(200, classes=classes), LINEAR, 3, until=Clock(0, start=0.0))
    late = lambda here, recipe, best, until, targets: (
        until.check() or feature_candidate(here, LINEAR, 3)
    )
    monkeypatch.setattr(select, "_candidate", late)
    monkeypatch.setattr(select, "_left", lambda clock: -1.0)
    monkeypatch.setattr(select, "PATIENCE", -1.0)
    found: list = []
    best = try_recipe(problem(200), LINEAR, 3)
    one = select._compare(problem(200), EXPLICIT, best, forever(), found, ())
    assert one is not None
    assert one.given_up
    assert one.sentence.startswith("Explicit lift was given up: it was not done after ")
    assert select._compare(problem(200), LINEAR, best, forever(), found, ()) is None
    assert [f.kind for f in found] == ["linear"]


def test_many_columns_are_compared_on_fewer_rows_where_time_is_short():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 400)).astype(np.float32)
    p = SearchProblem(TableRows(X, X[:, 0], np.arange(3000)), METRICS["r2"], 0)
    best = search.Trial(
        Recipe("fourier", Gaussian(1.0)),
        64,
        1.0,
        IdentityTarget(),
        constant_candidate(p).score,
        1.0,
    )
    assert len(select._affordable(p, p, best, Clock(1.0)).rows) == select.MIN_ROWS
    assert select._affordable(p, p, best, forever()) is p
