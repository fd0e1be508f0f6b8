"""Kernels of scikit-learn's Gaussian processes in terms of ours, value for value; what they fix; and
their noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from mercer.kernels.algebra import Power, Product, Scale
from mercer.kernels.base import Kernel, literal
from mercer.kernels.dot import Constant, Linear
from mercer.kernels.named import NamedKernel
from mercer.kernels.stationary import Gaussian, Matern, Periodic, RationalQuadratic

HOME = "sklearn.gaussian_process.kernels"


@dataclass(frozen=True)
class Translation:
    """A kernel, which of its parameters are fixed, and the variance of the noise beside it.

    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    >>> k = translated(ConstantKernel(2.0) * RBF(3.0, "fixed") + WhiteKernel(0.1))
    >>> k.kernel, k.fixed, k.noise
    (2.0 * Gaussian(bandwidth=3.0), ['kernel__bandwidth'], 0.1)
    """

    kernel: Kernel | None = None  # None of noise alone
    flags: tuple[bool, ...] = ()  # of its parameters in their order: whether it is fixed
    noise: float | None = None
    noise_fixed: bool = False
    one_column: bool = False  # whether it is a kernel of one column only

    @property
    def fixed(self) -> list[str]:
        """The names of what is fixed."""
        names = () if self.kernel is None else self.kernel.parameters()
        return [name for name, flag in zip(names, self.flags, strict=True) if flag]

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


def _is_fixed(bounds: Any) -> bool:
    return isinstance(bounds, str) and bounds == "fixed"


def _lengths(kernel: Any) -> tuple[Any, tuple[bool, ...]]:
    """The bandwidth, one number or one a column, and whether it is fixed."""
    length = np.atleast_1d(np.asarray(kernel.length_scale, np.float64)).tolist()
    flags = (_is_fixed(kernel.length_scale_bounds),) * len(length)
    return (length[0] if len(length) == 1 else tuple(length)), flags


def _rbf(k: Any) -> Translation:
    length, flags = _lengths(k)
    return Translation(Gaussian(length), flags)


def _matern(k: Any) -> Translation:
    length, flags = _lengths(k)
    return Translation(Matern(length, float(k.nu)), flags)


def _rational(k: Any) -> Translation:
    length, flags = _lengths(k)
    return Translation(
        RationalQuadratic(length, float(k.alpha)), (*flags, _is_fixed(k.alpha_bounds))
    )


def _periodic(k: Any) -> Translation:
    length, flags = _lengths(k)
    flags = (*flags, _is_fixed(k.periodicity_bounds))
    return Translation(Periodic(length, float(k.periodicity)), flags, one_column=True)


def _dot(k: Any) -> Translation:
    return Translation(Linear() + float(k.sigma_0) ** 2, (_is_fixed(k.sigma_0_bounds),))


def _constant(k: Any) -> Translation:
    return Translation(literal(float(k.constant_value)), (_is_fixed(k.constant_value_bounds),))


def _white(k: Any) -> Translation:
    return Translation(noise=float(k.noise_level), noise_fixed=_is_fixed(k.noise_level_bounds))


def _sum(k: Any) -> Translation:
    a, b = translated(k.k1), translated(k.k2)
    kernels = [t.kernel for t in (a, b) if t.kernel is not None]
    noises = [t.noise for t in (a, b) if t.noise is not None]
    return Translation(
        reduce(add, kernels) if kernels else None,
        (*a.flags, *b.flags),
        sum(noises) if noises else None,
        all(t.noise_fixed for t in (a, b) if t.noise is not None) and bool(noises),
        a.one_column or b.one_column,
    )


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
    flags, one = (*a.flags, *b.flags), a.one_column or b.one_column
    return Translation(Product((a.kernel, b.kernel)), flags, one_column=one)


def _is_number(t: Translation) -> bool:
    return t.noise is None and isinstance(t.kernel, Scale) and isinstance(t.kernel.kernel, Constant)


def _times(c: Translation, t: Translation) -> Translation:
    """A constant times a kernel and its noise."""
    assert isinstance(c.kernel, Scale)
    return replace(
        t,
        kernel=None if t.kernel is None else c.kernel.factor * t.kernel,
        flags=() if t.kernel is None else (*c.flags, *t.flags),
        noise=None if t.noise is None else c.kernel.factor * t.noise,
        noise_fixed=t.noise_fixed and all(c.flags),
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
    flags = (_is_fixed(k.gamma_bounds),) * len(kernel.parameters())
    return Translation(kernel, flags)


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
