"""Drift: columns of many categories raise no alarm on fresh rows of the same source, and real
changes do."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.tables import Columns
from mercer.tables.drift import ALARMS
from tests.tables.examples import N, table


def levelled(n, seed, levels, kind="zipf", moved=False):
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, levels + 1) if kind == "zipf" else np.ones(levels)
    names = np.array([f"level {i}" for i in range(levels)])
    named = {
        f"c{j}": rng.choice(names[::-1] if moved else names, n, p=weight / weight.sum())
        for j in range(3)
    }
    return pa.table({**named, "x": rng.normal(size=n) + 3 * moved, "y": rng.normal(size=n)})


@pytest.mark.parametrize("kind", ["zipf", "even"])
def test_fresh_rows_with_many_categories_raise_alarms_no_more_often_than_stated(kind):
    asked = alarms = 0
    for levels in (5, 60, 1000, 20_000):
        for n in (100, 1500):
            found = Columns("y").fit(levelled(n, 0, levels, kind))
            for seed, m in enumerate((5, 40, 400, 1500), 1):
                asked, alarms = (
                    asked + 1,
                    alarms + bool(found.drift(levelled(m, seed, levels, kind)).warnings),
                )
    assert alarms <= max(1, 3 * ALARMS * asked)


@pytest.mark.parametrize("levels", [5, 60, 1000])
def test_real_drift_of_categories_and_numbers_is_told(levels):
    found = Columns("y").fit(levelled(3000, 0, levels))
    told = found.drift(levelled(400, 1, levels, moved=True)).warnings
    assert {text.split('"')[1] for text in told} == {"c0", "c1", "c2", "x"}
    assert all(
        text.startswith(f'"{name}" has drifted: ') and " in training" in text
        for name, text in ((t.split('"')[1], t) for t in told)
    )


def test_levels_that_training_never_had_are_drift_where_they_are_new():
    rng = np.random.default_rng(0)
    town = rng.choice(["north", "south", "east"], 1000)
    found = Columns("y").fit(
        pa.table({"town": town, "x": rng.normal(size=1000), "y": rng.normal(size=1000)})
    )
    new = pa.table(
        {
            "town": np.where(rng.uniform(size=300) < 0.4, "mars", town[:300]),
            "x": rng.normal(size=300),
        }
    )
    assert (
        found.drift(new).warnings[0]
        == '"town" has drifted: ' + found.drift(new).warnings[0].split(": ")[1]
    )
    assert (
        "of its values were never seen in training, where 0% would be usual."
        in found.drift(new).warnings[0]
    )


def test_odd_cells_are_those_that_training_would_hardly_show():
    rng = np.random.default_rng(0)
    n = 2000
    data = {
        "town": rng.choice(["north", "south"], n),
        "name": [f"n{i}" for i in rng.zipf(1.5, n)],
        "x": rng.normal(size=n),
    }
    data["pair"] = rng.choice(["yes", "no"], n)
    data["gaps"] = [None if i % 7 == 0 else float(v) for i, v in enumerate(rng.normal(size=n))]
    found = Columns("y").fit(pa.table({**data, "y": rng.normal(size=n)}))
    new = {
        "town": ["north", "mars", "south", "south", "south"],
        "name": ["n1", "n1", "never", "n1", "n1"],
        "x": [0.0, 0.0, 0.0, None, 0.0],
        "pair": ["no", "no", "yes", "no", "perhaps"],
        "gaps": [None, 0.0, 0.0, 0.0, 0.0],
    }
    assert found.transform(pa.table(new)).odd.tolist() == [False, True, False, True, True]


def mixed(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    words = pa.array([f"w{int(k)}" for k in rng.exponential(8, n)])
    gaps = pa.array(np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(0, 2, n)))
    return table(
        seed,
        n,
        words=words,
        gaps=gaps,
        day=(np.datetime64("2020-01-01") + rng.integers(0, 900, n)).astype(str),
    )


def test_no_false_alarm_of_drift():
    found = Columns("y").fit(mixed())
    for seed in range(1, 9):
        for n in (1, 20, 200, 3000):
            assert found.drift(mixed(n, seed)).warnings == ()


def test_drift_is_told_in_a_sentence():
    found, new = Columns("y").fit(mixed()), mixed(1000, seed=1)
    moved = new.set_column(0, "a", pa.array(new.column("a").to_numpy() + 3))
    report = found.drift(moved)
    assert report.columns[0].name == "a"
    assert report.warnings[0].startswith('"a" has drifted: ')
    assert "of its values are above" in report.warnings[0]
    unseen = found.drift(new.set_column(2, "words", pa.array(["elsewhere"] * 1000)))
    assert (
        "100% of its values were never seen in training, where 0% would be usual"
        in unseen.warnings[0]
    )
    gone = found.drift(new.set_column(3, "gaps", pa.array([None] * 1000, pa.float64())))
    assert "100% of its values are missing, against 1" in gone.warnings[0]
    unread = found.drift(new.set_column(1, "b", pa.array(["?!"] * 10 + ["0.5"] * 990)))
    assert unread.n_unread == {"b": 10}
    assert '"b" has 10 values that could not be read; they count as missing.' in unread.warnings


def test_drift_of_dates_and_texts_is_told_in_their_own_terms():
    days = np.datetime64("2020-01-01") + np.arange(N)
    notes = [f"note {i} on the state of things" for i in range(N)]
    found = Columns("y").fit(table(day=days, note=notes))
    report = found.drift(table(day=days + N, note=[note * 3 for note in notes]))
    assert any(
        said.startswith('"day" has drifted: 100% of its values are above 2020-12-')
        for said in report.warnings
    )
    assert any(
        said.startswith('"note" has drifted: 100% of its values are above 31 characters long')
        for said in report.warnings
    )


def test_a_watch_fills_on_the_way():
    found, new = Columns("y").fit(mixed()), mixed(1000, seed=1)
    watch = found.watch()
    for batch in new.to_batches(max_chunksize=300):
        found.transform(batch, target=False, watch=watch)
    assert watch.report() == found.drift(new)
    assert watch.n_rows == 1000


def test_repeated_rows_raise_no_alarm():
    data = table(n=60)
    found = Columns("y").fit(pa.concat_tables([data] * 10))
    assert {t.kind for t in found.treatments_} == {"number", "target"}
    assert not found.warnings_
