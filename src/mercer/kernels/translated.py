"""Kernels of scikit-learn's Gaussian processes in terms of ours, value for value; what they fix or
bound; and their noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np

from mercer.kernels.algebra import Power, Product, Scale
from mercer.kernels.base import Kernel, literal
from mercer.kernels.dot import Constant, Linear
from mercer.kernels.named import NamedKernel
from mercer.kernels.stationary import Gaussian, Matern, Periodic, RationalQuadratic

HOME = "sklearn.gaussian_process.kernels"
WIDE = (1e-5, 1e5)  # their bounds where nothing is said, which are no wish

Hold: TypeAlias = tuple[float, float] | str | None  # bounds, "fixed", or nothing said


@dataclass(frozen=True)
class Translation:
    """A kernel, what is fixed or bounded of its parameters, and the variance of the noise beside it.

    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    >>> k = translated(ConstantKernel(2.0, (1, 9)) * RBF(3.0, "fixed") + WhiteKernel(0.1))
    >>> k.kernel, k.fixed, k.bounds, k.noise
    (2.0 * Gaussian(bandwidth=3.0), ['kernel__bandwidth'], {'factor': (1.0, 9.0)}, 0.1)
    """

    kernel: Kernel | None = None  # None of noise alone
    holds: tuple[Hold, ...] = ()  # of its parameters in their order
    noise: float | None = None
    noise_hold: Hold = None
    one_column: bool = False  # whether it is a kernel of one column only

    @property
    def fixed(self) -> list[str]:
        """The names of what is fixed."""
        return [name for name, hold in self._held() if isinstance(hold, str)]

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The bounds of what is bounded, that of the noise too where it is learnt."""
        held = [*self._held(), ("noise", None if self.noise is None else self.noise_hold)]
        return {name: hold for name, hold in held if isinstance(hold, tuple)}

    @property
    def noise_fixed(self) -> bool:
        return isinstance(self.noise_hold, str)

    def _held(self) -> list[tuple[str, Hold]]:
        names = () if self.kernel is None else self.kernel.parameters()
        return list(zip(names, self.holds, strict=True))

    def without_noise(self) -> Translation:
        return replace(self, noise=None)

    def at(self, width: int) -> Kernel:
        """For rows of so many columns."""
        if self.noise is not None or self.kernel is None:
            raise ValueError(
                "WhiteKernel is noise, not a kernel of rows; leave it out, or give it to GaussianProcessRegressor."
            )
        if self.one_column and width > 1:
            raise ValueError(
                f"ExpSineSquared is no kernel of more than one column, and X has {width}; use Periodic(), a product "
                "over columns, or Periodic().on_columns([j])."
            )
        return self.kernel


def is_process_kernel(kernel: object) -> bool:
    """Whether it is one of scikit-learn's own.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> is_process_kernel(RBF()), is_process_kernel(RBF), is_process_kernel(Gaussian())
    (True, False, False)
    """
    return not isinstance(kernel, type) and any(
        c.__module__ == HOME and c.__name__ == "Kernel" for c in type(kernel).__mro__
    )


def translated(kernel: Any) -> Translation:
    """The same function in our terms; ValueError where we have none."""
    name = type(kernel).__name__
    rule = RULES.get(name) if type(kernel).__module__ == HOME else None
    if rule is None:
        raise ValueError(
            f"kernel={kernel!r:.80} has no translation, as {name} is not known here; write it as a function "
            "of two matrices, or as a mercer kernel."
        )
    return rule(kernel)


def _holds(bounds: Any, size: int = 1) -> tuple[Hold, ...]:
    """What their bounds, of all of a parameter's numbers or of each, say of every one.

    >>> _holds("fixed", 2), _holds((1e-5, 1e5)), _holds([(1, 2), (1e-5, 1e5)], 2)
    (('fixed', 'fixed'), (None,), ((1.0, 2.0), None))
    """
    if isinstance(bounds, str):
        return (bounds,) * size
    pairs = np.broadcast_to(np.asarray(bounds, np.float64), (size, 2)).tolist()
    return tuple(None if (low, high) == WIDE else (low, high) for low, high in pairs)


def _lengths(kernel: Any) -> tuple[Any, tuple[Hold, ...]]:
    """The bandwidth, one number or one a column, and what is said of it."""
    length = np.atleast_1d(np.asarray(kernel.length_scale, np.float64)).tolist()
    holds = _holds(kernel.length_scale_bounds, len(length))
    return (length[0] if len(length) == 1 else tuple(length)), holds


def _rbf(k: Any) -> Translation:
    length, holds = _lengths(k)
    return Translation(Gaussian(length), holds)


def _matern(k: Any) -> Translation:
    length, holds = _lengths(k)
    return Translation(Matern(length, float(k.nu)), holds)


def _rational(k: Any) -> Translation:
    length, holds = _lengths(k)
    return Translation(RationalQuadratic(length, float(k.alpha)), (*holds, *_holds(k.alpha_bounds)))


def _periodic(k: Any) -> Translation:
    length, holds = _lengths(k)
    holds = (*holds, *_holds(k.periodicity_bounds))
    return Translation(Periodic(length, float(k.periodicity)), holds, one_column=True)


def _dot(k: Any) -> Translation:
    """x'z + sigma_0^2, where the constant is our parameter."""
    (hold,) = _holds(k.sigma_0_bounds)
    squared = (hold[0] ** 2, hold[1] ** 2) if isinstance(hold, tuple) else hold
    return Translation(Linear() + float(k.sigma_0) ** 2, (squared,))


def _constant(k: Any) -> Translation:
    return Translation(literal(float(k.constant_value)), _holds(k.constant_value_bounds))


def _white(k: Any) -> Translation:
    return Translation(noise=float(k.noise_level), noise_hold=_holds(k.noise_level_bounds)[0])


def _sum(k: Any) -> Translation:
    a, b = translated(k.k1), translated(k.k2)
    kernels = [t.kernel for t in (a, b) if t.kernel is not None]
    noisy = [t for t in (a, b) if t.noise is not None]
    return Translation(
        reduce(add, kernels) if kernels else None,
        (*a.holds, *b.holds),
        sum(t.noise or 0.0 for t in noisy) if noisy else None,
        _noise_hold(noisy),
        a.one_column or b.one_column,
    )


def _noise_hold(noisy: list[Translation]) -> Hold:
    """What is said of a sum of noises: what is said of one, or that all are fixed."""
    if len(noisy) == 1:
        return noisy[0].noise_hold
    return "fixed" if noisy and all(t.noise_fixed for t in noisy) else None


def _product(k: Any) -> Translation:
    a, b = translated(k.k1), translated(k.k2)
    if not _is_number(a) and _is_number(b):
        a, b = b, a
    if _is_number(a):
        return _times(a, b)
    if a.noise is not None or b.noise is not None or a.kernel is None or b.kernel is None:
        raise ValueError(
            f"kernel={k!r:.80} multiplies WhiteKernel, noise, by a kernel of rows; add it instead."
        )
    holds, one = (*a.holds, *b.holds), a.one_column or b.one_column
    return Translation(Product((a.kernel, b.kernel)), holds, one_column=one)


def _is_number(t: Translation) -> bool:
    return t.noise is None and isinstance(t.kernel, Scale) and isinstance(t.kernel.kernel, Constant)


def _times(c: Translation, t: Translation) -> Translation:
    """A constant times a kernel and its noise."""
    assert isinstance(c.kernel, Scale)
    return replace(
        t,
        kernel=None if t.kernel is None else c.kernel.factor * t.kernel,
        holds=() if t.kernel is None else (*c.holds, *t.holds),
        noise=None if t.noise is None else c.kernel.factor * t.noise,
        noise_hold="fixed" if t.noise_fixed and c.holds == ("fixed",) else None,
    )


def _power(k: Any) -> Translation:
    t, n = translated(k.kernel), float(k.exponent)
    if t.kernel is None or t.noise is not None or not (n.is_integer() and n >= 0):
        raise ValueError(
            f"kernel={k!r:.80} has no translation: only whole powers >= 0 of kernels without noise are kernels."
        )
    return replace(t, kernel=Power(t.kernel, int(n)))


def _compound(k: Any) -> Translation:
    raise ValueError(
        "CompoundKernel is several kernels at once, which no model here takes; give their sum, or one of them."
    )


def _pairwise(k: Any) -> Translation:
    if k.metric == "additive_chi2" or callable(k.metric) or k.pairwise_kernels_kwargs:
        raise ValueError(
            f"kernel={k!r:.80} has no translation, as its metric is no kernel known by name; give a function, or "
            "the name of a kernel with gamma=."
        )
    kernel = NamedKernel(k.metric, float(k.gamma)).at(np.ones((1, 1)))
    fixed = "fixed" if _holds(k.gamma_bounds) == ("fixed",) else None  # gamma is no parameter here
    return Translation(kernel, (fixed,) * len(kernel.parameters()))


RULES: dict[str, Callable[[Any], Translation]] = {
    "RBF": _rbf,
    "Matern": _matern,
    "RationalQuadratic": _rational,
    "ExpSineSquared": _periodic,
    "DotProduct": _dot,
    "ConstantKernel": _constant,
    "WhiteKernel": _white,
    "Sum": _sum,
    "Product": _product,
    "Exponentiation": _power,
    "CompoundKernel": _compound,
    "PairwiseKernel": _pairwise,
}
