"""Means of the target at levels: of other rows while learning, shrunk where rows are few."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.tables.encoders import CategoryEncoder, NumberEncoder
from mercer.tables.levels import (
    N_FOLDS,
    CodedNumberEncoder,
    LevelMeansEncoder,
    LevelSums,
    TargetScores,
    cross_fitted,
)
from mercer.tables.scale import Standardizer

TOWNS = CategoryEncoder(("Oslo", "Voss"), (0.7, 0.3), 1, True, False)


@pytest.mark.parametrize("seed", range(3))
def test_no_row_sees_its_own_target(seed):
    rng = np.random.default_rng(seed)
    level, part, y = rng.integers(0, 9, 80), rng.integers(0, N_FOLDS, 80), rng.normal(size=(80, 1))
    other = y.copy()
    other[part == 2] += 100.0
    found = []
    for scores in (y, other):
        sums = LevelSums(11, 1)
        sums._shrinkage = lambda: 5.0  # how much a level is shrunk is learnt of all rows
        sums.differ = lambda: True  # and so is whether levels differ
        sums.add(level, part, scores)
        found.append(sums.means()[0])
    assert np.allclose(found[0][2], found[1][2], atol=1e-9)
    assert not np.allclose(found[0][1], found[1][1])


def test_means_of_a_category_that_tells_nothing_are_nothing_to_learn_from():
    rng = np.random.default_rng(0)
    level, y = rng.integers(0, 400, 2000), rng.normal(size=2000)
    found = cross_fitted(level, np.arange(2000) % N_FOLDS, y[:, None], 402)[:, 0]
    assert np.ptp(found) < 1e-12
    told = rng.normal(size=400)[level]
    found = cross_fitted(level, np.arange(2000) % N_FOLDS, (told + 0.1 * y)[:, None], 402)[:, 0]
    assert np.corrcoef(found, told)[0, 1] > 0.9


def test_a_level_of_few_rows_is_drawn_to_the_mean():
    sums = LevelSums(3, 1)
    level = np.array([0] * 50 + [1])
    sums.add(level, np.arange(51) % N_FOLDS, np.where(level == 0, 0.0, 1.0)[:, None])
    whole = sums.means()[1][:, 0]
    assert whole[0] < whole[1] < 0.6
    assert whole[2] == pytest.approx(1 / 51)  # no rows: the mean of all


def test_weights_count_as_rows():
    twice, heavy = LevelSums(4, 1), LevelSums(4, 1)
    level, y, part = np.array([0, 1, 1, 2]), np.array([[0.2], [0.4], [0.1], [0.9]]), np.arange(4)
    twice.add(np.repeat(level, 2), np.repeat(part, 2), np.repeat(y, 2, axis=0))
    heavy.add(level, part, y, np.full(4, 2.0))
    assert np.allclose(twice.means()[0], heavy.means()[0])


def test_scores_are_ranks_or_the_frequent_classes():
    y = np.exp(np.random.default_rng(0).normal(size=500) * 3)
    scores = TargetScores.of(y)(y)
    assert scores.shape == (500, 1)
    assert np.abs(scores).max() < 4
    assert TargetScores.of(y, (4, 9)).codes == (1,)
    assert TargetScores.of(y, (4, 9, 1, 3, 8, 2)).codes == (0, 1, 3, 4)
    assert np.array_equal(TargetScores(None, (0, 2))(np.array([2, 1])), [[0, 1], [0, 0]])


def test_levels_that_training_lacks_have_a_mean_of_their_own():
    e = LevelMeansEncoder(TOWNS, ("target",), (1.0, 2.0, 3.0, 4.0))
    F = e.features(e.read(pa.array(["Voss", "Paris", None, "Oslo"]))[0])
    assert F[:, -1].tolist() == [2.0, 3.0, 4.0, 1.0]
    assert e.names("town")[-1] == "town mean of target"
    unknown = LevelMeansEncoder(TOWNS, ("target",))
    assert unknown.features(unknown.read(pa.array(["Paris", None]))[0])[:, -1].tolist() == [2, 3]


@pytest.mark.parametrize("bad", [(("target",), (1.0,)), ((), ()), (("target",), (0, 1, 2, np.nan))])
def test_means_that_do_not_fit_the_levels_are_refused(bad):
    with pytest.raises(ValueError, match="LevelMeansEncoder needs"):
        LevelMeansEncoder(TOWNS, *bad)


def test_codes_of_words_are_no_codes_of_numbers():
    with pytest.raises(ValueError, match="codes that are numbers"):
        CodedNumberEncoder(NumberEncoder(Standardizer(), 0.0), TOWNS)


@pytest.mark.parametrize("seed", range(4))
def test_levels_that_do_not_differ_give_nothing_away(seed):
    """Of labels that depend on nothing: a mean over other parts falls where its own part is high."""
    rng = np.random.default_rng(seed)
    level, part = rng.integers(0, 60, 4000), rng.integers(0, N_FOLDS, 4000)
    y = (rng.random(4000) < 0.06).astype(float)[:, None]
    assert np.ptp(cross_fitted(level, part, y, 60)) < 1e-12
    real = (rng.random(4000) < 0.02 + 0.3 * (level > 50)).astype(float)[:, None]
    assert np.ptp(cross_fitted(level, part, real, 60)) > 0.1
    told = cross_fitted(level, part, real, 60, own=40)
    assert np.ptp(told[level < 40]) < 1e-12  # they have features of their own
