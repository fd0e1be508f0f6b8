"""Paths of learnt metrics: ridge regression on dense rows, alternated with a metric from the
average outer product of its gradients.

Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural networks and
backpropagation-free machine learning models (2024).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import lapack

from mercer.inputs import Array
from mercer.invariants import Each, Number, Text, Whole
from mercer.kernels import Laplace
from mercer.ops.absolute import absdist
from mercer.ops.slopes import signs
from mercer.ops.threads import single_blas
from mercer.store import register

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 3.0)
FIRST_PENALTY = 2  # from where the climb begins
# of the length: a kernel that is smooth within this has no slope at near-copies, which would
# otherwise rule the metric
FLOOR = 0.1
SIDE_WORSE = (
    1.03  # a penalty beside the best that loses so much more is left aside in the next round
)
MEDIAN_ROWS = 400  # by whose pairs the length is taken
# at which gradients are taken, of one output; of many outputs fewer, as each row then gives many
GRADIENT_ROWS = 1000
MIN_GRADIENT_ROWS = 300
ONE_THREAD_ROWS = 8_000  # of a factor for which BLAS has one thread
MAX_OUTPUTS = 8  # directions of outputs whose gradients are taken
WORSE = 1.15  # a path that gets so much worse than its best ends


@register("feature_machine.PathSetting")
@dataclass(frozen=True)
class PathSetting:
    """exp(-(|Sx - Sz|_norm / L)^exponent), L = factor times the median distance; S = M^power of a
    diagonal M, or its root."""

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
        form=Text("diagonal", "full"),
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
class PathRows:
    """Inputs (n, d), targets (n, q) about zero, and weights of mean 1 or none."""

    U: Array
    Y: Array
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.U)

    def take(self, rows: Array) -> PathRows:
        return PathRows(
            self.U[rows], self.Y[rows], None if self.weight is None else self.weight[rows]
        )


@dataclass(frozen=True, eq=False)
class Round:
    """One round of a path: the mean squared error of held-out rows, the penalty, and the metric
    (None is the identity) that it was reached with."""

    loss: float
    penalty: int  # its place in PENALTIES
    metric: Array | None
    held_out: Array  # predictions (m, q)


# kernel values
def under(U: Array, metric: Array | None) -> Array:
    """Rows u as S u: no metric, a diagonal one (d,), or a symmetric one (d, d)."""
    if metric is None:
        return U
    S = metric.astype(np.float32)
    return np.ascontiguousarray(U * S if S.ndim == 1 else U @ S)


def distances(U: Array, V: Array, norm: int) -> Array:
    """|u - v|_norm of float32 rows, (n, m)."""
    if norm == 1:
        return absdist(U, V, np.ones(U.shape[1]))
    D = U @ V.T
    D *= -2
    D += np.einsum("ij,ij->i", U, U)[:, None]
    D += np.einsum("ij,ij->i", V, V)
    np.maximum(D, 0, out=D)
    return np.asarray(np.sqrt(D, out=D))


def kernel_values(R: Array, length: float, exponent: float) -> Array:
    """exp(-(R / length)^exponent)"""
    T = R * np.float32(1 / length)
    if exponent == 2:
        T *= T
    elif exponent != 1:
        T **= np.float32(exponent)
    np.negative(T, out=T)
    return np.asarray(np.exp(T, out=T))


def median_distance(U: Array, norm: int, rng: np.random.Generator) -> float:
    """Of pairs of some rows; 1 where most of them are equal."""
    some = U[rng.permutation(len(U))[:MEDIAN_ROWS]]
    R = distances(some, some, norm)
    pairs = R[np.triu_indices(len(R), 1)]
    median = float(np.median(pairs)) if len(pairs) else 0.0
    return median if median > 0 else float(pairs.mean() or 1.0) if len(pairs) else 1.0


# equations
def solved(K: Array, rows: PathRows, penalty: float) -> tuple[Array, Array] | None:
    """(A, b) of K A + b with an intercept that is not penalised; None where K + penalty has no
    factor."""
    with one_thread(len(K)):
        return _solved(K, rows, penalty)


def one_thread(n: int) -> AbstractContextManager[None]:
    """BLAS in one thread for factors of so many rows: two that share a busy machine wait for each
    other longer than they work."""
    return single_blas() if n <= ONE_THREAD_ROWS else nullcontext()


def _solved(K: Array, rows: PathRows, penalty: float) -> tuple[Array, Array] | None:
    n = len(K)
    ridge = penalty if rows.weight is None else penalty / rows.weight
    for dtype, factor, solve in (
        (np.float32, lapack.spotrf, lapack.spotrs),
        (np.float64, lapack.dpotrf, lapack.dpotrs),
    ):
        M: Array = np.array(K, dtype, order="F")
        M[np.diag_indices(n)] += np.asarray(ridge, dtype)
        L, failed = factor(M, lower=1, overwrite_a=1)
        if not failed:
            X = solve(L, np.asfortranarray(np.column_stack([rows.Y, np.ones(n)]), dtype), lower=1)[
                0
            ]
            ones = X[:, -1]
            b = X[:, :-1].sum(axis=0) / ones.sum()
            A = X[:, :-1] - ones[:, None] * b
            if np.isfinite(A).all() and np.isfinite(b).all():
                return A.astype(np.float32), b.astype(np.float32)
    return None


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients at a penalty, and what they say of held-out rows."""

    loss: float
    penalty: int
    A: Array
    b: Array
    held_out: Array


@dataclass(frozen=True)
class PenaltyClimb:
    """From which penalty the next round begins, and to which sides of it it looks."""

    start: int = FIRST_PENALTY
    sides: tuple[int, ...] = (1, -1)

    @classmethod
    def after(cls, losses: dict[int, float], best: int) -> PenaltyClimb:
        """Sides that were tried and much worse are not looked at again; untried ones are."""
        sides = [
            step for step in (1, -1) if losses.get(best + step, 0.0) < SIDE_WORSE * losses[best]
        ]
        return cls(best, tuple(sides))


def best_fit(
    K: Array, K_out: Array, rows: PathRows, out: PathRows, climb: PenaltyClimb
) -> tuple[Fit, PenaltyClimb] | None:
    """At the best penalty by held-out rows, and how the next round goes on from it."""
    tried: dict[int, Fit | None] = {}

    def at(i: int) -> float:
        if i not in tried:
            tried[i] = _fit_at(K, K_out, rows, out, i)
        found = tried[i]
        return np.inf if found is None else found.loss

    best = climb.start
    for step in climb.sides:
        i = climb.start + step
        while 0 <= i < len(PENALTIES) and at(i) < at(best):
            best, i = i, i + step
        if best != climb.start:
            break
    losses = {i: at(i) for i in (*tried, best)}
    fit = tried[best]
    return None if fit is None else (fit, PenaltyClimb.after(losses, best))


def _fit_at(K: Array, K_out: Array, rows: PathRows, out: PathRows, i: int) -> Fit | None:
    found = solved(K, rows, PENALTIES[i])
    if found is None:
        return None
    A, b = found
    F = K_out @ A + b
    loss = float(np.average(np.square(F - out.Y).mean(axis=1), weights=out.weight))
    return Fit(loss, i, A, b, F) if np.isfinite(loss) else None


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
    few = _few_outputs(A)
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


def _few_outputs(A: Array) -> Array:
    """The sum of g g' over outputs stays when outputs are rotated: the largest directions alone."""
    if A.shape[1] <= MAX_OUTPUTS:
        return A
    left, s, _ = np.linalg.svd(A, full_matrices=False)
    return np.asarray((left * s)[:, :MAX_OUTPUTS])


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


def rounds(
    setting: PathSetting, rows: PathRows, out: PathRows, most: int, seed: int, first: FirstDistances
) -> Iterator[Round]:
    """The rounds of a path, round 0 without a metric."""
    rng = np.random.default_rng(seed)
    at = rng.permutation(len(rows))[: gradient_rows(rows.Y.shape[1])]
    metric: Array | None = None
    climb, best = PenaltyClimb(), np.inf
    for t in range(most + 1):
        found = _one_round(setting, rows, out, metric, climb, at, rng, first if t == 0 else None)
        if found is None:
            return
        fit, climb, M = found
        best = min(best, fit.loss)
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
    near = [replace(s, factor=s.factor * f) for f in (0.5, 2.0) if s.factor * f <= 8]
    if s.form == "diagonal":
        near.append(replace(s, power=0.5 if s.power == 1.0 else 1.0))
    return near
