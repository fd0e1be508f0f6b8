"""What a kernel PCA is asked for, checked, and the way that rows and settings lead to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from mercer import methods
from mercer.inputs import Table
from mercer.kernels.defaults import is_precomputed
from mercer.lifts.widths import width
from mercer.models.base import bytes_of
from mercer.models.expansion import kernel_at
from mercer.models.maps import FittedMap, default_features, fitted_map
from mercer.models.pca.eigenvectors import DENSE
from mercer.models.settings import KernelSetting, LiftSetting, Seed, way_of, whole
from mercer.plans import Plan

DUAL = ("exact", "iterative")
MOST_ROWS = 5000  # that via="auto" takes the kernel matrix of


@dataclass(frozen=True, eq=False)
class PCASettings:
    """The parameters of `KernelPCA`, checked: `way` and `method` are what `via` says, `memory` is
    in bytes."""

    n_components: int
    kernel: KernelSetting
    lift: LiftSetting
    way: str
    method: methods.Method
    memory: float
    random_state: Seed

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        k, memory = whole(m.n_components, "n_components"), bytes_of(m.memory_limit)
        way, method = way_of(m.via, m.kernel, m.lift)
        return cls(k, m.kernel, m.lift, way, method, memory, m.random_state)

    @property
    def precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    def map_of(self, X: Table) -> FittedMap:
        """The map that was asked for, fitted to these rows."""
        return fitted_map(
            self.kernel, self.lift, self.method, X, seed=self.random_state, memory=self.memory
        )

    def own_width(self, X: Table) -> int | None:
        """The features that the kernel itself has of such rows; None where there are none, or
        endless many, or nothing is left open."""
        open_ = self.lift is None and self.way == "auto" and not self.precomputed and not X.items
        return width(kernel_at(self.kernel, X), X[:1]) if open_ else None

    def too_wide(self, D: int) -> bool:
        """Whether D x D moments, a batch's and the workspace of their eigenvectors are beyond the
        memory limit."""
        return self.memory < 24.0 * D**2


def choose(n: int, own: int | None, s: PCASettings, *, items: bool = False) -> Plan:
    """The way of n rows, of numbers or items, whose kernel has `own` features: "features", or the
    matrix, "exact" or "iterative"."""
    if s.lift is not None or s.way in ("features", "landmarks"):
        if s.precomputed:
            raise ValueError(
                "kernel='precomputed' has no features; give via='exact', 'iterative' or 'auto'."
            )
        return Plan("features", "asked for")
    if s.way in DUAL:
        return Plan(s.way, "asked for")
    matrix = Plan(
        "exact" if n <= DENSE else "iterative",
        "the kernel has no features that are fewer than the rows ask for",
    )
    if s.precomputed or items:
        return matrix
    few = own is not None and own <= default_features(n)
    return matrix if n <= MOST_ROWS and not few else Plan("features", "few features, or many rows")
