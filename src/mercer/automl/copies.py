"""Held-out rows that equal training rows: how many there are, and how many chance would make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mercer.automl.rows import TableRows
from mercer.inputs import Array
from mercer.ops.tiles import cuts
from mercer.stats import row_hashes

CHANCE_ROWS = 5_000  # rows by which chance is reckoned
HASHED_VALUES = 1 << 18  # of rows that are hashed together


def duplicates(train: TableRows, held: TableRows) -> int:
    """How many held-out rows are training rows as well, by a hash of all that the learners see of
    them."""
    wanted = np.concatenate(list(_hashed(held)))
    known, where = np.unique(wanted, return_inverse=True)
    seen = np.zeros(len(known), bool)
    for found in _hashed(train):
        at = np.minimum(np.searchsorted(known, found), len(known) - 1)
        seen[at[known[at] == found]] = True
    return int(seen[where].sum())


def expected_duplicates(train: TableRows, held: TableRows, origin: Sequence[int]) -> float:
    """How many held-out rows would equal a training row if columns and target were independent,
    with the values they have.

    >>> rows = TableRows(np.zeros((100, 1), np.float32), np.arange(100) % 2, np.arange(100))
    >>> round(expected_duplicates(rows, rows.take(slice(10)), [0]))
    10
    """
    few, many = held.sample(CHANCE_ROWS), train.sample(CHANCE_ROWS)
    p = _shares(many.y[:, None], few.y[:, None])
    for column in np.unique(np.asarray(origin)):
        mine = np.flatnonzero(np.asarray(origin) == column)
        p = p * _shares(many.X[:, mine], few.X[:, mine])
    return float(-np.expm1(len(train) * np.log1p(-np.minimum(p, 1 - 1e-12))).mean() * len(held))


def _shares(train: Array, held: Array) -> Array:
    """The share of the training rows that have the values of each held-out row."""
    known, counts = np.unique(row_hashes(np.asarray(train, np.float64)), return_counts=True)
    mine = row_hashes(np.asarray(held, np.float64))
    at = np.minimum(np.searchsorted(known, mine), len(known) - 1)
    return np.where(known[at] == mine, counts[at] / len(train), 0.0)


def _hashed(rows: TableRows) -> Iterator[Array]:
    for s in cuts(len(rows), max(16, HASHED_VALUES // (rows.X.shape[1] + 1))):
        yield row_hashes(np.concatenate([rows.X[s], rows.y[s, None]], axis=1, dtype=np.float64))
