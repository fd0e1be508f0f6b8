"""Data of a fit: copies are counted as if all rows were compared."""

import numpy as np

from mercer.automl.data import duplicates
from mercer.automl.rows import TableRows


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
