"""The perceptron: what a scan leaves behind, and the bound on its mistakes against a stated comparator."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix
from mercer.invariants import Floats, Whole
from mercer.ops.scan import scan, scan_csr
from mercer.store import register


@register("perceptron.State")
@dataclass(eq=False)
class State:
    """Weights W (C, D + 1), one row for two classes; U, from which their mean follows; rows seen; mistakes made."""

    W: Array
    U: Array
    seen: int = 0
    mistakes: int = 0

    must = dict(W=Floats("C", "p"), U=Floats("C", "p"), seen=Whole(), mistakes=Whole())

    @classmethod
    def zero(cls, classes: int, D: int) -> Self:
        rows = 1 if classes == 2 else classes
        return cls(np.zeros((rows, D + 1)), np.zeros((rows, D + 1)))

    def copy(self) -> State:
        return replace(self, W=self.W.copy(), U=self.U.copy())

    def scan(self, F: Matrix, labels: Array, *, offset: bool) -> Array:
        """Take in rows in their order; which of them were mistakes."""
        if self.W.shape != self.U.shape or self.W.shape[1] != F.shape[1] + 1 or len(labels) != F.shape[0]:
            raise ValueError(f"{F.shape[1]} features and {len(labels)} labels for weights {self.W.shape}; give what the scan began with.")
        wrong = np.zeros(F.shape[0], bool)
        arrays = (labels, self.W, self.U, float(self.seen), offset, wrong)
        sparse = sp.issparse(F)
        self.mistakes += scan_csr(F.indptr, F.indices, F.data, *arrays) if sparse else scan(np.ascontiguousarray(F), *arrays)
        self.seen += len(labels)
        return wrong

    @property
    def mean(self) -> Array:
        """The weights on average over all rows seen."""
        return self.W - self.U / max(self.seen, 1)


@register("perceptron.Bound")
@dataclass(frozen=True)
class Bound:
    """M <= (R |u| / margin)^2, and M <= ((R |u| + sqrt(R^2 |u|^2 + 4 L)) / 2)^2 where L = sum max(0, 1 - margin_i).

    R is the largest |(x, 1)| (times sqrt 2 for more than two classes, where the margin is that to the best rival), u the
    comparator, L its hinge loss on the rows seen. Both hold for *every* u. Novikoff, On convergence proofs on perceptrons
    (1962); Freund and Schapire, Large margin classification using the perceptron algorithm (1999); Mohri and
    Rostamizadeh, Perceptron mistake bounds (2013).

    >>> Bound(norm=2.0, radius=3.0, margin=1.0, hinge=0.0).value
    36.0
    """

    norm: float
    radius: float = 0.0
    margin: float = math.inf
    hinge: float = 0.0

    @property
    def value(self) -> float:
        """The smaller of the two bounds on the number of mistakes."""
        size = self.radius * self.norm
        by_hinge = ((size + math.sqrt(size**2 + 4 * self.hinge)) / 2) ** 2
        return min(by_hinge, (size / self.margin) ** 2) if self.margin > 0 else by_hinge

    def add(self, F: Matrix, labels: Array, u: Array, *, offset: bool) -> Bound:
        """With these rows too."""
        m, radius = measure(F, labels, u, offset=offset)
        hinge = self.hinge + float(np.maximum(0, 1 - m).sum())
        return Bound(self.norm, max(self.radius, radius), min(self.margin, float(m.min())), hinge)


def best_bound(m: Array, radius: float, norm: float, passes: int) -> float:
    """The least bound over the lengths of a comparator, from its margins on all rows, each seen `passes` times.

    >>> round(best_bound(np.array([1.0, 2.0]), radius=3.0, norm=2.0, passes=50), 6)
    36.0
    """
    size = float(np.abs(m).max()) or 1.0
    lengths = np.logspace(-3, 9, 97) / size
    hinges = [passes * float(np.maximum(0, 1 - c * m).sum()) for c in lengths]
    return min(Bound(float(c) * norm, radius, float(c * m.min()), h).value for c, h in zip(lengths, hinges, strict=True))


def measure(F: Matrix, labels: Array, u: Array, *, offset: bool) -> tuple[Array, float]:
    """The margins of u on these rows, and R."""
    m = margins(F @ u[:, :-1].T + u[:, -1] * offset, labels)
    return m, math.sqrt((2 if len(u) > 1 else 1) * (_largest_square(F) + offset))


def margins(scores: Array, labels: Array) -> Array:
    """y f(x) for two classes, the label's score less that of its best rival for more.

    >>> margins(np.array([[1.0, 3.0, 0.0]]), np.array([1]))
    array([2.])
    """
    if scores.shape[1] == 1:
        return np.asarray(labels * scores[:, 0])
    own = np.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return np.asarray(own - np.where(np.arange(scores.shape[1]) == labels[:, None], -np.inf, scores).max(axis=1))


def _largest_square(F: Matrix) -> float:
    squares = F.multiply(F).sum(axis=1) if sp.issparse(F) else np.einsum("ij,ij->i", F, F, dtype=np.float64)
    return float(np.max(squares))
