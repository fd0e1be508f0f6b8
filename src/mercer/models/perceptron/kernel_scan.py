"""The kernel perceptron's scan: rows or a given matrix as its source, a comparator beside it, and
what it leaves behind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Table
from mercer.invariants import Counts, Is, Text, Whole
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.base import positive, whole
from mercer.kernels.defaults import is_open, is_precomputed
from mercer.kernels.named import NamedKernel
from mercer.kernels.rkhs import RKHSFunction
from mercer.kernels.settle import settles_to
from mercer.logs import logger
from mercer.models.expansion import scaled_kernel_at
from mercer.models.perceptron.budget import (
    BLOCK,
    POLICIES,
    SQUARE,
    Scanner,
    UpdateRule,
    finite,
    forgetron_bound,
)
from mercer.models.perceptron.scan import MistakeBound, margins
from mercer.models.settings import FittedKernel, KernelSetting, shown
from mercer.operators import GivenOperator, KernelOperator
from mercer.ops import budget as ops
from mercer.plans import Plan
from mercer.store import register

LOG = logger("perceptron")

Comparator: TypeAlias = RKHSFunction | Iterable[RKHSFunction] | None


@dataclass(frozen=True, eq=False)
class TableSource:
    """Rows of a table, compared by a kernel."""

    kernel: Kernel
    table: Table

    def __len__(self) -> int:
        return len(self.table)

    def take(self, rows: Array) -> Table:
        return self.table[rows]

    def values(self, piece: Table, points: Table) -> Array:
        return np.asarray(self.kernel(piece, points))

    def join(self, points: Table, piece: Table, index: Array) -> Table:
        """The points and the rows of a piece, one after the other, in another order."""
        a, b = points.data, piece.data
        if points.items:
            return Table([(*a, *b)[i] for i in index])
        return Table(
            sp.vstack([a, b], format="csr")[index]
            if points.sparse
            else np.concatenate([a, b])[index],
            points.columns,
        )


@dataclass(frozen=True, eq=False)
class GramSource:
    """Rows that are known by a given kernel matrix; points are positions."""

    K: GivenOperator

    def __len__(self) -> int:
        return self.K.shape[0]

    def take(self, rows: Array) -> Array:
        return rows

    def values(self, piece: Array, points: Array) -> Array:
        return self.K.block(piece, points)

    def join(self, points: Array, piece: Array, index: Array) -> Array:
        return np.concatenate([points, piece])[index]


def source_of(kernel: FittedKernel, rows: Table) -> TableSource | GramSource:
    """Rows to scan, as the kernel reads them."""
    if isinstance(kernel, str):
        return GramSource(GivenOperator(rows.data))
    return TableSource(kernel, rows)


def rule_of(m: Any) -> UpdateRule:
    """The settings of an estimator, checked."""
    if not (isinstance(m.policy, str) and m.policy in POLICIES):
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, got {shown(m.policy)!r}.")
    margin, eta = positive(shown(m.margin), "margin", zero=True), positive(shown(m.eta), "eta")
    power = (
        0.0
        if isinstance(m.average, bool | np.bool_)
        else positive(shown(m.average), "average", zero=True)
    )
    if m.budget is None:
        return UpdateRule(eta=eta, margin=margin, power=power)
    margin = margin or float(m.policy == "projectron++")
    return UpdateRule(
        POLICIES[m.policy], whole(shown(m.budget), "budget", least=2), eta, margin, power
    )


@register("perceptron.KernelScan")
@dataclass(frozen=True, eq=False)
class KernelScan:
    """A scan that keeps points: its kernel (or "precomputed"), the points and their weights, and of
    one `fit` the mistakes of its rows."""

    kernel: FittedKernel
    scanner: Scanner
    steps: int = 1  # passes
    bound: MistakeBound | None = None  # that of the comparator, where there is one
    counts: Array | None = None
    converged: bool | None = None
    plan: Plan | None = None

    must = dict(
        kernel=Is("Kernel") | Text("precomputed"),
        scanner=Is("Scanner"),
        steps=Whole(1),
        bound=Is("MistakeBound") | None,
        counts=Counts(None) | None,
        plan=Is("Plan") | None,
    )

    def _laws(self) -> str | None:
        given = isinstance(self.kernel, str)
        return (
            None
            if given == isinstance(self.scanner.points, np.ndarray)
            else "has points that its kernel does not read"
        )

    @property
    def given(self) -> bool:
        """Whether points are positions in a given kernel matrix."""
        return is_precomputed(self.kernel)

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items and given matrices."""
        points = self.scanner.points
        return None if self.given or points.items else points.width

    @property
    def mistakes(self) -> int:
        return self.scanner.count(ops.MISTAKES)

    def continued(self) -> KernelScan:
        """For more rows: nothing is said of those of one `fit` any more."""
        return replace(self, counts=None, converged=None)

    def weights(self, average: bool | float) -> Array:
        """(C, n): those of the last hypothesis, or a mean of all."""
        last = isinstance(average, bool | np.bool_) and not average
        return self.scanner.weights if last else self.scanner.mean

    @np.errstate(over="ignore", invalid="ignore")
    def decision(self, X: Table, average: bool | float) -> Array:
        """f(x), (n, C)."""
        W = self.weights(average).T
        if not len(W):
            out = np.zeros((len(X), W.shape[1]), X.dtype)
        elif isinstance(self.kernel, str):
            out = GivenOperator(X.data).restrict(slice(None), self.scanner.points) @ W
        else:
            out = KernelOperator(self.kernel, X, self.scanner.points.astype(X.dtype)) @ W
        out = out.astype(X.dtype, copy=False)
        finite(out)
        return out

    # scanning
    def over(
        self,
        X: Table,
        labels: Array,
        us: list[RKHSFunction],
        order: Array | None = None,
        slots: Array | None = None,
    ) -> tuple[KernelScan, Array]:
        """The scan after one pass, on a copy of its state; and which rows were mistakes."""
        scanner, bound = self.scanner.copy(), self.bound
        wrong = scanner.scan(source_of(self.kernel, X), labels, order, slots)
        if bound is not None:
            m = margins(values_of(us, X), labels)
            hinge = bound.hinge + float(np.maximum(0, 1 - m).sum())
            radius = math.sqrt(scanner.memory.tally[ops.RADIUS])
            bound = replace(
                bound, radius=radius, margin=min(bound.margin, float(m.min())), hinge=hinge
            )
        return replace(self, scanner=scanner, bound=bound), wrong

    def repeated(
        self,
        X: Table,
        labels: Array,
        us: list[RKHSFunction],
        most: int,
        rng: np.random.RandomState | None,
    ) -> KernelScan:
        """Pass after pass until one makes no mistake, in a new order each where there is an
        `rng`."""
        n, scan, steps = len(labels), self, 0
        counts, slots = np.zeros(n, np.int64), np.full(n, -1)
        for _ in range(most):
            scan, wrong = scan.over(
                X, labels, us, None if rng is None else rng.permutation(n), slots
            )
            counts, steps = counts + wrong, steps + 1
            LOG.info("pass %d: %d mistakes", steps, np.count_nonzero(wrong))
            if not wrong.any():
                break
        return replace(scan, steps=steps, counts=counts, converged=not wrong.any())

    def planned(self, kept: str, width: int, why: str) -> KernelScan:
        """With its plan, for rows of so many columns."""
        s = self.scanner
        n, seen, (C, room) = s.count(ops.SIZE), s.count(ops.SEEN), s.memory.A.shape
        settings = {
            "points": n,
            "kept": kept,
            "rows": seen,
            "mistakes": self.mistakes,
            "acted": s.count(ops.REDUCED),
        }
        size = 8.0 * (
            room**2 * (s.rule.policy in SQUARE)
            + room * (2 * C + width)
            + BLOCK * (room + 2 * BLOCK)
        )
        return replace(
            self,
            plan=Plan(
                "ordered scan", why, settings, size, 2.0 * seen * n * (C + width), self.steps
            ),
        )

    # that a stream goes on as it began
    def check_same(
        self, rule: UpdateRule, kernel: KernelSetting, rows: Table, *, compared: bool
    ) -> None:
        """Refuse settings that changed in the middle of a stream."""
        changed = [
            f.name
            for f in fields(rule)
            if getattr(rule, f.name) != getattr(self.scanner.rule, f.name)
        ]
        changed += [] if self._is_of(kernel, rows) else ["kernel"]
        changed += ["comparator"] if compared == (self.bound is None) else []
        if changed:
            names = ", ".join("average" if name == "power" else name for name in changed)
            raise ValueError(
                f"{names} changed in the middle of a stream; set it back, or begin anew with fit."
            )

    def _is_of(self, kernel: KernelSetting, rows: Table) -> bool:
        if is_open(kernel):  # scaled to the first rows
            return isinstance(self.kernel, Gaussian)
        if isinstance(kernel, NamedKernel) and kernel.gamma == "scale":
            return type(self.kernel) is type(kernel.at(rows))
        if rows.items:
            return settles_to(kernel, self.kernel)
        return not is_precomputed(kernel) and bool(scaled_kernel_at(kernel, rows) == self.kernel)

    # bounds
    def mistake_bound(self) -> float:
        """That of the comparator; AttributeError where none holds."""
        rule, b = self.scanner.rule, self.bound
        if b is None:
            raise AttributeError(
                "bound_ needs a comparator from the start; give comparator=u, or ask mistake_bound(X, y)."
            )
        if rule.margin > 0:
            raise AttributeError(
                "bound_ is that of the perceptron, with margin=0; steps for margin errors have none here."
            )
        if self.scanner.count(ops.REDUCED) == 0:
            return b.value
        bound = (
            forgetron_bound(b.radius * b.norm, b.hinge, rule.budget)
            if rule.policy == ops.FORGETRON
            else math.inf
        )
        if math.isinf(bound):
            raise AttributeError(
                "no bound holds any more, as the policy has acted; the forgetron has one, for comparators small enough."
            )
        return bound


def comparators(given: Comparator, kernel: FittedKernel, classes: int) -> list[RKHSFunction]:
    """Functions of this kernel's space, one for two classes, else one a class."""
    came, need = (
        list(given) if isinstance(given, Iterable) else [given],
        1 if classes == 2 else classes,
    )
    us = [u for u in came if isinstance(u, RKHSFunction) and u.kernel == kernel]
    if is_precomputed(kernel) or len(came) != need or len(us) != need:
        raise ValueError(
            f"comparator must be {need} RKHSFunction(s) of the kernel {kernel!r}, got {_kinds(came)}."
        )
    return us


@np.errstate(over="ignore", invalid="ignore")
def values_of(us: list[RKHSFunction], X: Table) -> Array:
    """u(x) of every row, (n, C)."""
    return finite(np.column_stack([KernelOperator(u.kernel, X, u.points) @ u.weights for u in us]))


def _kinds(values: Sequence[object]) -> str:
    """What came, by types: values may be long."""
    names = [
        f"a function of {u.kernel!r}" if isinstance(u, RKHSFunction) else type(u).__name__
        for u in values[:3]
    ]
    return f"{len(values)}: {', '.join(names)}{' ...' if len(values) > 3 else ''}"
