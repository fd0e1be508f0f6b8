"""The spectral measure of a stationary expression, by one line a leaf: k(x, z) = amplitude E
cos(w'(x - z))."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Each, Is, Number, Whole
from mercer.kernels import (
    Cauchy,
    Constant,
    Gaussian,
    Kernel,
    Laplace,
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
from mercer.ops.frequencies import frequencies
from mercer.ops.measures import (
    CauchyColumns,
    GammaMixture,
    Measure,
    Normal,
    PeriodicColumns,
    Sphere,
    Student,
)
from mercer.ops.philox import Stream
from mercer.pairs.side import per_column
from mercer.store import register


@register("lifts.Atom")
@dataclass(frozen=True)
class Atom:
    """One independent part of a frequency: a measure at unit bandwidth, the bandwidth, and the
    columns it lives on."""

    measure: Measure
    bandwidth: float | tuple[float, ...] = 1.0
    columns: tuple[int, ...] | None = None

    must = dict(
        measure=Is("Measure"),
        bandwidth=Number(0) | Each(Number(0), least=1),
        columns=Each(Whole(0, 1 << 31), least=1) | None,
    )


@register("lifts.Spectrum")
@dataclass(frozen=True)
class SpectralMeasure:
    """A frequency is the sum of independent atoms; the kernel is `amplitude` at distance zero."""

    amplitude: float
    atoms: tuple[Atom, ...]

    must = dict(amplitude=Number(0), atoms=Each(Is("Atom")))

    def frequencies(
        self, d: int, m: int, stream: Stream, kind: str, start: int = 0, stop: int | None = None
    ) -> Array:
        """Rows start to stop of m frequencies (m, d); any rows alone are the same bits."""
        stop = m if stop is None else stop
        W = np.zeros((stop - start, d))
        for i, atom in enumerate(self.atoms):
            columns: Any = slice(None) if atom.columns is None else list(atom.columns)
            width = d if atom.columns is None else len(atom.columns)
            draws = frequencies(atom.measure, width, m, stream.child(i), kind, start, stop)
            W[:, columns] += draws / per_column(atom.bandwidth, width)
        return W

    def structured(self, d: int, m: int, stream: Stream) -> tuple[Fastfood, Any]:
        """Frequencies that need no matrix, and what to divide the columns by; of one radial measure
        on all columns."""
        if len(self.atoms) != 1 or self.atoms[0].columns is not None:
            raise ValueError(
                "structured frequencies need one stationary kernel on all columns, not a product; use 'auto'."
            )
        (atom,) = self.atoms
        return Fastfood(atom.measure, d, m, stream), per_column(atom.bandwidth, d)  # type: ignore[arg-type]


def spectrum(k: Kernel) -> SpectralMeasure | None:
    """The spectrum of a stationary kernel, of products and powers of them; None of others.

    >>> spectrum(2.0 * Gaussian(3.0) * Gaussian(4.0))
    SpectralMeasure(amplitude=2.0, atoms=(Atom(measure=Normal(), bandwidth=2.4, columns=None),))
    """
    match k:
        case Constant():
            return SpectralMeasure(1.0, ())
        case Gaussian(bandwidth=b):
            return _one(Normal(), b)
        case Laplace(bandwidth=b, norm=1):
            return _one(CauchyColumns(), b)
        case Laplace(bandwidth=b):
            return _one(Student(1.0), b)
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
        case Product(terms=ts):
            return _product([spectrum(t) for t in ts])
        case Power(kernel=t, degree=n):
            return _product([spectrum(t)] * n)
    return None


def _one(measure: Measure, bandwidth: Any) -> SpectralMeasure:
    return SpectralMeasure(1.0, (Atom(measure, bandwidth),))


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


def _product(parts: list[SpectralMeasure | None]) -> SpectralMeasure | None:
    """Amplitudes multiply and frequencies add; normal ones on the same columns are one normal."""
    found = [s for s in parts if s is not None]
    if len(found) < len(parts):
        return None
    atoms = [a for s in found for a in s.atoms]
    normal: dict[Any, Atom] = {}
    for a in atoms:
        if a.measure == Normal():
            normal[a.columns] = _joined(normal[a.columns], a) if a.columns in normal else a
    others = [a for a in atoms if a.measure != Normal()]
    return SpectralMeasure(math.prod(s.amplitude for s in found), (*normal.values(), *others))


def _joined(a: Atom, b: Atom) -> Atom:
    """exp(-r^2/2a^2) exp(-r^2/2b^2) is a Gaussian too."""
    width = (np.asarray(a.bandwidth) ** -2.0 + np.asarray(b.bandwidth) ** -2.0) ** -0.5
    return replace(a, bandwidth=tuple(width.tolist()) if width.ndim else float(width))
