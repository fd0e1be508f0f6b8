"""Paths of learnt metrics: ridge regression on dense rows, alternated with a metric from the
average outer product of its gradients.

Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural networks and
backpropagation-free machine learning models (2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Each, Number, Text, Whole
from mercer.kernels import Laplace
from mercer.logs import logger
from mercer.models.feature_machine.dense import (
    Fit,
    PathRows,
    PenaltyClimb,
    best_fit,
    best_linear,
    distances,
    kernel_values,
    median_distance,
    solved,
    under,
)
from mercer.ops.slopes import signs
from mercer.store import register

LOG = logger("feature_machine")

# of the length: a kernel that is smooth within this has no slope at near-copies, which would
# otherwise rule the metric
FLOOR = 0.1
# at which gradients are taken, of one output; of many outputs fewer, as each row then gives many
GRADIENT_ROWS = 1000
MIN_GRADIENT_ROWS = 300
MAX_OUTPUTS = 32  # whose gradients are taken; of more, random sums of them
LINEAR = (1.0, 0.2)  # factors of linear functions, which are searched beside machines
WORSE = 1.15  # a path that gets so much worse than its best ends


@register("feature_machine.PathSetting")
@dataclass(frozen=True)
class PathSetting:
    """exp(-(|Sx - Sz|_norm / L)^exponent), L = factor times the median distance; S = M^power of a
    diagonal M, or its root. Or, of form "linear", factor^2 x'z / d of d inputs, without a metric."""

    inputs: str
    norm: int
    exponent: float
    factor: float
    form: str
    power: float = 0.5

    must = dict(
        inputs=Text("standard", "rank"),
        norm=Whole(1, 3),
        exponent=Number(0),
        factor=Number(0),
        form=Text("diagonal", "full", "linear"),
        power=Number(0),
    )

    @property
    def family(self) -> tuple[str, int, float]:
        """What machines that are averaged differ by."""
        return self.inputs, self.norm, self.exponent

    def kernel(self, length: float) -> Laplace:
        return Laplace(length, self.norm, self.exponent)

    def __str__(self) -> str:
        inputs = "rank-normalised" if self.inputs == "rank" else "standardised"
        if self.form == "linear":
            return f"{inputs} inputs, linear"
        return (
            f"{inputs} inputs, exp(-(r/L)^{self.exponent:g}) of the {self.norm}-norm, "
            f"L {self.factor:g} times the median, {self.form} metric"
        )


def settings(inputs: tuple[str, ...], width: int, full: int = 1000) -> list[PathSetting]:
    """What is searched, those that win most often first; full metrics up to so many columns."""
    shapes = [
        (1, 1.0, 1.0),
        (2, 1.0, 4.0),
        (1, 0.7, 4.0),
        (2, 2.0, 1.0),
        (2, 1.0, 1.0),
        (1, 0.7, 1.0),
        (2, 2.0, 0.5),
        (1, 1.0, 3.0),
        (1, 1.0, 0.35),
        (1, 0.7, 0.3),
    ]
    out = []
    for norm, exponent, factor in shapes:
        for kind in inputs:
            if norm == 2 and width <= full:
                out.append(PathSetting(kind, norm, exponent, factor, "full"))
            out.append(
                PathSetting(kind, norm, exponent, factor, "diagonal", 1.0 if norm == 1 else 0.5)
            )
    if width <= full:
        out += [PathSetting(kind, 2, 1.0, factor, "linear") for kind in inputs for factor in LINEAR]
    return out


@register("feature_machine.MetricPath")
@dataclass(frozen=True)
class MetricPath:
    """A setting and the penalty of every round, the last one that of the machine itself."""

    setting: PathSetting
    penalties: tuple[float, ...]

    must = dict(penalties=Each(Number(0), least=1))

    @property
    def rounds(self) -> int:
        return len(self.penalties) - 1


@dataclass(frozen=True, eq=False)
class Round:
    """One round of a path: the mean squared error of held-out rows, the penalty, and the metric
    (None is the identity) that it was reached with."""

    loss: float
    penalty: int  # its place in PENALTIES
    metric: Array | None
    held_out: Array  # predictions (m, q)


# metrics
def gradient_rows(outputs: int) -> int:
    """At how many rows gradients are taken."""
    return max(MIN_GRADIENT_ROWS, GRADIENT_ROWS * 3 // max(3, min(outputs, MAX_OUTPUTS)))


def outer_product(
    setting: PathSetting, R: Array, K: Array, at: Array, U: Array, A: Array, length: float
) -> Array:
    """Mean over rows `at` of g g', or its diagonal, of gradients g in u = S x of all functions sum_j
    A_jt k(., u_j) without the row's own point; R and K (m, n) are of these rows."""
    p, q = setting.norm, setting.exponent
    near = np.float32(FLOOR * length)
    floored = np.maximum(R, near)
    W = K * (floored ** np.float32(q - p)) if q != p else K.copy()
    W *= np.float32(-q / length**q)
    if p == 1:  # signs do not shrink as differences do
        W *= R / floored
    W[np.arange(len(at)), at] = 0
    V = U - U.mean(axis=0)  # lest sums of large inputs cancel
    few = few_outputs(A)
    G = signs(W, few, V[at], V) if p == 1 else _radial(W, few, V[at], V)
    if setting.form == "diagonal":
        return np.einsum("itk,itk->k", G, G, dtype=np.float64) / len(at)
    flat = G.reshape(-1, G.shape[2])
    return np.asarray((flat.T @ flat).astype(np.float64) / len(at))


def _radial(W: Array, A: Array, X: Array, Z: Array) -> Array:
    """sum_j W_ij A_jt (x_i - z_j), (n, t, d)."""
    out = np.empty((len(X), A.shape[1], X.shape[1]), np.float32)
    for t, a in enumerate(A.T):
        Wa = W * a
        out[:, t] = Wa.sum(axis=1)[:, None] * X - Wa @ Z
    return out


def few_outputs(A: Array) -> Array:
    """Of many outputs sums with random signs, whose mean of g g' is the same."""
    if A.shape[1] <= MAX_OUTPUTS:
        return A
    signed = np.random.default_rng(0).choice([-1.0, 1.0], (A.shape[1], MAX_OUTPUTS))
    return np.asarray(A @ (signed / np.sqrt(MAX_OUTPUTS))).astype(np.float32)


def pulled_back(M: Array, metric: Array | None) -> Array:
    """The outer product of gradients by x, of that by u = S x: S' M S."""
    if metric is None:
        return M
    if metric.ndim == 1:
        return M * metric**2 if M.ndim == 1 else M * np.outer(metric, metric)
    return metric @ M @ metric


def metric_of(M: Array, power: float) -> Array | None:
    """M^power of a diagonal M, M^(1/2) of a full one, over the largest entry; None where M = 0 or no
    number."""
    top = float(np.abs(M).max())
    if not (np.isfinite(top) and top > 0):
        return None
    if M.ndim == 1:
        return np.asarray((M / top) ** power)
    values, vectors = np.linalg.eigh(M / top)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


@dataclass
class FirstDistances:
    """Distances under no metric: all settings of the same inputs and norm begin with them."""

    known: dict[tuple[str, int], tuple[Array, Array, float]] = field(default_factory=dict)


# (setting, rows, held-out rows, metric, climb, gradient rows, generator, first distances)
OneRound = Callable[..., tuple[Fit, PenaltyClimb, Array] | None]


def rounds(
    setting: PathSetting,
    rows: PathRows,
    out: PathRows,
    most: int,
    seed: int,
    first: FirstDistances,
    one_round: OneRound | None = None,
) -> Iterator[Round]:
    """The rounds of a path, round 0 without a metric; a linear function has but this one. Each by
    `one_round`, which is that of the CPU by default."""
    one_round = one_round or _one_round
    if setting.form == "linear":
        fit = best_linear(rows, out, setting.factor)
        if fit is not None:
            yield Round(fit.loss, fit.penalty, None, fit.held_out)
        return
    rng = np.random.default_rng(seed)
    at = rng.permutation(len(rows))[: gradient_rows(rows.Y.shape[1])]
    metric: Array | None = None
    climb, best = PenaltyClimb(), np.inf
    for t in range(most + 1):
        found = one_round(
            setting,
            rows,
            out,
            metric,
            climb,
            at[: 0 if t == most else None],
            rng,
            first if t == 0 else None,
        )
        if found is None:
            return
        fit, climb, M = found
        best = min(best, fit.loss)
        LOG.info("round %d over %d rows: held-out loss %.6g", t, len(rows), fit.loss)
        yield Round(fit.loss, fit.penalty, metric, fit.held_out)
        if t == most or fit.loss > WORSE * best:
            return
        metric = metric_of(pulled_back(M, metric), setting.power)
        if metric is None:
            return


def _one_round(
    s: PathSetting,
    rows: PathRows,
    out: PathRows,
    metric: Array | None,
    climb: PenaltyClimb,
    at: Array,
    rng: np.random.Generator,
    first: FirstDistances | None,
) -> tuple[Fit, PenaltyClimb, Array] | None:
    """The fit under a metric, and the outer product of its gradients by u; nothing of size n x n is
    left behind."""
    U, V = under(rows.U, metric), under(out.U, metric)
    R, R_out, median = _distances(s, U, V, rng, first)
    length = s.factor * median
    K = kernel_values(R, length, s.exponent)
    found = best_fit(K, kernel_values(R_out, length, s.exponent), rows, out, climb)
    if found is None:
        return None
    if not len(at):  # no further round will ask
        return *found, np.zeros(U.shape[1])
    return *found, outer_product(s, R[at], K[at], at, U, found[0].A, length)


def _distances(
    s: PathSetting, U: Array, V: Array, rng: np.random.Generator, first: FirstDistances | None
) -> tuple[Array, Array, float]:
    key = s.inputs, s.norm
    if first is not None and key in first.known:
        return first.known[key]
    found = distances(U, U, s.norm), distances(V, U, s.norm), median_distance(U, s.norm, rng)
    if first is not None:
        first.known[key] = found
    return found


def walked(path: MetricPath, rows: PathRows, seed: int) -> Array | None:
    """The metric after the rounds of a path that was chosen, on these rows."""
    s, rng = path.setting, np.random.default_rng(seed)
    metric: Array | None = None
    for penalty in path.penalties[:-1]:
        U = under(rows.U, metric)
        length = s.factor * median_distance(U, s.norm, rng)
        R = distances(U, U, s.norm)
        K = kernel_values(R, length, s.exponent)
        found = solved(K, rows, penalty)
        if found is None:
            return metric
        at = rng.permutation(len(rows))[: gradient_rows(rows.Y.shape[1])]
        M = outer_product(s, R[at], K[at], at, U, found[0], length)
        new = metric_of(pulled_back(M, metric), s.power)
        if new is None:
            return metric
        metric = new
    return metric


def neighbours(s: PathSetting) -> list[PathSetting]:
    """Settings beside a good one."""
    if s.form == "linear":
        return [replace(s, factor=s.factor * f) for f in (0.3, 3.0)]
    near = [replace(s, factor=s.factor * f) for f in (0.5, 2.0) if s.factor * f <= 8]
    if s.form == "diagonal":
        near.append(replace(s, power=0.5 if s.power == 1.0 else 1.0))
    return near
