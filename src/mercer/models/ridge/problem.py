"""What a ridge regression is asked for, checked; the rows it is asked of; and the plan that both
lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mercer import methods
from mercer.costs import MAX_CHOLESKY_ROWS
from mercer.gpu.devices import device_of
from mercer.inputs import Array, Items, Table
from mercer.invariants import Each, Floats, Ints, Is, Number, Text, Truths, Whole
from mercer.kernels.defaults import is_precomputed, kernel_of
from mercer.models.base import bytes_of
from mercer.models.folds import Folds
from mercer.models.maps import asked
from mercer.models.ridge.cross_validation import FoldErrors, spread
from mercer.models.settings import (
    KernelSetting,
    LiftSetting,
    Seed,
    checked_flag,
    grid,
    penalty,
    positive,
    way_of,
    whole,
)
from mercer.plans import Plan
from mercer.store import register

GRID = np.logspace(-6, 6, 25)
LARGE = (
    64 << 20
    # bytes of rows that are kept as they are, not copied: leave them so while you ask for left-out rows
)
MAX_GPU_ROWS = 1_000_000  # up to which "auto" solves exactly there: some forty products of a second
MOMENTS = 2048  # landmarks up to which one pass of moments costs less than several of products
# bytes an entry of K that leave-one-out holds at most: eigenvectors, workspace, pieces of queries
SQUARES = 40.0


@register("ridge.Penalties")
@dataclass(frozen=True, eq=False)
class Penalties:
    """The penalty, one number or one an output; or, by folds or left-out rows, the best of `grid`.
    And whether there is an intercept."""

    alpha: Array
    grid: Array
    by: str = ""  # "folds", "loo", or as given
    intercept: bool = True

    must = dict(
        alpha=Floats(low=0) | Floats("q", low=0),
        grid=Floats(None, low=0),
        by=Text("", "folds", "loo"),
    )

    def _laws(self) -> str | None:
        return None if len(self.grid) else "has no penalty to choose from"

    def best_by_folds(self, found: FoldErrors, n: int) -> float:
        """That of the smallest error of all folds together."""
        if found.used < 2:
            raise ValueError(
                f"fewer than two folds have rows (n_samples = {n}); give cv=None, or more rows that differ."
            )
        return float(self.grid[int(np.argmax(found.pooled()))])

    def best_by_loo(self, scores: Array, n: int) -> float:
        """That of the best score of left-out rows."""
        if not np.isfinite(scores).any():
            raise ValueError(
                f"leave-one-out tells nothing of these penalties (n_samples = {n}); give more rows, or larger alphas."
            )
        return float(self.grid[int(np.nanargmax(scores))])


@register("ridge.Settings")
@dataclass(frozen=True, eq=False)
class RidgeSettings:
    """The parameters of `KernelRidge`, checked: `way` and `method` are what `via` says, `memory` is
    in bytes."""

    kernel: KernelSetting
    lift: LiftSetting
    alpha: Any
    way: str
    method: methods.Method
    intercept: bool
    cv: Any
    alphas: Any
    bandwidths: Any
    tol: float
    max_iter: int
    memory: float
    random_state: Seed
    device: str = "cpu"  # as given; `gpu` is what it comes to

    must = dict(  # of those that a model keeps: `of_model`
        way=Text("auto", "exact", "iterative", "features", "landmarks"),
        alpha=Floats(low=0) | Floats("q", low=0),
        cv=Floats(None) | None,
        alphas=Floats(None, low=0),
        bandwidths=Floats(None) | None,
        tol=Number(0),
        max_iter=Whole(1),
        memory=Number(0),
        device=Text(),
    )

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        kernel = kernel_of(m)
        way, method = way_of(m.via, kernel, m.lift)
        intercept = checked_flag(m.fit_intercept, "fit_intercept")
        tol, steps, memory = (
            positive(m.tol, "tol"),
            whole(m.max_iter, "max_iter"),
            bytes_of(m.memory_limit),
        )
        return cls(
            kernel,
            m.lift,
            m.alpha,
            way,
            method,
            intercept,
            m.cv,
            m.alphas,
            m.bandwidths,
            tol,
            steps,
            memory,
            m.random_state,
            m.device,
        ).on_device()

    def on_device(self) -> Self:
        """Itself; ValueError where the device is not there."""
        device_of(self.device)
        return self

    @property
    def gpu(self) -> str | None:
        """The torch device to solve on; None: the CPU."""
        return device_of(self.device)

    def penalties(self, outputs: int) -> Penalties:
        """The penalty that was given, or those to choose from."""
        by = "" if self.cv is None else "loo" if self.loo else "folds"
        return Penalties(self.penalty(outputs), self.grid(), by, self.intercept)

    @property
    def precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    @property
    def loo(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "loo"

    def without_choices(self, kernel: KernelSetting, alpha: Any) -> Self:
        """At this kernel and penalty."""
        return replace(self, kernel=kernel, alpha=alpha, cv=None, bandwidths=None)

    def of_model(self, outputs: int) -> Self:
        """What a fitted model needs of them to answer for its rows, whatever is set later."""
        return replace(
            self,
            kernel=None,
            lift=None,
            alpha=self.penalty(outputs),
            cv=None,
            alphas=self.grid(),
            bandwidths=None,
        )

    # penalties
    def penalty(self, outputs: int) -> Array:
        return penalty(self.alpha, outputs)

    def grid(self) -> Array:
        """The penalties to choose from."""
        return grid(
            (float(np.max(self.alpha)) or 1.0) * GRID if self.alphas is None else self.alphas,
            "alphas",
        )

    def square_fits(self, n: int) -> bool:
        """Whether leave-one-out may hold its n x n arrays."""
        return SQUARES * n * n <= self.memory

    def check_square_fits(self, n: int) -> None:
        if not self.square_fits(n):
            raise ValueError(
                f"leave-one-out of {n:,} rows needs n x n arrays beyond memory_limit; raise it, or give via='features'."
            )

    def landmarks(self, n: int) -> int:
        """Their number for n rows."""
        m = asked(self.method)
        return min(n, MOMENTS if m is None else whole(m, "n_landmarks"))


def choose(n: int, s: RidgeSettings, *, own: bool = False, tiles: bool = False) -> Plan:
    """The way of n rows: "features", "exact", "iterative" or "landmarks", and why; `own` where rows
    are their own features, which need no kernel values, and `tiles` where a GPU makes them."""
    if s.lift is not None or (own and s.way == "auto" and not s.loo):
        return Plan("features", "")
    if s.way in ("exact", "iterative"):
        return Plan(s.way, "asked for")
    if s.precomputed and s.way != "auto":
        raise ValueError(
            "a Gram matrix has no features or landmarks; use via='exact' or 'iterative' with kernel='precomputed'."
        )
    if s.precomputed:
        return Plan("exact", "a Gram matrix was given")
    passes = tiles and s.cv is None and n > MAX_CHOLESKY_ROWS
    if s.way == "landmarks" and (passes or s.landmarks(n) > MOMENTS):
        return Plan("landmarks", "")
    if s.way != "auto" or (s.cv is not None and not s.loo):
        return Plan("features", "")
    if s.gpu is not None and not s.loo and n <= MAX_GPU_ROWS:
        return Plan("exact", "the GPU makes K anew in every product")
    held = (SQUARES if s.loo else 2.0) * n * n
    return (
        Plan("exact", "half of K in float32 fits the memory limit")
        if held <= s.memory
        else Plan("features", "")
    )


def moments_fit(D: int, folds: int, memory: float) -> bool:
    """Whether the folds' moments, those without each, and the workspace of a solve fit."""
    return square_bytes(D, folds) <= memory


def square_bytes(D: int, folds: int) -> float:
    return 8.0 * D**2 * (2 * folds + 4)


@register("ridge.TrainingRows")
@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of one `fit` that count: X (n, d), Y (n, q), their weights and folds; those of
    weight zero wait aside."""

    X: Table
    Y: Array
    weight: Array | None
    folds: Folds  # fixed by the rows
    gram: bool = False  # whether X is a kernel matrix
    idle: tuple[Array, Table] | None = None  # which of all rows have weight zero, and those rows
    kept: Array | None = None  # columns of kernel matrices to come that belong to rows that count

    must = dict(
        X=Is("Table"),
        Y=Floats("n", "q"),
        weight=Floats("n", low=0) | None,
        folds=Is("Folds"),
        idle=Each(Truths(None), Is("Table")) | None,
        kept=Ints("n", below=1 << 62, distinct=True) | None,
    )

    def _laws(self) -> str | None:
        n, given = len(self.Y), self.folds.given
        if not n or len(self.X) not in (
            n,
            0,
        ):  # rows that are those of the solution are left out of files
            return f"has {len(self.X)} rows and {n} targets"
        if given is not None and len(given) != n:
            return f"has folds of {len(given)} rows, not of {n}"
        if self.gram and self.X.width != n:
            return f"has a kernel matrix of {self.X.width} columns for {n} rows"
        return None if self.idle is None else self._of_idle(*self.idle)

    def _of_idle(self, mask: Array, X: Table) -> str | None:
        if int(mask.sum()) != len(X) or int((~mask).sum()) != len(self.Y):
            return f"has {len(X)} rows of weight zero beside {len(self.Y)}, which are not those that are marked"
        return (
            None
            if not len(self.X) or X.width == self.X.width
            else f"has rows of weight zero with {X.width} columns"
        )

    @classmethod
    def of(cls, X: Table, Y: Array, weight: Array | None, cv: Any, *, gram: bool) -> Self:
        """Copies, but for rows of more than 64 MB."""
        folds = Folds.of_rows(cv, Items(X.data) if X.items else X.data, Y)
        every = cls(X, Y, weight, folds, gram)
        on = np.arange(len(Y)) if weight is None else np.flatnonzero(weight)
        if not len(on):
            raise ValueError(
                "sample_weight is zero for every row; give some row a positive weight."
            )
        if len(on) == len(Y) and not X.items and not X.sparse and X.data.nbytes > LARGE:
            return replace(every, Y=Y[on], weight=None if weight is None else weight[on])
        if len(on) == len(Y):
            return every.some(on)
        mask = np.isin(np.arange(len(Y)), on, invert=True)
        return replace(
            every.some(on),
            idle=(mask, every.between(np.flatnonzero(mask), on)),
            kept=on if gram else None,
        )

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def weights(self) -> Array:
        return np.ones(len(self.Y)) if self.weight is None else self.weight

    def between(self, rows: Array, cols: Array) -> Table:
        """These rows: of a kernel matrix, against the rows `cols`."""
        return Table(self.X.data[np.ix_(rows, cols)]) if self.gram else self.X[rows]

    def some(self, rows: Array) -> Self:
        """The problem of some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(
            self,
            X=self.between(rows, rows),
            Y=self.Y[rows],
            weight=weight,
            folds=self.folds.among(rows),
            idle=None,
            kept=None,
        )

    def fold(self) -> Array:
        return fold_of(self.folds, self.X)

    def spread(self) -> Array:
        return spread(self.Y, self.weight)

    def scores(self, errors: Array) -> Array:
        """R^2 (a,) from mean squared errors (a, q)."""
        variance = self.spread() / (len(self.Y) if self.weight is None else self.weight.sum())
        return np.asarray(1 - (errors / np.where(variance > 0, variance, 1)).mean(axis=1))


def fold_of(folds: Folds, X: Table) -> Array:
    """The fold of every row."""
    return folds.of(Items(X.data) if X.items else X.data)


@register("ridge.Weights")
@dataclass(frozen=True, eq=False)
class Weights:
    """f = sum_j coef_j g_j + intercept for a penalty alpha, over features or rows g: coef (m, q),
    intercept (q,)."""

    alpha: Any
    coef: Array
    intercept: Array

    must = dict(
        alpha=Number(0) | Floats() | Floats("q"), coef=Floats("D", "q"), intercept=Floats("q")
    )

    def _laws(self) -> str | None:
        return None if self.coef.shape[1] else "is of no output"

    @property
    def size(self) -> int:
        """m"""
        return len(self.coef)

    @property
    def outputs(self) -> int:
        """q"""
        return int(self.coef.shape[1])

    def misfit(self, size: int, flat: bool) -> str | None:
        """What is wrong where there should be so many coefficients an output, and one output where
        y had one axis."""
        if self.size != size:
            return f"has {self.size} coefficients of {size} features or rows"
        return (
            f"has {self.outputs} outputs where y had one axis"
            if flat and self.outputs != 1
            else None
        )

    def shaped(self, flat: bool) -> tuple[Array, Any]:
        """Coefficients and intercept; of one output without an axis, where y had none."""
        return (self.coef[:, 0], float(self.intercept[0])) if flat else (self.coef, self.intercept)


Refit = Callable[
    [RidgeSettings, TrainingRows], Any
]  # the fit of a part of the rows, by whichever way they then ask for
