"""Where the search for hyper-parameters starts: kernels scaled to the data, beside the one that was
given."""

from __future__ import annotations

import math

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import Gaussian, Kernel, Matern, Periodic, RationalQuadratic
from mercer.kernels.algebra import OnColumns, Warped
from mercer.kernels.bags import OverSets
from mercer.kernels.maps import Mapped
from mercer.kernels.params import substitute
from mercer.kernels.stationary import Stationary
from mercer.models.gp.hyperparameters import BoundSpec, HyperparameterSpec, amplitude, fits
from mercer.models.gp.search import Start, scattered
from mercer.models.gp.space import SearchSpace, space
from mercer.ops.philox import Stream
from mercer.pairs.linear import mapped_rows

WIDEST = 64  # columns up to which each has a bandwidth of its own, where no kernel is given
MIN_ROUGH_ROWS = 200  # rows from which two bandwidths a column can be told
NOISES = (0.1, 1e-3)  # ratios of noise to scale, in units of k(x, x)
MAX_DIAGONAL_ROWS = 1000  # rows that tell of what size k(x, x) is


def deviations(rows: Table) -> Array:
    """The standard deviation of every column, 1 where it is constant."""
    data = rows.data
    if rows.sparse:
        mean = np.asarray(data.mean(0)).ravel()
        square = np.asarray(data.multiply(data).mean(0)).ravel() - mean**2
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            square = data.var(0, dtype=np.float64)
    return np.sqrt(np.where(np.isfinite(square) & (square > 1e-300), square, 1.0))


def defaults(rows: Table, *, rough: bool = False) -> list[Kernel]:
    """The kernels tried where none is given: one bandwidth a column while the columns are few.

    rough : also a smooth one plus a rough one, each with bandwidths of its own; few landmarks
    cannot stand for the latter
    """
    b = deviations(rows) * math.sqrt(rows.width)
    width = (
        tuple(b.tolist())
        if rows.width <= WIDEST and not rows.sparse
        else float(np.linalg.norm(deviations(rows)))
    )
    smooth = Matern(width, nu=2.5)
    both: list[Kernel] = (
        [smooth + 0.1 * Matern(width, nu=0.5)] if rough and len(rows) >= MIN_ROUGH_ROWS else []
    )
    return [Matern(width, nu=1.5), smooth, RationalQuadratic(width), Gaussian(width), *both]


def scaled(k: Kernel, rows: Table) -> Kernel:
    """The same tree with the bandwidths of its stationary leaves taken from the columns they
    see."""
    if isinstance(k, tuple):
        return tuple(scaled(t, rows) for t in k)
    if isinstance(k, OnColumns):
        return OnColumns(scaled(k.kernel, rows.pick(k.columns)), k.columns)
    if isinstance(k, Mapped):
        return Mapped(scaled(k.kernel, mapped_rows(rows, k.matrix)), k.matrix)
    if isinstance(k, OverSets) and (members := k.read(rows.data).members) is not None:
        return OverSets(scaled(k.kernel, members), k.how)
    if not isinstance(k, Kernel) or isinstance(
        k, Warped | Periodic
    ):  # a warp has columns of its own, a circle its own unit
        return k
    if isinstance(k, Stationary):
        s = deviations(rows)
        if isinstance(k.bandwidth, tuple) and len(k.bandwidth) != len(s):
            return k  # the kernel itself says what is wrong
        each = tuple((s * math.sqrt(rows.width)).tolist())
        return k.clone().set_params(
            bandwidth=each if isinstance(k.bandwidth, tuple) else float(np.linalg.norm(s))
        )
    return type(k)(
        **{name: scaled(value, rows) for name, value in k.get_params(deep=False).items()}
    )


def starts(
    kernel: Kernel | None,
    rows: Table,
    spec: HyperparameterSpec,
    noise: float | None,
    *,
    scale: bool,
    unit: float,
    restarts: int,
    seed: int,
    rough: bool = False,
) -> list[Start]:
    """At the kernel given, at it scaled to the data, and about the latter; else at each of
    `defaults` that has what is named."""
    found: list[Start] = []
    for i, k in enumerate(_candidates(rows, spec, rough) if kernel is None else [kernel]):
        fitted = k if kernel is None else scaled(k, rows)
        if scale and BoundSpec(k, spec).absolute:
            fitted = louder(fitted, unit**2)
        size = magnitude(fitted, rows)
        s = space(k, spec, noise, reach=[fitted], scaled=scale, unit=unit, size=size)
        if not s.size:
            return [Start(s, s.first())]
        high, low = (v * size if s.profiled else v for v in NOISES)
        first = _at(s, fitted, high)
        found += [first, _at(s, fitted, low)] + ([_at(s, k, high)] if fitted != k else [])
        found += scattered(first, restarts, Stream(seed).child(1, i))
    return found


def magnitude(k: Kernel, rows: Table) -> float:
    """The power of ten about which k(x, x) is at these rows, 1 where it is zero or no number.

    >>> magnitude(2.0 * Gaussian(), Table(np.ones((3, 1)))), magnitude(2e6 * Gaussian(), Table(np.ones((3, 1))))
    (1.0, 1000000.0)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.mean(k.diag(rows[:MAX_DIAGONAL_ROWS]), dtype=np.float64))
    return 10.0 ** round(math.log10(mean)) if 1e-200 < mean < 1e200 else 1.0


def _candidates(rows: Table, spec: HyperparameterSpec, rough: bool) -> list[Kernel]:
    if spec.fixed is True:
        raise ValueError("fixed=True keeps the kernel as given, but none is; give a kernel.")
    all_ = defaults(rows, rough=rough and spec.fixed != "all")
    return [k for k in all_ if fits(k, spec)] or all_[:1]  # the first says what it lacks


def louder(k: Kernel, by: float) -> Kernel:
    """The same tree with its outermost amplitudes so much larger.

    >>> louder(2.0 * Gaussian() + Gaussian(), 10.0)
    20.0 * Gaussian() + Gaussian()
    """
    inside = [p.removesuffix("factor") for p in k.parameters() if amplitude(p)]
    outer = {f"{p}factor" for p in inside if not any(p.startswith(f"{q}kernel") for q in inside)}
    return substitute(k, lambda path, v: by * v if path in outer else v)


def _at(s: SearchSpace, kernel: Kernel, noise: float) -> Start:
    """The start at a kernel of this form, fixed parameters staying as they are."""
    values = kernel.parameters().values()
    return Start(s, s.first(np.log([*(v if v > 0 else 1.0 for v in values), noise, 1.0])))
