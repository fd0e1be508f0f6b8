"""How many features are enough before any data are seen: promises for iid frequencies, by tail
bounds."""

from __future__ import annotations

import math

from mercer.kernels import (
    Cauchy,
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
from mercer.ops.projections import projection_dim

__all__ = ["distance_features", "fourier_features", "projection_dim", "smooth"]


def fourier_features(
    n: int,
    eps: float,
    delta: float = 0.01,
    form: str = "pairs",
    *,
    bound: str = "hoeffding",
    kernel: Kernel | None = None,
) -> int:
    """How many features keep all errors |phi(x)'phi(z) - k(x, z)| among n points below eps.

    With probability at least 1 - delta, for a stationary kernel with k(x, x) = 1 and iid
    frequencies.

    Parameters
    ----------
    n : int
        The number of points.
    eps : float
        The largest error.
    delta : float, default=0.01
        The probability of a larger one.
    form : {"pairs", "shift"}, default="pairs"
        "pairs" (cos and sin of m = D/2 frequencies; the diagonal is exact, n(n-1)/2 pairs
        remain): m >= 2/eps^2 ln(n(n-1)/delta) by Hoeffding; by Bernstein m >= (2v/eps^2 + 4/(3
        eps)) ln(n(n-1)/delta), where v = max (1 + k(2t) - 2k(t)^2)/2 is 1/2 for the Gaussian
        and at most 1 for any kernel. "shift" (cos(w'x + b)): D >= 8/eps^2 ln(n(n+1)/delta).
    bound : {"hoeffding", "bernstein"}, default="hoeffding"
        Whose inequality is used.
    kernel : Kernel, default=None
        That of v, where Bernstein's is.

    Examples
    --------
    >>> fourier_features(1000, 0.1), fourier_features(1000, 0.1, form="shift")
    (7368, 14738)
    >>> fourier_features(1000, 0.1, bound="bernstein", kernel=Gaussian())
    4176
    """
    _check(n, eps, delta)
    if form == "shift":
        if bound != "hoeffding":
            raise ValueError(f"bound must be 'hoeffding' for form='shift', got {bound!r}.")
        return math.ceil(8 / eps**2 * math.log(n * (n + 1) / delta))
    if form != "pairs":
        raise ValueError(f"form must be 'pairs' or 'shift', got {form!r}.")
    if bound not in ("hoeffding", "bernstein"):
        raise ValueError(f"bound must be 'hoeffding' or 'bernstein', got {bound!r}.")
    terms = 2 / eps**2 if bound == "hoeffding" else 2 * _variance(kernel) / eps**2 + 4 / (3 * eps)
    return 2 * max(1, math.ceil(terms * _log_pairs(n, delta)))


def distance_features(n: int, eps: float, delta: float = 0.01) -> int:
    """How many pairs features of a Gaussian keep all kernel distances to a factor 1 ± eps.

    At any distance. The mean of (1 - cos w't)/(1 - k(t)) over frequencies has lighter tails
    than its limit at small t, a chi-squared mean: Chernoff's bound for that gives m >=
    ln(n(n-1)/delta) / min(rate(2 eps + eps^2), rate(eps^2 - 2 eps)) with rate(u) = (u - ln(1 +
    u))/2. For kernels whose spectral measure has no fourth moment (Laplace, Matern with nu <=
    2) no number is enough for all distances.

    Parameters
    ----------
    n : int
        The number of points.
    eps : float
        The largest relative error.
    delta : float, default=0.01
        The probability of a larger one.

    Examples
    --------
    >>> distance_features(1000, 0.1)
    3802
    """
    _check(n, eps, delta)
    rate = min(_rate((1 + eps) ** 2 - 1), _rate((1 - eps) ** 2 - 1) if eps < 1 else math.inf)
    return 2 * max(1, math.ceil(_log_pairs(n, delta) / rate))


def smooth(kernel: Kernel) -> bool:
    """Whether the relative error of the kernel distance can be bounded.

    That takes a finite fourth spectral moment.

    Examples
    --------
    >>> smooth(2.0 * Gaussian()), smooth(Matern(nu=1.5))
    (True, False)
    """
    match kernel:
        case Gaussian() | RationalQuadratic() | Cauchy() | Sinc() | Periodic():
            return True
        case Matern(nu=nu):
            return nu > 2
        case Laplace(exponent=q):
            return q == 2
        case Scale(kernel=t) | Normalized(kernel=t) | OnColumns(kernel=t) | Mapped(kernel=t):
            return smooth(t)
        case Power(kernel=t):
            return smooth(t)
        case Product(terms=ts):
            return all(map(smooth, ts))
    return False


def _rate(u: float) -> float:
    return (u - math.log1p(u)) / 2


def _log_pairs(n: int, delta: float) -> float:
    return math.log(max(n * (n - 1), 1) / delta) if n > 1 else 0.0


def _variance(kernel: Kernel | None) -> float:
    return 0.5 if isinstance(kernel, Gaussian) else 1.0


def _check(n: int, eps: float, delta: float) -> None:
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}.")
    if not eps > 0:
        raise ValueError(f"eps must be > 0, got {eps!r}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be between 0 and 1, got {delta!r}.")
