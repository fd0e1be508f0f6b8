"""What is said of trees that are ahead, or in no mean."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mercer.automl import fit_table, select, tree_words, trees
from mercer.automl.recipes import TreeGrowth
from mercer.automl.study import Study
from tests.automl.arrays import problem
from tests.automl.test_choice import candidate
from tests.automl.test_mean_with_trees import steps


def foresight(p, seconds):
    """Trees that err by little, whatever the others do."""
    noise = 0.05 * np.random.default_rng(0).normal(size=len(p.rows))
    return replace(candidate(p, "trees", p.rows.y + noise), growth=TreeGrowth())


def test_a_mean_that_trees_alone_beat_before_says_so(monkeypatch):
    monkeypatch.setattr(select, "trees_candidate", foresight)
    e = fit_table(steps(300), "y", time=1).result
    by_kind = {c.kind: c for c in e.contenders}
    assert e.chosen.kind == "ensemble"
    assert by_kind["trees"].cv > e.chosen.cv
    alone = f"In cross-validation trees alone scored {by_kind['trees'].cv:.3f} and the mean"
    assert alone in e.verdict
    assert "never chosen alone" in e.verdict


class Found:
    """A choice by folds."""

    validation, kind = None, "machine"

    def __init__(self, p, chosen, grown, members=()):
        self.members, self.grown = members, grown
        self.selection = select.Selection(p, (chosen,), chosen, (), trees=grown)

    def __getitem__(self, kind):
        return self.grown


@pytest.mark.parametrize("within", [True, False])
def test_trees_that_are_ahead_within_their_error_are_told_of_a_mean_alone(within):
    p, rng = problem(600), np.random.default_rng(0)
    a, b = 0.5 * rng.normal(size=(2, 600))
    members = (("machine", 0.5), ("trees", 0.5)) if within else ()
    study = Study(None, p.metric, "", 1e9, 0, None)
    few, far, same = (
        tree_words.trees_ahead(
            study,
            Found(
                p,
                candidate(p, "machine", p.rows.y + a * scale),
                candidate(p, "trees", p.rows.y + b * np.linalg.norm(a) / np.linalg.norm(b)),
                members,
            ),
        )
        for scale in (1.01, 1.5, 0.5)
    )
    assert bool(few) is within
    assert far.startswith("In cross-validation trees alone scored")
    assert same == ""


def test_why_trees_are_in_no_mean_is_said(monkeypatch):
    given = []
    monkeypatch.setattr(select, "spare_seconds", lambda clock, found: 1e4)
    monkeypatch.setattr(select, "trees_candidate", lambda p, seconds: given.append(seconds))
    e = fit_table(steps(300), "y", time=1).result
    told = [text for text in e.warnings if text.startswith("Gradient-boosted trees could be part")]
    assert len(told) == 1
    assert "times the time (--time) would do" in told[0]
    assert given[0] > 1e3  # what is left of the time


@pytest.mark.parametrize(("validated", "times"), [(False, 7), (True, 4)])
def test_how_much_more_time_trees_need_is_by_what_was_theirs(validated, times):
    """Ten of a hundred rounds took 0.2 s: one ensemble takes 2 s and five folds 8 s; 1.2 s of ten
    were for folds, and 0.6 s for a validation."""
    p = problem(300)
    found = Found(p, candidate(p, "machine", p.rows.y), None)
    found.validation = SimpleNamespace(trees=None) if validated else None
    found.grown = SimpleNamespace(seconds=0.2, growth=TreeGrowth(10))
    study = SimpleNamespace(room_for_trees=300, problem=p, clock=SimpleNamespace(budget=10.0))
    text = tree_words.why_in_no_mean(study, found)
    assert f"about {'2 s' if validated else '8 s'}, and" in text
    assert f"about {times} times the time (--time) would do" in text
    study.room_for_trees = 100
    assert "--memory" in tree_words.why_in_no_mean(study, found)


def test_folds_of_trees_take_what_is_left_and_nobody_needs():
    assert trees.fold_seconds(3.0, 50.0, []) == 40.0
    assert trees.fold_seconds(3.0, 50.0, [48.0]) == 40.0
    assert trees.fold_seconds(3.0, 50.0, [47.0]) == 3.0
    assert trees.fold_seconds(3.0, -5.0, [1.0]) == 3.0


def test_trees_of_the_folds_need_no_excuse():
    p = problem(300)
    f = candidate(p, "machine", p.rows.y)
    found = Found(p, f, replace(f, kind="trees"))
    assert tree_words.why_in_no_mean(None, found) == ""
