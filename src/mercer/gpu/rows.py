"""Kernel matrices of tensors on a GPU, whose rows never pass through the host."""

from __future__ import annotations

from typing import Any

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.devices import missing
from mercer.gpu.operator import GPUOperator
from mercer.inputs import table
from mercer.kernels.base import Kernel
from mercer.kernels.domain import bounded, check_rows
from mercer.tensors import checked, place_of


def operator(kernel: Kernel, X: Any, Z: Any = None) -> GPUOperator:
    """k(X, Z) as an operator on the device of both."""
    place = str(place_of(X) or place_of(Z))
    if (why := missing()) is not None:
        raise ValueError(f"X lies on {place}, but {why.removesuffix('.')}, or give X.cpu().")
    for name, part in (("X", X), ("Z", Z)):
        if part is not None and place_of(part) is None:
            raise ValueError(
                f"{name} is no tensor on {place}, as the other rows are; move it there."
            )
    left = _rows(kernel, X, "X")
    right = None if Z is None or Z is X else _rows(kernel, Z, "Z")
    if right is not None and right.shape[1] != left.shape[1]:
        raise ValueError(
            f"Z has {right.shape[1]} columns, {left.shape[1]} expected; give the same columns on both sides."
        )
    return GPUOperator(kernel, left, right, device=place)


def matrix(kernel: Kernel, X: Any, Z: Any = None) -> Tensor:
    """k(X, Z), (n, m), in the precision of the rows."""
    op = operator(kernel, X, Z)
    return op.block(dtype=torch.promote_types(op.X.dtype, op.Z.dtype)).contiguous()


def _rows(kernel: Kernel, X: Tensor, name: str) -> Tensor:
    """Rows of finite numbers for which the kernel is meant: float32 and float64 as they are, others
    as arrays of them are."""
    T = checked(X, name)
    if T.ndim != 2 or not T.shape[1]:
        raise ValueError(f"{name} must have rows and columns, got shape {tuple(T.shape)}.")
    if T.dtype not in (torch.float32, torch.float64):
        T = T.to(torch.float32 if T.dtype == torch.float16 else torch.float64)
    if not bool(torch.isfinite(T).all()):
        raise ValueError(f"{name} contains NaN or infinity; fill or drop such rows first.")
    if bounded(kernel):  # only who looks for numbers below zero needs them on the host
        check_rows(kernel, table(T, name), name)
    return T
