"""What a support vector machine is asked for, checked; the rows of its classes; and the way that
both lead to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer import methods
from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.kernels.defaults import is_precomputed
from mercer.models.base import bytes_of
from mercer.models.folds import ONE_FOLD, Folds
from mercer.models.penalties import penalty_grid
from mercer.models.settings import (
    KernelSetting,
    LiftSetting,
    Seed,
    checked_flag,
    positive,
    way_of,
    whole,
)
from mercer.plans import Plan

LOSSES = ("hinge", "squared_hinge")
EXACT_ONLY = ("auto", "exact")  # regressions and regions have one way, the dual over rows
CLASSIFIERS = ("exact", "auto", "features", "landmarks")
EXACT_ROWS = 20_000  # up to so many rows, "auto" is exact


@dataclass(frozen=True, eq=False)
class ClassifierSettings:
    """The parameters of `KernelSVC`, checked: `way` and `method` are what `via` says, `memory` is
    in bytes."""

    kernel: KernelSetting
    lift: LiftSetting
    C: float
    loss: str
    way: str
    method: methods.Method
    intercept: bool
    class_weight: Any
    multiclass: str
    probability: bool
    warm_start: bool
    tol: float
    max_iter: int
    memory: float
    random_state: Seed
    folds: Folds = ONE_FOLD  # of the rows that count
    Cs: Array | None = None  # where there is cv: ascending

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        if m.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {m.loss!r}.")
        C, tol, most = positive(m.C, "C"), positive(m.tol, "tol"), whole(m.max_iter, "max_iter")
        if m.multiclass not in ("auto", "ovo", "ovr"):
            raise ValueError(f"multiclass must be 'auto', 'ovo' or 'ovr', got {m.multiclass!r}.")
        way, method = way_of(m.via, m.kernel, m.lift, CLASSIFIERS)
        memory = bytes_of(m.memory_limit)
        intercept, probability, warm = (
            checked_flag(getattr(m, name), name)
            for name in ("fit_intercept", "probability", "warm_start")
        )
        return cls(
            m.kernel,
            m.lift,
            C,
            m.loss,
            way,
            method,
            intercept,
            m.class_weight,
            m.multiclass,
            probability,
            warm,
            tol,
            most,
            memory,
            m.random_state,
            Cs=penalty_grid(m.Cs, C, "Cs", m.cv),
        )

    @property
    def precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    @property
    def rows_only(self) -> bool:
        """Whether there are no features: of a given matrix, or a kernel of items."""
        return self.precomputed or (isinstance(self.kernel, Kernel) and self.kernel.takes_items)


def choose(n: int, s: ClassifierSettings, *, own: bool = False) -> Plan:
    """The way of n rows, "exact" or "features", why, and what was not taken; `own` where rows are
    their own features, which need no kernel values."""
    few = s.rows_only or (n <= EXACT_ROWS and not (own and s.multiclass != "ovo"))
    exact = s.way == "exact" or (s.way == "auto" and s.lift is None and few)
    if not exact and (s.rows_only or s.multiclass == "ovo"):
        raise ValueError(
            "kernel='precomputed', kernels of items and multiclass='ovo' need via='exact'."
        )
    if exact:
        return Plan(
            "exact", "as asked" if s.way == "exact" or s.precomputed else f"at most {EXACT_ROWS:,}"
        )
    why = (
        "sparse rows are their own features" if own else f"{n:,} rows are more than {EXACT_ROWS:,}"
    )
    beyond = (("exact dual", why),) if s.way == "auto" and s.lift is None else ()
    return Plan("features", "", rejected=beyond)


def some_rows(X: Table, rows: Array, cols: Array, *, gram: bool) -> Table:
    """These rows: of a kernel matrix, against the rows `cols`."""
    return Table(X.data[np.ix_(rows, cols)]) if gram else X[rows]


def with_positive_weight(X: Table, w: Array, *, gram: bool) -> tuple[Table, Array]:
    """The rows that count, and their places; of a given kernel matrix also only those columns."""
    kept = np.flatnonzero(w > 0)
    if len(kept) == len(w):
        return X, kept
    return Table(X.data[kept][:, kept]) if gram else X[kept], kept


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The rows of a fit that count: at the places `kept` among those given, each with the number of
    its class and its weight."""

    X: Table
    kept: Array
    classes: Array
    codes: Array
    weight: Array | None

    @classmethod
    def of(cls, X: Table, y: Array, weight: Array | None, *, gram: bool) -> Self:
        rows, kept = with_positive_weight(
            X, np.ones(len(X)) if weight is None else weight, gram=gram
        )
        classes, codes = np.unique(y[kept], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has {len(classes)} class among rows of positive weight; give rows of at least two classes."
            )
        return cls(rows, kept, classes, codes, None if weight is None else weight[kept])

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def weights(self) -> Array:
        return np.ones(len(self.codes)) if self.weight is None else self.weight
