"""Folds of a sparse learner: rows dealt by target, equal rows and groups kept together; the losses
of every penalty at the rows that its models did not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import log_expit, log_softmax

from mercer.inputs import Array
from mercer.invariants import Floats, check
from mercer.models.sparse.maps import SparseMap, dictionary_of
from mercer.models.sparse.problem import SparseSettings, WeighedRows
from mercer.models.sparse.solve import Solver, SparsePath
from mercer.ops.tiles import cuts
from mercer.stats import row_hashes
from mercer.store import register

PIECE = 64 << 20  # bytes of features and scores of rows left out, at a time
USUAL = 5  # folds, and as many as there are rows where these are fewer
Split: TypeAlias = tuple[Array, Array]  # rows to fit, rows to look at


def splits(s: SparseSettings, p: WeighedRows) -> list[Split]:
    """Those of cv: a number of folds, a splitter, or positions; none where rows are too few."""
    cv = s.cv
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool) and cv >= 2:
        _check_folds(int(cv), len(p))
        fold = _dealt(int(cv), p, s.seed) if p.groups is None else _grouped(int(cv), p)
        every = range(int(fold.max(initial=-1)) + 1)
        pairs = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in every]
        return pairs if len(pairs) > 1 else []
    if hasattr(cv, "split") and not isinstance(cv, str):
        blank = np.zeros((len(p), 1))
        return [(np.asarray(a), np.asarray(b)) for a, b in cv.split(blank, p.y, p.groups)]
    if isinstance(cv, str | bool | int | float) or cv is None or not hasattr(cv, "__iter__"):
        raise ValueError(
            f"cv must be a number of folds >= 2, a splitter or (training, test) positions, got {cv!r}."
        )
    found = [(_weighed(p, a), _weighed(p, b)) for a, b in cv]
    if len(found) < 2 or not all(len(a) and len(b) for a, b in found):
        raise ValueError("cv must give two splits or more, with rows of some weight on both sides.")
    return found


def _check_folds(k: int, n: int) -> None:
    """No more than rows of some weight; the usual number is that of rows where these are fewer."""
    if k > max(n, USUAL):
        raise ValueError(
            f"cv={k} folds need as many rows of some weight, and there are {n}; give fewer folds."
        )


def _weighed(p: WeighedRows, at: Array) -> Array:
    """Positions among all rows, as those among the rows that have a weight."""
    at = np.asarray(at)
    if p.at is None:
        return at
    return np.searchsorted(p.at, at[np.isin(at, p.at)])


def _dealt(k: int, p: WeighedRows, seed: int) -> Array:
    """The fold of every row; -1 for rows that are always fitted, the only ones of their class.

    Rows in the order of their targets are dealt k at a time, so that folds are alike whatever the
    order, the units or the places of columns; equal rows are dealt together.
    """
    keys = _keys(p)
    _, first, of = np.unique(keys, return_index=True, return_inverse=True)
    order = np.lexsort((keys[first], p.y[first]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rng, fold = np.random.default_rng(seed), np.empty(len(order), np.int64)
    for start in range(0, len(order), k):
        part = order[start : start + k]
        fold[part] = rng.permutation(k)[: len(part)]
    found = fold[of]
    for c in range(p.classes):
        if len(np.unique(found[p.y == c])) < 2:
            found[p.y == c] = -1
    return np.asarray(np.unique(found, return_inverse=True)[1] - int((found < 0).any()))


def _keys(p: WeighedRows) -> Array:
    """Equal for equal rows of equal targets."""
    if p.rows.items:
        number = {text: i for i, text in enumerate(map(str, p.rows.data))}
        of = np.array([number[str(text)] for text in p.rows.data])
        return np.asarray(of * (p.classes + 1) + (p.y if p.classes else 0))
    with np.errstate(over="ignore"):
        return np.asarray(
            row_hashes(p.rows.data) * np.uint64(3) + row_hashes(p.y[:, None].astype(np.float64))
        )


def _grouped(k: int, p: WeighedRows) -> Array:
    found = len(np.unique(np.asarray(p.groups)))
    if found < 2:
        raise ValueError(
            "groups has one label only, so no fold can leave it out; give two or more."
        )
    # it takes a tenth of a first use
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    splitter = (StratifiedGroupKFold if p.classes else GroupKFold)(min(k, found))
    fold = np.empty(len(p), np.int64)
    for j, (_, test) in enumerate(splitter.split(np.zeros((len(p), 1)), p.y, p.groups)):
        fold[test] = j
    return fold


@dataclass(frozen=True, eq=False)
class FoldModel:
    """The path of one fold, and its features at the rows left out."""

    path: SparsePath
    map: SparseMap
    fitted: WeighedRows
    left: WeighedRows

    @classmethod
    def of(cls, s: SparseSettings, p: WeighedRows, at: Split, alphas: Array) -> FoldModel:
        """Everything is learnt from the rows to fit: the frame, the lift, its scales."""
        rows, left = p[at[0]], p[at[1]]
        lacking = [c for c in range(p.classes) if not (rows.y == c).any()]
        if lacking:
            raise ValueError(
                f"a fold leaves no row of {len(lacking)} of the classes to fit; give fewer folds, or other groups."
            )
        phi, X = dictionary_of(s, rows)
        path, _ = Solver.of(X, rows.loss(), s.tol).path(alphas, s.l1_ratio)
        return cls(path, phi, rows, left)

    def losses(self) -> Array:
        """Of every penalty at the rows left out, (m,)."""
        m, C, k = self.path.coef.shape
        total = np.zeros(m)
        for some in cuts(len(self.left), max(256, PIECE // (8 * (k + m * C)))):
            at = np.arange(some.start, some.stop)
            F = self.map.columns(self.left.rows[some], self.path.ids)
            total += self.left.w[some].sum() * mean_losses(self.left[at], self.path.scores(F))
        return total


def mean_losses(p: WeighedRows, f: Array) -> Array:
    """The weighted mean of squared errors, or of -log P(y), of scores (n, m, C): (m,)."""
    if not p.classes:
        return np.asarray(p.w @ np.square(f[:, :, 0] - p.y[:, None]))
    if p.classes == 2:
        sign = 2.0 * p.y[:, None] - 1
        return -np.asarray(p.w @ log_expit(sign * f[:, :, 0]))
    logs = log_softmax(f, axis=2)
    return -np.asarray(p.w @ logs[np.arange(len(f)), :, p.y])


@register("sparse.FoldLosses")
@dataclass(frozen=True, eq=False)
class FoldLosses:
    """The loss of every penalty in every fold, (m, K); `best` has the least mean."""

    values: Array

    must = dict(values=Floats("m", "K"))

    def __post_init__(self) -> None:
        check(self)

    @property
    def means(self) -> Array:
        return np.asarray(self.values.mean(1))

    @property
    def best(self) -> int:
        return int(np.argmin(self.means))

    @property
    def errors(self) -> Array:
        """Standard errors of the differences from the best penalty, fold by fold, (m,)."""
        D = self.values - self.values[self.best]
        top = float(np.abs(D).max(initial=0.0))
        # squares of huge losses would not be finite; a power of 2 keeps every digit
        size = 2.0 ** np.floor(np.log2(top)) if top > 0 else 1.0
        return np.asarray(size * (D / size).std(1, ddof=1) / np.sqrt(D.shape[1]))

    def chosen(self, rule: str) -> int:
        """The best, or by "1se" the largest penalty within one standard error of it.

        >>> losses = FoldLosses(np.array([[4.0, 6.0], [2.0, 3.2], [2.0, 3.0]]))
        >>> losses.chosen("min"), losses.chosen("1se")
        (2, 1)
        """
        if rule == "min":
            return self.best
        near = self.means - self.means[self.best] <= self.errors
        return int(np.flatnonzero(near)[0])
