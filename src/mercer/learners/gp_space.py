"""The hyper-parameters of a Gaussian process as one vector of logarithms: free, fixed, tied, bounded, with priors."""
from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.kernels import Kernel
from mercer.kernels.algebra import Scale
from mercer.kernels.params import substitute
from mercer.learners.gp_priors import Prior, check

REACH = 1e4  # a kernel's parameter may move by this factor where no bounds are given
NOISE, SCALE = (1e-9, 1e4), (1e-9, 1e9)  # bounds in the units of y


@dataclass(frozen=True)
class Wishes:
    """What a user asks of the hyper-parameters, by the names of `kernel.get_params()`, "noise" and "scale".

    fixed : names, or "all" of the kernel's
    tied : groups of names that share one value
    bounds, priors : by name
    """

    fixed: Collection[str] | str = ()
    tied: Collection[Collection[str]] = ()
    bounds: Mapping[str, tuple[float, float]] | None = None
    priors: Mapping[str, Prior] | None = None

    def named(self) -> set[str]:
        """The names whose value, and not only their ratio, matters."""
        return {n for group in self.tied for n in group} | set(self.bounds or ()) | set(self.priors or ())


@dataclass(frozen=True, eq=False)
class Space:
    """The vector z of free log-parameters of a kernel, of the noise and of the scale, and the way back to the values.

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
    unit: float = 1.0  # of y: noise and scale are in its square, what users say of them is not

    @property
    def size(self) -> int:
        return len(self.lower)

    def first(self, start: Array | None = None) -> Array:
        """The free variables at these log-values; tied ones at their mean."""
        on, logs = self.group >= 0, self.start if start is None else start
        count = np.bincount(self.group[on], minlength=self.size)
        return np.clip(np.bincount(self.group[on], logs[on], self.size) / count, self.lower, self.upper)

    def full(self, z: Array) -> Array:
        """All log-parameters, from the free ones."""
        return np.where(self.group >= 0, z[self.group] if self.size else 0.0, self.start)

    def free(self, gradient: Array) -> Array:
        """A gradient by all log-parameters as one by the free ones."""
        on = self.group >= 0
        return np.bincount(self.group[on], gradient[on], self.size)

    def at(self, full: Array) -> Kernel:
        """The kernel with these parameters."""
        value = dict(zip(self.names, np.exp(full).tolist(), strict=True))
        return substitute(self.kernel, lambda path, v: value[path] if v > 0 else v)

    def prior(self, full: Array) -> tuple[float, Array]:
        """log p(parameters) and its slopes."""
        slope, value = np.zeros(len(full)), 0.0
        for i, p in self.priors:
            v = math.exp(full[i]) * (self.unit**2 if i >= len(full) - 2 else 1.0)
            value += p.log(v)
            slope[i] += p.slope(v)
        return value, slope


def space(
    kernel: Kernel, wishes: Wishes, noise: float | None, *, reach: Iterable[Kernel] = (), scaled: bool = True, unit: float = 1.0
) -> Space:
    """The space of a kernel.

    noise : given, or None to be learnt
    reach : kernels of the same form at which a search may start
    scaled : whether the scale of the kernel is to be learnt
    unit : of y, in which noise and scale are found

    >>> from mercer.kernels import Gaussian
    >>> s = space(Gaussian((1.0, 2.0)), Wishes(tied=[("bandwidth__0", "bandwidth__1")]), None)
    >>> s.size, s.at(s.full(np.log([2.0, 0.1])))
    (2, Gaussian(bandwidth=(2.0, 2.0)))
    """
    values = kernel.parameters()
    names = (*values, "noise", "scale")
    known = {*kernel.get_params(), *names}
    fixed = _fixed(wishes, values, known)
    own = isinstance(kernel, Scale) and not _any("by", wishes.named())  # one of two scales is enough
    scaled = scaled and "scale" not in fixed and not (isinstance(kernel, Scale) and not own)
    profiled = scaled and noise is None and not {"noise", "scale"} & (wishes.named() | fixed)
    still = fixed | {n for n, v in values.items() if v <= 0} | ({"by"} if own and scaled else set())
    still |= ({"scale"} if profiled or not scaled else set()) | ({"noise"} if noise is not None else set())
    group = _groups(names, still, wishes.tied, known)
    start = np.log([*(v if v > 0 else 1.0 for v in values.values()), 0.1 if noise is None else max(noise, 1e-300), 1.0])
    lower, upper = _bounds(names, group, start, wishes, known, [*reach], unit)
    priors = tuple((i, check(p, n)) for n, p in (wishes.priors or {}).items() for i in _members(n, names, known))
    return Space(kernel, names, start, group, lower, upper, priors, profiled, unit)


def _logs(k: Kernel) -> Array:
    return np.log(np.maximum([*k.parameters().values()], 1e-300))


def _any(name: str, among: Collection[str]) -> bool:
    return any(_covers(n, name) for n in among)


def _covers(name: str, path: str) -> bool:
    return path == name or path.startswith(f"{name}__")


def _fixed(wishes: Wishes, values: Mapping[str, float], known: set[str]) -> set[str]:
    if isinstance(wishes.fixed, str):
        if wishes.fixed != "all":
            raise ValueError(f"fixed must be 'all' or names in a list, got {wishes.fixed!r}.")
        return set(values)
    return {p for n in wishes.fixed for p in _paths(n, (*values, "noise", "scale"), known)}


def _paths(name: Any, names: Iterable[str], known: set[str]) -> list[str]:
    if name not in known:
        listed = ", ".join(sorted(known)[:20])
        raise ValueError(f"{name!r} is not a parameter of the kernel (nor 'noise' or 'scale'); there are {listed}.")
    return [p for p in names if _covers(name, p)]


def _members(name: str, names: tuple[str, ...], known: set[str]) -> list[int]:
    return [names.index(p) for p in _paths(name, names, known)]


def _groups(names: tuple[str, ...], still: set[str], tied: Collection[Collection[str]], known: set[str]) -> Array:
    """The number of the free variable of each name, tied ones sharing theirs."""
    leader = list(range(len(names)))
    for names_of in tied:
        first, *rest = [_members(n, names, known) for n in names_of]
        if any(len(r) != len(first) for r in rest):
            raise ValueError(f"tied parameters must have as many values as each other, got {tuple(names_of)!r}.")
        for r in rest:
            for i, j in zip(first, r, strict=True):
                leader[j] = leader[i]
    held = {leader[i] for i, n in enumerate(names) if n in still}
    number: dict[int, int] = {}
    return np.array([-1 if k in held else number.setdefault(k, len(number)) for k in leader])


def _bounds(
    names: tuple[str, ...], group: Array, start: Array, wishes: Wishes, known: set[str], reach: list[Kernel], unit: float
) -> tuple[Array, Array]:
    """The bounds of the free variables, in logarithms."""
    also = np.array([_logs(k) for k in reach]).reshape(len(reach), len(names) - 2)
    least, most = np.append(start[:-2], [0, 0]), np.append(start[:-2], [0, 0])
    least[:-2], most[:-2] = (f(np.vstack([start[:-2], also]), axis=0) for f in (np.min, np.max))
    lower, upper = least - math.log(REACH), most + math.log(REACH)
    lower[-2:], upper[-2:] = np.log([NOISE[0], SCALE[0]]), np.log([NOISE[1], SCALE[1]])
    for name, pair in (wishes.bounds or {}).items():
        a, b = _pair(name, pair)
        for i in _members(name, names, known):
            shift = 2 * math.log(unit) if i >= len(names) - 2 else 0.0
            lower[i], upper[i] = math.log(a) - shift, math.log(b) - shift
    free = range(int(group.max(initial=-1)) + 1)
    return np.array([lower[group == g].max() for g in free]), np.array([upper[group == g].min() for g in free])


def _pair(name: str, pair: Any) -> tuple[float, float]:
    try:
        a, b = map(float, pair)
    except (TypeError, ValueError):
        a, b = 1.0, 0.0
    if not 0 < a <= b < math.inf:
        raise ValueError(f"the bounds of {name!r} must be two numbers 0 < low <= high, got {pair!r}.")
    return a, b
