"""Frequent directions: a small matrix B whose B'B is near the A'A of all rows seen, whatever their
number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Number, Whole
from mercer.store import register


@register("stats.FrequentDirections")
@dataclass(eq=False)
class FrequentDirections:
    """B (at most 2 size rows) with 0 <= A'A - B'B <= loss I and loss <= |A - A_k|_F^2 / (size - k)
    for every k < size.

    Merging keeps the bound (losses add) but is not associative to the last bit. Liberty, Simple and
    deterministic matrix sketching (2013); Ghashami, Liberty, Phillips and Woodruff (2016).

    >>> A = np.random.default_rng(0).normal(size=(1000, 10)) @ np.diag(0.5 ** np.arange(10))
    >>> f = FrequentDirections.of(A, 6)
    >>> bool(np.linalg.norm(A.T @ A - f.B.T @ f.B, 2) <= f.loss), len(f.B) <= 12
    (True, True)
    """

    size: int
    B: Array
    loss: float = 0.0

    must = dict(size=Whole(1), B=Floats("r", "d"), loss=Number(0))

    @classmethod
    def zero(cls, d: int, size: int) -> FrequentDirections:
        return cls(size, np.zeros((0, d)))

    @classmethod
    def of(cls, rows: Array, size: int) -> FrequentDirections:
        return cls.zero(rows.shape[1], size).add(rows)

    def add(self, rows: Array) -> FrequentDirections:
        """With these rows too."""
        out, step = self, max(self.size, 256)
        for start in range(0, len(rows), step):
            out = FrequentDirections(
                out.size, np.vstack([out.B, rows[start : start + step]]), out.loss
            )._shrunk()
        return out

    def _shrunk(self) -> FrequentDirections:
        """Take the (size)-th largest squared singular value away from all, where there are more
        than 2 size rows."""
        if len(self.B) <= 2 * self.size:
            return self
        _, values, right = np.linalg.svd(self.B, full_matrices=False)
        cut = values[self.size - 1] ** 2 if len(values) >= self.size else 0.0
        kept = np.sqrt(np.maximum(values**2 - cut, 0))
        B = (kept[:, None] * right)[kept > 0]
        return FrequentDirections(self.size, B, self.loss + float(cut))

    def __add__(self, o: FrequentDirections) -> FrequentDirections:
        if self.size != o.size:
            raise ValueError(
                f"sketches of size {self.size} and {o.size} cannot merge; give both the same size."
            )
        return FrequentDirections(self.size, np.vstack([self.B, o.B]), self.loss + o.loss)._shrunk()
