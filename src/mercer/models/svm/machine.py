"""Fitted support vector machines: a sum over support vectors, or over fewer of them, or a linear
function of features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from mercer.inputs import Array, Table
from mercer.invariants import Counts, Each, Floats, Ints, Is, Number, Text, Whole
from mercer.kernels import Linear
from mercer.kernels.algebra import Scale
from mercer.kernels.base import Kernel
from mercer.lifts.pivots import rpcholesky
from mercer.lifts.residual import in_float64
from mercer.models.expansion import Expansion, widened
from mercer.models.maps import FittedMap
from mercer.models.penalties import PenaltyPath
from mercer.models.settings import FittedKernel
from mercer.models.svm.device import has_products
from mercer.models.svm.multiclass import BinaryRule, pair_functions, pair_parts, votes
from mercer.models.svm.plan import ClassifierSettings
from mercer.operators import KernelOperator, Operator
from mercer.operators.products import Part, dense_enough, given_scores, scores
from mercer.ops.philox import Stream
from mercer.plans import Plan
from mercer.store import register

# Of a residual, relative to the diagonal: vectors that others tell up to it add nothing.
CUT = 1e-10


@register("svm.FitSummary")
@dataclass(frozen=True, eq=False)
class FitSummary:
    """How a fit went: its plan, the objective it reached, its rounds, the relative duality gap where
    there is one, and the path of penalties that C was chosen from."""

    plan: Plan
    objective: float
    rounds: int
    gap: float | None = None
    path: PenaltyPath | None = None

    must = dict(
        plan=Is("Plan"),
        objective=Number(finite=False),
        rounds=Whole(),
        gap=Number(finite=False) | None,
        path=Is("PenaltyPath") | None,
    )


@register("svm.Compression")
@dataclass(frozen=True)
class Compression:
    """What was left out: vectors before and after, |f - g| / |f| in the RKHS, and on rows: rms of f
    - g, share of decisions that changed.

    >>> print(Compression(900, 100, 0.02, 0.01, 0.001))
    100 of 900 support vectors: relative error 0.02, scores moved by 0.01 (rms), 0.1% of decisions changed
    """

    before: int
    after: int
    error: float
    rms: float
    changed: float

    def __str__(self) -> str:
        cost = f"relative error {self.error:.3g}, scores moved by {self.rms:.3g} (rms), {100 * self.changed:.3g}% of decisions changed"
        return f"{self.after} of {self.before} support vectors: {cost}"


@register("svm.WarmStart")
@dataclass(frozen=True, eq=False)
class WarmStart:
    """The rules of a fit, and what decided where their duals may lie: the loss, the bias, the
    classes and the bounds c."""

    loss: str
    bias: bool
    multiclass: str
    codes: Array
    c: Array
    rules: tuple[BinaryRule, ...]

    must = dict(
        loss=Text(),
        multiclass=Text("ovr", "ovo"),
        codes=Ints("n", below=1 << 31),
        c=Floats("n", low=0),
        rules=Each(Is("BinaryRule")),
    )

    def _laws(self) -> str | None:
        beyond = any(r.index.max(initial=0) >= len(self.codes) for r in self.rules)
        return "starts at rows that are not there" if beyond else None

    def starts(
        self, s: ClassifierSettings, multiclass: str, codes: Array, c: Array
    ) -> list[Array] | None:
        """Its duals, scaled to the new bounds, where it was of the same problems and only C
        differs."""
        same = (self.loss, self.bias, self.multiclass) == (s.loss, bool(s.intercept), multiclass)
        if not same or not np.array_equal(self.codes, codes):
            return None
        ratio = c / self.c
        if s.loss != "hinge" or not np.allclose(ratio, ratio[0], rtol=1e-12, atol=0):
            return None
        return [np.clip(r.solution.b * ratio[0], -c[r.index], c[r.index]) for r in self.rules]


@register("svm.DualMachine")
@dataclass(frozen=True, eq=False)
class DualMachine:
    """f = sum_j coef_j k(., z_j) + intercept over support vectors z_j, some of the rows it was
    fitted on (at the places `support`).

    `counts` is the number of vectors of each class, or of all. Of pairs of classes ("ovo"),
    coefficients are those of scikit-learn, (K - 1, m) by the class of each vector, or one row a
    pair. Of a given kernel matrix there are no vectors, only their places.
    """

    kernel: FittedKernel
    vectors: Table | None
    support: Array
    coef: Array
    intercept: Array
    counts: Array
    summary: FitSummary
    multiclass: str = ""  # "ovr" or "ovo" of classes
    size: float = 0.0  # of the terms of a score: what its rounding is relative to
    sigmoid: tuple[Array, Array] | None = None
    compression: Compression | None = None
    memory: float = 1e9  # bytes that sparse queries may take when they are made dense
    last: WarmStart | None = None  # where a next fit of the same rows may start

    must = dict(
        kernel=Is("Kernel") | Text("precomputed"),
        vectors=Is("Table") | None,
        support=Ints("m", below=1 << 48, distinct=True),
        coef=Floats("r", "m"),
        intercept=Floats(None),
        counts=Counts(None),
        summary=Is("FitSummary"),
        multiclass=Text("", "ovr", "ovo"),
        size=Number(0),
        sigmoid=Each(Floats("s"), Floats("s")) | None,
        compression=Is("Compression") | None,
        memory=Number(0),
        last=Is("WarmStart") | None,
    )

    def _laws(self) -> str | None:
        said, there = int(self.counts.sum()), len(self.support)
        if said != there:
            return f"counts {said} support vectors of {there}"
        if (
            isinstance(self.kernel, str) != (self.vectors is None)
            or len(self.vectors or self.support) != there
        ):
            return "has a kernel without support vectors, or vectors without one"
        K, shape = len(self.counts), (len(self.coef), len(self.intercept))
        if self.multiclass == "":
            return (
                None
                if shape == (1, 1) and K == 1
                else f"has {shape[0]} rows of coefficients and {shape[1]} intercepts of one score"
            )
        pairs = K * (K - 1) // 2
        fits = K > 1 and shape in (
            [(1, 1)]
            if K == 2
            else [(K, K)]
            if self.multiclass == "ovr"
            else [(K - 1, pairs), (pairs, pairs)]
        )
        return (
            None
            if fits
            else f"has {shape[0]} rows of coefficients and {shape[1]} intercepts for {K} classes"
        )

    def misfit(self, width: int) -> str | None:
        """What is wrong where rows have so many columns."""
        if self.vectors is None:
            fits = int(self.support.max(initial=-1)) < width
        else:
            fits = self.vectors.width == width or (self.vectors.items and width == 1)
        return None if fits else f"has support vectors that are not of {width} columns"

    # scores
    @property
    def by_class(self) -> bool:
        """Whether the coefficients are those of pairs, by the class of each vector."""
        return len(self.counts) > 2 and len(self.coef) == len(self.counts) - 1

    @property
    def functions(self) -> Array:
        """Coefficients of every score over all vectors, (k, m)."""
        return pair_functions(self.coef, self.counts) if self.by_class else self.coef

    @property
    def slopes(self) -> Array | None:
        """w (k, d) of scores w'x + intercept, where the kernel is linear and rows are known."""
        kernel, factor = self.kernel, 1.0
        while isinstance(kernel, Scale):
            factor, kernel = factor * kernel.factor, kernel.kernel
        if not isinstance(kernel, Linear) or self.vectors is None:
            return None
        Z = self.vectors.data.astype(np.float64)
        w = factor * np.asarray((Z.T @ self.functions.T.astype(np.float64)).T)
        return w if kernel.metric is None else w @ np.asarray(kernel.metric.values)

    @property
    def balanced(self) -> bool:
        """Whether the coefficients of every score sum to zero because there is an intercept: those
        of fewer vectors need not."""
        coef = self.functions
        return bool(
            np.any(self.intercept) and (np.abs(coef.sum(1)) <= 1e-9 * np.abs(coef).sum(1)).all()
        )

    def raw(self, X: Table) -> Array:
        """Scores (n, k) without the intercept."""
        parts: list[Part] = [(slice(0, self.coef.shape[1]), list(range(len(self.coef))), self.coef)]
        parts, width = (
            (pair_parts(self.coef, self.counts), len(self.intercept))
            if self.by_class
            else (parts, len(self.coef))
        )
        if self.vectors is None or isinstance(self.kernel, str):
            return given_scores(X.data, self.support, parts, width, balanced=self.balanced)
        return scores(self.kernel, X, self.vectors.data, parts, width, balanced=self.balanced)

    def queried(self, X: Table, gpu: str | None = None) -> Array:
        """`raw` of rows as they come: sparse ones are made dense where that fits."""
        X = X if self.vectors is None else dense_enough(X, self.memory)
        if gpu is not None and has_products(self._over, X, balanced=self.balanced):
            return self._over.combined(X, self.functions.T, 0.0, gpu, wide=self._cancels)
        return widened(self.raw, X) if self._cancels else self.raw(X)

    @property
    def _over(self) -> Expansion:
        return Expansion(self.kernel, self.vectors)

    @cached_property
    def _cancels(self) -> bool:
        return self._over.cancels(self.functions.T)

    def decide(self, X: Table, gpu: str | None = None) -> Array:
        """(n,) for two classes, else (n, K): one score a class, or its votes among pairs."""
        return self.combined(self.queried(X, gpu))

    def by_pair(self, X: Table, gpu: str | None = None) -> Array:
        """(n, K (K - 1) / 2) of the pairs (0, 1), (0, 2), ..., the first class where positive; (n,)
        for two classes, as `decide`."""
        if len(self.counts) == 2:
            return self.decide(X, gpu)
        f = self.queried(X, gpu)
        return f + self.intercept.astype(f.dtype)

    @property
    def of_pairs(self) -> bool:
        """Whether scores are votes among pairs of classes."""
        return len(self.counts) > 2 and self.multiclass == "ovo"

    def gradient(self, X: Table) -> Array:
        """(n, k, d) of the scores."""
        if self.of_pairs:
            raise ValueError(
                "votes among pairs of classes have no gradient; fit with multiclass='ovr', one score a class."
            )
        return self._over.gradient(X, self.functions.T)

    def combined(self, f: Array) -> Array:
        """The scores of classes from those of all rules."""
        f, K = f + self.intercept.astype(f.dtype), len(self.counts)
        return f[:, 0] if K == 2 else votes(f, K) if self.of_pairs else f

    def changed(self, before: Array, after: Array) -> float:
        """The share of decisions that differ: of classes, or of signs of scores."""
        if not self.multiclass:
            return float(np.mean((before + self.intercept > 0) != (after + self.intercept > 0)))
        was, now = self.combined(before), self.combined(after)
        return float(
            np.mean((was > 0) != (now > 0) if was.ndim == 1 else was.argmax(1) != now.argmax(1))
        )


@register("svm.FeatureMachine")
@dataclass(frozen=True, eq=False)
class FeatureMachine:
    """f = phi(x)'coef + intercept: one score for two classes, else one a class, coef (k, D)."""

    phi: FittedMap
    coef: Array
    intercept: Array
    summary: FitSummary
    sigmoid: tuple[Array, Array] | None = None

    last, of_pairs = None, False
    must = dict(
        phi=Is("FittedMap"),
        coef=Floats("k", "phi.width"),
        intercept=Floats("k"),
        summary=Is("FitSummary"),
        sigmoid=Each(Floats("s"), Floats("s")) | None,
    )

    @property
    def kernel(self) -> FittedKernel:
        return self.phi.kernel

    def misfit(self, width: int) -> str | None:
        """What is wrong where rows have so many columns."""
        return (
            None
            if self.phi.reads in (width, None)
            else f"has features of {self.phi.reads} columns, not of {width}"
        )

    def decide(self, X: Table, gpu: str | None = None) -> Array:
        """(n,) for two classes, the second where positive, else (n, K)."""
        f = self.phi.linear(X, self.coef.T, self.intercept, gpu)
        return f[:, 0] if len(self.coef) == 1 else f

    def gradient(self, X: Table) -> Array:
        """(n, k, d) of the scores."""
        return self.phi.gradient(X, self.coef.T)


Machine = DualMachine | FeatureMachine


def chosen_C(machine: Machine, given: float) -> float:
    """The best of a path of penalties, or the one given."""
    path = machine.summary.path
    return given if path is None else path.best


# fewer support vectors
def compress(machine: Machine, budget: int, X: Table | None, seed: int) -> DualMachine:
    """The same over at most `budget` vectors; the cost is measured on rows X, or else on the
    support vectors."""
    if not isinstance(machine, DualMachine):
        raise ValueError(
            "compress needs support vectors, and a model over features has none; fit with via='exact'."
        )
    if machine.vectors is None or isinstance(machine.kernel, str):
        raise ValueError(
            "compress needs a kernel; a model of kernel='precomputed' does not have the values between its vectors."
        )
    if not len(machine.support):
        raise ValueError(
            "compress needs support vectors, and this model, a constant, has none; use it as it is."
        )
    vectors, rows = machine.vectors, machine.vectors if X is None else X
    before = machine.raw(rows)
    keep, coef, error = project(machine.kernel, vectors, machine.functions, budget, seed)
    of = np.repeat(np.arange(len(machine.counts)), machine.counts)[keep]
    counts = np.bincount(of, minlength=len(machine.counts)).astype(np.int32)
    small = replace(
        machine, support=machine.support[keep], vectors=vectors[keep], coef=coef, counts=counts
    )
    after = small.raw(rows)
    rms = float(np.sqrt(np.mean(np.square(after - before))))
    return replace(
        small,
        compression=Compression(
            len(vectors), len(keep), error, rms, machine.changed(before, after)
        ),
    )


def project(
    kernel: Kernel, vectors: Table, coef: Array, budget: int, seed: int
) -> tuple[Array, Array, float]:
    """Places of the vectors that stay, their coefficients (k, m), and |f - g| / |f| of the worst
    function.

    Pivots of a randomly pivoted Cholesky factorisation, weighted by the coefficients; then the
    least squares in the RKHS.
    """
    op = KernelOperator(kernel, vectors).astype(np.float64)
    weight = np.abs(coef).max(0)
    keep = np.sort(rpcholesky(op, budget, Stream(seed), weight / weight.max(), CUT))
    across = (
        in_float64(op, keep, slice(None)) @ coef.T
    )  # (m, k): values of f at the vectors that stay
    K = in_float64(op, keep, keep)
    K[np.diag_indices(len(K))] += 1e-10 * np.trace(K) / len(K)
    new = scipy.linalg.solve(K, across, assume_a="pos").T
    square = np.array([c @ _times(op, c) for c in coef])
    left = square - np.einsum("ij,ji->i", new, across)  # |f|^2 - |g|^2 for a projection
    return keep, new, float(np.sqrt(np.max(np.maximum(left, 0) / np.maximum(square, 1e-300))))


def _times(op: Operator, c: Array) -> Array:
    step = 1024
    return np.concatenate(
        [in_float64(op, slice(i, i + step), slice(None)) @ c for i in range(0, op.shape[0], step)]
    )
