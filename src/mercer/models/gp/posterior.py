"""What every fitted Gaussian process answers: one protocol, and the values that its answers are
made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Floats, Number
from mercer.models.gp.samples import SampledFunctions
from mercer.models.settings import FittedKernel
from mercer.plans import Plan
from mercer.store import register


@register("gp.Outputs")
@dataclass(frozen=True, eq=False)
class Outputs:
    """How y is measured, y = mean + unit z with (q,) each; whether it had one axis; and the
    variance of its noise, where given."""

    mean: Array
    unit: Array
    flat: bool = True
    noise: float | Array | None = None  # one number, or one a row, in the units of y

    must = dict(
        mean=Floats("q"),
        unit=Floats("q"),
        noise=Number(0, whole=False) | Floats(None, low=0) | None,
    )

    def _laws(self) -> str | None:
        return None if len(self.mean) else "is of no output"

    def __len__(self) -> int:
        return len(self.mean)

    def each(self, values: Array) -> float | Array:
        """One number an output; of one output the number itself."""
        return float(values[0]) if len(self) == 1 else values

    def shaped(self, out: Array) -> Array:
        """One output without an axis of its own, where y had none."""
        return out[..., 0] if self.flat else out


PLAIN = Outputs(np.zeros(1), np.ones(1))


@register("gp.LeaveOneOut")
@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Of every row, by the model of all others: the mean and the variance of y, and log p(y), (n,
    q) each; and y."""

    mean: Array
    variance: Array
    log: Array
    Y: Array

    must = dict.fromkeys(("mean", "variance", "log", "Y"), Floats("n", "q", finite=False))

    def score(self) -> float:
        """R^2, the mean over outputs; of a constant y 1 where it is met, else 0."""
        Y = self.Y
        misfit, spread, varies = (
            np.square(Y - self.mean).sum(0),
            np.square(Y - Y.mean(0)).sum(0),
            np.ptp(Y, axis=0) > 0,
        )
        return float(np.where(varies, 1 - misfit / np.where(varies, spread, 1), misfit == 0).mean())

    def standardised(self) -> Array:
        """(y - mean) / std"""
        return np.asarray((self.Y - self.mean) / np.sqrt(self.variance))


class Posterior(Protocol):
    """p(f | y) for y = prior mean + f(x) + e: what it cannot tell it refuses in one sentence.

    Variances, `noise_level`, `scale` and `left_out` are in squares of `outputs.unit`, the rest in
    the units of y.
    """

    @property
    def plan(self) -> Plan: ...

    @property
    def outputs(self) -> Outputs: ...

    @property
    def scaled_kernel(self) -> FittedKernel:
        """The kernel of f, with its scale where there is one output."""

    @property
    def scale(self) -> float: ...

    @property
    def noise_level(self) -> float:
        """The variance of e at a new row."""

    @property
    def learnt_noise(self) -> float:
        """The variance of e at every row, where it was learnt."""

    @property
    def log_marginal_likelihood(self) -> float: ...

    @property
    def log_marginal_likelihood_error(self) -> float:
        """Its standard error, where it is estimated."""

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""

    def mean(self, X: Table) -> Array:
        """Of f plus the prior mean, (n, q), in the precision of X."""

    def variance(self, X: Table, noise: float = 0.0) -> Array:
        """Of f at every row, and so much noise, (n,)."""

    def covariance(self, X: Table, noise: float = 0.0) -> Array:
        """Of f at all pairs of rows, and so much noise, (n, n)."""

    def sample(
        self,
        X: Table,
        count: int,
        rng: np.random.Generator,
        *,
        noise: float = 0.0,
        posterior: bool = True,
    ) -> Array:
        """Draws at these rows, of the posterior or of the prior, (n, q, count)."""

    def functions(
        self, count: int, *, posterior: bool, n_features: int, seed: int
    ) -> SampledFunctions:
        """Draws that can be evaluated anywhere."""

    @property
    def left_out(self) -> LeaveOneOut: ...

    def with_points(self, X: Table, Y: Array) -> Posterior:
        """Of these rows too, Y (n, q)."""

    def without_points(self, X: Table, Y: Array) -> Posterior:
        """Without these rows, which were taken in before."""

    def merged(self, other: Posterior) -> Posterior:
        """With the rows that another one of the same map has seen."""


class VarianceStarvationWarning(UserWarning):
    """A finite map has no prior variance left far from the data, unlike the kernel's process.

    Examples
    --------
    >>> import warnings
    >>> from mercer import GaussianProcessRegressor as GP, kernels, methods
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     m = GP(kernels.Gaussian(), 0.01, methods.Fourier(20)).fit(np.c_[:99], np.r_[:99])
    >>> told[0].category.__name__
    'VarianceStarvationWarning'
    """


def one_output(Y: Array) -> Array:
    """y (n,)"""
    if Y.shape[1] != 1:
        raise ValueError(
            f"y has {Y.shape[1]} columns, but features and landmarks take one; fit one model a column."
        )
    return Y[:, 0]
