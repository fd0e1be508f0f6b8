"""The holdout: rows that no treatment, choice or fit sees, told apart before anything else is done."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.product.rows import hashes, uniform
from mercer.tables import DataError, Source
from mercer.tables.values import text

Mask = Callable[[Any, int], Array]


@dataclass(frozen=True, eq=False)
class Holdout:
    """mask(batch, number of its first row) tells which rows are held out; `rule` says it in words."""

    rule: str
    mask: Mask
    test: Source | None = None


def by_file(test: Source) -> Holdout:
    """The rows of a second file."""
    names = ", ".join(path.name for path in test.paths)
    return Holdout(f"the rows of {names}", lambda batch, first: np.zeros(batch.num_rows, bool), test)


def at_random(share: float, seed: int) -> Holdout:
    """A share of the rows, by a hash of each row's number."""
    rule = f"a random {_share(share)} of the rows, by seed {seed}"
    return Holdout(rule, lambda batch, first: uniform(np.arange(first, first + batch.num_rows), seed) < share)


def by_group(source: Source, column: str, share: float, seed: int) -> Holdout:
    """A share of the groups, those of least hash; rows without a group are one group."""
    distinct: set[str] = set()
    for batch in source.batches():
        distinct.update(np.unique(group_texts(batch, column)).tolist())
    if len(distinct) < 2:
        raise DataError(f'--group "{column}" has {len(distinct)} group; give a column with at least two.')
    names = np.array(sorted(distinct))
    count = min(len(names) - 1, max(1, round(share * len(names))))
    held = names[np.argsort(hashes(names, seed), kind="stable")[:count]]
    rule = f'{count:,} of {len(names):,} groups of "{column}", each whole, by seed {seed}'
    return Holdout(rule, lambda batch, first: np.isin(group_texts(batch, column), held))


def group_texts(batch: Any, column: str) -> Array:
    """The group of every row, as text."""
    return np.asarray(text(batch.column(column)).fill_null("").to_pylist(), dtype=str)


def by_time(source: Source, column: str, share: float, values: Callable[[Any], Array]) -> Holdout:
    """The last share of the rows; equal times stay together. `values` gives the times of a batch as numbers."""
    found = np.concatenate([values(batch) for batch in source.batches()])
    known = found[np.isfinite(found)]
    if not len(known):
        raise DataError(f'--time-column "{column}" has no dates or numbers; give a column that orders the rows.')
    cut = float(np.quantile(known, 1 - share, method="lower"))
    if not (known > cut).any():
        cut = float(np.nextafter(known.max(), -np.inf))
    if not (known <= cut).any():
        raise DataError(f'--time-column "{column}" has the same value in every row; give a column that orders the rows.')
    rule = f'the last {_share(share)} of the rows by "{column}"'
    return Holdout(rule, lambda batch, first: values(batch) > cut)


def _share(share: float) -> str:
    """The share in words.

    >>> _share(0.2), _share(0.15)
    ('fifth', '15 %')
    """
    named = {1 / 2: "half", 1 / 3: "third", 1 / 4: "quarter", 1 / 5: "fifth", 1 / 10: "tenth"}
    return next((word for value, word in named.items() if abs(value - share) < 1e-6), f"{100 * share:g} %")
