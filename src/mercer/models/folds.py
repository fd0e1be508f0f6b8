"""Folds: a number of them by a hash of each row, or those that a splitter gives by position."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from mercer.inputs import Array, Items, Matrix, Table
from mercer.invariants import Ints, Whole
from mercer.stats import row_hashes
from mercer.store import register


@register("models.Folds")
@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold a row belongs to; `given` where it depends on the position, so that it serves one
    `fit` only."""

    k: int
    given: Array | None = None

    must = dict(k=Whole(1), given=Ints("n", below="k") | None)

    def of(self, X: Matrix) -> Array:
        """The fold of every row; by hash equal rows are never on both sides."""
        if self.given is not None:
            return self.given
        if self.k == 1:
            return np.zeros(X.shape[0], np.uint64)
        if isinstance(X, Items) and all(isinstance(x, str) for x in X.values):
            return np.asarray(_text_hashes(X.values) % np.uint64(self.k))
        if isinstance(X, Items):
            raise ValueError(
                "items have no hash that would fix their folds, unless they are texts; give cv as a splitter, such as KFold(5), or 'loo'."
            )
        return np.asarray(row_hashes(X) % np.uint64(self.k))

    def of_table(self, X: Table) -> Array:
        """The fold of every row that was checked."""
        return self.of(Items(X.data) if X.items else X.data)

    def among(self, rows: Array) -> Folds:
        """The folds of some of the rows."""
        return self if self.given is None else Folds(self.k, self.given[rows])

    @classmethod
    def by_hash(cls, cv: Any) -> Folds:
        """For a stream: no folds (one), or a number of them."""
        if cv is None:
            return cls(1)
        if isinstance(cv, int | np.integer) and not isinstance(cv, bool) and cv >= 2:
            return cls(int(cv))
        if isinstance(cv, str) and cv == "loo":
            raise ValueError(
                "cv='loo' needs the rows of one fit, which a stream does not keep; give cv as a number of folds."
            )
        if isinstance(cv, int | float | bool | str | np.number):
            raise ValueError(f"cv must be None or a number of folds >= 2, got {cv!r}.")
        raise ValueError(
            "folds given by position do not serve a stream; give cv as a number of folds."
        )

    @classmethod
    def of_rows(cls, cv: Any, X: Matrix, y: Array) -> Folds:
        """For rows at hand: also a splitter as KFold, or its (training, test) positions."""
        if isinstance(cv, str) and cv == "loo":
            return cls(1)
        if cv is None or (
            isinstance(cv, int | np.integer) and not isinstance(cv, bool) and cv >= 2
        ):
            return cls.by_hash(cv)
        if not (hasattr(cv, "split") or isinstance(cv, Iterable)) or isinstance(cv, str):
            known = "'loo', a splitter such as KFold(5), or (training, test) positions"
            raise ValueError(f"cv must be None or a number of folds >= 2, {known}, got {cv!r}.")
        given = positions(cv.split(X, y) if hasattr(cv, "split") else cv, len(y))
        return cls(int(given.max()) + 1, given)


ONE_FOLD = Folds(1)  # of all rows


def _text_hashes(texts: list[str]) -> Array:
    """64 bits of each, the same on every machine."""
    digests = (blake2b(t.encode("utf-8", "surrogatepass"), digest_size=8).digest() for t in texts)
    return np.array([int.from_bytes(d, "little") for d in digests], np.uint64)


def positions(splits: Any, n: int) -> Array:
    """The fold of each row, from (training, test) positions: tests that share no row, each trained
    on all other rows."""
    fold = np.full(n, -1)
    for j, (train, test) in enumerate(splits):
        if (
            len(train) + len(test) != n
            or (fold[test] >= 0).any()
            or len(np.intersect1d(train, test))
        ):
            raise ValueError(
                "cv must be folds that share no row, each with all other rows for training (as KFold gives), or a number."
            )
        fold[test] = j
    if (fold < 0).any():
        raise ValueError("cv must be folds that together hold every row, or a number of folds.")
    return fold
