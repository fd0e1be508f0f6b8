"""What is a choice about columns is settled by a judge, and without one the rules hold."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.automl.treat import KernelJudge
from mercer.tables import Columns
from mercer.tables.levels import CodedNumberEncoder, LevelMeansEncoder
from mercer.tables.scale import RankNormalizer

rng = np.random.default_rng(0)
N = 600
GRADE, TOWN, SIZE = rng.integers(0, 12, N), rng.integers(0, 120, N), np.exp(2 * rng.normal(size=N))
WORTH = rng.permutation(12)


def batch(target):
    return pa.record_batch(
        {
            "grade": GRADE,
            "size": SIZE,
            "town": [f"town {t}" for t in TOWN],
            "y": target + 0.05 * rng.normal(size=N),
        }
    )


def kinds(columns):
    return {name: type(e).__name__ for name, e in columns.encoders_.items()}


def test_a_judge_is_asked_about_every_kind_of_choice():
    asked = []

    def judge(X, Y):
        asked.append(X.shape)
        assert np.isfinite(X).all()
        assert Y.shape == (N, 1)
        return 1 / len(asked)  # always the last

    rows = batch(WORTH[GRADE])
    c = Columns("y").fit([rows], judge=judge)
    assert len(asked) == 5  # both, codes, numbers; ranks; means
    assert kinds(c) == {
        "grade": "NumberEncoder",
        "size": "NumberEncoder",
        "town": "LevelMeansEncoder",
    }
    assert isinstance(c.encoders_["size"].scale, RankNormalizer)
    assert c.transform(rows).X.shape == (N, len(c.feature_names_))
    assert list(c.level_means_) == ["town"]
    assert c.feature_names_[c.level_means_["town"][0]] == "town mean of target"
    assert "by its rank" in next(t.action for t in c.treatments_ if t.name == "size")


@pytest.mark.parametrize("role", ["group", "time_column"])
@pytest.mark.parametrize("classes", [False, True])
def test_the_judge_is_told_which_rows_to_leave_out(role, classes):
    """Groups are left out whole, and later rows by earlier ones; means of levels keep to that."""
    rng, n = np.random.default_rng(1), 500
    key = rng.integers(0, 25, n)
    worth = rng.normal(size=25)[key]
    town = key if role == "group" else rng.integers(0, 25, n)
    y = worth + 0.01 * rng.normal(size=n)
    data = {
        "x": key + 0.5,
        "town": [f"town {t}" for t in town],
        "y": [f"c{v}" for v in (y > 0).astype(int)] if classes else y,
        "key": [None if k == 3 else f"{k}" for k in key] if role == "group" else key,
    }
    asked = []

    def judge(X, Y, splits):
        for i, j in splits:
            mine, others = X[i, 0], X[j, 0]
            if role == "group":
                assert not np.isin(mine, others).any()
            else:
                assert mine.max() < others.min()
            assert len(mine) > 100
            assert len(others) > 100
        asked.append((X, len(splits)))
        return 1 / len(asked)

    c = Columns("y", **{role: "key"}).fit([pa.record_batch(data)], judge=judge)
    assert isinstance(c.encoders_["town"], LevelMeansEncoder)
    X = asked[-1][0]
    assert {splits for _, splits in asked} == {2 if role == "group" else 1}
    # a group is a town, of which other groups know nothing; before the first time nothing is known
    groups = [X[X[:, 0] == v, -1] for v in np.unique(X[:, 0])]
    assert all(np.ptp(means) < 1e-6 for means in (groups if role == "group" else groups[:4]))
    if role == "group":
        assert len(np.unique(np.round([means[0] for means in groups], 4))) <= 5  # one a part


def test_where_nothing_is_clearly_better_both_stay_and_nothing_is_bent():
    c = Columns("y").fit([batch(WORTH[GRADE])], judge=lambda X, Y: 1.0 - 1e-4 * X.shape[1])
    assert kinds(c) == {
        "grade": "CodedNumberEncoder",
        "size": "NumberEncoder",
        "town": "CategoryEncoder",
    }
    assert not isinstance(c.encoders_["size"].scale, RankNormalizer)


def test_without_a_judge_the_rules_hold():
    c = Columns("y").fit([batch(WORTH[GRADE])])
    assert kinds(c) == {
        "grade": "CategoryEncoder",
        "size": "NumberEncoder",
        "town": "CategoryEncoder",
    }


@pytest.mark.parametrize("what", ["order", "codes", "levels", "ranks"])
def test_validation_finds_what_made_the_target(what):
    jumps = np.where(np.arange(12) % 2, 6.0, 0.0) + np.arange(12)
    made = {
        "order": np.where(GRADE % 2, 1.0, -1.0) + 0.5 * GRADE,
        "codes": 3.0 * WORTH[GRADE],
        "levels": jumps[GRADE] + 9 * rng.normal(size=120)[TOWN],
        "ranks": np.sin(2 * np.log(SIZE)) * 20 + WORTH[GRADE],
    }[what]
    c = Columns("y").fit([batch(made)], judge=KernelJudge(2000))
    found = c.encoders_
    if what == "order":
        assert kinds(c)["grade"] in ("NumberEncoder", "CodedNumberEncoder")
    if what == "codes":
        assert kinds(c)["grade"] in ("CategoryEncoder", "CodedNumberEncoder")
    if what == "levels":
        assert isinstance(found["town"], LevelMeansEncoder)
    number = found["grade"]
    scale = (number.number if isinstance(number, CodedNumberEncoder) else found["size"]).scale
    assert what != "ranks" or isinstance(scale, RankNormalizer)
