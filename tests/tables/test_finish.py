"""What the whole table tells of its columns: codes, leaks, copies."""

import numpy as np
import pyarrow as pa

from mercer.tables import Columns
from mercer.tables.finish import acts_as_codes, copies, distinct_rows, leaks
from tests.tables.examples import table, treatment


def test_codes_are_told_from_numbers():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 12, 2000).astype(float)
        jumps = rng.normal(size=12)
        assert acts_as_codes(x, jumps[x.astype(int)] + rng.normal(size=2000), False)
        assert acts_as_codes(
            x, (jumps[x.astype(int)] + rng.normal(size=2000) > 0).astype(float), True
        )
        for smooth in (x, np.sin(x / 3), (x - 5) ** 2, 0 * x):
            assert not acts_as_codes(x, smooth + rng.normal(size=2000), False)
    assert not acts_as_codes(np.arange(10.0), np.arange(10.0) % 2, False)


def test_leaks():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y, x = rng.normal(size=(2, 500))
        gaps = np.where(rng.random(500) < 0.2, np.nan, -3 * y)
        assert leaks(y, y, False) and leaks(np.exp(y), y, False) and leaks(gaps, y, False)  # noqa: PT018 - three of a kind
        assert not leaks(x, y, False)
        assert not leaks(y + 0.01 * x, y, False)
        assert not leaks(np.round(y), y, False)
        labels = rng.integers(0, 3, 500)
        assert leaks(np.array([5.0, 1.0, 3.0])[labels], labels.astype(float), True)
        assert not leaks(np.array([5.0, 1.0, 1.0])[labels], labels.astype(float), True)
        assert leaks(
            np.array([5.0, 1.0, 9.0] * 5)[labels + 3 * rng.integers(0, 1, 500)],
            labels.astype(float),
            True,
        )
        codes = rng.integers(0, 15, 500)
        assert leaks(rng.permutation(15)[codes].astype(float), codes.astype(float), False)
    assert not leaks(np.arange(5.0), np.arange(5.0), False)  # too few rows to tell


def test_copies():
    x = np.array([1.0, np.nan, 3.0])
    assert copies({"a": x, "b": x + 1, "c": x.copy(), "d": x + 1}) == {"c": "a", "d": "b"}


def test_repeated_rows_are_no_leak():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, z, y = np.tile(rng.normal(size=(3, 60)), 10)
        few = distinct_rows([x, z, y])
        assert len(few) == 60
        assert not leaks(x[few], y[few], False)
        assert not leaks(x, y, False)  # sixty pairs are no simple relation either
        assert leaks(np.exp(y)[few], y[few], False)


def test_columns_that_tell_the_target():
    data = table()
    y = data.column("y").to_numpy()
    found = Columns("y").fit(data.append_column("x", pa.array(np.exp(y))))
    assert treatment(found, "x").kind == "leak"
    assert '"x" gives the target "y" away' in found.warnings_[0]
    labels = pa.array(np.where(y > 0, "good", "bad"))
    codes = data.set_column(2, "y", labels).append_column("x", pa.array((y > 0).astype(int)))
    assert treatment(Columns("y").fit(codes), "x").kind == "leak"
    alone = Columns("y").fit(pa.table({"x": np.arange(50.0) ** 2 + 0.5, "y": np.arange(50.0) / 3}))
    assert treatment(alone, "x").kind == "number"
    assert alone.warnings_[0].endswith("it was kept, since no other column is left.")


def test_whole_numbers_that_act_as_codes_become_categories():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 2000)
    y = np.array([0.0, 5, 1, 4, -3, 2])[x] + rng.normal(size=2000)
    found = Columns("y").fit(pa.table({"x": x, "y": y}))
    assert found.treatments_[0].kind == "category"
    assert found.treatments_[0].action.startswith(
        "Whole numbers that act as codes. Category: 6 frequent values"
    )
    assert found.transform(pa.table({"x": ["4", "4.0", "9", ""]})).X.shape == (4, 6)
