"""The judge of options, and means of levels filled in from training rows alone."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.automl.budget import Clock
from mercer.automl.data import Roles, prepare_data
from mercer.automl.frames import as_source
from mercer.automl.treat import KernelJudge
from mercer.tables.levels import LevelMeansEncoder


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


def prepared(rows, test=0.2, **roles):
    return prepare_data(
        as_source(rows),
        Roles("y", **roles),
        test,
        task="auto",
        memory=4e9,
        seed=0,
        clock=Clock(9),
        judge=KernelJudge(900),
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
