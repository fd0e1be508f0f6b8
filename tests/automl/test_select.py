"""Selection in the time given: cheap kinds take part, slow ones are given up."""

import time

import numpy as np
import pytest

from mercer.automl import search, select
from mercer.automl.budget import Clock, OutOfTime
from mercer.automl.candidates import constant_candidate, feature_candidate
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import IdentityTarget
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
    assert [name for name, _ in select_candidate(p, Clock(1e-6)).left_out] == [
        "Explicit lift",
        "Landmarks",
        "Kernel machine",
    ]


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
    assert select._compare(problem(200), EXPLICIT, best, forever(), found, ()) == "it took too long"
    assert select._compare(problem(200), LINEAR, best, forever(), found, ()) == ""
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
