"""A path of penalties over a dictionary, by the way that its size asks for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array
from mercer.invariants import Floats, Ints, Whole, check
from mercer.logs import logger
from mercer.models.sparse.dictionary import Dictionary
from mercer.models.sparse.gram import Quadratic
from mercer.models.sparse.losses import SparseLoss
from mercer.models.sparse.stored import StoredDictionary
from mercer.models.sparse.working_set import Ended, WorkingSet
from mercer.ops.threads import single_blas
from mercer.store import register

LOG = logger("sparse")
ONE_THREAD = 1e9  # products of all pairs of features and scores over the rows


@register("sparse.SparsePath")
@dataclass(frozen=True, eq=False)
class SparsePath:
    """Models of falling penalties: f(x) = intercept + sum_j coef_j phi_j(x), in the lift's units.

    `ids` are the features that any of them keeps; `gaps` bound how much better the best model
    of each penalty could be, relative to the loss without features.
    """

    alphas: Array  # (m,)
    ids: Array  # (k,)
    coef: Array  # (m, C, k)
    intercept: Array  # (m, C)
    gaps: Array  # (m,)
    width: int  # D
    deviations: Array | None = None  # (k,) of the features in the rows of the fit

    must = dict(
        alphas=Floats("m"),
        ids=Ints("k", below="width", distinct=True),
        coef=Floats("m", "C", "k"),
        intercept=Floats("m", "C"),
        gaps=Floats("m", low=0.0),
        width=Whole(1),
        deviations=Floats("k", low=0.0) | None,
    )

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def _upgraded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """From files that had no deviations."""
        return {"deviations": None} | values

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def sizes(self) -> Array:
        """How many features each model keeps, (m,)."""
        return np.asarray((self.coef != 0).any(1).sum(1))

    def at(self, i: int) -> tuple[Array, Array, Array]:
        """The features that model i keeps, their coefficients (C, k) and the intercepts (C,)."""
        some = np.flatnonzero((self.coef[i] != 0).any(0))
        return self.ids[some], self.coef[i][:, some], self.intercept[i]

    def scores(self, F: Array) -> Array:
        """(n, m, C) at rows of features `ids`."""
        m, C, k = self.coef.shape
        return (F @ self.coef.reshape(m * C, k).T).reshape(len(F), m, C) + self.intercept


@dataclass(frozen=True, eq=False)
class Solver:
    """One dictionary and loss, ready for penalties."""

    X: Dictionary
    loss: SparseLoss
    tol: float
    quadratic: Quadratic | None
    sets: WorkingSet | None

    @classmethod
    def of(cls, X: Dictionary, loss: SparseLoss, tol: float) -> Solver:
        """Over the Gram matrix for squared loss where it fits, else by working sets."""
        if loss.constant and isinstance(X, StoredDictionary) and X.fits:
            return cls(X, loss, tol, Quadratic.of(X, loss.Y[:, 0]), None)
        return cls(X, loss, tol, None, WorkingSet(X, loss, tol))

    @property
    def largest(self) -> float:
        """The least l1 at which no feature is kept."""
        if self.quadratic is not None:
            return self.quadratic.largest
        assert self.sets is not None
        return self.sets.largest

    def path(self, alphas: Array, l1_ratio: float) -> tuple[SparsePath, int]:
        """The models of falling penalties, and the rounds they took."""
        if self.quadratic is not None:
            return self._by_gram(self.quadratic, alphas, l1_ratio)
        assert self.sets is not None
        after = [*alphas[1:].tolist(), None]
        pairs = zip(alphas.tolist(), after, strict=True)
        ended = [self._at(self.sets, a, l1_ratio, following) for a, following in pairs]
        self.sets.rest()
        return self._by_sets(alphas, ended)

    @staticmethod
    def _at(sets: WorkingSet, alpha: float, l1_ratio: float, following: float | None) -> Ended:
        found = sets.at(alpha, l1_ratio, following)
        LOG.info("penalty %.4g: %d terms, relative gap %.1e", alpha, len(found.ids), found.gap)
        return found

    def _by_gram(self, q: Quadratic, alphas: Array, l1_ratio: float) -> tuple[SparsePath, int]:
        B, gaps, rounds = q.path(alphas, l1_ratio)
        some = np.flatnonzero((B != 0).any(0))
        ids, B = q.ids[some], B[:, some]
        b0 = q.mean - B @ self.X.means(ids)
        relative = np.maximum(gaps, 0.0) / (q.yy or 1.0)
        coef = B / self.X.scales(ids)
        path = SparsePath(alphas, ids, coef[:, None], b0[:, None], relative, self.X.p)
        LOG.info(
            "%d penalties down to %.4g: %d rounds, relative gap %.1e",
            *(len(alphas), alphas[-1], rounds.sum(), relative.max()),
        )
        return path, int(rounds.sum())

    def _by_sets(self, alphas: Array, ended: Sequence[Ended]) -> tuple[SparsePath, int]:
        ids = np.unique(np.concatenate([e.ids for e in ended]))
        coef = np.zeros((len(ended), len(ended[0].intercept), len(ids)))
        for row, e in zip(coef, ended, strict=True):
            row[:, np.searchsorted(ids, e.ids)] = e.coef
        coef /= self.X.scales(ids)
        b0, gaps = np.stack([e.intercept for e in ended]), np.array([e.gap for e in ended])
        path = SparsePath(alphas, ids, coef, b0, gaps, self.X.p)
        return path, sum(e.steps for e in ended)


def one_thread(X: Dictionary, scores: int) -> AbstractContextManager[None]:
    """BLAS in one thread where its products are small: on a busy machine two threads that share one
    wait for each other for longer than they work."""
    products = X.n * float(X.width * scores) ** 2
    return single_blas() if products <= ONE_THREAD else nullcontext()


def grid(largest: float, n: int, eps: float, last: float | None = None) -> Array:
    """n penalties from the largest down to eps of it, or to a `last` one, evenly in logarithms.

    >>> grid(8.0, 4, 1e-3), grid(8.0, 2, 1e-3, last=2.0), grid(1.0, 9, 1e-3, last=3.0)
    (array([8.   , 0.8  , 0.08 , 0.008]), array([8., 2.]), array([3.]))
    """
    if last is not None and (last >= largest or n == 1):
        return np.array([last])
    if not largest > 0:
        return np.ones(1)
    return np.geomspace(largest, largest * eps if last is None else last, n)


def warn_of_gaps(path: SparsePath, tol: float) -> None:
    """Say where a penalty ended further from its best model than asked for."""
    worst = float(path.gaps.max(initial=0.0))
    if worst > tol:
        warnings.warn(
            f"a penalty ended at a relative gap of {worst:.1e}, above tol={tol:g}; "
            "raise tol, or give fewer features that depend on each other.",
            ConvergenceWarning,
            stacklevel=2,
        )
