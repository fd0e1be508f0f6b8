"""Derivatives of products of a kernel matrix on the GPU: by the left rows, and by parameters; the
traced formula differentiated, contracted with slopes of its quantities in the same tile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.gpu.backend import Tensor, torch
from mercer.gpu.derivatives import TracedResults, by_inputs, by_parameters, derivatives
from mercer.gpu.launch import DevicePairs
from mercer.gpu.operands import View
from mercer.gpu.quantities import SeenRows
from mercer.inputs import Array
from mercer.pairs.linear import full
from mercer.pairs.traced import Asked, Symbol

if TYPE_CHECKING:
    from mercer.gpu.operator import GPUOperator

PIECE_BYTES = 1 << 30  # of gradients that are held at a time
MAX_COLUMNS = 8  # up to which differences are summed column by column, whatever their digits
NO_SLOPE = "{} has no derivative by its inputs on the GPU; use device='cpu' for it."


# by the left rows
def input_gradients(op: GPUOperator, A: Tensor, X: Tensor) -> Tensor:
    """sum_j A_jt d k(x_i, z_j) / d x_ik, (n, t, d)."""
    made = derivatives(op.source, by_inputs)
    out = torch.zeros((len(X), A.shape[1], X.shape[1]), dtype=torch.float64, device=X.device)
    for name in made.names[1:]:
        asked = op.source.quantities[int(name[1:])]
        _add(out, asked, op.tiles_of(made.some(name), X), A)
    return out


def outer_product(op: GPUOperator, A: Tensor, X: Tensor, *, diagonal: bool) -> Tensor:
    """The mean over rows of the sum over outputs of g g', or its diagonal."""
    d = X.shape[1]
    total = torch.zeros((d,) if diagonal else (d, d), dtype=torch.float64, device=X.device)
    step = max(256, PIECE_BYTES // (8 * d * A.shape[1]))
    for at in range(0, len(X), step):
        g = input_gradients(op, A, X[at : at + step]).reshape(-1, d)
        total += (g * g).sum(dim=0) if diagonal else g.T @ g
    return total / len(X)


def _add(out: Tensor, asked: Asked, tiles: DevicePairs, A: Tensor) -> None:
    """Add the slopes of one quantity, whose derivative `tiles` is."""
    view = tiles.view(SeenRows(asked.columns, asked.map))
    G = _slopes(asked, view, tiles, A)
    if asked.map is not None:
        G = G @ torch.from_numpy(np.array(full(asked.map))).to(G.device)
    if view.columns is None:
        out += G
    else:  # a column may be chosen twice
        out.index_add_(2, torch.tensor(view.columns, device=G.device), G)


def _slopes(asked: Asked, view: View, tiles: DevicePairs, A: Tensor) -> Tensor:
    """By the columns that the quantity sees, before its map."""
    x, z = view(tiles.X), view(tiles.Z)
    if asked.side == "rows":
        if asked.kind != "dot":
            raise NotImplementedError(NO_SLOPE.format(asked.kind))
        return tiles.times(A)[0][:, :, None] * (2 * x)[:, None, :]
    match asked.kind:
        case "dot":
            return _carried(tiles, A, z)
        case "sqdist" | "dist":
            b = _numbers(asked.params[0], tiles, x)
            return _differences(asked, tiles, A, x, z) * (2 if asked.kind == "sqdist" else 1) / b**2
        case "absdist":
            return tiles.column_sums(A, "sign", *_ranks(x, z)) / _numbers(asked.params[0], tiles, x)
        case "sinsq":
            p, b = (_numbers(param, tiles, x) for param in asked.params)
            x, z = (s * (np.pi / p) for s in (x, z))
            return tiles.column_sums(A, "sine_double", x, z) * np.pi / (p * b**2)
        case "chisq" | "harmonic":
            return tiles.column_sums(A, asked.kind, x, z)
    raise NotImplementedError(NO_SLOPE.format(asked.kind))


def _differences(asked: Asked, tiles: DevicePairs, A: Tensor, x: Tensor, z: Tensor) -> Tensor:
    """sum_j T_ij A_jt (x_ik - z_jk): pair by pair where products would lose their digits, else by
    products with x and z about their centre."""
    x, z = _centred(x, z)
    close = [tiles.spread(g, f) for g, f in zip(tiles.layout.geometries, tiles.frames, strict=True)]
    digits = asked.kind == "dist" or tiles.precision == "float64" or any(close)
    if digits or x.shape[1] <= MAX_COLUMNS:
        return tiles.column_sums(A, "difference", x, z)
    whole = tiles.times(A)[0]
    return whole[:, :, None] * x[:, None, :] - _carried(tiles, A, z)


def _centred(x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """About one point, so that differences keep their digits in float32."""
    centre = z.median(dim=0).values
    return x - centre, z - centre


def _ranks(x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Places in the order of each column, which float32 tells apart up to 2^24 rows: of numbers
    themselves it takes near ones for equal, and each adds a whole sign."""
    both, n = torch.cat([x, z]), len(x)
    for column in both.T:
        values, order = column.sort()
        column[order[0]] = 0
        column[order[1:]] = (values[1:] != values[:-1]).cumsum(dim=0).to(column.dtype)
    return both[:n], both[n:]


def _carried(tiles: DevicePairs, A: Tensor, z: Tensor) -> Tensor:
    """sum_j T_ij A_jt z_jk, (n, t, k): products with many sides."""
    out = [tiles.times(a[:, None] * z)[0] for a in A.T]
    return torch.stack(out, dim=1)


def _numbers(param: Any, tiles: DevicePairs, like: Tensor) -> Tensor:
    """Parameters at their values, one or one a column."""
    many = param if isinstance(param, tuple) else (param,)
    theta = tiles.source.parameters
    values = [theta[int(p.name[1:])] if isinstance(p, Symbol) else float(p) for p in many]
    return torch.tensor(values, dtype=torch.float64, device=like.device)


# by parameters
def pullback(op: GPUOperator, U: Tensor, V: Tensor) -> Array:
    """d sum_ij (U V')_ij k_ij / d parameters."""
    made, out = derivatives(op.source, by_parameters), np.zeros(len(op.source.parameters))
    shared = [name for name in made.names[1:] if name[0] == "t"]
    if shared:
        found = (op.tiles_of(made.some(*shared)).times(V) * U).sum(dim=(1, 2)).cpu().numpy()
        out[[int(name[1:]) for name in shared]] += found
    for name in made.names[1:]:
        if name[0] == "q":
            asked = op.source.quantities[int(name[1:])]
            for place, value in _by_columns(asked, made.some(name), op, U, V):
                out[place] += value
    return out


def _by_columns(
    asked: Asked, made: TracedResults, op: GPUOperator, U: Tensor, V: Tensor
) -> Iterator[tuple[int, float]]:
    """What one quantity has of the parameters of its columns."""
    tiles = op.tiles_of(made)
    view = tiles.view(SeenRows(asked.columns, asked.map))
    x, z = _centred(view(tiles.X), view(tiles.Z))

    def total(slope: str, x: Tensor, z: Tensor) -> Tensor:
        """Of all pairs, for every column."""
        return (tiles.column_sums(V, slope, x, z) * U[:, :, None]).sum(dim=(0, 1))

    *periods, bandwidth = asked.params
    b = _numbers(bandwidth, tiles, x)
    if periods:
        p = _numbers(periods[0], tiles, x)
        x, z = (s * (np.pi / p) for s in (x, z))
        yield from _spread(periods[0], total("difference_sine_double", x, z) / (-p * b**2))
        if isinstance(bandwidth, tuple):
            yield from _spread(bandwidth, total("sine_squared", x, z) * -2 / b**3)
    elif asked.kind == "absdist":
        yield from _spread(bandwidth, -total("absolute", x, z) / b**2)
    else:
        factor = -2.0 if asked.kind == "sqdist" else -1.0
        yield from _spread(bandwidth, factor * total("square", x, z) / b**3)


def _spread(param: Any, each: Tensor) -> Iterator[tuple[int, float]]:
    """To each column's parameter its own, or their sum to the shared one."""
    values = each.cpu().numpy()
    if isinstance(param, tuple):
        for p, value in zip(param, values, strict=True):
            if isinstance(p, Symbol):
                yield int(p.name[1:]), float(value)
    elif isinstance(param, Symbol):
        yield int(param.name[1:]), float(values.sum())
