"""What a scan over rows is told: its settings, labels and comparators, checked, and that a stream goes on as it began."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.estimators.rows import OverFittedRows, shown
from mercer.inputs import Array, Table
from mercer.invariants import Counts, Is
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.base import positive, whole
from mercer.kernels.rkhs import RKHSFunction
from mercer.learners.budget import POLICIES, Rule, Scanner, finite
from mercer.learners.perceptron import Bound
from mercer.models.settings import check_same_classes, coded
from mercer.operators import KernelOperator


class Scanning(OverFittedRows):
    """The checks of `KernelPerceptron`."""

    budget: Any
    policy: Any
    average: Any
    margin: Any
    eta: Any
    comparator: Any
    scanner_: Scanner
    classes_: Array
    kernel_: Any
    _bound: Bound | None = None

    must = dict(scanner_=Is("Scanner"), counts_=Counts(None))

    def _laws(self) -> str | None:
        K, found = len(self.classes_), len(self.scanner_.memory.A)
        C = K if K > 2 else 1
        return None if found == C and K > 1 else f"has weights of {found} classes, not {C}"

    def _rule(self) -> Rule:
        """The settings, checked."""
        if not (isinstance(self.policy, str) and self.policy in POLICIES):
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, got {shown(self.policy)!r}.")
        margin, eta = positive(shown(self.margin), "margin", zero=True), positive(shown(self.eta), "eta")
        power = 0.0 if isinstance(self.average, bool | np.bool_) else positive(shown(self.average), "average", zero=True)
        if self.budget is None:
            return Rule(eta=eta, margin=margin, power=power)
        margin = margin or float(self.policy == "projectron++")
        return Rule(POLICIES[self.policy], whole(shown(self.budget), "budget", least=2), eta, margin, power)

    def _same(self, rule: Rule, rows: Table, classes: Any) -> None:
        """A stream goes on as it began, or not at all."""
        check_same_classes(classes, self.classes_)
        changed = [f.name for f in fields(rule) if getattr(rule, f.name) != getattr(self.scanner_.rule, f.name)]
        changed += [] if self._same_kernel(rows) else ["kernel"]
        changed += ["comparator"] if (self.comparator is None) != (self._bound is None) else []
        if changed:
            names = ", ".join("average" if name == "power" else name for name in changed)
            raise ValueError(f"{names} changed in the middle of a stream; set it back, or begin anew with fit.")

    def _same_kernel(self, rows: Table) -> bool:
        if self.kernel is None or (isinstance(self.kernel, str) and self.kernel == "rbf"):  # scaled to the first rows
            return isinstance(self.kernel_, Gaussian)
        return isinstance(self.kernel, Kernel | str) and self.kernel != "precomputed" and bool(self._resolved(rows) == self.kernel_)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Table, Array]:
        rows, y = self._checked_pair(X, y, reset=reset)
        check_classification_targets(y)
        return rows, y

    def _labels(self, y: Array) -> Array:
        """-1 and 1, or positions in `classes_`."""
        return coded(y, self.classes_)

    def _functions(self, given: Any) -> list[RKHSFunction]:
        us = list(given) if isinstance(given, Iterable) else [given]
        need = 1 if len(self.classes_) == 2 else len(self.classes_)
        if self._pairwise or len(us) != need or not all(isinstance(u, RKHSFunction) and u.kernel == self.kernel_ for u in us):
            raise ValueError(f"comparator must be {need} RKHSFunction(s) of the kernel {self.kernel_!r}, got {_kinds(us)}.")
        return us

    @np.errstate(over="ignore", invalid="ignore")
    def _of(self, us: list[RKHSFunction], source: Any) -> Array:
        """u(x) of every row, (n, C)."""
        return finite(np.column_stack([KernelOperator(u.kernel, source.table, u.points) @ u.weights for u in us]))


def _kinds(values: list[Any]) -> str:
    """What came, by types: values may be long."""
    names = [f"a function of {u.kernel!r}" if isinstance(u, RKHSFunction) else type(u).__name__ for u in values[:3]]
    return f"{len(values)}: {', '.join(names)}{' ...' if len(values) > 3 else ''}"
