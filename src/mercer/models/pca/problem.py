"""What a kernel PCA is asked for, checked, and the way that rows and settings lead to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from mercer import methods
from mercer.inputs import Table
from mercer.kernels.defaults import is_precomputed, kernel_of
from mercer.lifts.widths import default_features, width
from mercer.models.base import bytes_of
from mercer.models.expansion import kernel_at
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.pca.eigenvectors import way_of as matrix_way
from mercer.models.settings import KernelSetting, LiftSetting, Seed, checked_flag, way_of, whole
from mercer.plans import Plan

DUAL = ("exact", "iterative")
MOST_ROWS = 5000  # that via="auto" takes the kernel matrix of


@dataclass(frozen=True, eq=False)
class PCASettings:
    """The parameters of `KernelPCA`, checked: `way` and `method` are what `via` says, `memory` is
    in bytes; `trims` where components of no variance are left out."""

    n_components: int | None
    kernel: KernelSetting
    lift: LiftSetting
    way: str
    method: methods.Method
    memory: float
    random_state: Seed
    trims: bool = False

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        k = None if m.n_components is None else whole(m.n_components, "n_components")
        memory, kernel = bytes_of(m.memory_limit), kernel_of(m)
        way, method = way_of(m.via, kernel, m.lift)
        trims = checked_flag(m.remove_zero_eig, "remove_zero_eig") or k is None
        return cls(k, kernel, m.lift, way, method, memory, m.random_state, trims)

    @property
    def precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    def map_of(self, X: Table, count: int | None = None) -> FittedMap:
        """The map that was asked for, fitted to these rows, or to some of so many."""
        return fitted_map(
            self.kernel,
            self.lift,
            self.method,
            X,
            seed=self.random_state,
            memory=self.memory,
            count=count,
        )

    def own_width(self, X: Table) -> int | None:
        """The features that the kernel itself has of such rows; None where there are none, or
        endless many, or nothing is left open."""
        open_ = self.lift is None and self.way == "auto" and not self.precomputed and not X.items
        return width(kernel_at(self.kernel, X), X[:1]) if open_ else None

    def most(self, size: int) -> int:
        """The components there can be, of so many features or rows."""
        return size if self.n_components is None else min(self.n_components, size)

    def too_wide(self, D: int) -> bool:
        """Whether D x D moments, a batch's and the workspace of their eigenvectors are beyond the
        memory limit."""
        wide = self.memory < 24.0 * D**2
        if wide and self.n_components is None:
            raise ValueError(
                f"n_components=None keeps all directions of {D:,} features, which are beyond memory_limit; give their number."
            )
        return wide


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
        matrix_way(n, s.most(n)),
        "the kernel has no features that are fewer than the rows ask for",
    )
    if s.precomputed or items:
        return matrix
    few = own is not None and own <= default_features(n)
    return matrix if n <= MOST_ROWS and not few else Plan("features", "few features, or many rows")
