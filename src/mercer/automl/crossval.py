"""Predictions of every row by a model that has not seen it: for ridge from the blocks' moments,
else by refits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.base import clone

from mercer.automl import budget
from mercer.automl.budget import Clock
from mercer.automl.splits import FoldPlan
from mercer.inputs import Array, Matrix
from mercer.linalg import least_squares
from mercer.models.settings import FittedLift
from mercer.ops.threads import limit, n_threads, parallel_map
from mercer.ops.tiles import cuts
from mercer.stats import Moments

BLOCK_ROWS = 1 << 13  # rows of features at a time
NO_LIMIT = Clock(float("inf"))
BLOCK_SHARE = 0.01  # of the memory, for features of rows that are computed together
COPIES_A_FOLD = 5  # square arrays of a fold that is solved
MAX_DUAL_ROWS = 4096  # rows whose inner products are held


def ridge_path(
    lift: FittedLift,
    X: Array,
    Y: Array,
    w: Array | None,
    folds: FoldPlan,
    alphas: Array,
    clock: Clock = NO_LIMIT,
    memory: float = 4e9,
) -> Array:
    """Predictions (len(alphas), n, q) of each row's fold by the moments of its training blocks; nan
    where no fold tests.

    One pass for the moments of all blocks, one for the predictions; every penalty is asked of the
    same moments. Where there are more features than rows, the same from the inner products of rows.
    """
    phi, Y = clone(lift).fit(X), np.asarray(Y, np.float64).reshape(len(X), -1)
    unit = power_of_two(Y)  # squares of large targets would not fit single precision
    if unit != 1:
        return unit * ridge_path(lift, X, Y / unit, w, folds, alphas, clock, memory)
    F = FeatureCache(phi, X, memory)
    if len(X) <= min(int(phi.n_features_out_), MAX_DUAL_ROWS):
        with parallel_folds(len(X), memory):
            return dual_path(F, Y, w, folds, alphas)
    D = int(phi.n_features_out_)
    with parallel_folds(D, memory):
        blocks = _moments(F, Y, w, folds)
    out = np.full((len(alphas), *Y.shape), np.nan)

    def fold(plan: tuple[tuple[int, ...], int]) -> None:
        clock.check()
        rest = sum((blocks[i] for i in plan[0][1:]), blocks[plan[0][0]])
        if rest.n > 0:
            _predict(F, np.flatnonzero(folds.block == plan[1]), _solutions(rest, D, alphas), out)

    with parallel_folds(D, memory):
        parallel_map(fold, folds.plan)
    return out


def power_of_two(Y: Array) -> float:
    """1, or of numbers whose squares single precision cannot hold, one near the largest of them.

    >>> power_of_two(np.array([3.0, -7.0])), power_of_two(np.array([0.0, 2.0**70]))
    (1.0, 1.1805916207174113e+21)
    """
    size = float(np.abs(Y).max(initial=0))
    return 1.0 if size == 0 or 1e-12 < size < 1e12 else float(2.0 ** np.floor(np.log2(size)))


def parallel_folds(D: int, memory: float) -> AbstractContextManager[None]:
    """As many folds side by side as there is memory for: each has the moments of its training rows,
    and solves."""
    return limit(min(n_threads(), max(1, int(memory / 4 / (8.0 * max(D, 1) ** 2 * COPIES_A_FOLD)))))


def _solutions(m: Moments, D: int, alphas: Array) -> list[least_squares.PrimalSolution]:
    """The model of these moments for every penalty."""
    A, B = least_squares.parts(m, D, intercept=True)
    coefs = [least_squares.penalised(A, float(a))(B) for a in alphas]
    return [least_squares.PrimalSolution(c, m.mean[D:] - m.mean[:D] @ c) for c in coefs]


def _predict(
    F: FeatureCache, where: Array, models: list[least_squares.PrimalSolution], out: Array
) -> None:
    coef = np.concatenate([m.coef for m in models], axis=1)  # all penalties in one product
    offset = np.concatenate([m.intercept for m in models])
    for s in cuts(len(where), F.step):
        found = F[where[s]] @ coef.astype(np.float32) + offset
        out[:, where[s]] = found.reshape(-1, len(models), out.shape[2]).transpose(1, 0, 2)


def _moments(F: FeatureCache, Y: Array, w: Array | None, folds: FoldPlan) -> list[Moments]:
    """Of [phi, y], for every block, about the mean of the first rows."""
    shift = np.concatenate(
        [F[np.arange(min(1024, len(Y)))].mean(0, dtype=np.float64), Y[:1024].mean(0)]
    )

    def of(block: int) -> Moments:
        m, where = Moments.zero(shift), np.flatnonzero(folds.block == block)
        for s in cuts(len(where), F.step):
            i = where[s]
            m.add(
                np.concatenate([F[i], Y[i].astype(np.float32)], axis=1), None if w is None else w[i]
            )
        return m

    return parallel_map(of, range(folds.n_blocks))


def dual_path(F: FeatureCache, Y: Array, w: Array | None, folds: FoldPlan, alphas: Array) -> Array:
    """What `ridge_path` gives, from K = F F' (n, n): (S K_c S + alpha I) a = S y_c on the training
    rows, S^2 their weights."""
    K, weight = _gram(F, len(Y)), np.ones(len(Y)) if w is None else np.asarray(w, np.float64)
    out = np.full((len(alphas), *Y.shape), np.nan)

    def fold(i: int) -> None:
        train, test = folds.split(i)
        train = train[weight[train] > 0]
        if len(train) and len(test):
            out[:, test] = _dual_fold(
                K[np.ix_(train, train)], K[np.ix_(test, train)], Y[train], weight[train], alphas
            )

    parallel_map(fold, range(len(folds.plan)))
    return out


def _dual_fold(K: Array, across: Array, Y: Array, w: Array, alphas: Array) -> Array:
    """Predictions (a, m, q) for rows whose inner products with those of training are `across` (m,
    n)."""
    v, s = w / w.sum(), np.sqrt(w)
    mean, level = K @ v, v @ Y
    across = across - mean - ((across @ v) - v @ mean)[:, None]  # about the mean of the features
    values, Q = eigh(s[:, None] * (K - mean - mean[:, None] + v @ mean) * s, check_finite=False)
    left, right = (across * s) @ Q, Q.T @ (s[:, None] * (Y - level))
    scale = 1 / (np.maximum(values, 0) + np.asarray(alphas, np.float64)[:, None])  # (a, n)
    return np.asarray(np.einsum("mn,an,nq->amq", left, scale, right, optimize=True) + level)


def _gram(F: FeatureCache, n: int) -> Array:
    """F F' about the mean of F, where float64 keeps its digits."""
    rows = F[np.arange(n)].astype(np.float64)
    rows -= rows.mean(0)
    return np.asarray(rows @ rows.T)


class FeatureCache:
    """Features of rows, kept where they are few and else computed again when asked for."""

    def __init__(self, phi: FittedLift, X: Array, memory: float = 4e9) -> None:
        self.phi, self.X = phi, X
        size = 4 * int(phi.n_features_out_)
        self.step = min(BLOCK_ROWS, budget.max_rows(memory, size, BLOCK_SHARE))
        self.kept = self._all() if size * len(X) <= budget.feature_cache_bytes(memory) else None

    def _all(self) -> Array:
        """In one array that is filled part by part."""
        out: Array | None = None
        for s in cuts(len(self.X), self.step):
            F = dense(self.phi.transform(self.X[s]))
            out = np.empty((len(self.X), F.shape[1]), F.dtype) if out is None else out
            out[s] = F
        assert out is not None
        return out

    def __getitem__(self, i: Array) -> Array:
        return self.kept[i] if self.kept is not None else dense(self.phi.transform(self.X[i]))


def dense(F: Matrix) -> Array:
    return np.asarray(F.toarray() if sp.issparse(F) else F)


def refits(
    make: Callable[[], Any],
    ask: Callable[[Any, Array], Array],
    X: Array,
    y: Array,
    w: Array | None,
    folds: FoldPlan,
    clock: Clock = NO_LIMIT,
) -> Array:
    """The same by one fit a fold: make() gives a model, ask(model, X) what it predicts; the clock
    is asked before each."""
    out: Array | None = None
    for i, test in _parts(folds, y):
        clock.check()
        found = ask(
            make().fit(X[i], y[i], **({} if w is None else {"sample_weight": w[i]})), X[test]
        )
        out = np.full((len(X), *found.shape[1:]), np.nan) if out is None else out
        out[test] = found
    if out is None:
        raise ValueError("no fold has rows to train on and to test; give more rows.")
    return out


def _parts(folds: FoldPlan, y: Array) -> Iterator[tuple[Array, Array]]:
    for fold in range(len(folds.plan)):
        train, test = folds.split(fold)
        if len(train) and len(test):
            yield train, test
