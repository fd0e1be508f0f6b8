"""The perceptron over features: what a scan leaves behind, and the bound on its mistakes against a
stated comparator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Counts, Floats, Is, Whole
from mercer.logs import logger
from mercer.models.maps import BATCH_BYTES, FittedMap
from mercer.ops.scan import scan, scan_csr
from mercer.plans import Plan
from mercer.store import register

LOG = logger("perceptron")


@register("perceptron.State")
@dataclass(eq=False)
class ScanState:
    """Weights W (C, D + 1), one row for two classes; U, from which their mean follows; rows seen;
    mistakes made."""

    W: Array
    U: Array
    seen: int = 0
    mistakes: int = 0

    must = dict(W=Floats("C", "p"), U=Floats("C", "p"), seen=Whole(), mistakes=Whole())

    @classmethod
    def zero(cls, classes: int, D: int) -> Self:
        rows = 1 if classes == 2 else classes
        return cls(np.zeros((rows, D + 1)), np.zeros((rows, D + 1)))

    def copy(self) -> ScanState:
        return replace(self, W=self.W.copy(), U=self.U.copy())

    def scan(self, F: Matrix, labels: Array, *, offset: bool) -> Array:
        """Take in rows in their order; which of them were mistakes."""
        if (
            self.W.shape != self.U.shape
            or self.W.shape[1] != F.shape[1] + 1
            or len(labels) != F.shape[0]
        ):
            raise ValueError(
                f"{F.shape[1]} features and {len(labels)} labels for weights {self.W.shape}; give what the scan began with."
            )
        wrong = np.zeros(F.shape[0], bool)
        arrays = (labels, self.W, self.U, float(self.seen), offset, wrong)
        sparse = sp.issparse(F)
        self.mistakes += (
            scan_csr(F.indptr, F.indices, F.data, *arrays)
            if sparse
            else scan(np.ascontiguousarray(F), *arrays)
        )
        self.seen += len(labels)
        return wrong

    @property
    def mean(self) -> Array:
        """The weights on average over all rows seen."""
        return self.W - self.U / max(self.seen, 1)


@register("perceptron.Bound")
@dataclass(frozen=True)
class MistakeBound:
    """M <= (R |u| / margin)^2, and M <= ((R |u| + sqrt(R^2 |u|^2 + 4 L)) / 2)^2 where L = sum
    max(0, 1 - margin_i).

    R is the largest |(x, 1)| (times sqrt 2 for more than two classes, where the margin is that to
    the best rival), u the comparator, L its hinge loss on the rows seen. Both hold for *every* u.
    Novikoff, On convergence proofs on perceptrons (1962); Freund and Schapire, Large margin
    classification using the perceptron algorithm (1999); Mohri and Rostamizadeh, Perceptron mistake
    bounds (2013).

    >>> MistakeBound(norm=2.0, radius=3.0, margin=1.0, hinge=0.0).value
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

    def add(self, F: Matrix, labels: Array, u: Array, *, offset: bool) -> MistakeBound:
        """With these rows too."""
        m, radius = measure(F, labels, u, offset=offset)
        hinge = self.hinge + float(np.maximum(0, 1 - m).sum())
        return MistakeBound(
            self.norm, max(self.radius, radius), min(self.margin, float(m.min())), hinge
        )


@register("perceptron.FeatureScan")
@dataclass(frozen=True, eq=False)
class FeatureScan:
    """A scan over the features of a map: its weights, and of one `fit` also which rows were how
    often mistakes."""

    phi: FittedMap
    state: ScanState
    offset: bool  # whether there is one
    steps: int = 1  # passes
    bound: MistakeBound | None = None  # that of the comparator, where there is one
    counts: Array | None = None
    converged: bool | None = None
    plan: Plan | None = None

    must = dict(
        phi=Is("FittedMap"),
        state=Is("ScanState"),
        steps=Whole(1),
        bound=Is("MistakeBound") | None,
        counts=Counts(None) | None,
        plan=Is("Plan") | None,
    )

    def _laws(self) -> str | None:
        found, D = self.state.W.shape[1], self.phi.width
        return None if found == D + 1 else f"has weights of {found - 1} features, not of {D}"

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.phi.reads

    @property
    def mistakes(self) -> int:
        return self.state.mistakes

    def weights(self, average: bool) -> Array:
        """(C, D + 1): the mean of all hypotheses, or the last."""
        return self.state.mean if average else self.state.W

    def decision(self, X: Table, average: bool) -> Array:
        """phi(x)'w + b, (n, C)."""
        used = self.weights(average)
        W, b = used[:, :-1].T.astype(X.dtype), used[:, -1].astype(X.dtype)
        return np.concatenate(
            [self.phi.transform(X[at]) @ W + b for at in self.phi.sparse_parts(X)]
        )

    def pieces(self, X: Table, labels: Array) -> Iterator[tuple[Matrix, Array]]:
        """Features and labels, batch by batch; sparse features stay sparse."""
        return ((self.phi.transform(X[at]), labels[at]) for at in self.phi.sparse_parts(X))

    def against(self, bound: MistakeBound) -> FeatureScan:
        """The scan with a bound that follows it."""
        return replace(self, bound=bound)

    def continued(self, offset: bool) -> FeatureScan:
        """For more rows: nothing is said of those of one `fit` any more."""
        return replace(self, offset=bool(offset), counts=None, converged=None)

    def comparator(self, u: ArrayLike | None) -> Array:
        """A comparator as weights (C, D + 1)."""
        A = np.atleast_2d(np.asarray(u, dtype=np.float64))
        shape = (len(self.state.W), self.phi.width + self.offset)
        if A.shape != shape or not np.isfinite(A).all():
            offset = ", the offset last" if self.offset else ""
            raise ValueError(
                f"comparator must hold {shape[0]} x {shape[1]} numbers{offset}, got shape {A.shape}."
            )
        return A if self.offset else np.pad(A, ((0, 0), (0, 1)))

    def over(
        self, pieces: Iterable[tuple[Matrix, Array]], u: Array | None
    ) -> tuple[FeatureScan, Array]:
        """The scan after one pass over the pieces, on a copy of the weights; and which rows were
        mistakes."""
        state, bound, found = self.state.copy(), self.bound, []
        for F, labels in pieces:
            if bound is not None and u is not None:
                bound = bound.add(F, labels, u, offset=self.offset)
            found.append(state.scan(F, labels, offset=self.offset))
        if not (np.isfinite(state.W).all() and np.isfinite(state.U).all()):
            raise ValueError(
                "the features of X are too large for sums of floating-point numbers; scale the columns first."
            )
        return replace(self, state=state, bound=bound), np.concatenate(found)

    def repeated(
        self, X: Table, labels: Array, u: Array | None, most: int, rng: np.random.RandomState | None
    ) -> FeatureScan:
        """Pass after pass until one makes no mistake, in a new order each where there is an
        `rng`."""
        scan, steps, counts = self, 0, np.zeros(len(labels), np.int64)
        small = 8 * len(labels) * self.phi.width <= BATCH_BYTES
        held = list(self.pieces(X, labels)) if small else None
        for _ in range(most):
            order = slice(None) if rng is None else rng.permutation(len(labels))
            again = scan.pieces(X[order], labels[order]) if held is None else reordered(held, order)
            scan, wrong = scan.over(again, u)
            counts[order] += wrong
            steps += 1
            LOG.info("pass %d: %d mistakes", steps, np.count_nonzero(wrong))
            if not wrong.any():
                break
        return replace(scan, steps=steps, counts=counts, converged=not wrong.any())

    def planned(self, n: int, why: str) -> FeatureScan:
        """With its plan, of n rows."""
        rows, D = self.state.W.shape
        settings = {
            "lift": type(self.phi.lift).__name__,
            "n_features": D - 1,
            "rows": n,
            "mistakes": self.state.mistakes,
        }
        plan = Plan(
            "ordered scan",
            why,
            settings,
            16.0 * rows * D + BATCH_BYTES,
            2.0 * n * D * rows * self.steps,
            self.steps,
        )
        return replace(self, plan=plan)


def reordered(
    pieces: list[tuple[Matrix, Array]], order: Array | slice
) -> list[tuple[Matrix, Array]]:
    """The same rows as one piece in another order."""
    if isinstance(order, slice):
        return pieces
    F = [F for F, _ in pieces]
    labels = np.concatenate([part for _, part in pieces])
    whole = sp.vstack(F, format="csr") if sp.issparse(F[0]) else np.concatenate(F)
    return [(whole[order], labels[order])]


def best_bound(m: Array, radius: float, norm: float, passes: int) -> float:
    """The least bound over the lengths of a comparator, from its margins on all rows, each seen
    `passes` times.

    >>> round(best_bound(np.array([1.0, 2.0]), radius=3.0, norm=2.0, passes=50), 6)
    36.0
    """
    size = float(np.abs(m).max()) or 1.0
    lengths = np.logspace(-3, 9, 97) / size
    hinges = [passes * float(np.maximum(0, 1 - c * m).sum()) for c in lengths]
    return min(
        MistakeBound(float(c) * norm, radius, float(c * m.min()), h).value
        for c, h in zip(lengths, hinges, strict=True)
    )


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
    return np.asarray(
        own - np.where(np.arange(scores.shape[1]) == labels[:, None], -np.inf, scores).max(axis=1)
    )


def _largest_square(F: Matrix) -> float:
    squares = (
        F.multiply(F).sum(axis=1)
        if sp.issparse(F)
        else np.einsum("ij,ij->i", F, F, dtype=np.float64)
    )
    return float(np.max(squares))
