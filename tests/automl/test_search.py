"""Successive halving over kernels, bandwidths and penalties."""

import numpy as np
import pytest

from mercer.automl import search
from mercer.automl.budget import Clock
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import LogTarget, transformations
from mercer.automl.recipes import LINEAR
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem, rungs, successive_halving, try_recipe
from tests.automl.arrays import forever, problem


@pytest.fixture
def narrow(monkeypatch):
    """Few features, for a quick search."""
    monkeypatch.setattr(search, "FIRST_SIZE", 64)


@pytest.mark.usefixtures("narrow")
def test_the_search_finds_a_kernel_that_beats_the_line():
    p = problem(900)
    best, here = successive_halving(p, forever(), 1.0)
    line = try_recipe(here, LINEAR, 3)
    assert best.score.value > 0.6 > 0.2 > line.score.value


def test_without_time_a_few_are_tried_all_the_same():
    best, here = successive_halving(problem(300), Clock(0), 1.0)
    assert np.isfinite(best.score.value)
    assert len(here.rows) == 300


@pytest.mark.usefixtures("narrow")
def test_the_search_is_the_same_each_time():
    a, b = (successive_halving(problem(200, classes=2), forever(), 1.0)[0] for _ in range(2))
    assert (a.recipe, a.alpha, a.score.value) == (b.recipe, b.alpha, b.score.value)


def test_rungs_grow_and_end_at_all_rows():
    assert rungs(9000)[-1][0] == 9000
    assert rungs(10**7)[-1] == (32_000, 1024)


def test_a_skewed_target_gains_from_its_logarithm():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2)).astype(np.float32)
    p = SearchProblem(
        TableRows(X, np.exp(X[:, 0] * 1.2 + 0.1 * rng.normal(size=800)), np.arange(800)),
        METRICS["r2"],
        0,
    )
    found = try_recipe(p, LINEAR, 2, targets=transformations(p.rows.y))
    assert isinstance(found.target, LogTarget)
    assert found.score.value > try_recipe(p, LINEAR, 2).score.value + 0.1
