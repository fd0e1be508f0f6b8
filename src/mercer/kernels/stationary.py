"""Kernels of differences x - z: one bandwidth, or one a column."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar

from mercer.inputs import Table
from mercer.kernels.base import Kernel, positive, positives
from mercer.ops.special import half_integer_coefficients
from mercer.pairs.gaussian import GaussianPairs
from mercer.store import register

Bandwidth = float | tuple[float, ...]


def _converted(name: str, options: dict[str, float | None]) -> tuple[str, float]:
    """The one convention that was given."""
    given = {k: v for k, v in options.items() if v is not None}
    if len(given) != 1:
        raise ValueError(
            f"{name}.of takes exactly one of {', '.join(options)}; got {', '.join(given) or 'none'}."
        )
    ((key, value),) = given.items()
    return key, positive(value, key)


class Stationary(Kernel):
    """A kernel of x - z with a bandwidth.

    Parameters
    ----------
    bandwidth : float or tuple of float, default=1.0
        The length-scale, > 0; or one a column.

    Examples
    --------
    >>> class Triangle(Stationary):
    ...     def on(self, p):
    ...         return p.xp.exp(-p.absdist(self.bandwidth))
    >>> Triangle(bandwidth=2.0)([[0.0]], [[2.0]])
    array([[0.36787944]])
    """

    bandwidth: Bandwidth = 1.0

    def check(self) -> None:
        self.bandwidth = positives(self.bandwidth, "bandwidth")


@register("kernels.Gaussian")
class Gaussian(Stationary):
    """exp(-|x - z|^2 / (2 bandwidth^2))

    Parameters
    ----------
    bandwidth : float or tuple of float, default=1.0
        The length-scale, > 0; or one a column.

    Examples
    --------
    >>> Gaussian(bandwidth=2.0)([[0.0]], [[2.0]])
    array([[0.60653066]])
    """

    def on(self, p: Any) -> Any:
        return p.xp.exp(-0.5 * p.sqdist(self.bandwidth))

    def fast(self, X: Table, Z: Table) -> GaussianPairs | None:
        own = type(self) is not Gaussian  # whoever writes another formula has no loops for it
        return None if own else GaussianPairs.of(X, Z, self.bandwidth)

    @classmethod
    def of(
        cls, gamma: float | None = None, b: float | None = None, variance: float | None = None
    ) -> Gaussian:
        """From exp(-gamma r^2), exp(-r^2 / b) or exp(-r^2 / (2 variance)).

        >>> Gaussian.of(gamma=0.5) == Gaussian.of(b=2.0) == Gaussian.of(variance=1.0)
        True
        >>> Gaussian.of(b=2.0)
        Gaussian()
        """
        key, v = _converted("Gaussian", {"gamma": gamma, "b": b, "variance": variance})
        return cls(math.sqrt({"gamma": 0.5 / v, "b": v / 2, "variance": v}[key]))


@register("kernels.Laplace")
class Laplace(Stationary):
    """exp(-(|x - z| / bandwidth)^exponent), in the Euclidean norm or the 1-norm

    Positive definite for 0 < exponent <= norm. At exponent 1 it is exp(-|x - z| / bandwidth);
    at exponent 2, in the Euclidean norm, Gaussian(bandwidth / sqrt 2).

    Parameters
    ----------
    bandwidth : float or tuple of float, default=1.0
        The length-scale, > 0; or one a column.
    norm : {1, 2}, default=2
        Which norm |x - z| is.
    exponent : float, default=1.0
        The power of the distance, > 0 and at most `norm`: the less, the rougher.

    Examples
    --------
    >>> Laplace(norm=1)([[0.0, 0.0]], [[1.0, 1.0]])
    array([[0.13533528]])
    >>> Laplace(exponent=0.5)([[0.0]], [[4.0]])
    array([[0.13533528]])
    """

    norm: int = 2
    exponent: float = 1.0
    static: ClassVar[tuple[str, ...]] = ("exponent",)

    def check(self) -> None:
        super().check()
        if self.norm not in (1, 2):
            raise ValueError(f"norm must be 1 or 2, got {self.norm!r}.")
        self.norm = int(self.norm)
        self.exponent = positive(self.exponent, "exponent")
        if self.exponent > self.norm:
            raise ValueError(
                f"exponent must be at most the norm, {self.norm}, as exp(-r^q) is no kernel beyond; got {self.exponent!r}."
            )

    def on(self, p: Any) -> Any:
        if self.exponent == 2:
            return p.xp.exp(-p.sqdist(self.bandwidth))
        r = p.absdist(self.bandwidth) if self.norm == 1 else p.dist(self.bandwidth)
        return p.xp.exp(-(r if self.exponent == 1 else p.xp.power(r, self.exponent)))

    @classmethod
    def of(
        cls, gamma: float | None = None, variance: float | None = None, *, norm: int = 2
    ) -> Laplace:
        """From exp(-gamma r) (scikit-learn, with norm=1) or exp(-r / (2 variance)).

        >>> Laplace.of(gamma=0.5) == Laplace.of(variance=1.0) == Laplace(2.0)
        True
        """
        key, v = _converted("Laplace", {"gamma": gamma, "variance": variance})
        return cls({"gamma": 1 / v, "variance": 2 * v}[key], norm)


@register("kernels.Matern")
class Matern(Stationary):
    """2^(1-nu)/Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) |x - z| / bandwidth

    At nu = 1/2 it is exp(-|x - z| / bandwidth), at nu = inf the Gaussian.

    Parameters
    ----------
    bandwidth : float or tuple of float, default=1.0
        The length-scale, > 0; or one a column.
    nu : float, default=1.5
        The smoothness, > 0 or inf.

    Examples
    --------
    >>> Matern(nu=0.5)([[0.0]], [[1.0]])
    array([[0.36787944]])
    """

    nu: float = 1.5
    static: ClassVar[tuple[str, ...]] = ("nu",)

    def check(self) -> None:
        super().check()
        if not (isinstance(self.nu, Real) and self.nu > 0):
            raise ValueError(f"nu must be a number > 0 (or inf, the Gaussian), got {self.nu!r}.")
        self.nu = float(self.nu)

    def on(self, p: Any) -> Any:
        if self.nu > 1e7:  # the Gaussian is its limit, to order 1/nu
            return p.xp.exp(-0.5 * p.sqdist(self.bandwidth))
        t = math.sqrt(2 * self.nu) * p.dist(self.bandwidth)
        if self.nu % 1 != 0.5 or self.nu > 6.5:
            return p.xp.bessel(self.nu, t)
        low, *rest = half_integer_coefficients(int(self.nu))
        if hasattr(p.xp, "decay"):  # a reading that keeps digits which the product would lose
            return p.xp.decay([low, *rest], t)
        return (_horner([low, *rest], t) if rest else 1.0) * p.xp.exp(-t)


def _horner(coefficients: list[float], t: Any) -> Any:
    value: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * t + c
    return value


@register("kernels.Cauchy")
class Cauchy(Stationary):
    """1 / (1 + |x - z|^2 / bandwidth^2)

    Parameters
    ----------
    bandwidth : float or tuple of float, default=1.0
        The length-scale, > 0; or one a column.

    Examples
    --------
    >>> Cauchy()([[0.0]], [[1.0]])
    array([[0.5]])
    """

    def on(self, p: Any) -> Any:
        return 1 / (1 + p.sqdist(self.bandwidth))


@register("kernels.RationalQuadratic")
class RationalQuadratic(Stationary):
    """(1 + |x - z|^2 / (2 mixture bandwidth^2))^-mixture

    It is a mixture of Gaussians of Gamma-distributed precision.

    Parameters
    ----------
    bandwidth : float or tuple of float, default=1.0
        The length-scale, > 0; or one a column.
    mixture : float, default=1.0
        The shape of the Gamma law, > 0: the less, the heavier the tail.

    Examples
    --------
    >>> RationalQuadratic(mixture=1.0)([[0.0]], [[2.0]])
    array([[0.33333333]])
    """

    mixture: float = 1.0

    def check(self) -> None:
        super().check()
        self.mixture = positive(self.mixture, "mixture")

    def on(self, p: Any) -> Any:
        return p.xp.exp(-self.mixture * p.xp.log1p(p.sqdist(self.bandwidth) / (2 * self.mixture)))


@register("kernels.Sinc")
class Sinc(Stationary):
    """bandwidth / |x - z| sin(|x - z| / bandwidth), positive definite only for d <= 3

    Parameters
    ----------
    bandwidth : float or tuple of float, default=1.0
        The length-scale, > 0; or one a column.

    Examples
    --------
    >>> Sinc()([[0.0]], [[1.0]])
    array([[0.84147098]])
    """

    def on(self, p: Any) -> Any:
        d = getattr(p, "width", 1)
        if d > 3:
            raise ValueError(
                f"Sinc is positive definite only for d <= 3; X has {d} columns. Use Gaussian, or Sinc on chosen columns."
            )
        return p.xp.sinc(p.dist(self.bandwidth))


@register("kernels.Periodic")
class Periodic(Stationary):
    """prod_j exp(-2 sin^2(pi (x_j - z_j) / period_j) / bandwidth_j^2)

    A product over columns: the same formula of the Euclidean distance is not positive
    semidefinite for d > 1.

    Parameters
    ----------
    bandwidth : float or tuple of float, default=1.0
        The length-scale within a period, > 0; or one a column.
    period : float or tuple of float, default=1.0
        The period, > 0; or one a column.

    Examples
    --------
    >>> Periodic(period=3.0)([[0.0]], [[3.0]]).round(12)
    array([[1.]])
    """

    period: Bandwidth = 1.0

    def check(self) -> None:
        super().check()
        self.period = positives(self.period, "period")

    def on(self, p: Any) -> Any:
        return p.xp.exp(-2 * p.sinsq(self.period, self.bandwidth))
