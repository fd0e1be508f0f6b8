"""Kernels of histograms, rows of numbers >= 0: the chi-squared kernels."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel, positive
from mercer.store import register


@register("kernels.AdditiveChi2")
class AdditiveChi2(Kernel):
    """sum_j 2 x_j z_j / (x_j + z_j), of rows >= 0, where 0/0 is 0

    The inner product whose squared distance is the chi-squared one, sum_j (x_j - z_j)^2 /
    (x_j + z_j). scikit-learn's `additive_chi2_kernel` is minus that distance, which is no
    kernel (it is positive definite only where coefficients sum to 0); its
    `AdditiveChi2Sampler` approximates this one.

    References
    ----------
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps (2012).

    Examples
    --------
    >>> AdditiveChi2()([[1.0, 0.0]], [[3.0, 5.0]])
    array([[1.5]])
    """

    def on(self, p: Any) -> Any:
        return p.harmonic


@register("kernels.Chi2")
class Chi2(Kernel):
    """exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j)), of rows >= 0, where 0/0 is 0

    scikit-learn's `chi2_kernel`; a Gaussian of the features of `AdditiveChi2`.

    Parameters
    ----------
    gamma : float, default=1.0
        The rate, > 0.

    Examples
    --------
    >>> Chi2(gamma=0.5)([[1.0, 0.0]], [[3.0, 1.0]])
    array([[0.36787944]])
    """

    gamma: float = 1.0

    def check(self) -> None:
        self.gamma = positive(self.gamma, "gamma")

    def on(self, p: Any) -> Any:
        return p.xp.exp(-self.gamma * p.chisq)
