"""What a user asks of hyper-parameters: which stay, which share a value, between which bounds, and
what is thought of them before."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mercer.kernels import Kernel
from mercer.models.gp.priors import Prior, check
from mercer.store import register


@register("gp.HyperparameterSpec")
@dataclass(frozen=True)
class HyperparameterSpec:
    """By the names of `kernel.get_params()`, "noise" and "scale", in the units of y.

    fixed : names; "all" of the kernel's; or True, the scale too
    tied : groups of names that share one value
    bounds, priors : by name
    """

    fixed: Collection[str] | str | bool = ()
    tied: Collection[Collection[str]] = ()
    bounds: Mapping[str, tuple[float, float]] | None = None
    priors: Mapping[str, Prior] | None = None

    def __post_init__(self) -> None:
        if (
            self.fixed is not True
            and not (isinstance(self.fixed, str) and self.fixed == "all")
            and not _names(self.fixed)
        ):
            raise ValueError(
                f"fixed must be names in a list, 'all' of the kernel's, or True for all as given, got {self.fixed!r}."
            )
        if not _groups(self.tied):
            raise ValueError(
                f"tied must be groups of two names or more, as in [('a', 'b')], got {self.tied!r}."
            )
        for word, value in (("bounds", self.bounds), ("priors", self.priors)):
            if value is not None and not isinstance(value, Mapping):
                raise ValueError(f"{word} must be by name, as in {{'noise': ...}}, got {value!r}.")
        for name, pair in (self.bounds or {}).items():
            between(name, pair)
        for name, prior in (self.priors or {}).items():
            check(prior, name)

    @property
    def told(self) -> list[str]:
        """The names with bounds or a prior."""
        return [*(self.bounds or ()), *(self.priors or ())]

    @property
    def kept(self) -> list[str]:
        """The names that are fixed one by one."""
        return [] if isinstance(self.fixed, bool | str) else [*self.fixed]

    def named(self) -> set[str]:
        """All names; with an amplitude or all fixed "scale" too, for that is then 1 in the units of
        y."""
        names = {*self.told, *self.kept, *(n for group in self.tied for n in group)}
        return (
            names | {"scale"}
            if self.fixed is True or any(map(amplitude, {*self.told, *self.kept}))
            else names
        )


def amplitude(path: str) -> bool:
    """Whether this is what multiplies a kernel.

    >>> amplitude("terms__1__factor"), amplitude("terms__1__bandwidth")
    (True, False)
    """
    return path.rpartition("__")[2] == "factor"


@register("gp.BoundSpec")
@dataclass(frozen=True, eq=False)
class BoundSpec:
    """A spec read against a kernel: the parameters, by path, that it speaks of."""

    kernel: Kernel
    spec: HyperparameterSpec

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The kernel's parameters, "noise" and "scale"."""
        return (*self.kernel.parameters(), "noise", "scale")

    @cached_property
    def known(self) -> set[str]:
        return {*self.kernel.get_params(), *self.names}

    def members(self, name: str) -> list[int]:
        """Which parameters a name covers."""
        if name not in self.known:
            listed = ", ".join(sorted(self.known)[:20])
            raise ValueError(
                f"{name!r} is not a parameter of the kernel (nor 'noise' or 'scale'); there are {listed}."
            )
        return [i for i, p in enumerate(self.names) if p == name or p.startswith(f"{name}__")]

    def all_of(self, names: Iterable[str]) -> set[str]:
        return {self.names[i] for n in names for i in self.members(n)}

    @cached_property
    def fixed(self) -> set[str]:
        if isinstance(self.spec.fixed, bool | str):
            return {*self.names[:-2], *(["scale"] if self.spec.fixed is True else [])}
        return self.all_of(self.spec.fixed)

    @cached_property
    def told(self) -> set[str]:
        """Those with bounds or a prior."""
        return self.all_of(self.spec.told)

    @cached_property
    def tied(self) -> set[str]:
        return self.all_of(n for group in self.spec.tied for n in group)

    @cached_property
    def absolute(self) -> bool:
        """Whether an amplitude is spoken of: the scale is then 1 in the units of y, or it would
        multiply what was said.

        >>> from mercer.kernels import Gaussian, Linear
        >>> k = Gaussian() + 0.5 * Linear()
        >>> specs = HyperparameterSpec(bounds={"terms__1": (0.1, 1.0)}), HyperparameterSpec(fixed=("terms__0__bandwidth",))
        >>> [BoundSpec(k, s).absolute for s in specs]
        [True, False]
        """
        groups = map(
            self.all_of, self.spec.tied
        )  # of amplitudes alone the ratio matters, but not of the outermost, or with the noise
        tied = {n for group in groups if {"noise", "factor"} & group for n in group}
        return any(map(amplitude, self.fixed | self.told | tied))


def fits(kernel: Kernel, spec: HyperparameterSpec) -> bool:
    """Whether the kernel has all parameters that are named."""
    return spec.named() <= BoundSpec(kernel, spec).known


def between(name: str, pair: Any) -> tuple[float, float]:
    """Bounds, checked."""
    try:
        a, b = map(float, pair)
    except (TypeError, ValueError):
        a, b = 1.0, 0.0
    if not 0 < a <= b < math.inf:
        raise ValueError(
            f"the bounds of {name!r} must be two numbers 0 < low <= high, got {pair!r}."
        )
    return a, b


def _names(value: Any) -> bool:
    return (
        isinstance(value, Collection)
        and not isinstance(value, str | bytes | Mapping)
        and all(isinstance(n, str) for n in value)
    )


def _groups(value: Any) -> bool:
    plain = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
    return plain and all(_names(g) and len(g) > 1 for g in value)
