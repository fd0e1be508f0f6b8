"""The duality table: which map serves which kernel, one rule a line; exact where the features are
few, else random."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import methods
from mercer.inputs import Matrix, Table
from mercer.kernels import (
    AdditiveChi2,
    AllSubsets,
    Anova,
    ArcCosine,
    Chi2,
    Constant,
    Cosine,
    Exp,
    Gaussian,
    Kernel,
    Linear,
    Mapped,
    Normalized,
    OnColumns,
    Polynomial,
    Power,
    Product,
    Scale,
    Series,
    Sum,
    Warped,
    Weighted,
)
from mercer.lifts.algebra import Concatenate, Scaled, Tensor
from mercer.lifts.base import Lift
from mercer.lifts.fourier import RandomFourier
from mercer.lifts.homogeneous import (
    EXACT_EPS,
    PROJECTED_EPS,
    AdditiveChi2Features,
    Chi2Features,
)
from mercer.lifts.maclaurin import Maclaurin
from mercer.lifts.nystrom import Nystrom
from mercer.lifts.polynomial import Interactions, Monomials, Subsets
from mercer.lifts.projections import SparseProjection
from mercer.lifts.sketches import ArcCosineFeatures, SketchedTensor, TensorSketch
from mercer.lifts.spectral import spectrum
from mercer.lifts.structure import (
    Identity,
    MappedLift,
    NormalizedLift,
    OnColumnsLift,
    One,
    WarpedLift,
    WeightedLift,
)
from mercer.lifts.widths import as_polynomial, expanded, factors, power_sum, width, width_by_rule
from mercer.pairs.linear import mapped, mapped_rows
from mercer.pairs.side import square_norms


class NoFeatureMapError(ValueError):
    """Of a kernel, or a part of one, that no rule takes: a function, or a class of one's own."""


@dataclass(frozen=True)
class Budget:
    """What a map may cost and where its randomness comes from; `X` is a probe of the rows."""

    X: Table
    size: int | None
    method: methods.Method
    seed: int

    def of(self, size: int | None, i: int = 0) -> Budget:
        """For part i of a map, independent of its other parts."""
        seed = int(
            np.random.SeedSequence(self.seed, spawn_key=(i,)).generate_state(1, np.uint64)[0]
        )
        return replace(self, size=size, seed=seed)


def build(k: Kernel, b: Budget) -> Lift:
    """A map of k within the budget: a method that takes the whole subtree first, then exact
    features, then structure."""
    if isinstance(b.method, methods.Landmarks):
        return Nystrom(
            k, b.method.n_landmarks or _needed(k, b), landmarks=b.method.select, random_state=b.seed
        )
    if has_few(k, b):
        return exact(k, b)
    few = width(k, b.X)
    if isinstance(b.method, methods.Exact):
        found = "no finite feature map" if few is None else f"{few:,} features"
        raise ValueError(f"{k!r} has {found}; give n_features, or another method.")
    if spectrum(k) is not None:
        return _fourier(k, b)
    return by_structure(k, b)


def has_few(k: Kernel, b: Budget) -> bool:
    """Whether the kernel's own features are within the budget, and no others are asked for."""
    few = width(k, b.X)
    asked = isinstance(b.method, methods.Landmarks) or _meant_for(b.method, k)
    return few is not None and few <= (b.size or EXACT_LIMIT) and not asked


def _meant_for(method: methods.Method, k: Kernel) -> bool:
    """Whether the method was asked for and takes such kernels, also where they have few
    features."""
    if isinstance(method, methods.Fourier):
        return spectrum(k) is not None
    return isinstance(method, methods.Sketch) and isinstance(k, Product | Power | Polynomial)


EXACT_LIMIT = 10_000  # features of an exact map that are built without being asked for


def _needed(k: Kernel, b: Budget) -> int:
    if b.size is None:
        raise ValueError(
            f"{k!r} has no small exact feature map; give n_features, or eps and delta."
        )
    return b.size


def _fourier(k: Kernel, b: Budget) -> RandomFourier:
    m = b.method if isinstance(b.method, methods.Fourier) else methods.Fourier()
    size = m.n_features or _needed(k, b)
    even = max(2, size - size % 2) if m.form == "pairs" else size
    return RandomFourier(k, even, form=m.form, frequencies=m.frequencies, random_state=b.seed)


def exact(k: Kernel, b: Budget) -> Lift:
    """The kernel's own features."""
    one = expanded(k)
    if one is not None and (width_by_rule(one, b.X) or 0) < (width_by_rule(k, b.X) or 0):
        k = one
    match k:
        case Constant():
            return One()
        case Linear(metric=A):
            return Identity(A)
        case Cosine():
            return NormalizedLift(Identity())
        case AdditiveChi2():
            return AdditiveChi2Features(EXACT_EPS)
        case Power(degree=0) | Polynomial(degree=0):
            return One()
        case Polynomial(degree=p, bias=c):
            return Monomials(p, weights="kernel", bias=c)
        case Power(kernel=t, degree=1):
            return exact(t, b)
        case Power(kernel=t, degree=n) if one := as_polynomial(t, n):
            return exact(one, b)
        case Power(kernel=t, degree=n):
            return exact(t, b) >> Monomials(n, weights="kernel", bias=0.0)
        case AllSubsets():
            return Subsets()
        case Anova(order=r):
            return Interactions(r)
        case Product(terms=ts):
            return _tensor([exact(Power(t, n), b) for t, n in factors(ts)])
        case Sum(terms=ts):
            return Concatenate([exact(t, b) for t in ts])
        case Series(kernel=t, coefficients=a):
            return exact(power_sum(t, a), b)
    return around(k, b, exact)


def _tensor(maps: list[Lift]) -> Lift:
    return maps[0] if len(maps) == 1 else Tensor(maps)


def around(k: Kernel, b: Budget, inner: Any) -> Lift:
    """The rules for what stands around a kernel; `inner` maps the kernel inside."""
    match k:
        case Scale(factor=c, kernel=t):
            return Scaled(inner(t, b), math.sqrt(c))
        case Weighted(kernel=t, f=f):
            return WeightedLift(inner(t, b), f)
        case Normalized(kernel=t):
            return NormalizedLift(inner(t, b), t)
        case OnColumns(kernel=t, columns=c):
            return OnColumnsLift(inner(t, replace(b, X=b.X.pick(c))), list(c))
        case Warped(kernel=t, f=f):
            return WarpedLift(inner(t, replace(b, X=mapped(b.X, f))), f)
        case Mapped(kernel=t, matrix=S):
            return MappedLift(inner(t, replace(b, X=mapped_rows(b.X, S))), S)
    raise NoFeatureMapError(
        f"no feature map is known for {k!r}; use Landmarks(n), which serves any kernel, as method= or via=."
    )


def by_structure(k: Kernel, b: Budget) -> Lift:
    """A random map, rule by rule."""
    match k:
        case Sum(terms=ts):
            return Concatenate([build(t, part) for t, part in zip(ts, shares(ts, b), strict=True)])
        case Product(terms=ts):
            return _product(ts, b)
        case Power(kernel=t, degree=n):
            return _product((t,) * n, b)
        case Polynomial(degree=p, bias=c):
            return TensorSketch(p, _needed(k, b), bias=c, random_state=b.seed)
        case Series(kernel=t, coefficients=a):
            return build(power_sum(t, a), b)
        case Exp(kernel=Linear(metric=None)) | Exp(kernel=Scale(kernel=Linear(metric=None))):
            return Maclaurin(k, _needed(k, b), random_state=b.seed)
        case Exp(kernel=t):
            return build(power_sum(t, _exp_coefficients(t, b.X)), b)
        case AdditiveChi2() if _needed(k, b) >= 3 * b.X.width:
            return AdditiveChi2Features(n_samples=(_needed(k, b) // b.X.width - 1) // 2)
        case AdditiveChi2():
            few = AdditiveChi2Features(PROJECTED_EPS)
            return few >> SparseProjection(_needed(k, b), s=1, random_state=b.seed)
        case Chi2(gamma=g):
            return _chi2(g, _fourier(Gaussian.of(gamma=g), b))
        case Linear() | Cosine() | Anova() | AllSubsets():
            return exact(k, b) >> SparseProjection(_needed(k, b), s=1, random_state=b.seed)
        case ArcCosine(order=n):
            return ArcCosineFeatures(n, _needed(k, b), random_state=b.seed)
    return around(k, b, build)


def _chi2(gamma: float, of: RandomFourier) -> Lift:
    """The features of a Gaussian kernel of additive features."""
    options = {name: getattr(of, name) for name in ("form", "frequencies", "random_state")}
    return Chi2Features(gamma, of.n_features, **options)


def _product(ts: tuple[Kernel, ...], b: Budget) -> Lift:
    """Stationary factors together, the others beside them; their tensor product where it fits, else
    sketched."""
    size = _needed(Product(ts) if len(ts) > 1 else ts[0], b)
    still = tuple(t for t in ts if spectrum(t) is not None)
    moving = [t for t in ts if spectrum(t) is None]
    factors: list[Kernel] = [
        *moving,
        *([Product(still) if len(still) > 1 else still[0]] if still else []),
    ]
    # A factor of few features is taken exactly, an infinite one with as many as the whole may have.
    maps = [build(t, b.of(size, i)) for i, t in enumerate(factors)]
    return maps[0] if len(maps) == 1 else SketchedTensor(maps, size, random_state=b.seed)


def _exp_coefficients(t: Kernel, X: Table) -> list[float]:
    """1/n! up to where the rest is below 1e-6 of exp(t) on the probe."""
    top = math.log(max(float(t.diag(X).max()), 1e-300))
    last = next((n for n in range(2, 150) if n * top - math.lgamma(n + 1) < math.log(1e-6)), 150)
    return [1 / math.factorial(n) for n in range(last)]


def shares(ts: tuple[Kernel, ...], b: Budget) -> list[Budget]:
    """The budget of a sum's terms: exact ones first, the rest in proportion to the root of their
    variance on the probe.

    An error of V_i / m_i each adds up to the least at m_i in proportion to sqrt(V_i).
    """
    size = _needed(Sum(ts), b)
    parts = served_exactly([width(t, b.X) for t in ts], size)
    rest = size - sum(parts.values())
    roots = {i: math.sqrt(variance(t, b, i)) for i, t in enumerate(ts) if i not in parts}
    total = sum(roots.values())
    for i, root in sorted(roots.items(), key=lambda item: item[1]):
        parts[i] = max(2, 2 * math.floor(rest * root / total / 2))
        rest, total = rest - parts[i], total - root
    return [b.of(parts[i], i) for i in range(len(ts))]


def served_exactly(widths: list[int | None], size: int) -> dict[int, int]:
    """The terms whose features all fit, the smallest first, while two features remain for each of
    the others.

    >>> served_exactly([None, 60, 500], 150)
    {1: 60}
    """
    parts: dict[int, int] = {}
    for few, i in sorted((w, i) for i, w in enumerate(widths) if w is not None):
        if sum(parts.values()) + few + 2 * (len(widths) - len(parts) - 1) <= size:
            parts[i] = few
    return parts


PROBE_ROWS, PROBE_FEATURES = 64, 64


def variance(t: Kernel, b: Budget, i: int) -> float:
    """The mean squared error of a small map of t on the probe, times its features; smaller than the
    exact one."""
    few = width(t, b.X)
    size = PROBE_FEATURES if few is None else max(2, min(PROBE_FEATURES, few // 2))
    F = build(t, b.of(size, i)).fit(b.X.data).transform(b.X.data)
    F = F.toarray() if not isinstance(F, np.ndarray) else F
    return size * float(np.mean(np.square(F @ F.T - t(b.X)))) + 1e-12


def probe(X: Matrix) -> Table:
    """A few rows, spread over X, and the longest ones; in float64, so that the map does not depend
    on their precision."""
    longest = np.argsort(-square_norms(X), kind="stable")[:4]
    rows = np.unique(
        np.concatenate([np.linspace(0, X.shape[0] - 1, PROBE_ROWS).astype(np.intp), longest])
    )
    return Table(X[rows].astype(np.float64))
