"""GPUOperator: a kernel matrix on the GPU, seen through products, by one fused tile made of the
kernel's traced formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer.gpu import gradients, neighbours
from mercer.gpu.backend import Tensor, torch
from mercer.gpu.choices import has_kink
from mercer.gpu.derivatives import TracedResults
from mercer.gpu.launch import DevicePairs, Positions
from mercer.gpu.values import block
from mercer.inputs import Array, Rows, Table
from mercer.kernels.base import Kernel
from mercer.pairs import KernelSource

DISTANCES = ("sqdist", "dist", "absdist", "sinsq")  # zero of each row with itself
PRECISIONS = ("float32", "tf32", "float64")


class GPUOperator:
    """K = k(X, Z) on the GPU, never formed: K @ V in one launch.

    Parameters
    ----------
    kernel : Kernel
        Any expression whose parts have a GPU source.
    X : array-like or tensor of shape (n, d)
        The rows.
    Z : as X, of shape (m, d), default=None
        The columns; None is X.
    precision : {"float32", "tf32", "float64"}, default=None
        None: "float32", but gradients by inputs in "float64" where the kernel has a kink at distance
        zero, as near-copies add directions there that float32 does not know.
        "float32": products of pairs by two float16 pieces a number, K @ v to about 1e-6 of |K||v|.
        "tf32": by one, of 11 bits, to about 1e-3; kernels with a kink at distance zero take
        "float32" all the same. "float64": everything so, by a loop over columns.
    device : str, default=None
        The device's name; None is the GPU, or the CPU where Triton interprets.
    """

    __array_ufunc__ = None

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        Z: Any = None,
        *,
        precision: str | None = None,
        device: str | None = None,
    ) -> None:
        if precision not in (None, *PRECISIONS):
            raise ValueError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}."
            )
        self.kernel, self.asked, self.precision = kernel, precision, precision or "float32"
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.X = _tensor(X, self.device)
        self.Z = self.X if Z is None or Z is X else _tensor(Z, self.device)
        self._names = X.columns if isinstance(X, Table) else None
        self.shape = len(self.X), len(self.Z)
        self.source: KernelSource = kernel.source()

    @cached_property
    def dtype(self) -> Any:
        return torch.float64 if self.precision == "float64" else torch.float32

    @cached_property
    def tiles(self) -> DevicePairs:
        """K at all pairs."""
        return self.tiles_of(TracedResults.of(self.source))

    def tiles_of(self, source: TracedResults, rows: Tensor | None = None) -> DevicePairs:
        """Other results of the same trace, at some rows or all."""
        if rows is None:
            return DevicePairs(source, self.X, self.Z, self.positions, self.precision, self._held)
        return DevicePairs(source, rows, self.Z, self.positions, self.precision)

    @cached_property
    def _held(self) -> dict[Any, Any]:
        """What tiles of all rows share."""
        return {}

    @property
    def positions(self) -> Positions:
        """Of columns; it holds names alone, as tiles that held the matrix would keep its memory."""
        return partial(_positions, self.X.shape[1], self._names)

    def as_precise(self, precision: str) -> GPUOperator:
        """The same matrix in another precision."""
        Z = None if self.Z is self.X else self.Z
        made = GPUOperator(self.kernel, self.X, Z, precision=precision, device=self.device)
        made._names, made._held = self._names, self._held
        return made

    @property
    def exact(self) -> GPUOperator:
        """The same matrix in float64."""
        return self if self.precision == "float64" else self._in_float64

    @cached_property
    def _in_float64(self) -> GPUOperator:
        return self.as_precise("float64")

    # values
    def block(self, rows: Any = slice(None), cols: Any = slice(None), dtype: Any = None) -> Tensor:
        """K[rows, cols], formed, as a tensor; rows and columns as slices or positions."""
        return block(self, rows, cols, dtype or self.dtype)

    def diag(self) -> Tensor:
        """k(x_i, x_i) of the rows, in float64."""
        alike = all(a.side == "both" and a.kind in DISTANCES for a in self.source.quantities)
        rows = self.X[:1] if alike else self.X
        values = self.kernel.diag(Table(rows.double().cpu().numpy(), self._names))
        return torch.from_numpy(values).to(self.device).expand(len(self.X)).clone()

    def nearest(self, k: int) -> tuple[Tensor, Tensor]:
        """The k columns with the largest values of each row, (index, values), (n, k) each."""
        return neighbours.nearest(self, k)

    # products
    def __matmul__(self, V: Any) -> Any:
        """K @ V for one vector (m,) or many (m, q): a tensor for a tensor, else an array."""
        given = torch.is_tensor(V)
        W = torch.as_tensor(V).to(self.device)
        if W.ndim not in (1, 2) or len(W) != self.shape[1]:
            raise ValueError(f"V must have {self.shape[1]} rows, got {tuple(W.shape)}.")
        out = self.tiles.times(W.reshape(len(W), -1))[0]
        out = (out if W.ndim == 2 else out[:, 0]).to(_wider(W.dtype))
        return out if given else out.cpu().numpy()

    def normwise(self, V: Tensor) -> Tensor:
        """K @ V of a tensor (m, q), with errors of the size of 1e-6 of the largest numbers of K and
        of each column of V: what iterations need, in less time for many columns."""
        return self.tiles.times(V, normwise=True)[0]

    # derivatives
    def pullback(self, U: Any, V: Any) -> Array:
        """d tr(U'KV) / d parameter, in the order of `kernel.parameters()`, in float64.

        U is (n,) or (n, q), V (m,) or (m, q). One launch for all parameters that are shared by
        columns, and one for each distance that has a parameter a column.
        """
        sides = []
        for name, W, n in (("U", U, self.shape[0]), ("V", V, self.shape[1])):
            T = torch.as_tensor(W).to(self.device).double()
            if T.ndim not in (1, 2) or len(T) != n:
                raise ValueError(f"{name} must have {n} rows, got {tuple(T.shape)}.")
            sides.append(T.reshape(n, -1))
        if sides[0].shape[1] != sides[1].shape[1]:
            raise ValueError(
                f"U and V must have as many columns as each other, got {sides[0].shape[1]} and {sides[1].shape[1]}."
            )
        return gradients.pullback(self, *sides)

    def input_gradients(self, A: Any, rows: Rows | None = None) -> Tensor:
        """The gradients of the functions sum_j A_jt k(., z_j) at the rows of X, or at chosen ones,
        (n, t, d), as a tensor; as `KernelOperator.input_gradients`.

        Where the kernel has a kink at distance zero, a pair at distance r adds a direction, which
        float32 knows to 6e-8 |x - centre| / r; it is computed in float64 where no precision was
        asked for.
        """
        return gradients.input_gradients(self._of_slopes, self._weights(A), self._chosen(rows))

    def gradient_outer_product(
        self, A: Any, rows: Rows | None = None, diagonal: bool = False
    ) -> Tensor:
        """The mean over rows of J'J, where J (t, d) holds the gradients of all functions there,
        (d, d), or its diagonal, as a tensor in float64; some rows at a time."""
        chosen = self._chosen(rows)
        weights = self._weights(A)
        return gradients.outer_product(self._of_slopes, weights, chosen, diagonal=diagonal)

    @property
    def _of_slopes(self) -> GPUOperator:
        """The matrix in the precision that gradients by inputs need."""
        return self.exact if self._has_doubtful_slopes else self

    @cached_property
    def _has_doubtful_slopes(self) -> bool:
        return self.asked is None and has_kink(TracedResults.of(self.source))

    def _weights(self, A: Any) -> Tensor:
        W = torch.as_tensor(A).to(self.device).double()
        if W.ndim not in (1, 2) or len(W) != self.shape[1]:
            raise ValueError(f"A must have {self.shape[1]} rows, got {tuple(W.shape)}.")
        return W.reshape(len(W), -1)

    def _chosen(self, rows: Rows | None) -> Tensor:
        if rows is None:
            return self.X
        index = np.atleast_1d(np.arange(len(self.X))[rows])
        if not len(index):
            raise ValueError("rows chooses none; give at least one row.")
        return self.X[torch.from_numpy(index).to(self.device)]


@dataclass(frozen=True, eq=False)
class HostOperator:
    """The same for learners that hold arrays: products and blocks as arrays of float64."""

    of: GPUOperator
    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return self.of.shape

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.of @ np.asarray(V, np.float64))

    def diag(self) -> Array:
        return np.asarray(self.of.diag().cpu().numpy())

    def block(self, rows: Any = slice(None), cols: Any = slice(None)) -> Array:
        """K[rows, cols], formed; rows and columns as slices or positions."""
        at = [r if isinstance(r, slice) else torch.from_numpy(np.array(r)) for r in (rows, cols)]
        return np.asarray(self.of.block(at[0], at[1], torch.float64).cpu().numpy())


def _positions(
    d: int, names: tuple[str, ...] | None, columns: tuple[int | str, ...] | None
) -> list[int] | None:
    if columns is None:
        return None
    at = Table(np.empty((0, d)), names)
    return [at.position(c) for c in columns]


def _tensor(X: Any, device: str) -> Tensor:
    if isinstance(X, Table):
        if X.items or X.sparse:
            raise ValueError("the GPU takes dense rows of numbers; use device='cpu' for these.")
        X = X.data
    out = X if torch.is_tensor(X) else torch.from_numpy(np.ascontiguousarray(X))
    if out.ndim != 2 or not len(out):
        raise ValueError(f"X must have two axes and a row, got shape {tuple(out.shape)}.")
    return out.to(device)


def _wider(dtype: Any) -> Any:
    return dtype if dtype in (torch.float32, torch.float64) else torch.float64
