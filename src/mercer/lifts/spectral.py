"""The spectral measure of a stationary expression, by one line a leaf: k(x, z) = amplitude E
cos(w'(x - z))."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Each, Is, Number, Text, Whole
from mercer.kernels import (
    Cauchy,
    Constant,
    Gaussian,
    Kernel,
    Laplace,
    Mapped,
    Matern,
    Normalized,
    OnColumns,
    Periodic,
    Power,
    Product,
    RationalQuadratic,
    Scale,
    Sinc,
)
from mercer.ops.fastfood import Fastfood
from mercer.ops.frequencies import FACTORS, REFLECTIONS, frequencies
from mercer.ops.frozen import FrozenArray
from mercer.ops.measures import (
    CauchyColumns,
    GammaMixture,
    Measure,
    Normal,
    PeriodicColumns,
    Sphere,
    Stable,
    StableColumns,
    Student,
)
from mercer.ops.philox import Stream
from mercer.pairs.linear import after, picked, through, width_in
from mercer.pairs.side import per_column
from mercer.store import register


@register("lifts.Atom")
@dataclass(frozen=True)
class Atom:
    """One independent part of a frequency: a measure at unit bandwidth, the bandwidth, the columns
    it lives on, and the map S of these, which makes S'w of a frequency w."""

    measure: Measure
    bandwidth: float | tuple[float, ...] = 1.0
    columns: tuple[int, ...] | None = None
    map: FrozenArray | None = None

    must = dict(
        measure=Is("Measure"),
        bandwidth=Number(0) | Each(Number(0), least=1),
        columns=Each(Whole(0, 1 << 31), least=1) | None,
        map=Is("FrozenArray") | None,
    )

    def seen(self, d: int) -> int:
        """The columns that it sees of rows of d: those chosen, or those that the map makes of
        them."""
        width = d if self.columns is None else len(self.columns)
        if self.map is None:
            return width
        if width_in(self.map) != width:
            raise ValueError(
                f"the map has {width_in(self.map)} columns, but X has {width}; give a matrix with one column for each column of X."
            )
        return len(self.map)


@register("lifts.Spectrum")
@dataclass(frozen=True)
class SpectralMeasure:
    """A frequency is the sum of independent atoms; the kernel is `amplitude` at distance zero."""

    amplitude: float
    atoms: tuple[Atom, ...]
    rotations: str = FACTORS  # as in files of before there were others

    must = dict(amplitude=Number(0), atoms=Each(Is("Atom")), rotations=Text(FACTORS, REFLECTIONS))

    def frequencies(
        self,
        d: int,
        m: int,
        stream: Stream,
        kind: str,
        start: int = 0,
        stop: int | None = None,
        dtype: Any = np.float64,
    ) -> Array:
        """Rows start to stop of m frequencies (m, d); any rows alone are the same bits."""
        stop, made = m if stop is None else stop, {"rotations": self.rotations, "dtype": dtype}
        W = np.zeros((stop - start, d), dtype)
        for i, atom in enumerate(self.atoms):
            columns: Any = slice(None) if atom.columns is None else list(atom.columns)
            width = atom.seen(d)
            draws = frequencies(atom.measure, width, m, stream.child(i), kind, start, stop, **made)
            W[:, columns] += back(draws / per_column(atom.bandwidth, width), atom.map)
        return W

    def angles(self, X: Array, m: int, stream: Stream, kind: str) -> Array:
        """X W' for all of the frequencies W, which are not formed: for few rows."""
        made: dict[str, Any] = {"rotations": self.rotations, "dtype": X.dtype}
        P = np.zeros((m, len(X)), X.dtype)
        for i, atom in enumerate(self.atoms):
            seen = X if atom.columns is None else X[:, list(atom.columns)]
            seen = np.asarray(seen if atom.map is None else through(seen, atom.map))
            times = (seen / per_column(atom.bandwidth, seen.shape[1])).astype(X.dtype).T
            P += frequencies(
                atom.measure, len(times), m, stream.child(i), kind, times=times, **made
            )
        return np.ascontiguousarray(P.T)

    def structured(self, d: int, m: int, stream: Stream) -> tuple[Fastfood, Any, Any]:
        """Frequencies that need no matrix, what to divide the columns by, and what they are first
        mapped by; of one radial measure on all columns."""
        if len(self.atoms) != 1 or self.atoms[0].columns is not None:
            raise ValueError(
                "structured frequencies need one stationary kernel on all columns, not a product; use 'auto'."
            )
        (atom,) = self.atoms
        width = atom.seen(d)
        fast = Fastfood(atom.measure, width, m, stream)  # type: ignore[arg-type]
        return fast, per_column(atom.bandwidth, width), atom.map


def spectrum(k: Kernel) -> SpectralMeasure | None:
    """The spectrum of a stationary kernel, of products and powers of them; None of others.

    >>> spectrum(2.0 * Gaussian(3.0) * Gaussian(4.0)).atoms
    (Atom(measure=Normal(), bandwidth=2.4, columns=None, map=None),)
    """
    match k:
        case Constant():
            return SpectralMeasure(1.0, ())
        case Gaussian(bandwidth=b):
            return _one(Normal(), b)
        case Laplace(bandwidth=b, norm=p, exponent=1):
            return _one(CauchyColumns() if p == 1 else Student(1.0), b)
        case Laplace(bandwidth=b, exponent=2):
            return _one(Normal(), _halved(b))
        case Laplace(bandwidth=b, norm=p, exponent=q):
            return _one(StableColumns(q) if p == 1 else Stable(q), b)
        case Matern(bandwidth=b, nu=nu):
            return _one(Student(2 * nu) if nu <= 1e7 else Normal(), b)
        case Cauchy(bandwidth=b):
            return _one(GammaMixture(1.0, 2.0), b)
        case RationalQuadratic(bandwidth=b, mixture=a):
            return _one(GammaMixture(a, 1 / a), b)
        case Sinc(bandwidth=b):
            return _one(Sphere(), b)
        case Periodic(bandwidth=b, period=p):
            return _one(PeriodicColumns(b, p), 1.0)
        case Scale(factor=c, kernel=t):
            return _scaled(spectrum(t), c)
        case Normalized(kernel=t):
            return _normalized(spectrum(t))
        case OnColumns(kernel=t, columns=c):
            return _placed(spectrum(t), c)  # type: ignore[arg-type]
        case Mapped(kernel=t, matrix=S):
            return _through(spectrum(t), S)
        case Product(terms=ts):
            return _product([spectrum(t) for t in ts])
        case Power(kernel=t, degree=n):
            return _product([spectrum(t)] * n)
    return None


def _one(measure: Measure, bandwidth: Any) -> SpectralMeasure:
    return SpectralMeasure(1.0, (Atom(measure, bandwidth),))


def _halved(b: Any) -> Any:
    """The bandwidth of exp(-(r/b)^2) as a Gaussian."""
    return tuple(v / math.sqrt(2) for v in b) if isinstance(b, tuple) else b / math.sqrt(2)


def back(W: Array, S: FrozenArray | None) -> Array:
    """S'w of every frequency: w'(S x) is (S'w)'x."""
    return W if S is None else W * S.values if S.values.ndim == 1 else W @ S.values


def _scaled(s: SpectralMeasure | None, c: float) -> SpectralMeasure | None:
    return s and replace(s, amplitude=c * s.amplitude)


def _normalized(s: SpectralMeasure | None) -> SpectralMeasure | None:
    return s and replace(s, amplitude=1.0)


def _placed(s: SpectralMeasure | None, columns: tuple[int, ...]) -> SpectralMeasure | None:
    if s is None:
        return None
    inner = [
        columns if a.columns is None else tuple(columns[i] for i in a.columns) for a in s.atoms
    ]
    return replace(
        s, atoms=tuple(replace(a, columns=c) for a, c in zip(s.atoms, inner, strict=True))
    )


def _through(s: SpectralMeasure | None, S: FrozenArray) -> SpectralMeasure | None:
    """Atoms of S x: their columns are rows of S, their maps come after it."""
    if s is None:
        return None
    first = [S if a.columns is None else picked(S, a.columns) for a in s.atoms]
    maps = [f if a.map is None else after(a.map, f) for a, f in zip(s.atoms, first, strict=True)]
    return replace(
        s, atoms=tuple(replace(a, columns=None, map=m) for a, m in zip(s.atoms, maps, strict=True))
    )


def _product(parts: list[SpectralMeasure | None]) -> SpectralMeasure | None:
    """Amplitudes multiply and frequencies add; normal ones on the same columns are one normal."""
    found = [s for s in parts if s is not None]
    if len(found) < len(parts):
        return None
    atoms = [a for s in found for a in s.atoms]
    normal: dict[Any, Atom] = {}
    for a in atoms:
        if a.measure == Normal():
            at = a.columns, a.map
            normal[at] = _joined(normal[at], a) if at in normal else a
    others = [a for a in atoms if a.measure != Normal()]
    return SpectralMeasure(math.prod(s.amplitude for s in found), (*normal.values(), *others))


def _joined(a: Atom, b: Atom) -> Atom:
    """exp(-r^2/2a^2) exp(-r^2/2b^2) is a Gaussian too."""
    width = (np.asarray(a.bandwidth) ** -2.0 + np.asarray(b.bandwidth) ** -2.0) ** -0.5
    return replace(a, bandwidth=tuple(width.tolist()) if width.ndim else float(width))
