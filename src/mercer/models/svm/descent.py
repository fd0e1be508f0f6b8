"""Duals solved by coordinates over rows of features: sweeps while they close the gap, another way
where they do not."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.logs import logger
from mercer.models.linear import MANY, FeatureRows
from mercer.models.newton import Minimum
from mercer.models.sparse_rows import SparseRows
from mercer.models.svm.gram import padded
from mercer.models.svm.problem import DualProblem, DualSolution
from mercer.models.svm.solver import solve_one_block

CHECK = 10  # sweeps between two looks at the duality gap
PATIENCE = 60  # sweeps before multipliers take over
SQUARE = 1024  # sparse rows whose n x n products are taken where sweeps do not close the gap
SLOW = 0.95  # a look that leaves more of the gap than this asks for the other way
LONG = 50  # rounds of a smooth problem after which the next is no sharper
STALE = 5  # looks without a better gap after which rounding, not work, is what is left
SHARPEST = {4: 8.0, 8: 64.0}  # by the size of a float: beyond it the rounding of scores shows in a

LOG = logger("svm")
HingeRows = FeatureRows | SparseRows
Look = tuple[float, Array, Array, float]  # the objective, the model, its scores, the relative gap


@dataclass(frozen=True, eq=False)
class MinimumWithGap(Minimum):
    """A minimum with its relative duality gap where it is known, whether rounding, not work, is what
    is left of it, and where a next one may start: duals, or a model."""

    gap: float | None = None
    stale: bool = False
    last: Array | None = None


class CoordinateDual(ABC):
    """A dual with one variable a row, a within bounds of the weights c, and the multiplier b of its
    sum where there is an intercept."""

    rows: HingeRows
    a: Array
    b: float

    def __init__(self, rows: HingeRows, c: Array, intercept: bool) -> None:
        self.rows, self.c, self.intercept, self.on = rows, c, intercept, c > 0
        self.square = rows.squares
        self.scale = float(self.square[self.on].mean()) or 1.0
        self.sparse, self.sharpness, self.took = isinstance(rows, SparseRows), 0.25, 0
        self.square_left = self.sparse and rows.n <= SQUARE
        self.random = np.random.Generator(np.random.Philox(0))

    def solve(self, tol: float, most: int) -> MinimumWithGap:
        """Sweeps while they close the gap, else one block of few sparse rows or the method of
        multipliers (for few rows after 60 sweeps), until neither helps."""
        few = self._are_few()
        rounds, passes, stale, best, sweeping = 0, 4, 0, self._look(), True
        while best[-1] > tol and rounds < most and stale < STALE:
            a, b = self.a.copy(), self.b
            if sweeping:
                steps = CHECK // 2 if rounds < CHECK and self.sparse else CHECK
                took = self._sweeps(min(steps, most - rounds))
            else:
                took = self._otherwise(min(tol, 1e-5), most - rounds)
            found, before = self._look(), best[-1]
            best = min(best, found, key=lambda v: v[-1])
            rounds, passes = rounds + took, passes + took + 3
            LOG.info("%d rounds over features: relative gap %.1e", rounds, best[-1])
            if not (few or sweeping or found is best):
                self.a, self.b = a, b  # worse than what the sweeps had
            stale = 0 if found is best or rounds < PATIENCE else stale + 1
            good = in_time(best[-1], before, tol, (most - rounds) / max(took, 1))
            sweeping = rounds < PATIENCE or (not few and good == sweeping)
        value, theta, f, gap = best
        return MinimumWithGap(
            theta,
            f,
            value,
            rounds,
            passes,
            self.rows.n,
            False,
            gap <= tol,
            gap,
            gap > tol and stale >= STALE,
            np.append(self.a, self.b),
        )

    def _are_few(self) -> bool:
        """Whether rows are few enough for another way to be cheap."""
        rows = self.rows
        return rows.n <= (MANY if isinstance(rows, SparseRows) else len(rows.sample()))

    def _otherwise(self, tol: float, most: int) -> int:
        """All pairs of few sparse rows, once; else multipliers."""
        if not (self.square_left and isinstance(self.rows, SparseRows)):
            most_sharp = SHARPEST[8 if self.sparse else self.rows.dtype.itemsize]
            if self.took <= LONG:
                self.sharpness = min(4 * self.sharpness, most_sharp)
            self.took = self._multiply(tol, most)
            return self.took
        self.square_left, on = False, np.flatnonzero(self.on)
        K = padded(len(on), np.float64)
        K[:, : len(on)] = self.rows.gram(on)
        found = solve_one_block(K, self._problem(on), tol, most)
        self._take(on, found)
        return max(found.rounds, 1)

    @abstractmethod
    def _look(self) -> Look:
        """The objective of the model of a, that model, its scores and its relative gap."""

    @abstractmethod
    def _sweeps(self, steps: int) -> int:
        """So many sweeps, and how many there were."""

    @abstractmethod
    def _multiply(self, tol: float, most: int) -> int:
        """One smooth problem about a, of this sharpness; the rounds it took."""

    @abstractmethod
    def _problem(self, on: Array) -> DualProblem:
        """The same problem of some rows, by its kernel matrix."""

    @abstractmethod
    def _take(self, on: Array, found: DualSolution) -> None:
        """Go on from its solution."""

    def _theta(self, coef: Array, b: float) -> Array:
        return np.append(coef, b)[:, None] if self.intercept else coef[:, None]


def in_time(gap: float, before: float, tol: float, looks: float) -> bool:
    """Whether a gap that a look made of the one before is at tol after so many more at this rate.

    >>> in_time(0.1, 0.2, 0.01, 4), in_time(0.1, 0.2, 0.01, 3), in_time(0.1, 0.1, 0.01, 100)
    (True, False, False)
    """
    return gap < SLOW * before and (
        gap <= tol or math.log(gap / tol) <= looks * math.log(before / gap)
    )
