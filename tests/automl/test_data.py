"""Data of a fit: copies are counted as if all rows were compared."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.automl import fit_table
from mercer.automl.data import duplicates
from mercer.automl.rows import TableRows
from mercer.cli.summary import summary
from mercer.tables import DataError


def test_copies_are_counted_as_if_all_rows_were_compared(monkeypatch):
    rng = np.random.default_rng(0)
    rows = TableRows(
        rng.integers(0, 3, (900, 4)).astype(np.float32), rng.integers(0, 2, 900), np.arange(900)
    )
    train, held = rows.take(slice(0, 50)), rows.take(slice(50, None))
    known = {(*x, y) for x, y in zip(train.X.tolist(), train.y.tolist(), strict=True)}
    wanted = sum((*x, y) in known for x, y in zip(held.X.tolist(), held.y.tolist(), strict=True))
    monkeypatch.setattr("mercer.automl.data.HASHED_VALUES", 100)
    assert duplicates(train, held) == wanted > 0


@pytest.mark.parametrize("by_file", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_left_out_are_as_many_in_warnings_as_in_the_count(by_file, weighted):
    """Text in a held-out target, weights and test files were counted and not told."""

    def drawn(seed, n, bad):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n)
        y = [f"{v:.4f}" for v in x + 0.1 * rng.normal(size=n)]
        w = np.where(rng.uniform(size=n) < 0.1, np.nan, 1.0)
        for i, mark in zip(rng.permutation(n), bad, strict=False):
            y[i] = mark
        return pa.table({"x": x, "y": y, "w": w})

    bad = [*["NA"] * 6, *["abc"] * 4, *["inf"] * 3, ""]
    test = drawn(1, 90, ["", "abc", "abc"]) if by_file else 0.3
    role = {"weight": "w"} if weighted else {"exclude": ("w",)}
    e = fit_table(drawn(0, 300, bad), "y", test=test, time=1e-3, **role).result
    told = [text for text in e.warnings if text.endswith("left out.") and " of " in text]
    assert sum(int(text.split()[0]) for text in told) == e.rows_dropped
    assert e.rows_train + e.rows_holdout + e.rows_dropped == (390 if by_file else 300)
    own = [text for text in told if "test file" not in text and "weight" not in text]
    assert [int(text.split()[0]) for text in own] == [7, 3, 4]
    assert any("of 90 rows of the test file" in text for text in told) is by_file
    target = next(c for c in e.columns if c["kind"] == "target")
    assert target["n_missing"] == sum(int(text.split()[0]) for text in own)
    header = next(line for line in summary(e).splitlines() if line.startswith("rows"))
    what = "a target or a weight" if weighted else "a target"
    assert f"{e.rows_dropped} without {what} left out" in header


def test_a_test_file_that_lacks_a_column_is_what_lacks_it():
    x = np.random.default_rng(0).normal(size=60)
    table = pa.table({"a": x, "b": x**2, "y": x})
    with pytest.raises(DataError, match=r'^the test file lacks "b", which the model uses'):
        fit_table(table, "y", test=table.drop_columns(["b"]).slice(0, 20), time=1e-3)
    with pytest.raises(ValueError, match=r'^the test file has no column "y", the target'):
        fit_table(table, "y", test=table.drop_columns(["y"]).slice(0, 20), time=1e-3)
    roles = {"weight": "w", "group": "g", "time_column": "t"}
    more = {"w": np.ones(60), "g": np.arange(60) // 4, "t": np.arange(60.0)}
    for role, name in roles.items():  # of training alone
        given = table.append_column(name, pa.array(more[name]))
        e = fit_table(given, "y", test=table.slice(0, 20), time=1e-3, **{role: name}).result
        assert e.rows_holdout == 20
