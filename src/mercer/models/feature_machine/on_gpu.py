"""Feature machines on a GPU: the metric of a path on many rows, the equations of all rows in one
piece, and answers; as `paths` and `machine` compute them on the CPU."""

from __future__ import annotations

import math
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.operator import GPUOperator
from mercer.gpu.solve import GPUSolver
from mercer.inputs import Array
from mercer.kernels import Kernel, Laplace
from mercer.models.feature_machine.dense import (
    PENALTIES,
    Fit,
    PathRows,
    PenaltyClimb,
    climbed,
    median_distance,
    under,
)
from mercer.models.feature_machine.paths import (
    FLOOR,
    FirstDistances,
    MetricPath,
    PathSetting,
    few_outputs,
    gradient_rows,
    metric_of,
    pulled_back,
)

METRIC_ROWS = 40_000  # on which a metric is learnt
SHARE = 0.35  # of the free memory that a kernel matrix may take; its factor is as large
BLOCK_ROWS = 4096  # of a kernel matrix that are formed at a time
ROUNDS = 8  # of refinement
TOLERANCE = 1e-5  # of the equations


def most_rows(device: str) -> int:
    """Rows whose kernel matrix and its factor fit the device."""
    if device == "cpu":  # Triton's interpreter
        return 2000
    free, _ = torch.cuda.mem_get_info(device)
    return int((SHARE * free / 4) ** 0.5)


def times(kernel: Kernel, U: Array, points: Array, coef: Array, device: str) -> Array:
    """k(U, points) @ coef in float64, as coefficients of small penalties cancel."""
    op = GPUOperator(kernel, U, points, precision="float64", device=device)
    return np.asarray(op @ coef.astype(np.float64))


# kernel values
def distances(U: Tensor, V: Tensor, norm: int) -> Tensor:
    """|u - v|_norm, (n, m)."""
    return torch.cdist(U, V, p=norm) if norm == 1 else _euclidean(U, V)


def _euclidean(U: Tensor, V: Tensor) -> Tensor:
    squares = torch.addmm((V * V).sum(dim=1)[None, :], U, V.T, alpha=-2.0)
    squares += (U * U).sum(dim=1)[:, None]
    return squares.clamp_(min=0).sqrt_()


def kernel_matrix(U: Tensor, s: PathSetting, length: float) -> Tensor:
    """K (n, n) in float32, formed by blocks of rows; ones on its diagonal."""
    K = torch.empty((len(U), len(U)), dtype=torch.float32, device=U.device)
    for at in range(0, len(U), BLOCK_ROWS):
        R = distances(U[at : at + BLOCK_ROWS], U, s.norm)
        K[at : at + BLOCK_ROWS] = _values(R, length, s.exponent)
    K.fill_diagonal_(1.0)
    return K


def _values(R: Tensor, length: float, exponent: float) -> Tensor:
    T = R / length
    if exponent != 1:
        T = T**exponent
    return torch.exp(-T)


# equations
def solved(K: Tensor, Y: Tensor, ridge: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """(A, b, L) of K A + b with an intercept that is not penalised, and the factor of K + ridge,
    which takes K's place; None where there is none."""
    K.diagonal().add_(ridge)
    L, failed = torch.linalg.cholesky_ex(K)
    if int(failed):
        return None
    ones = torch.ones((len(Y), 1), dtype=Y.dtype, device=Y.device)
    A, b = with_intercept(torch.cholesky_solve(torch.cat([Y, ones], dim=1), L))
    return A, b, L


def with_intercept(X: Tensor) -> tuple[Tensor, Tensor]:
    """Coefficients that add to zero, and the constant, of solutions for targets and for ones."""
    ones = X[:, -1]
    total = ones.sum()
    b = X[:, :-1].sum(dim=0) / torch.where(total != 0, total, 1.0)
    return X[:, :-1] - ones[:, None] * b, b


def coefficients(
    kernel: Laplace, s: PathSetting, rows: PathRows, penalty: float, device: str
) -> tuple[Array, Array]:
    """(coef (n, q), intercept (q,)) at these rows: a factor in float32, mended by residuals in
    float64; conjugate gradients where there is no factor, or it does not do."""
    n = len(rows)
    ridge = np.full(n, penalty) if rows.weight is None else penalty / rows.weight
    B = np.column_stack([rows.Y.astype(np.float64), np.ones(n)])
    op = GPUOperator(kernel, rows.U.astype(np.float64), precision="float64", device=device)
    U = torch.from_numpy(np.ascontiguousarray(rows.U, np.float32)).to(device)
    d = torch.from_numpy(ridge).to(device)
    K = kernel_matrix(U, s, float(np.max(kernel.bandwidth)))
    K.diagonal().add_(d.float())
    L, failed = torch.linalg.cholesky_ex(K)
    del K
    X, left = torch.zeros(B.shape, dtype=torch.float64, device=device), math.inf
    if not int(failed):
        X, left = _refined(op, L, d, torch.from_numpy(B).to(device))
    del L
    if not left <= TOLERANCE:
        handle = GPUSolver(tol=TOLERANCE, device=device).init(op.as_precise("float32"), ridge)
        if (found := handle.solve(B)).residual < left:
            X, left = torch.from_numpy(found.x).to(device), found.residual
    _warn_if_left(left, n)
    A, b = with_intercept(X)
    return A.cpu().numpy(), b.cpu().numpy()


def _warn_if_left(left: float, n: int) -> None:
    if not left <= TOLERANCE:
        warnings.warn(
            f"the equations of {n:,} rows on the GPU ended at a relative residual of {left:.1e}, above "
            f"{TOLERANCE:.0e}; use device='cpu', or drop rows that are all but equal.",
            ConvergenceWarning,
            stacklevel=2,
        )


def _refined(op: GPUOperator, L: Tensor, d: Tensor, B: Tensor) -> tuple[Tensor, float]:
    """Rounds of X += L^-T L^-1 (B - (K + d) X) while they gain; X, and the largest residual beside
    its column of B."""
    X, R = torch.zeros_like(B), B
    size = torch.linalg.vector_norm(B, dim=0).clamp(min=1e-300)
    worst = float("inf")
    for _ in range(ROUNDS):
        new = X + torch.cholesky_solve(R.float(), L).double()
        R = B - (op @ new + d[:, None] * new)
        now = float((torch.linalg.vector_norm(R, dim=0) / size).max())
        if not now < worst:
            break
        X, worst = new, now
        if worst <= TOLERANCE:
            break
    return X, worst


# rounds of a search
def one_round(
    s: PathSetting,
    rows: PathRows,
    out: PathRows,
    metric: Array | None,
    climb: PenaltyClimb,
    at: Array,
    rng: np.random.Generator,
    first: FirstDistances | None,
    *,
    device: str,
) -> tuple[Fit, PenaltyClimb, Array] | None:
    """The fit under a metric at the best penalty, and the outer product of its gradients by u."""
    inputs = under(rows.U, metric)
    U, V, Y = (_moved(A, device) for A in (inputs, under(out.U, metric), rows.Y))
    length = s.factor * median_distance(inputs, s.norm, rng)
    K = kernel_matrix(U, s, length)
    K_out = _values(distances(V, U, s.norm), length, s.exponent)
    weight = _moved(np.ones(len(rows)) if rows.weight is None else rows.weight, device)
    kept: dict[int, Tensor] = {}

    def fit_at(i: int) -> Fit | None:
        found = solved(K.clone(), Y, PENALTIES[i] / weight)
        if found is None:
            return None
        A, b, _ = found
        F = (K_out @ A + b).cpu().numpy()
        loss = float(np.average(np.square(F - out.Y).mean(axis=1), weights=out.weight))
        kept[i] = A
        return Fit(loss, i, A.cpu().numpy(), b.cpu().numpy(), F) if np.isfinite(loss) else None

    best = climbed(fit_at, climb)
    if best is None:
        return None
    if not len(at):
        return *best, np.zeros(U.shape[1])
    some = torch.from_numpy(at).to(device)
    M = outer_product(s, U, some, kept[best[0].penalty], length)
    return *best, M.cpu().numpy()


def _moved(A: Array, device: str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(A, np.float32)).to(device)


# the metric
def walked(path: MetricPath, rows: PathRows, seed: int, device: str) -> Array | None:
    """The metric after the rounds of a path that was chosen, on these rows."""
    s, rng = path.setting, np.random.default_rng(seed)
    Y = torch.from_numpy(np.ascontiguousarray(rows.Y, np.float32)).to(device)
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    metric: Array | None = None
    for penalty in path.penalties[:-1]:
        inputs = under(rows.U, metric)
        length = s.factor * median_distance(inputs, s.norm, rng)
        U = torch.from_numpy(np.ascontiguousarray(inputs, np.float32)).to(device)
        ridge = torch.from_numpy((penalty / weight).astype(np.float32)).to(device)
        found = solved(kernel_matrix(U, s, length), Y, ridge)
        if found is None:
            return metric
        at = rng.permutation(len(rows))[: gradient_rows(rows.Y.shape[1])]
        M = outer_product(s, U, torch.from_numpy(at).to(device), found[0], length)
        del found
        new = metric_of(pulled_back(M.cpu().numpy(), metric), s.power)
        if new is None:
            return metric
        metric = new
    return metric


def outer_product(s: PathSetting, U: Tensor, at: Tensor, A: Tensor, length: float) -> Tensor:
    """Mean over rows `at` of g g', or its diagonal, of gradients g in u of all functions sum_j A_jt
    k(., u_j) without the row's own point."""
    p, q = s.norm, s.exponent
    R = distances(U[at], U, p)
    floored = R.clamp(min=FLOOR * length)
    W = _values(R, length, q) * (-q / length**q)
    W *= floored ** (q - p) if q != p else 1.0
    if p == 1:
        W *= R / floored
    W[torch.arange(len(at), device=U.device), at] = 0
    V = U - U.mean(dim=0)
    few = torch.from_numpy(few_outputs(A.cpu().numpy())).to(U.device)
    total = torch.zeros(U.shape[1], dtype=torch.float64, device=U.device)
    if s.form != "diagonal":
        total = torch.diag(total)
    for a in few.T:
        G = _signs(W * a, V[at], V) if p == 1 else _radial(W * a, V[at], V)
        G = G.double()
        total += (G * G).sum(dim=0) if s.form == "diagonal" else G.T @ G
    return total / len(at)


def _radial(Wa: Tensor, X: Tensor, Z: Tensor) -> Tensor:
    """sum_j Wa_ij (x_i - z_j), (n, d)."""
    return Wa.sum(dim=1)[:, None] * X - Wa @ Z


def _signs(Wa: Tensor, X: Tensor, Z: Tensor) -> Tensor:
    """sum_j Wa_ij sign(x_i - z_j), (n, d), column by column."""
    return torch.stack(
        [
            (Wa * torch.sign(x[:, None] - z[None, :])).sum(dim=1)
            for x, z in zip(X.T, Z.T, strict=True)
        ],
        dim=1,
    )
