"""The hyper-parameters of a Gaussian process as one vector of logarithms: free, fixed, tied,
bounded, with priors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.kernels import Kernel
from mercer.kernels.algebra import Scale
from mercer.kernels.params import limits, substitute
from mercer.models.gp.hyperparameters import BoundSpec, HyperparameterSpec, between
from mercer.models.gp.priors import Prior

REACH = 1e4  # a kernel's parameter may move by this factor where no bounds are given
SHARE = 0.1  # of noise in y, where a search begins
NOISE, SCALE = (1e-9, 1e4), (1e-9, 1e9)  # bounds in shares of the unit of y, squared


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """The vector z of free log-parameters of a kernel, of the noise and of the scale, and the way
    back to the values.

    z and its bounds are in the units of y, what users speak in; the values that the search sees are
    in `unit`.

    profiled : whether the scale is found in closed form; "noise" then stands for noise / scale
    """

    kernel: Kernel
    names: tuple[str, ...]  # the kernel's parameters, then "noise" and "scale"
    start: Array  # log-values; of fixed ones for good
    group: Array  # which free variable each is, or -1
    lower: Array
    upper: Array
    priors: tuple[tuple[int, Prior], ...]
    profiled: bool
    shift: Array  # log-values less z

    @property
    def size(self) -> int:
        return len(self.lower)

    def first(self, start: Array | None = None) -> Array:
        """The free variables at these log-values; tied ones at their mean."""
        on, logs = self.group >= 0, (self.start if start is None else start) - self.shift
        count = np.bincount(self.group[on], minlength=self.size)
        return np.clip(
            np.bincount(self.group[on], logs[on], self.size) / count, self.lower, self.upper
        )

    def full(self, z: Array) -> Array:
        """All log-parameters, from the free ones."""
        return np.where(
            self.group >= 0, z[self.group] + self.shift if self.size else 0.0, self.start
        )

    def free(self, gradient: Array) -> Array:
        """A gradient by all log-parameters as one by the free ones."""
        on = self.group >= 0
        return np.bincount(self.group[on], gradient[on], self.size)

    def at(self, full: Array) -> Kernel:
        """The kernel with these parameters; fixed ones to the last bit as they were."""
        value = {
            n: v
            for n, v, g in zip(self.names, np.exp(full).tolist(), self.group, strict=True)
            if g >= 0
        }
        return _with(self.kernel, value)

    def prior(self, full: Array) -> tuple[float, Array]:
        """log p(parameters) and its slopes."""
        slope, value = np.zeros(len(full)), 0.0
        for i, p in self.priors:
            v = math.exp(full[i] - self.shift[i])
            value += p.log(v)
            slope[i] += p.slope(v)
        return value, slope


def space(
    kernel: Kernel,
    spec: HyperparameterSpec,
    noise: float | None,
    *,
    reach: Iterable[Kernel] = (),
    scaled: bool = True,
    unit: float = 1.0,
    size: float = 1.0,
) -> SearchSpace:
    """The space of a kernel.

    noise : given, in the units of y, or None to be learnt
    reach : kernels of the same form at which a search may start
    scaled : whether the scale of the kernel is to be learnt; it is not where an amplitude is spoken
    of, see `BoundSpec.absolute`
    unit : of y, in whose square noise and scale are found
    size : of k(x, x), about which noise / scale is sought where the scale is found in closed form

    >>> from mercer.kernels import Gaussian
    >>> s = space(Gaussian((1.0, 2.0)), HyperparameterSpec(tied=[("bandwidth__0", "bandwidth__1")]), None)
    >>> s.size, s.at(s.full(np.log([2.0, 0.1])))
    (2, Gaussian(bandwidth=(2.0, 2.0)))
    """
    bound_spec = BoundSpec(kernel, spec)
    if noise is None and "noise" in bound_spec.fixed:
        raise ValueError(
            "fixed names 'noise', which is to be learnt; give the noise as a number instead."
        )
    scaled = scaled and "scale" not in bound_spec.fixed and not bound_spec.absolute
    profiled = (
        scaled and noise is None and not {"noise", "scale"} & (bound_spec.told | bound_spec.tied)
    )
    held = bound_spec.fixed | {n for n, v in kernel.parameters().items() if v <= 0}
    held |= (
        {"factor"} if scaled and isinstance(kernel, Scale) else set()
    )  # one of two scales is enough
    held |= ({"scale"} if profiled or not scaled else set()) | (
        {"noise"} if noise is not None else set()
    )
    home = math.log(size) if profiled else 2 * math.log(unit)
    level = math.log(SHARE) + home if noise is None else math.log(max(noise, 1e-300))
    z, group = _tied(
        bound_spec,
        held,
        np.append(_logs(kernel), [level, home if scaled and not profiled else 0.0]),
    )
    _check_told(bound_spec, group)
    lower, upper = _bounds(bound_spec, group, z, [*reach], home)
    priors = tuple(
        (i, p)
        for n, p in (spec.priors or {}).items()
        for i in bound_spec.members(n)
        if group[i] >= 0
    )
    shift = np.append(np.zeros(len(z) - 2), np.full(2, 0.0 if profiled else -home))
    kernel = _with(
        kernel,
        {
            n: math.exp(v)
            for n, v, g in zip(bound_spec.names, z, group, strict=True)
            if g < 0 and n not in held
        },
    )
    return SearchSpace(
        kernel, bound_spec.names, z + shift, group, lower, upper, priors, profiled, shift
    )


def times(scale: float, k: Kernel) -> Kernel:
    """scale k, with one scale only; a scale of 1, rounding apart, leaves k as it is.

    >>> from mercer.kernels import Gaussian
    >>> times(3.0, 2.0 * Gaussian())
    6.0 * Gaussian()
    """
    if math.isclose(scale, 1, rel_tol=1e-12):
        return k
    return times(scale * k.factor, k.kernel) if isinstance(k, Scale) else scale * k


def _logs(k: Kernel) -> Array:
    return np.log([v if v > 0 else 1.0 for v in k.parameters().values()])


def _tied(bound_spec: BoundSpec, held: set[str], z: Array) -> tuple[Array, Array]:
    """The log-values with held ones passed on to those tied to them, and the number of the free
    variable of each, or -1."""
    leader, fixed = _leaders(bound_spec), np.array([n in held for n in bound_spec.names])
    for at in (leader == k for k in np.unique(leader[fixed])):
        if np.ptp(z[at & fixed]) > 1e-12:
            names = ", ".join(np.array(bound_spec.names)[at & fixed])
            raise ValueError(
                f"{names} are tied, but held at different values; leave one free, or make them equal."
            )
        z = np.where(at, z[at & fixed][0], z)
    number: dict[int, int] = {}
    return z, np.array(
        [-1 if k in leader[fixed] else number.setdefault(k, len(number)) for k in leader.tolist()]
    )


def _leaders(bound_spec: BoundSpec) -> Array:
    """One index for all that are tied, directly or through others."""
    leader = np.arange(len(bound_spec.names))
    for group in bound_spec.spec.tied:
        members = [bound_spec.members(n) for n in group]
        if not members[0] or len({len(m) for m in members}) > 1:
            raise ValueError(
                f"tied parameters must be learnt, and have as many values as each other, got {tuple(group)!r}."
            )
        if zero := [
            n
            for n, v in bound_spec.kernel.parameters().items()
            if v <= 0 and n in bound_spec.all_of(group)
        ]:
            raise ValueError(
                f"{zero[0]!r} is tied, but not above zero; start it above, or leave it out."
            )
        for i, j in ((i, j) for m in members[1:] for i, j in zip(members[0], m, strict=True)):
            leader[leader == leader[j]] = leader[i]
    return leader


def _with(kernel: Kernel, value: dict[str, float]) -> Kernel:
    return substitute(kernel, lambda path, v: value.get(path, v))


def _check_told(bound_spec: BoundSpec, group: Array) -> None:
    """Bounds and priors must be of something that is learnt."""
    for name in bound_spec.spec.told:
        members = bound_spec.members(name)
        if not any(group[i] >= 0 for i in members):
            raise ValueError(
                f"{name!r} has bounds or a prior, but is not learnt: {_why(bound_spec, members)}."
            )


def _why(bound_spec: BoundSpec, members: Sequence[int]) -> str:
    name = bound_spec.names[members[0]] if members else ""
    if name in ("", "noise"):
        return "the noise is given, or there is none" if name else "it chooses a formula"
    if name == "scale":
        return "the scale is 1 where all is fixed at a given noise, or where it or an amplitude ('factor') is fixed, bounded or has a prior"
    if bound_spec.kernel.parameters()[name] <= 0:
        return "only what starts above zero is"
    return "it is fixed, or tied to what is"


def _bounds(
    bound_spec: BoundSpec, group: Array, z: Array, reach: list[Kernel], home: float
) -> tuple[Array, Array]:
    """The bounds of the free variables, in logarithms: where none are told a reach about all
    starts."""
    starts = np.vstack([z[:-2], *map(_logs, reach)])
    lower = np.append(starts.min(0) - math.log(REACH), home + np.log([NOISE[0], SCALE[0]]))
    upper = np.append(starts.max(0) + math.log(REACH), home + np.log([NOISE[1], SCALE[1]]))
    told = {
        i: np.log(between(n, pair))
        for n, pair in (bound_spec.spec.bounds or {}).items()
        for i in bound_spec.members(n)
    }
    most = limits(bound_spec.kernel)
    ends = np.log([most.get(n, math.inf) for n in bound_spec.names])
    upper = np.minimum(upper, ends)
    told = {i: np.minimum(pair, ends[i]) for i, pair in told.items()}
    pairs = [
        _common(bound_spec, np.flatnonzero(group == g), lower, upper, told)
        for g in range(group.max(initial=-1) + 1)
    ]
    return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])


def _common(
    bound_spec: BoundSpec, at: Array, lower: Array, upper: Array, told: dict[int, Array]
) -> tuple[float, float]:
    """The bounds of parameters that share a value."""
    pairs = [told[i] for i in at if i in told]
    a, b = (
        (max(p[0] for p in pairs), min(p[1] for p in pairs))
        if pairs
        else (lower[at].min(), upper[at].max())
    )
    if a > b:
        raise ValueError(
            f"{', '.join(bound_spec.names[i] for i in at)} are tied, but their bounds have no value in common; widen them."
        )
    return float(a), float(b)
