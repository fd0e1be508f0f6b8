"""Paths of penalties: models of one penalty after another, each from where the last ended, and the
penalty that serves rows best that its models did not see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax

from mercer.inputs import Array, Items, Table
from mercer.invariants import Floats
from mercer.models.folds import Folds
from mercer.models.settings import grid
from mercer.ops.threads import parallel_map
from mercer.store import register

STEPS = np.logspace(-2, 2, 9)  # penalties, as factors of the one given, where no others are


@register("models.PenaltyPath")
@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """The scores (a, k) of penalties (a,) on k folds, of models of the other folds; nan where a
    fold, or the rest, has not the rows for it.

    >>> PenaltyPath(np.array([1.0, 2.0]), np.array([[0.5, np.nan], [0.75, np.nan]]), np.ones(2)).best
    2.0
    """

    values: Array
    scores: Array
    weight: Array  # (k,) of the rows of each fold

    must = dict(
        values=Floats("a", low=0), scores=Floats("a", "k", finite=False), weight=Floats("k", low=0)
    )

    @property
    def pooled(self) -> Array:
        """The mean over all rows, (a,)."""
        known = np.isfinite(self.scores).all(axis=0)
        return np.asarray(np.average(self.scores[:, known], axis=1, weights=self.weight[known]))

    @property
    def best(self) -> float:
        """That of the best mean; the first of equals, in the order of the path."""
        return float(self.values[int(np.argmax(self.pooled))])


def penalty_grid(values: Any, given: float, name: str, cv: Any) -> Array | None:
    """The penalties to choose from by folds, ascending and all > 0; None without folds."""
    if cv is None:
        if values is not None:
            raise ValueError(f"{name} are chosen from by folds; give cv too, as in cv=3.")
        return None
    found = np.unique(grid(given * STEPS if values is None else values, name))
    if not found[0] > 0:
        raise ValueError(f"{name} must be numbers > 0, got {values!r}.")
    return found


def checked_folds(cv: Any, X: Table, y: Array) -> Folds | None:
    """The folds of all rows that were given: a number of them, where equal rows are in the same, or
    those of a splitter; None without cv."""
    if cv is None:
        return None
    if isinstance(cv, str) and cv == "loo":
        raise ValueError(
            "cv='loo' is for ridge regression, which has it in closed form; give a number of folds."
        )
    if isinstance(cv, int | np.integer) and cv > len(y):
        raise ValueError(f"cv must be at most the number of rows, {len(y)}, got {cv}.")
    return Folds.of_rows(cv, Items(X.data) if X.items else X.data, y)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The fold of every row of classes, each row with its weight."""

    fold: Array
    k: int
    codes: Array
    weight: Array

    @classmethod
    def of(cls, folds: Folds, X: Table, codes: Array, weight: Array) -> HeldOut:
        """By the folds of these rows."""
        return cls(folds.of_table(X).astype(np.intp), folds.k, codes, weight)

    def path(
        self, values: Array, along: Callable[[Array], Iterator[Array]], score: Callable[..., float]
    ) -> PenaltyPath:
        """By `along(held)`, which yields the scores of the rows held out, penalty after penalty; folds
        go side by side."""
        scores = np.full((len(values), self.k), np.nan)
        weight = np.bincount(self.fold, self.weight, self.k)
        classes = len(np.unique(self.codes))
        usable = [j for j in range(self.k) if self._usable(j, classes)]
        if not usable:
            raise ValueError(
                f"no fold has rows while the others have every class (n_samples = {len(self.fold)}); "
                "give cv=None, or more rows that differ."
            )

        def of(j: int) -> None:
            held = self.fold == j
            y, w = self.codes[held], self.weight[held]
            for i, f in enumerate(along(held)):
                scores[i, j] = score(f, y, w)

        parallel_map(of, usable)
        return PenaltyPath(values, scores, weight)

    def _usable(self, j: int, classes: int) -> bool:
        rest = np.unique(self.codes[self.fold != j])
        return bool((self.fold == j).any()) and len(rest) == classes


def accuracy(f: Array, codes: Array, w: Array) -> float:
    """The share of rows, by weight, that have the largest score at their class: f (n,), positive
    for the second of two, or (n, K).

    >>> accuracy(np.array([1.0, -1.0, 2.0]), np.array([1, 0, 0]), np.ones(3))
    0.6666666666666666
    """
    found = (f > 0).astype(np.intp) if f.ndim == 1 else f.argmax(axis=1)
    return float(np.average(found == codes, weights=w))


def log_likelihood(f: Array, codes: Array, w: Array) -> float:
    """The mean logarithm of the probability of each row's class, by weight."""
    if f.ndim == 1:
        each = log_expit(np.where(codes == 1, f, -f))
    else:
        each = np.take_along_axis(log_softmax(f, axis=1), codes[:, None], axis=1)[:, 0]
    return float(np.average(each, weights=w))
