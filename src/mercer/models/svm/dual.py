"""From checked rows to duals and back: the operator that a dual problem is solved on, and the
machine that its solutions make."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.costs import sparse
from mercer.costs.choice import choose
from mercer.gpu.devices import device_of, free_bytes, told, without
from mercer.inputs import Array, Table
from mercer.kernels import Gaussian
from mercer.kernels.base import Kernel
from mercer.models.expansion import Expansion
from mercer.models.settings import FittedKernel
from mercer.models.svm import blocks
from mercer.models.svm.device import precision_of
from mercer.models.svm.machine import FitSummary
from mercer.models.svm.problem import ON_GPU, DualSolution, relative
from mercer.models.svm.solver import kernel_bytes
from mercer.operators import AboutOperator, CentredOperator, TiledOperator, TileOperator
from mercer.operators.products import dense_enough
from mercer.operators.tiled import MAX_FLOAT32_VALUE
from mercer.operators.tiles import told_apart
from mercer.ops.tiles import cuts
from mercer.pairs.gaussian import multiplications
from mercer.plans import Plan, quantity

EPS = float(np.finfo(np.float32).eps)
SPARSE = 8  # entries for each that is not zero, from which on sums of few sparse rows are cheaper
GRAM_SHARE = 0.5  # of the memory, that the matrix of items may take
# of what is left of k(x, x) about a point: with more, sums of kernel values in float64 lose digits
MOST_SHARED = 1e5
WIDE_SHARE = 0.5  # of tol: what float32 may do to slopes of float64 rows; `gap_` counts what it did
ASYMMETRY, INDEFINITE = (
    1e-5,
    1e-5,
)  # of a given matrix, relative to its largest entry: more is no rounding, even of float32
SOME, CHECKED_ROWS = (
    256,
    1024,
)  # rows whose eigenvalues are looked at, and rows that are compared with columns at a time
INDEFINITE_GIVEN = (
    "X is a kernel matrix with negative eigenvalues: the duals are a stationary point, and gap_ bounds nothing; "
    "give a positive semidefinite one."
)


def operator_of(
    kernel: FittedKernel,
    rows: Table,
    *,
    largest: float,
    tol: float,
    memory: float,
    bias: bool = True,
    balanced: bool = False,
    ridge: float = 0.0,
    device: str = "cpu",
) -> TiledOperator:
    """Kernel values in float32, unless the rounding of a sum over all rows, times the largest dual,
    would show at tol.

    Where the duals sum to zero (`balanced`), about a point. Products with rows on a device as users
    give it, where there is a tile for them.
    """
    given = rows if rows.sparse and SPARSE * rows.data.nnz <= np.prod(rows.data.shape) else None
    if not isinstance(kernel, str) and not (device_of(device) is None and stays(kernel, rows)):
        rows = dense_enough(rows, memory)
    given = None if rows.sparse else given
    narrow = rows.dtype == np.float32
    op = _values(kernel, rows, bias, balanced, memory, given)
    shows = (
        EPS * largest * len(rows) ** 0.5 * float(np.abs(op.diag()).max())
        > (tol if narrow else WIDE_SHARE * tol)
        or ridge > MAX_FLOAT32_VALUE
    )
    if shows and narrow and not isinstance(op, AboutOperator):
        op = _values(kernel, rows.astype(np.float64), bias, balanced, memory, given)
    gpu = device_of(device)
    if gpu is not None and isinstance(op, TileOperator | AboutOperator):
        op.gpu = gpu if no_gpu(op, gpu) is None else None
    return op.astype(np.float64 if shows else np.float32)


def stays(kernel: Kernel, rows: Table) -> bool:
    """Whether values of sparse rows are computed from them as they are: those of a Gaussian, unless
    they share most of k(x, x), or are no sparser than products of dense ones are quick."""
    if not rows.sparse or type(kernel) is not Gaussian or not told_apart(kernel, rows):
        return False
    X = rows.data
    ways = sparse.gram(len(rows), rows.width, X.nnz, multiplications(X, X))
    return choose("sparse_rows", ways) == sparse.AS_THEY_ARE


def _values(
    kernel: FittedKernel,
    rows: Table,
    bias: bool,
    balanced: bool,
    memory: float,
    given: Table | None = None,
) -> TiledOperator:
    """Of items the whole matrix where it fits: one triangle of it is computed, and they are read
    once; of numbers tiles, which are cheap."""
    op: TiledOperator
    if not isinstance(kernel, str) and rows.items and 8.0 * len(rows) ** 2 <= GRAM_SHARE * memory:
        op = CentredOperator(kernel(rows))
    elif not isinstance(kernel, str):
        op = TileOperator(kernel, rows, given=given)
    else:
        if not certain(rows.data, bias):
            warnings.warn(INDEFINITE_GIVEN, UserWarning, stacklevel=6)
        op = CentredOperator(rows.data)
    return op.balanced() if balanced else op


def certain(K: Array, bias: bool) -> bool:
    """Whether a given matrix, which must be symmetric, shows no negative eigenvalue among some of
    its rows.

    With a bias the sum of duals is fixed, and only vectors that sum to zero count.

    >>> certain(np.eye(3), False), certain(np.eye(3) - 1, False), certain(np.eye(3) - 1, True)
    (True, False, True)
    """
    size = float(np.abs(K).max(initial=0))
    for s in cuts(len(K), CHECKED_ROWS):
        if np.abs(K[s] - K[:, s].T).max(initial=0) > ASYMMETRY * size:
            raise ValueError(
                "X must be symmetric with kernel='precomputed', and it is not; give (X + X.T) / 2 if that is meant."
            )
    some = np.linspace(0, len(K) - 1, min(len(K), SOME)).astype(np.intp)
    part = K[some[:, None], some].astype(np.float64)
    part = part - part.mean(0) - part.mean(1)[:, None] + part.mean() if bias else part
    values = np.linalg.eigvalsh(part)
    return bool(values[0] >= -INDEFINITE * max(size, values[-1]))


def no_gpu(op: TiledOperator, device: str) -> str | None:
    """Why products with the rows of an operator are not taken on a torch device, in words; None
    where they are."""
    n, kernel = op.shape[0], getattr(op, "kernel", None)
    if n <= blocks.ONE_BLOCK:
        return f"{n:,} rows are one block"
    if not isinstance(kernel, Kernel):
        return "the GPU takes dense rows of numbers"
    if (why := Expansion(kernel, op.X).no_tile(op.X)) is not None:
        return why
    if isinstance(op, AboutOperator):
        left = float(op.diag().max())
        if not float(kernel.diag(op.X).max()) <= MOST_SHARED * left:
            return "rows share nearly all of k(x, x), which tiles would lose"
    needed = import_module("mercer.gpu.row_products").RowProducts.bytes(n, op.X.width)
    if needed > (free := free_bytes(device)):
        return f"it needs {quantity(needed, 'B')}, and the GPU has {quantity(free, 'B')} free"
    return None


def placed(op: TiledOperator, device: str, ways: set[str]) -> str:
    """Where gradients of duals were kept, for a plan; nothing where no device was asked for."""
    if (gpu := device_of(device)) is None:
        return without(device)
    if ON_GPU in ways:
        digits = "to about 1e-6" if precision_of(op) == "float32" else "in float64"
        return f"; gradients {told(device)}, {digits}"
    return f"; on the CPU, as {no_gpu(op, gpu) or 'every two classes are one block'}"


def intercept_of(
    op: TiledOperator, solution: DualSolution, index: Array | slice = slice(None)
) -> float:
    """That of sum_j b_j k(x, x_j), from the one that was found with what this operator has of k."""
    return solution.intercept - float(solution.b @ op.edge[index])


def support_of(
    kernel: FittedKernel, rows: Table, kept: Array, coef: Array, order: Array | None = None
) -> dict[str, Any]:
    """The parts of a machine: vectors, places and coefficients of the rows whose coefficients (k,
    n) are not zero, in this order."""
    order = np.arange(len(rows)) if order is None else order
    at = order[(coef != 0).any(0)[order]]
    vectors = None if isinstance(kernel, str) else Table.looked_at(rows[at].data)
    return dict(
        kernel=kernel, vectors=vectors, support=kept[at], coef=np.ascontiguousarray(coef[:, at])
    )


def summary_of(
    found: Sequence[DualSolution],
    op: TiledOperator,
    why: str,
    *,
    vectors: int,
    memory: float,
    ways: Mapping[str, str],
    device: str = "cpu",
) -> FitSummary:
    """What the duals took; `ways` are those of kernel values, and `device` is the one asked for."""
    size = sum(max(abs(m.objective), m.least) for m in found)
    gap = relative(sum(m.gap for m in found), size)
    ways_of_rows = {m.way for m in found}
    settings = {
        "rows": op.shape[0],
        "support_vectors": vectors,
        "problems": len(found),
        "rounds": sum(m.rounds for m in found),
        "steps": sum(m.steps for m in found),
        "kernel_values": op.dtype.name,
        "kernel_rows": ", ".join(sorted(ways_of_rows)),
        **({"sparse_rows": sparse.AS_THEY_ARE} if op.X.sparse else {}),
        "gap": gap,
        "rounding": relative(sum(m.rounding for m in found), size),
        "ended_by": ", ".join(sorted({m.ended or "max_iter" for m in found})),
        **ways,
    }
    made, most = float(sum(m.made * len(m.b) for m in found)), max(len(m.b) for m in found)
    bytes_, flops = (
        kernel_bytes(
            most, 0.0 if ON_GPU in ways_of_rows else made, len(found), memory, op.dtype.itemsize
        ),
        made * 2.0 * max(1, op.X.width),
    )
    why += placed(op, device, ways_of_rows)
    plan = Plan("exact dual", why, settings, bytes=bytes_, flops=flops)
    return FitSummary(plan, -sum(m.objective for m in found), max(m.rounds for m in found), gap)


def warn_if_open(
    name: str,
    found: Sequence[DualSolution],
    summary: FitSummary,
    tol: float,
    most: int,
    remedies: tuple[str, str],
) -> None:
    """Where rounds ran out, or where slopes are as flat as rounding lets them be and the gap is not
    closed."""
    if not all(m.converged for m in found):
        text = f"stopped after {summary.rounds} rounds (max_iter={most}) at a relative gap of {summary.gap:.1e}"
        warnings.warn(
            f"{name} {text}; raise max_iter or tol, or {remedies[0]}.",
            ConvergenceWarning,
            stacklevel=5,
        )
    elif max(m.open for m in found) > tol:
        gap = max(m.relative for m in found)
        text = f"ended at a relative gap of {gap:.1e}, above tol={tol:.1e}: its slopes are flat up to rounding"
        warnings.warn(f"{name} {text}; {remedies[1]}.", ConvergenceWarning, stacklevel=5)
