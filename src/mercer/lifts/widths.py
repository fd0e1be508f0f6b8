"""The number of features of exact maps, and kernels that are polynomials in x'z rewritten as
such."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import (
    AdditiveChi2,
    AllSubsets,
    Anova,
    Constant,
    Cosine,
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
from mercer.lifts.homogeneous import EXACT_EPS, samples_for
from mercer.pairs.linear import mapped, mapped_rows

MAX_DEGREE = 32  # of polynomials in x'z that are expanded
MOST_FEATURES = 2048  # where nothing else is asked for


def default_features(n: int) -> int:
    """Four times the rows, from 256 to 2,048: more would cost more than they add.

    >>> default_features(30), default_features(200), default_features(10**6)
    (256, 800, 2048)
    """
    return min(MOST_FEATURES, max(256, 4 * n))


def width(k: Kernel, X: Table) -> int | None:
    """The number of features of the exact map on such rows; None where there are infinitely many.

    >>> from mercer.inputs import table
    >>> width(Linear() * Polynomial(2) + 1, table([[1.0, 2.0, 3.0]]))
    20
    """
    few, one = width_by_rule(k, X), expanded(k)
    return few if few is None or one is None else min(few, width_by_rule(one, X) or few)


def width_by_rule(k: Kernel, X: Table) -> int | None:
    """The same by the outermost rule alone."""
    d = X.width
    match k:
        case Constant():
            return 1
        case Linear() | Cosine():
            return d
        case AdditiveChi2():
            return d * (2 * samples_for(EXACT_EPS) + 1)
        case Polynomial(degree=p, bias=c):
            return math.comb(d + p, p) if c else math.comb(d + p - 1, p)
        case AllSubsets():
            return 2**d if d < 62 else None
        case Anova(order=r):
            return max(math.comb(d, r), 1)
        case Scale(kernel=t) | Weighted(kernel=t) | Normalized(kernel=t):
            return width(t, X)
        case OnColumns(kernel=t, columns=c):
            return width(t, X.pick(c))
        case Warped(kernel=t, f=f):
            return width(t, mapped(X[:1], f))
        case Mapped(kernel=t, matrix=S):
            return width(t, mapped_rows(X[:1], S))
        case Sum(terms=ts):
            return _all(sum, [width(t, X) for t in ts])
        case Product(terms=ts):
            return _all(math.prod, [width(Power(t, n), X) for t, n in factors(ts)])
        case Power(kernel=t, degree=n) if one := as_polynomial(t, n):
            return width(one, X)
        case Power(kernel=t, degree=n):
            return _symmetric(width(t, X), n)
        case Series(kernel=t, coefficients=a):
            return width(power_sum(t, a), X)
    return None


def _all(total: Any, parts: list[int | None]) -> int | None:
    return None if None in parts else int(total(parts))


def _symmetric(few: int | None, n: int) -> int | None:
    """Products of n out of so many features, whatever their order: C(few + n - 1, n), and one for n
    = 0."""
    return 1 if n == 0 else None if few is None else math.comb(few + n - 1, n)


def factors(ts: tuple[Kernel, ...]) -> list[tuple[Kernel, int]]:
    """The factors of a product, and how often each is there; powers count as such.

    >>> factors((Linear(), Polynomial(2), Power(Linear(), 2)))
    [(Linear(), 3), (Polynomial(degree=2), 1)]
    """
    found: dict[Kernel, int] = {}
    for t in ts:
        inner, n = (t.kernel, t.degree) if isinstance(t, Power) else (t, 1)
        found[inner] = found.get(inner, 0) + n
    return list(found.items())


def as_polynomial(t: Kernel, n: int) -> Polynomial | None:
    """t^n as one polynomial kernel, where it is one: its features have the columns' own names, and
    are the fewest.

    >>> as_polynomial(Linear() + 0.5, 3), as_polynomial(Polynomial(2), 2)
    (Polynomial(bias=0.5), Polynomial(degree=4))
    """
    match t:
        case Linear(metric=None):
            return Polynomial(n, 0.0)
        case Polynomial(degree=p, bias=c):
            return Polynomial(p * n, c)
        case Sum(terms=(Linear(metric=None), Scale(factor=c, kernel=Constant()))):
            return Polynomial(n, c)
        case Sum(terms=(Scale(factor=c, kernel=Constant()), Linear(metric=None))):
            return Polynomial(n, c)
    return None


def expanded(k: Kernel) -> Kernel | None:
    """A sum, product or power that is a polynomial in x'z, as a sum of powers of x'z, whose
    features are each there once.

    >>> expanded((Linear() + 1) * Linear())
    1.0 * Linear() + 1.0 * Linear() ** 2
    """
    if not isinstance(k, Sum | Product | Power) or (
        isinstance(k, Power) and as_polynomial(k.kernel, k.degree)
    ):
        return None
    a = _coefficients(k)
    return None if a is None else power_sum(Linear(), a.tolist())


def _coefficients(k: Kernel) -> Array | None:
    """a0, a1, ... where k = a0 + a1 x'z + ..., none below zero; None for other kernels and high
    degrees."""
    match k:
        case Constant():
            return np.ones(1)
        case Linear(metric=None):
            return np.array([0.0, 1.0])
        case Polynomial(degree=p, bias=c):
            return _power(np.array([c, 1.0]), p)
        case Scale(factor=c, kernel=t):
            return None if (a := _coefficients(t)) is None else c * a
        case Power(kernel=t, degree=n):
            return None if (a := _coefficients(t)) is None else _power(a, n)
        case Series(kernel=t, coefficients=cs):
            return _coefficients(power_sum(t, cs))
        case Sum(terms=ts):
            return _folded(np.polynomial.polynomial.polyadd, ts)
        case Product(terms=ts):
            return _folded(np.polynomial.polynomial.polymul, ts)
    return None


def _power(a: Array, n: int) -> Array | None:
    return np.polynomial.polynomial.polypow(a, n) if (len(a) - 1) * n <= MAX_DEGREE else None


def _folded(rule: Any, ts: tuple[Kernel, ...]) -> Array | None:
    total: Array | None = None
    for a in map(_coefficients, ts):
        if a is None:
            return None
        total = a if total is None else rule(total, a)
    return total if total is not None and len(total) <= MAX_DEGREE + 1 else None


def power_sum(t: Kernel, a: Any) -> Kernel:
    """a0 + a1 t + a2 t^2 + ... as a sum of powers."""
    terms = [
        Scale(c, Constant() if n == 0 else t if n == 1 else Power(t, n))
        for n, c in enumerate(a)
        if c > 0
    ]
    return Sum(tuple(terms)) if len(terms) > 1 else terms[0] if terms else Scale(0.0, Constant())
