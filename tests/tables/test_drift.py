"""Drift: columns of many categories raise no alarm on fresh rows of the same source, and real changes do."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.tables import Columns
from mercer.tables.drift import ALARMS


def table(n, seed, levels, kind="zipf", moved=False):
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, levels + 1) if kind == "zipf" else np.ones(levels)
    names = np.array([f"level {i}" for i in range(levels)])
    named = {f"c{j}": rng.choice(names[::-1] if moved else names, n, p=weight / weight.sum()) for j in range(3)}
    return pa.table({**named, "x": rng.normal(size=n) + 3 * moved, "y": rng.normal(size=n)})


@pytest.mark.parametrize("kind", ["zipf", "even"])
def test_fresh_rows_with_many_categories_raise_alarms_no_more_often_than_stated(kind):
    asked = alarms = 0
    for levels in (5, 60, 1000, 20_000):
        for n in (100, 1500):
            found = Columns("y").fit(table(n, 0, levels, kind))
            for seed, m in enumerate((5, 40, 400, 1500), 1):
                asked, alarms = asked + 1, alarms + bool(found.drift(table(m, seed, levels, kind)).warnings)
    assert alarms <= max(1, 3 * ALARMS * asked)


@pytest.mark.parametrize("levels", [5, 60, 1000])
def test_real_drift_of_categories_and_numbers_is_told(levels):
    found = Columns("y").fit(table(3000, 0, levels))
    told = found.drift(table(400, 1, levels, moved=True)).warnings
    assert {text.split('"')[1] for text in told} == {"c0", "c1", "c2", "x"}
    assert all(text.startswith(f'"{name}" has drifted: ') and " in training" in text for name, text in ((t.split('"')[1], t) for t in told))


def test_levels_that_training_never_had_are_drift_where_they_are_new():
    rng = np.random.default_rng(0)
    town = rng.choice(["north", "south", "east"], 1000)
    found = Columns("y").fit(pa.table({"town": town, "x": rng.normal(size=1000), "y": rng.normal(size=1000)}))
    new = pa.table({"town": np.where(rng.uniform(size=300) < 0.4, "mars", town[:300]), "x": rng.normal(size=300)})
    assert found.drift(new).warnings[0] == '"town" has drifted: ' + found.drift(new).warnings[0].split(": ")[1]
    assert "of its values were never seen in training, where 0% would be usual." in found.drift(new).warnings[0]


def test_odd_cells_are_those_that_training_would_hardly_show():
    rng = np.random.default_rng(0)
    n = 2000
    data = {"town": rng.choice(["north", "south"], n), "name": [f"n{i}" for i in rng.zipf(1.5, n)], "x": rng.normal(size=n)}
    data["pair"] = rng.choice(["yes", "no"], n)
    data["gaps"] = [None if i % 7 == 0 else float(v) for i, v in enumerate(rng.normal(size=n))]
    found = Columns("y").fit(pa.table({**data, "y": rng.normal(size=n)}))
    new = {"town": ["north", "mars", "south", "south", "south"], "name": ["n1", "n1", "never", "n1", "n1"], "x": [0.0, 0.0, 0.0, None, 0.0],
           "pair": ["no", "no", "yes", "no", "perhaps"], "gaps": [None, 0.0, 0.0, 0.0, 0.0]}  # fmt: skip
    assert found.transform(pa.table(new)).odd.tolist() == [False, True, False, True, True]
