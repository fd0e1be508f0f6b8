"""What a sparse learner is asked: its settings, checked, and the rows it is fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from mercer.inputs import Array, Table
from mercer.lifts import KitchenSink
from mercer.lifts.base import seed_of
from mercer.models.base import bytes_of
from mercer.models.settings import (
    LiftSetting,
    checked_flag,
    checked_lift,
    number,
    positive,
    whole,
)
from mercer.models.sparse.losses import BinaryLoss, SoftmaxLoss, SparseLoss, SquaredLoss

RULES = ("1se", "min")
SCALES = ("unit", "columns", None)


@dataclass(frozen=True, eq=False)
class SparseSettings:
    """The parameters of `SparseRegressor` and `SparseClassifier`, checked: `alpha` is None where
    folds choose it, `memory` is in bytes."""

    lift: LiftSetting
    alpha: float | None
    n_alphas: int
    eps: float
    cv: Any
    rule: str
    l1_ratio: float
    refit: bool
    stability: int
    scale: str | None
    tol: float
    memory: float
    seed: int

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        lift = None if m.lift is None else checked_lift(m.lift)
        eps, ratio = positive(m.eps, "eps"), positive(m.l1_ratio, "l1_ratio")
        if eps >= 1:
            raise ValueError(f"eps must be less than 1, got {m.eps!r}.")
        if ratio > 1:
            raise ValueError(
                f"l1_ratio must be in (0, 1], got {m.l1_ratio!r}; without any L1 use KernelRidge."
            )
        if m.rule not in RULES:
            raise ValueError(f"rule must be '1se' or 'min', got {m.rule!r}.")
        if m.scale not in SCALES:
            raise ValueError(f"scale must be 'unit', 'columns' or None, got {m.scale!r}.")
        seed = 0 if m.random_state is None else seed_of(m.random_state)
        return cls(
            lift,
            _penalty(m.alpha),
            whole(m.n_alphas, "n_alphas"),
            eps,
            m.cv,
            m.rule,
            ratio,
            checked_flag(m.refit, "refit"),
            _count(m.stability),
            m.scale,
            positive(m.tol, "tol"),
            bytes_of(m.memory_limit),
            seed,
        )

    def map_for(self, rows: Table) -> LiftSetting:
        """The lift, not fitted; None for the columns themselves, as of sparse rows."""
        if self.lift is not None:
            return clone(self.lift)
        return None if rows.sparse else KitchenSink()


def _penalty(alpha: object) -> float | None:
    if isinstance(alpha, str) and alpha == "cv":
        return None
    found = number(alpha)
    if found is None or isinstance(alpha, bool) or found <= 0:
        raise ValueError(
            f"alpha must be 'cv' or a number > 0, got {alpha!r}; without a penalty use KernelRidge."
        )
    return found


def _count(stability: object) -> int:
    if isinstance(stability, bool) or not isinstance(stability, int | np.integer) or stability < 0:
        raise ValueError(
            f"stability must be a number of half-samples >= 0, got {stability!r}; 50 are usual."
        )
    return int(stability)


@dataclass(frozen=True, eq=False)
class WeighedRows:
    """Rows of positive weight, their targets (n,), numbers or places of classes, weights that sum
    to 1, and groups that no fold divides."""

    rows: Table
    y: Array
    w: Array
    classes: int = 0  # none: numbers
    groups: Array | None = None
    at: Array | None = None  # their places among all rows, where some have no weight

    @classmethod
    def of(cls, rows: Table, y: Array, weight: Array | None, classes: int, groups: Any) -> Self:
        """Rows of no weight are left out."""
        w = np.ones(len(y)) if weight is None else weight
        if groups is not None:
            groups = np.asarray(groups)
            if groups.shape != (len(y),):
                raise ValueError(
                    f"groups must be one label a row, ({len(y)},), got shape {groups.shape}."
                )
        if not (w > 0).any():
            raise ValueError("sample_weight is zero for every row; give some rows a weight > 0.")
        some = np.flatnonzero(w > 0)
        if len(some) < len(w):
            rows, y, w = rows[some], y[some], w[some]
            groups = None if groups is None else groups[some]
            return cls(rows, y, w / w.sum(), classes, groups, some)
        return cls(rows, y, w / w.sum(), classes, groups)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, at: Array) -> WeighedRows:
        w = self.w[at]
        groups = None if self.groups is None else self.groups[at]
        return replace(self, rows=self.rows[at], y=self.y[at], w=w / w.sum(), groups=groups)

    @property
    def scores(self) -> int:
        """One, but for many classes."""
        return self.classes if self.classes > 2 else 1

    def loss(self) -> SparseLoss:
        """Of these targets."""
        if not self.classes:
            return SquaredLoss(self.y[:, None], self.w)
        if self.classes == 2:
            return BinaryLoss(self.y[:, None].astype(np.float64), self.w)
        return SoftmaxLoss(np.eye(self.classes)[self.y], self.w)
