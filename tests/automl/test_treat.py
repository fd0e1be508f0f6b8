"""The judge of options, and means of levels filled in from training rows alone."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from mercer.automl.budget import Clock
from mercer.automl.data import Roles, prepare_data
from mercer.automl.frames import as_source
from mercer.automl.rows import TableRows
from mercer.automl.treat import KernelJudge, _edges
from mercer.tables.levels import LevelMeansEncoder
from mercer.tables.options import time_edges


def table(n=900, seed=0, classes=0):
    rng = np.random.default_rng(seed)
    town, size = rng.integers(0, 90, n), rng.normal(size=n)
    y = np.random.default_rng(5).normal(size=90)[town] * 2 + 0.3 * size + 0.2 * rng.normal(size=n)
    return pa.table(
        {
            "town": [f"t{k}" for k in town],
            "size": size,
            "y": [f"c{k}" for k in np.digitize(y, (-1, 1))] if classes else y,
            "part": rng.integers(0, 40, n),
        }
    )


def prepared(rows, test=0.2, judge=None, **roles):
    return prepare_data(
        as_source(rows),
        Roles("y", **roles),
        test,
        task="auto",
        memory=4e9,
        seed=0,
        clock=Clock(9),
        judge=judge or KernelJudge(900),
    )


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("group", [None, "part"])
def test_means_are_of_training_rows_and_never_of_the_row_itself(classes, group):
    data = prepared(table(classes=classes), group=group)
    first, encoder = data.columns.level_means_["town"]
    assert isinstance(encoder, LevelMeansEncoder)
    assert encoder.means
    town = data.columns.transform(table(classes=classes).to_batches()[0], target=False).X
    held, trained = town[data.held.row_id, first], town[data.train.row_id, first]
    assert np.allclose(held, data.held.X[:, first])  # as rows to come
    assert not np.allclose(trained, data.train.X[:, first])  # of other parts
    assert np.corrcoef(trained, data.train.X[:, first])[0, 1] > 0.8


def test_other_targets_of_the_holdout_change_nothing():
    rows = table()
    data = prepared(rows)
    y = rows["y"].to_numpy().copy()
    y[data.held.row_id] = np.roll(y[data.held.row_id], 1)
    changed = rows.set_column(2, "y", pa.array(y))
    again = prepared(changed)
    assert np.array_equal(data.held.row_id, again.held.row_id)
    assert np.array_equal(data.train.X, again.train.X)
    assert np.array_equal(data.held.X, again.held.X)


def test_copies_on_both_sides_are_still_found():
    rows = table(400)
    copied = pa.concat_tables([rows, rows.slice(0, 100)])
    assert prepared(copied).duplicates > 10
    assert "town" in prepared(copied).columns.level_means_


def test_a_judge_prefers_what_predicts_and_is_silent_on_few_rows():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(300, 1)), rng.normal(size=(300, 4))
    judge = KernelJudge(1000)
    Y = np.sin(2 * x)
    assert judge(x, Y) < judge(np.hstack([x, noise]), Y) < judge(noise, Y)
    assert judge.seconds > 0
    assert judge(x[:20], Y[:20]) == judge(noise[:20], Y[:20]) == 0.0
    assert judge(np.zeros((300, 1)), Y) == pytest.approx(Y.var(), rel=0.1)
    assert KernelJudge.within(0.5) is None
    assert KernelJudge.within(4).most == 400


class Last:
    """A judge that prefers what it is asked last."""

    asked = 0

    def __call__(self, X, Y, splits=()):
        self.asked += 1
        return 1 / self.asked


def timed(n=900, seed=0, ties=1):
    """Towns whose effects are drawn anew in every tenth of the time; rows in any order."""
    rng = np.random.default_rng(seed)
    town, when = rng.integers(0, 30, n), rng.permutation(n) // ties
    effect = rng.normal(size=(30, 10))[town, when * ties * 10 // n]
    return pa.table(
        {
            "town": [f"t{k}" for k in town],
            "size": rng.normal(size=n),
            "y": effect + 0.1 * rng.normal(size=n),
            "when": when,
        }
    )


@pytest.mark.parametrize("ties", [1, 7])
def test_means_are_of_earlier_rows_where_rows_have_times(ties):
    rows = timed(ties=ties)
    data = prepared(rows, judge=Last(), time_column="when")
    first, train = data.columns.level_means_["town"][0], data.train
    assert data.held.time.min() > train.time.max()
    block = np.searchsorted(time_edges(train.time), train.time, side="right")
    assert len(np.unique(block)) == 5
    feature = train.X[:, first]
    assert np.ptp(feature[block == 0]) < 1e-6  # nothing is known before
    assert all(np.ptp(feature[block == k]) > 0.1 for k in range(1, 5))
    town = rows["town"].to_numpy(zero_copy_only=False)[train.row_id]
    for k in range(1, 5):  # by what is known of the towns before
        for name in ("t0", "t17"):
            assert np.ptp(feature[(block == k) & (town == name)]) < 1e-6
    y = rows["y"].to_numpy().copy()  # other targets of the last block, of the same values
    last = train.row_id[block == 4]
    y[last] = np.roll(y[last], 1)
    again = prepared(rows.set_column(2, "y", pa.array(y)), judge=Last(), time_column="when").train
    some = block > 0
    assert np.array_equal(again.row_id, train.row_id)
    assert np.corrcoef(again.X[some, first], feature[some])[0, 1] > 1 - 1e-9  # but for the scale
    odds = [np.corrcoef(feature[block == k], train.y[block == k])[0, 1] for k in range(1, 5)]
    assert np.mean(odds) < 0.25  # their own time is not in them


def test_one_time_is_no_order():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (200, 1)).astype(np.float32)
    rows = TableRows(X, rng.normal(size=200), np.arange(200), time=np.zeros(200))
    assert len(_edges(rows, rows)) == 0
    late = replace(rows, time=(np.arange(200) == 150).astype(float))
    assert _edges(late, late.take(np.arange(100))).tolist() == [1.0]


def test_a_judge_leaves_groups_out_whole_and_looks_ahead_only():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 20, 400)
    X, Y = rng.normal(size=(20, 1))[group], rng.normal(size=(20, 1))[group]  # chance, by group
    one, other = (np.flatnonzero(group % 2 == k) for k in (0, 1))
    judge = KernelJudge(1000)
    even, odd = np.arange(0, 400, 2), np.arange(1, 400, 2)
    assert judge(X, Y, [(even, odd), (odd, even)]) == judge(X, Y) < 0.5 * Y.var()
    assert judge(X, Y, [(one, other), (other, one)]) > 0.9 * Y.var()
    early, late = np.arange(200), np.arange(200, 400)
    Y[early] = 0.0
    assert judge(X, Y, [(early, late)]) == pytest.approx(np.square(Y[late]).mean())
    assert KernelJudge(150)(X, Y, [(early, late)]) == KernelJudge(150)(X, Y)  # no late row is left
