"""Ridge regression over landmarks on the GPU: products with k(rows, landmarks) by fused tiles in
float64, whose values nobody keeps, and the factors of the landmarks' own block there too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.operator import GPUOperator
from mercer.inputs import Array, Table
from mercer.kernels.base import Kernel

PIECE = 1 << 25  # values that are formed at a time
# Landmarks of which each tells more than this share of k(z, z) beside those before it are as good in
# any order; others are put in order of what they tell.
CLEAR = 1e-6
# bytes a number of X, an entry of the landmarks' block, and all else
NUMBER_BYTES, ENTRY_BYTES, FIXED_BYTES = 40.0, 56.0, float(1 << 30)

Pivoted = Callable[[Array], "tuple[Array, Array]"]


def bytes_needed(n: int, width: int, landmarks: int, outputs: int) -> float:
    """Of the memory of the device."""
    rows = NUMBER_BYTES * n * (width + outputs + 2)
    return rows + ENTRY_BYTES * landmarks**2 + FIXED_BYTES


def whitening(kernel: Kernel, points: Table, device: str, pivoted: Pivoted) -> tuple[Array, Tensor]:
    """The landmarks that count, and R^-1 for their block R R' of the kernel, in float64.

    `pivoted` orders landmarks on the CPU where some are nearly told by others.
    """
    K = _block(GPUOperator(kernel, points, precision="float64", device=device))
    size = K.diagonal().clamp(min=0).sqrt()
    clear = bool((size > 0).all())
    if clear:
        root, failed = torch.linalg.cholesky_ex(K / size[:, None] / size)
        clear = not int(failed) and bool((root.diagonal().square() > CLEAR).all())
    if clear:
        kept, root = np.arange(len(K)), size[:, None] * root
    else:
        kept, found = pivoted(K.cpu().numpy())
        root = torch.from_numpy(np.ascontiguousarray(found)).to(device)
    one = torch.eye(len(root), dtype=root.dtype, device=device)
    return kept, torch.linalg.solve_triangular(root, one, upper=False)


class LandmarkSums:
    """Sums over the rows of phi(x) = R^-1 k(Z, x) with weights w, which one pass of products takes.

    Parameters
    ----------
    kernel, points : the k, and the landmarks Z that count
    inverse : R^-1, a tensor on the device
    X, w : the rows, dense, and their weights (n,)
    """

    def __init__(self, kernel: Kernel, points: Table, inverse: Tensor, X: Table, w: Array) -> None:
        device = str(inverse.device)
        across = GPUOperator(kernel, X, points, precision="float64", device=device)
        self.across = across
        self.down = GPUOperator(kernel, across.Z, across.X, precision="float64", device=device)
        self.down._names = across._names
        self.inverse, self.w = inverse, self._moved(w)

    def against(self, B: Array) -> Array:
        """sum w phi(x) b' over the rows, (m, q), for B (n, q)."""
        return _back(self.inverse @ (self.down @ (self.w[:, None] * self._moved(B))))

    def times(self, V: Array, mean: Array) -> Array:
        """sum w phi (phi - mean)' V, (m, q)."""
        W = self._moved(V)
        f = self.across @ (self.inverse.T @ W) - self._moved(mean) @ W
        return _back(self.inverse @ (self.down @ (self.w[:, None] * f)))

    def preconditioner(
        self, rows: Table, w: Array, mean: Array, scale: float, alpha: float
    ) -> Callable[[Array], Array]:
        """R -> (scale sum w (phi - mean)(phi - mean)' + alpha I)^-1 R, the sum over some rows."""
        op = GPUOperator(
            self.across.kernel, rows, self.across.Z, precision="float64", device=self.across.device
        )
        m, weight, about = op.shape[1], self._moved(w).sqrt(), self._moved(mean)
        H = torch.zeros((m, m), dtype=torch.float64, device=weight.device)
        for at in _pieces(op.shape):
            F = (op.block(at) @ self.inverse.T - about) * weight[at, None]
            H += F.T @ F
        H *= scale
        H.diagonal().add_(alpha)
        L = torch.linalg.cholesky(H)
        one = torch.eye(m, dtype=H.dtype, device=H.device)
        inverse = torch.linalg.solve_triangular(L, one, upper=False)
        return lambda R: _back(inverse.T @ (inverse @ self._moved(R)))

    def coefficients(self, V: Array) -> Array:
        """R'^-1 V"""
        return _back(self.inverse.T @ self._moved(V))

    def _moved(self, A: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(A, np.float64)).to(self.across.device)


def _pieces(shape: tuple[int, int]) -> list[slice]:
    step = max(1, PIECE // shape[1])
    return [slice(at, at + step) for at in range(0, shape[0], step)]


def _block(op: GPUOperator) -> Tensor:
    """All of K, some rows at a time."""
    out = torch.empty(op.shape, dtype=torch.float64, device=op.device)
    for at in _pieces(op.shape):
        out[at] = op.block(at)
    return out


def _back(A: Tensor) -> Array:
    return np.asarray(A.cpu().numpy())
