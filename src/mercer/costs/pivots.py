"""How many pivots a preconditioner on a GPU should have: each costs a column of the matrix and its
share of a factor, and saves products of conjugate gradients.

What pivots leave of the trace tells the spectrum: the trace that a pivot takes away is about the
largest eigenvalue that is left. Steps to a tolerance were .5 to 1.4 of what follows of it (5,000
rows, four kernels, 192 to 1,400 pivots). Seconds are those of one H200.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mercer.costs.choice import choose

ENOUGH, MORE = "as many as there are", "more pivots"
GROWTH = (1.15, 1.4, 2.0, 3.0)  # numbers of pivots that are looked ahead to, of those there are

ROUND = 5e-4  # of a draw of pivots, however few
PIVOT = 4e-6  # of a pivot: its part of what waits in a draw, a root and an inverse
VALUE = 9e-12  # of an entry of a column
FACTOR = 6e-14  # of n r^2: what is left of columns, and the products of the factor
INVERSE = 2e-13  # of r^3: the root of the small matrix, and its inverse
# for few columns, and for many: those of a process are done at .7 of the steps that its target takes
STEP = {False: 2e-4, True: 3.2e-4}  # of a step, however few the rows
PRODUCT = {False: 3.7e-13, True: 7.6e-13}  # of n^2
APPLIED = {False: 2.2e-12, True: 4.2e-12}  # of n r: the preconditioner in a step
FEW = 8  # columns


@dataclass(frozen=True)
class PivotSearch:
    """Equations of n rows for so many columns to a tolerance, with a ridge whose inverse has this
    mean."""

    n: int
    columns: int
    tol: float
    inverse_ridge: float

    def steps(self, eigenvalue: float) -> float:
        """Of conjugate gradients, where the largest eigenvalue that is left is this.

        >>> [round(PivotSearch(1000, 1, 1e-3, 10.0).steps(s)) for s in (0.0, 0.8, 80.0)]
        [4, 11, 108]
        """
        return (
            0.5 * math.sqrt(1 + max(eigenvalue, 0.0) * self.inverse_ridge) * math.log(2 / self.tol)
        )

    def seconds(self, rank: float, eigenvalue: float) -> float:
        """Of the factor of so many pivots, and of the steps that are left."""
        made = rank * (PIVOT + self.n * (VALUE + FACTOR * rank)) + INVERSE * rank**3
        many = self.columns > FEW
        step = STEP[many] + PRODUCT[many] * self.n**2 + APPLIED[many] * self.n * rank
        return made + self.steps(eigenvalue) * step

    def worth_more(self, ranks: Sequence[int], traces: Sequence[float]) -> bool:
        """Whether more pivots than the last of `ranks` pay, by the traces that these left.

        >>> s = PivotSearch(20_000, 16, 1e-3, 10.0)
        >>> s.worth_more([0, 64, 128], [20_000, 6000, 4000])
        True
        >>> s.worth_more([0, 500, 1000], [20_000, 30, 2])
        False
        """
        if len(ranks) < 3:
            return True
        (a, b, c), (s, t, u) = ranks[-3:], traces[-3:]
        before, now = (s - t) / (b - a), (t - u) / (c - b)
        if now <= 0 or u <= 0:
            return False
        # eigenvalues fall by a power of their number, about the middles of the last two draws
        middle, last = (a + b) / 2 or 1.0, (b + c) / 2
        power = (
            min(max(math.log(before / now) / math.log(last / middle), 0.0), 12.0)
            if before > 0
            else 0.0
        )
        here = now * (last / c) ** power
        ahead = (
            min(ROUND + self.seconds(g * c, here * g**-power) for g in GROWTH if g * c <= self.n)
            if GROWTH[0] * c <= self.n
            else math.inf
        )
        return choose("pivots", {ENOUGH: self.seconds(c, here), MORE: ahead}) == MORE
