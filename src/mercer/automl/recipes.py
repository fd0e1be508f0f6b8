"""Recipes: what a candidate is made of, before its size and penalty are chosen, from the simplest
to the most flexible."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer import methods
from mercer.automl.crossval import dense
from mercer.inputs import Array
from mercer.kernels import Gaussian, Kernel, Laplace, Matern
from mercer.kernels.defaults import spread
from mercer.lifts import Concatenate, Identity, KernelLift, KitchenSink, OnColumnsLift
from mercer.linalg import least_squares
from mercer.models.base import KernelEstimator
from mercer.ops.threads import single_blas
from mercer.stats import Moments

# simplest first
KINDS = ("constant", "linear", "sparse", "explicit", "fourier", "landmarks", "machine", "ensemble")
NAMES = {
    "constant": "Constant",
    "linear": "Linear",
    "sparse": "Sparse formula",
    "explicit": "Explicit lift",
    "fourier": "Fourier features",
    "landmarks": "Landmarks",
    "machine": "Kernel machine",
    "ensemble": "Mean of models",
    "trees": "Gradient-boosted trees",
}
BANDWIDTH_FACTORS = (1.0, 0.5, 2.0, 0.25, 4.0)  # of the bandwidth, about that of the data
FINE_FACTORS = (0.7, 1.4)
N_KNOTS = 8
MAX_EXPLICIT_FEATURES = 2000  # columns of an explicit lift
ALPHAS = np.logspace(-5, 4, 10)
# of the leaves where there are more than two classes: without it, leaves of a rare class run away
# (4,000 rows of covtype: accuracy 0.54 with 0, 0.76 with 1)
MULTICLASS_PENALTY = 1.0
# scikit-learn's defaults
N_ROUNDS = 100
LEARNING_RATE = 0.1
SLOPE_ROWS = 2_000  # at which slopes are measured
SLOPE_STEP = 0.1  # standard deviations
MIN_RELEVANCE = 0.05  # of the mean relevance: no column is switched off for good


@dataclass(frozen=True)
class Recipe:
    """A kind of feature map: with a kernel where it is fourier or landmarks, with the columns to
    expand where it is explicit."""

    kind: str
    kernel: Kernel | None = None
    numbers: tuple[int, ...] = ()
    others: tuple[int, ...] = ()  # as they are

    @property
    def rank(self) -> int:
        return KINDS.index(self.kind)

    def lift(self, size: int, seed: int) -> Any:
        """The map with about that many features."""
        if self.kind == "linear":
            return Identity()
        if self.kind == "explicit":
            return self._expanded(KitchenSink(size, n_knots=N_KNOTS, n_jumps=0, functions=()))
        return KernelLift(self.kernel, size, method=self._method(size), random_state=seed)

    def _expanded(self, phi: Any) -> Any:
        if not self.others:
            return phi
        return Concatenate(
            [OnColumnsLift(Identity(), list(self.others)), OnColumnsLift(phi, list(self.numbers))]
        )

    def estimator(self, cls: type[KernelEstimator], size: int, seed: int, **settings: Any) -> Any:
        """The learner over that map."""
        if self.kernel is None:
            return cls(lift=self.lift(size, seed), random_state=seed, **settings)
        return cls(kernel=self.kernel, via=self._method(size), random_state=seed, **settings)

    def _method(self, size: int) -> methods.Method:
        return (
            methods.Landmarks(size)
            if self.kind == "landmarks"
            else methods.Fourier(size + size % 2)
        )

    def size(self, asked: int, columns: int, rows: int) -> int:
        """How many features that is here: landmarks are rows, and an explicit lift holds the
        columns themselves."""
        if self.kind == "linear":
            return columns
        if self.kind == "explicit":
            return min(MAX_EXPLICIT_FEATURES, max(asked, 4 * columns))
        return min(asked, rows) if self.kind == "landmarks" else asked

    def detail(self, size: int) -> str:
        """What it is, in words."""
        if self.kind == "linear":
            return "the treated columns themselves"
        if self.kind == "sparse":
            return f"a few of up to {size:,} columns, squares, products of pairs and jumps"
        if self.kind == "explicit":
            return f"columns, squares, products of pairs and splines{' of numbers' if self.others else ''}: up to {size:,} features"
        if self.kind == "machine":
            what = "a learnt metric" if self.kernel is None else self.spelled
            return f"{what} at the rows themselves"
        what = "random Fourier features" if self.kind == "fourier" else "landmarks"
        return f"{size:,} {what} of {self.spelled}"

    @property
    def spelled(self) -> str:
        """The kernel."""
        return spelled(self.kernel)


def spelled(kernel: Kernel | None) -> str:
    """A kernel, with the range of its bandwidths where there is one a column."""
    b = getattr(kernel, "bandwidth", None)
    if not isinstance(b, tuple):
        return repr(kernel)
    norm = " in the 1-norm" if getattr(kernel, "norm", 2) == 1 else ""
    return (
        f"{type(kernel).__name__}{norm}, one bandwidth a column, from {min(b):.3g} to {max(b):.3g}"
    )


@dataclass(frozen=True)
class TreeGrowth:
    """How an ensemble is grown: rounds, and the size of their steps."""

    rounds: int = N_ROUNDS  # fewer where time was up before trees were done
    rate: float = LEARNING_RATE

    @property
    def starved(self) -> bool:
        """Whether fewer rounds than larger steps make up for.

        >>> TreeGrowth(50).starved, TreeGrowth(50, 0.2).starved
        (True, False)
        """
        return self.rounds < round(LEARNING_RATE / self.rate * N_ROUNDS)

    def settings(self, n_classes: int) -> str:
        """In words."""
        more = f", leaves penalised by {MULTICLASS_PENALTY:g}" if n_classes > 2 else ""
        if self.rate == LEARNING_RATE:
            return f"default settings{more}"
        return f"{self.rounds} rounds at a learning rate of {self.rate:.2g}, as time allowed{more}"


LINEAR = Recipe("linear")
EXPLICIT = Recipe("explicit")


def explicit(X: Array) -> Recipe:
    """The expansion of the columns that have more than two values; indicators stay as they are,
    unless there is nothing else."""
    few = X[:5000]
    numbers = tuple(j for j in range(X.shape[1]) if len(np.unique(few[:, j])) > 2)
    others = tuple(sorted(set(range(X.shape[1])) - set(numbers)))
    return Recipe("explicit", numbers=numbers, others=others) if numbers and others else EXPLICIT


def kernels(X: Array) -> list[Recipe]:
    """Fourier features of three kernels, from smooth to rough, at five bandwidths: first those that
    the data suggest."""
    b = math.sqrt(spread(X) / 2)
    families: tuple[tuple[Any, float], ...] = ((Gaussian, 1.0), (Matern, 2.0), (Laplace, 4.0))
    return [
        Recipe("fourier", family(rounded(b * wide * step)))
        for step in BANDWIDTH_FACTORS
        for family, wide in families
    ]


def neighbours(recipe: Recipe) -> list[Recipe]:
    """The same kernel at the bandwidths beside."""
    return [scaled(recipe, step) for step in FINE_FACTORS]


def scaled(recipe: Recipe, factor: float) -> Recipe:
    """With every bandwidth times the factor."""
    assert recipe.kernel is not None
    return replace(recipe, kernel=widened(recipe.kernel, factor))


def widened(kernel: Any, factor: float) -> Kernel:
    """The kernel with every bandwidth times the factor.

    >>> widened(Laplace(6.0, norm=1), 0.5)
    Laplace(bandwidth=3.0, norm=1)
    >>> widened(Laplace(6.0, exponent=1.5), 0.5)
    Laplace(bandwidth=3.0, exponent=1.5)
    """
    b = kernel.bandwidth
    new: Any = (
        tuple(rounded(v * factor) for v in b) if isinstance(b, tuple) else rounded(b * factor)
    )
    return (
        Laplace(new, kernel.norm, kernel.exponent)
        if isinstance(kernel, Laplace)
        else type(kernel)(new)
    )


def rounded(value: float) -> float:
    """To three digits: a bandwidth is not known better.

    >>> rounded(1.23456), rounded(1234.5)
    (1.23, 1230.0)
    """
    return float(f"{value:.3g}")


def slopes(lift: Any, X: Array, Y: Array, alpha: float, w: Array | None = None) -> Array:
    """The mean square of df/dx_j over rows and outputs, for the ridge regression f of Y on the
    features; (p,).

    The diagonal of the expected outer product of gradients, of which Radhakrishnan, Beaglehole,
    Pandit and Belkin (Science, 2024) show that it is what networks learn about their inputs.
    """
    with single_blas():
        phi = clone(lift).fit(X)
        F = dense(phi.transform(X))
        m = Moments.of(
            np.concatenate([F, Y.astype(np.float32)], axis=1),
            w,
            shift=np.concatenate([F.mean(0), Y.mean(0)]),
        )
        coef = least_squares.solve(m, F.shape[1], alpha).coef.astype(np.float32)
    few = X[:SLOPE_ROWS]
    base = F[: len(few)] @ coef
    return np.array([_slope(phi, few, j, base, coef) for j in range(X.shape[1])])


def _slope(phi: Any, X: Array, j: int, base: Array, coef: Array) -> float:
    moved = X.copy()
    moved[:, j] += SLOPE_STEP
    return float(np.square((dense(phi.transform(moved)) @ coef - base) / SLOPE_STEP).sum(1).mean())


def follow_relevance(recipe: Recipe, relevance: Array, power: float) -> Recipe:
    """The same kernel with bandwidths that are shorter where f is steeper: b_j in proportion to
    relevance_j^(-power).

    Their scale is such that the mean of 1/b_j^2 stays as it is.
    """
    kernel: Any = recipe.kernel
    r = np.maximum(relevance / max(float(relevance.mean()), 1e-300), MIN_RELEVANCE) ** power
    r = r / np.sqrt(np.mean(r**2))
    bandwidth = np.broadcast_to(np.asarray(kernel.bandwidth, np.float64), r.shape)
    return replace(recipe, kernel=type(kernel)(tuple(rounded(b) for b in (bandwidth / r).tolist())))
