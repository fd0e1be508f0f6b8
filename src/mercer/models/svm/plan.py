"""What a support vector machine is asked for, checked; the rows of its classes; and the way that
both lead to."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mercer import methods
from mercer.gpu.devices import checked_device
from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.kernels.defaults import is_precomputed, kernel_of
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
from mercer.models.svm.forecast import Forecast
from mercer.plans import Plan

LOSSES = ("hinge", "squared_hinge")
EXACT_ONLY = ("auto", "exact")  # regressions and regions have one way, the dual over rows
CLASSIFIERS = ("exact", "auto", "features", "landmarks")
EXACT_ROWS = 20_000  # up to so many rows, "auto" is exact whatever it takes


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
    device: str = "cpu"  # as given

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        if m.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {m.loss!r}.")
        C, tol, most = slack_price(m.C), positive(m.tol, "tol"), whole(m.max_iter, "max_iter")
        if m.multiclass not in ("auto", "ovo", "ovr"):
            raise ValueError(f"multiclass must be 'auto', 'ovo' or 'ovr', got {m.multiclass!r}.")
        if math.isinf(C) and m.cv is not None and m.Cs is None:
            raise ValueError("C=inf has no penalties around it to choose from; give Cs, or no cv.")
        multiclass, kernel = of_shape(m.decision_function_shape, m.multiclass), kernel_of(m)
        way, method = way_of(m.via, kernel, m.lift, CLASSIFIERS)
        memory = bytes_of(m.memory_limit)
        intercept, probability, warm, _ = (
            checked_flag(getattr(m, name), name)
            for name in ("fit_intercept", "probability", "warm_start", "break_ties")
        )
        return cls(
            kernel,
            m.lift,
            C,
            m.loss,
            way,
            method,
            intercept,
            m.class_weight,
            multiclass,
            probability,
            warm,
            tol,
            most,
            memory,
            m.random_state,
            Cs=penalty_grid(m.Cs, C, "Cs", m.cv),
            device=checked_device(m.device),
        )

    @property
    def precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    @property
    def hard(self) -> bool:
        """Whether no row may lie inside the margin."""
        return math.isinf(self.C)

    @property
    def rows_only(self) -> bool:
        """Whether there are no features: of a given matrix, or a kernel of items, unless asked for."""
        items = isinstance(self.kernel, Kernel) and self.kernel.takes_items
        return self.precomputed or (items and self.way == "auto")


PRICES = (1e4, 1e8)  # of slack, in 1/k(x, x), that stand for an infinite one


def slack_price(C: object) -> float:
    """C, a number > 0 or infinity.

    >>> slack_price(2), slack_price(np.inf)
    (2.0, inf)
    """
    return math.inf if isinstance(C, float) and math.isinf(C) and C > 0 else positive(C, "C")


def of_shape(shape: str, multiclass: str) -> str:
    """Which rules there are, where those of pairs are asked for by the shape of scores.

    >>> of_shape("ovr", "auto"), of_shape("ovo", "auto")
    ('auto', 'ovo')
    """
    if shape not in ("ovr", "ovo"):
        raise ValueError(f"decision_function_shape must be 'ovr' or 'ovo', got {shape!r}.")
    if shape == "ovo" and multiclass == "ovr":
        raise ValueError(
            "decision_function_shape='ovo' needs scores of pairs of classes; give multiclass='ovo' or 'auto'."
        )
    return "ovo" if shape == "ovo" else multiclass


def left_open(n: int, s: ClassifierSettings, *, own: bool = False) -> bool:
    """Whether the way of n rows hangs on what the exact dual of them would take."""
    settled = own or s.rows_only or s.multiclass == "ovo" or s.hard or n <= EXACT_ROWS
    return s.way == "auto" and s.lift is None and not settled


def choose(
    n: int, s: ClassifierSettings, *, own: bool = False, cost: Forecast | None = None
) -> Plan:
    """The way of n rows, "exact" or "features", why, and what was not taken; `own` where rows are
    their own features, which need no kernel values, and `cost` that of the exact dual of many."""
    cheap = (n <= EXACT_ROWS and not own) or (cost is not None and cost.affordable)
    alone = s.rows_only or s.multiclass == "ovo" or s.hard
    exact = s.way == "exact" or (s.way == "auto" and s.lift is None and (alone or cheap))
    if not exact and alone:
        raise ValueError("kernel='precomputed', multiclass='ovo' and C=inf need via='exact'.")
    if exact:
        asked = s.way == "exact" or s.precomputed
        few = "the one way of these settings" if n > EXACT_ROWS else f"at most {EXACT_ROWS:,}"
        return Plan("exact", "as asked" if asked else str(cost or few))
    many = f"{n:,} rows are more than {EXACT_ROWS:,}" + (f", {cost}" if cost else "")
    why = "sparse rows are their own features" if own else many
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

    def some(self, at: Array) -> Self:
        """Those at some places, which have rows of every class."""
        weight = None if self.weight is None else self.weight[at]
        return replace(self, X=self.X[at], kept=self.kept[at], codes=self.codes[at], weight=weight)

    @property
    def weights(self) -> Array:
        return np.ones(len(self.codes)) if self.weight is None else self.weight
