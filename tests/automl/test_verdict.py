"""Sentences on who won."""

import pytest

from mercer.automl import verdict
from mercer.automl.metrics import METRICS


def rival(value, low, high):
    return verdict.Rival("x", 0.8, (value, low, high))


def test_the_verdict_says_who_won():
    m = METRICS["r2"]
    first = verdict.sentence(m, "Fourier features", 0.75, 0.7, 0.8, 1000)
    assert "0.750" in first
    assert "1,000 rows" in first
    assert "trees are better" in verdict.verdict(m, "fourier", first, rival(0.1, 0.05, 0.15), rival(-0.05, -0.08, -0.02))
    assert "beats" in verdict.verdict(m, "fourier", first, None, rival(0.05, 0.02, 0.08))
    assert "about as good" in verdict.verdict(m, "fourier", first, None, rival(0.01, -0.02, 0.04))
    assert "constant" in verdict.verdict(m, "constant", first, None, None)
    assert "linear model was kept" in verdict.verdict(m, "linear", first, None, None)


@pytest.mark.parametrize("name", ["r2", "rmse", "accuracy"])
@pytest.mark.parametrize("gap", [1e-9, -1e-9, 1e-4, -1e-4])
def test_a_difference_that_rounds_to_zero_is_none(name, gap):
    size = 10_000.0 if name == "rmse" else 1.0
    other = verdict.Rival("x", 0.81249 * size, (gap * size * 0.1, 0.5 * gap * size * 0.1, 1.5 * gap * size * 0.1))
    for text in (verdict.against_linear(METRICS[name], other), verdict.against_trees(METRICS[name], other)):
        assert "no difference in the digits shown" in text
        assert " by " not in text


def test_where_less_is_better_the_verdict_turns_round():
    m = METRICS["rmse"]
    assert "trees are better" in verdict.against_trees(m, rival(2.0, 1.0, 3.0))
    assert "beats" in verdict.against_trees(m, rival(-2.0, -3.0, -1.0))


def test_nothing_is_said_of_starved_rivals_unless_they_win():
    m = METRICS["r2"]
    for value, low, high in ((0.05, 0.02, 0.08), (0.01, -0.02, 0.04)):
        text = verdict.against_trees(m, verdict.Rival("x", 0.8, (value, low, high), "grown on only 1,000 rows"))
        assert text == "Gradient-boosted trees were grown on only 1,000 rows, so nothing is said of them."
    assert "trees are better" in verdict.against_trees(m, verdict.Rival("x", 0.8, (-0.05, -0.08, -0.02), "grown on only 1,000 rows"))
    assert "nothing is said" in verdict.against_linear(m, verdict.Rival("x", 0.8, (0.05, 0.02, 0.08), "fitted on only 1,000 rows"))


def test_scores_far_apart_are_not_called_alike():
    text = verdict.against_trees(METRICS["auc"], verdict.Rival("x", 0.306, (0.194, -0.1, 0.5)))
    assert "about as good" not in text
    assert "do not tell" in text
    assert "about as good" in verdict.against_trees(METRICS["rmse"], verdict.Rival("x", 1000.0, (10.0, -20, 40)))
