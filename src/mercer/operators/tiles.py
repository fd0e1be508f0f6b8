"""Tiles of kernel values, written where they are to be kept: of any kernel, fast ones of Gaussians
(float32), of bits, and about a point."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from mercer.inputs import Array, Table
from mercer.kernels import Gaussian, Kernel, Laplace, Mapped
from mercer.operators.sparse import SparseTiles
from mercer.ops.distances import TOLERANCE, half_exp, lookup, packed, precise_enough
from mercer.ops.frozen import FrozenArray
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.pairs import Side, Tile, centre_of
from mercer.pairs.about import Spread, about
from mercer.pairs.linear import mapped_rows
from mercer.pairs.side import per_column, square_norms

NARROW = np.dtype(np.float32)
SMALL_TILE = 1 << 16  # values for which no loop is compiled
PIECE_BYTES = 1 << 19  # of rows that are scaled at a time
KEPT_SIDE = 1 << 25  # bytes of a side of all rows that is kept
APART = 8  # pairs of rows by which those of most Gaussians are told to be apart
SOME_ROWS = 64  # by which most rows are told not to be bits, nor to share what is common to all
TILE_ROWS, TILE_COLUMNS = 1024, 256  # BLAS is twice as fast on short rows as on long ones
# rows and columns of a tile that is computed once: of few columns it stays in a core's cache, of
# many (products then take all the time) it is as large as BLAS likes it, a fourth of all rows at most
PANEL_ROWS, WIDE_PANEL_ROWS, WIDE, PANELS = 512, 2048, 192, 4


class Tiles(Protocol):
    """Kernel values between two sets of rows: each is made ready once, as a side, and a tile is
    then written in place."""

    def side(self, rows: Table, *, left: bool) -> Any: ...
    def fill(self, left: Any, right: Any, out: Array) -> None: ...


class PreciseTiles(Tiles, Protocol):
    """Those whose values have a precision of their own, whatever the rows have."""

    dtype: np.dtype[Any]


class PairTiles:
    """k(x, z) for any two sets of rows, about one centre, so that an entry is always the same
    number."""

    one_sided = True  # a side is the same on the left and on the right

    def __init__(self, kernel: Kernel, centre: Array | None) -> None:
        self.kernel, self.centre = kernel, centre

    def side(self, rows: Table, *, left: bool) -> Side:
        return Side(rows, self.centre)

    def fill(self, left: Side, right: Side, out: Array) -> None:
        out[:] = self.kernel.on(Tile(left, right))


class GaussianTiles:
    """The same for a Gaussian in float32: one matrix product of rows over the bandwidth, and one
    pass that adds their squared norms and takes the exponential, in place."""

    dtype = NARROW
    one_sided = True

    def __init__(self, kernel: Gaussian, centre: Array) -> None:
        self.bandwidth, self.centre = kernel.bandwidth, centre
        self.whole: tuple[Array, Array] | None = None  # the side of all rows, where it is kept

    def scaled(self, rows: Table) -> tuple[Array, Array]:
        """Centred rows over the bandwidth, and their squared norms in float64: by pieces that stay
        in a core's cache."""
        A, x = np.empty(rows.data.shape, NARROW), np.empty(len(rows))
        b = per_column(self.bandwidth, rows.width).astype(rows.dtype)

        def work(s: slice) -> None:
            part = np.subtract(rows.data[s], self.centre)
            A[s] = np.divide(part, b, out=part)
            x[s] = square_norms(A[s])

        step = max(PIECE_BYTES // (8 * max(rows.width, 1)), 1)
        parallel_map(work, cuts(len(rows), step))
        return A, x

    def side(self, rows: Table, *, left: bool) -> tuple[Array, Array]:
        A, x = self.scaled(rows)
        return A, x.astype(np.float32)

    def fill(self, left: tuple[Array, Array], right: tuple[Array, Array], out: Array) -> None:
        (A, x), (B, z) = left, right
        with np.errstate(
            over="ignore", invalid="ignore", divide="ignore"
        ):  # BLAS may leave flags of lanes that hold no entry
            np.matmul(A, B.T, out=out)
        if out.size > SMALL_TILE:
            half_exp(out, x, z)
        else:
            out *= -2
            out += x[:, None]
            out += z
            np.exp(np.multiply(np.abs(out, out=out), -0.5, out=out), out=out)


class BitTiles:
    """The same for rows whose columns have two values each, all equally far apart, as indicators
    have: distances are counts, or their roots."""

    def __init__(
        self, kernel: Gaussian | Laplace, high: Array, step: float, dtype: DTypeLike
    ) -> None:
        self.high, self.dtype = high, np.dtype(dtype)
        with np.errstate(over="ignore"):
            r = np.minimum(np.float64(step) / np.max(kernel.bandwidth), 1e150)
        count = np.arange(len(high) + 1)
        if isinstance(kernel, Laplace):
            logs = np.power(r * np.power(count, 1 / kernel.norm), kernel.exponent)
        else:
            logs = 0.5 * np.square(r) * count
        self.values = np.exp(-logs).astype(dtype)

    def side(self, rows: Table, *, left: bool) -> Array:
        words = packed(rows.data == self.high)
        return words if left else np.ascontiguousarray(words.T)

    def fill(self, left: Array, right: Array, out: Array) -> None:
        lookup(left, right, self.values, out)

    @classmethod
    def of(
        cls, kernel: Gaussian | Laplace, X: Table, Z: Table, dtype: DTypeLike
    ) -> BitTiles | None:
        """None where the rows are not such, or the bandwidths of columns differ."""
        if np.ptp(kernel.bandwidth) > 0 or not len(X) or not len(Z):
            return None
        first = X.data[:SOME_ROWS]
        if not _either(first, first.min(0), first.max(0)):  # of most rows a few tell it
            return None
        low, high = (
            np.minimum(X.data.min(0), Z.data.min(0)),
            np.maximum(X.data.max(0), Z.data.max(0)),
        )
        with np.errstate(over="ignore"):
            wide = high - low
        if not np.isin(wide, (0, wide.max())).all() or not all(
            _either(t.data, low, high) for t in ((X,) if X is Z else (X, Z))
        ):
            return None
        return cls(kernel, high, float(wide.max()), dtype)


class MappedTiles:
    """Fast tiles of rows under a linear map, of which distances alone are asked: each side is
    mapped once, about the centre."""

    def __init__(self, inner: GaussianTiles | BitTiles, S: FrozenArray, centre: Array) -> None:
        self.inner, self.S, self.centre, self.dtype = inner, S, centre, inner.dtype
        self.one_sided = one_sided(inner)

    def side(self, rows: Table, *, left: bool) -> Any:
        return self.inner.side(mapped_rows(rows, self.S, self.centre), left=left)

    def fill(self, left: Any, right: Any, out: Array) -> None:
        self.inner.fill(left, right, out)

    @classmethod
    def of(
        cls, kernel: Mapped, centre: Array, X: Table, Z: Table, dtype: Any
    ) -> MappedTiles | None:
        """None where there are no fast tiles of the mapped rows."""
        left = mapped_rows(X, kernel.matrix, centre)
        right = left if Z is X else mapped_rows(Z, kernel.matrix, centre)
        inner = tiles_of(kernel.kernel, left, right, dtype)
        # the two values of a column are those of any few rows only where no sums are rounded
        exact = kernel.matrix.values.ndim == 1
        fast = isinstance(inner, GaussianTiles) or (exact and isinstance(inner, BitTiles))
        return cls(inner, kernel.matrix, centre) if fast else None  # type: ignore[arg-type]


def one_sided(tiles: Any) -> bool:
    """Whether a side of these tiles is the same on the left and on the right."""
    return bool(getattr(tiles, "one_sided", False))


def panel_rows(op: Any) -> int:
    """The rows and columns of the tiles of an operator whose values are computed once: of wide rows
    a part of them, so that threads have some each and half of the products suffice."""
    by_product = isinstance(getattr(op, "_tiles", None), GaussianTiles | MappedTiles)
    if not by_product or op.X.width < WIDE:
        return PANEL_ROWS
    return int(np.clip(-(-op.shape[0] // (PANELS * 64)) * 64, 64, WIDE_PANEL_ROWS))


def _either(A: Array, low: Array, high: Array) -> bool:
    """Whether every value is one of the two of its column; the first rows tell most of the others
    apart."""
    return all(bool(((part == low) | (part == high)).all()) for part in (A[:100], A))


def tiles_of(
    kernel: Kernel, X: Table, Z: Table, dtype: DTypeLike, centre: Array | None = None
) -> Tiles:
    """The tiles between rows of X and Z: fast ones of bits, or where float32 is asked for and tells
    squared distances well enough; about `centre` where it is known."""
    if type(kernel) is Gaussian and X.sparse and Z.sparse and len(X) and len(Z):
        return SparseTiles.of(kernel, X, Z, dtype) or PairTiles(kernel, None)
    centre = centre_of(X, Z) if centre is None else centre
    if isinstance(kernel, Mapped) and centre is not None:
        return MappedTiles.of(kernel, centre, X, Z, dtype) or PairTiles(kernel, centre)
    if type(kernel) not in (Gaussian, Laplace) or centre is None:
        return PairTiles(kernel, centre)
    if (bits := BitTiles.of(kernel, X, Z, dtype)) is not None:  # type: ignore[arg-type]
        return bits
    narrow = isinstance(kernel, Gaussian) and np.dtype(dtype) == NARROW
    return _narrow(kernel, centre, X, Z) if narrow else PairTiles(kernel, centre)  # type: ignore[arg-type]


def _narrow(kernel: Gaussian, centre: Array, X: Table, Z: Table) -> Tiles:
    """Distances do not depend on the centre, so float32 rows have one of their own precision: their
    differences to it are exact where they are near."""
    both = X.dtype == NARROW and Z.dtype == NARROW
    fast = GaussianTiles(kernel, centre.astype(NARROW) if both else centre)
    with np.errstate(all="ignore"):
        A, x = fast.scaled(X)
        z = x if Z is X else fast.scaled(Z)[1]
    if not precise_enough(x, z, NARROW, TOLERANCE[NARROW]):
        return PairTiles(kernel, centre)
    if Z is X and A.nbytes <= KEPT_SIDE:
        fast.whole = A, x.astype(NARROW)
    return fast


# of the mean of k(x, x), relative to that about a point: from here on the digits are worth the
# tiles
MIN_SHARED_MEAN = 4.0
MIN_SHARED_MEAN_FAST = (
    1e4  # the same where the tiles that are given up are the fast ones of Gaussians
)


class AboutTiles:
    """k(x, z) - k(x, p) - k(p, z) + k(p, p) from the kernel's formula, without cancellation."""

    def __init__(self, kernel: Kernel, p: Array, dtype: DTypeLike) -> None:
        self.kernel, self.p, self.dtype = kernel, p, np.dtype(dtype)

    def astype(self, dtype: DTypeLike) -> AboutTiles:
        return AboutTiles(self.kernel, self.p, dtype)

    def of(self, X: Array, Z: Array, *, paired: bool = False) -> Spread:
        return about(
            self.kernel.on,
            X.astype(np.float64, copy=False),
            Z.astype(np.float64, copy=False),
            self.p,
            paired=paired,
        )

    def side(self, rows: Table, *, left: bool) -> Array:
        return rows.data

    def fill(self, left: Array, right: Array, out: Array) -> None:
        out[:] = self.of(left, right).core

    def diag(self, X: Table) -> Array:
        return np.broadcast_to(self.of(X.data, X.data, paired=True).core, len(X)).astype(np.float64)

    def rounded(self, X: Table) -> bool:
        """Whether some of it is a difference of kernel values, and has their rounding."""
        return self.of(X.data, X.data, paired=True).rounded

    def edge(self, X: Table) -> Array:
        """k(x, p) - k(p, p)"""
        return np.broadcast_to(self.of(X.data, X.data, paired=True).left, len(X)).astype(np.float64)


class DifferenceTiles:
    """The same by differences of kernel values, where the formula asks for more than is known about
    a point."""

    def __init__(self, kernel: Kernel, p: Array, dtype: DTypeLike) -> None:
        self.kernel, self.p, self.dtype = kernel, p, np.dtype(dtype)

    def astype(self, dtype: DTypeLike) -> DifferenceTiles:
        return DifferenceTiles(self.kernel, self.p, dtype)

    def rounded(self, X: Table) -> bool:
        return True

    def _values(self, X: Array, Z: Array) -> Array:
        X, Z = (A.astype(np.float64, copy=False) for A in (X, Z))
        K = self.kernel.on(Tile(Side(Table(X), self.p), Side(Table(Z), self.p)))
        return np.broadcast_to(K, (len(X), len(Z)))

    def side(self, rows: Table, *, left: bool) -> tuple[Array, Array]:
        edge = self.edge(rows)
        return rows.data, edge[:, None] + float(
            self._values(self.p[None], self.p[None])[0, 0]
        ) if left else edge

    def fill(self, left: tuple[Array, Array], right: tuple[Array, Array], out: Array) -> None:
        out[:] = (self._values(left[0], right[0]) - left[1]) - right[1]

    def edge(self, X: Table) -> Array:
        p = self.p[None]
        return np.asarray(self._values(X.data, p)[:, 0] - self._values(p, p)[0, 0])

    def diag(self, X: Table) -> Array:
        p = self.p[None]
        return np.asarray(
            (self.kernel.diag(X.astype(np.float64)) - self._values(p, p)[0, 0]) - 2 * self.edge(X)
        )


CentredTiles = AboutTiles | DifferenceTiles


def tiles_about(
    kernel: Kernel | str, X: Table, dtype: DTypeLike, diagonal: Array | None = None
) -> CentredTiles | None:
    """The tiles about the mean p of dense rows, where most of k(x, x), the diagonal, is shared by
    all of them; else None."""
    if not isinstance(kernel, Kernel) or X.items or X.sparse or not len(X):
        return None
    if told_apart(kernel, X):
        return None
    most = MIN_SHARED_MEAN_FAST if isinstance(kernel, Gaussian) else MIN_SHARED_MEAN
    with np.errstate(all="ignore"):
        p = X.data.mean(0, dtype=np.float64)
        tiles = _readable(kernel, p, X, dtype)
        own = kernel.diag(X.astype(np.float64)) if diagonal is None else diagonal
        raw = float(np.mean(own))
        # none of k(x, x) about p is below zero but by rounding: a few of them bound the mean
        few = np.maximum(tiles.diag(X[:: -(-len(X) // SOME_ROWS)]), 0.0)
        if raw <= most * float(few.sum()) / len(X):
            return None
        left = float(np.mean(tiles.diag(X)))
    return tiles if np.isfinite(left) and raw > most * max(left, 0.0) else None


def told_apart(kernel: Kernel, X: Table) -> bool:
    """Whether few rows tell that those of a Gaussian do not share most of k(x, x): whatever the
    point p, k(x, x) about it and k(z, z) about it are at least |phi(x) - phi(z)|^2 / 2 together."""
    if type(kernel) is not Gaussian or len(X) < 2:
        return False
    m = min(APART, len(X) // 2)
    A = X.data[np.linspace(0, len(X) - 1, 2 * m).astype(np.intp)]
    A = np.asarray(A.toarray() if X.sparse else A, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square((A[:m] - A[m:]) / per_column(kernel.bandwidth, X.width)).sum(1)
    apart = float(-np.expm1(-squares / 2).sum())  # of |phi(x) - phi(z)|^2 / 2
    return len(X) <= MIN_SHARED_MEAN_FAST * apart


def _readable(kernel: Kernel, p: Array, X: Table, dtype: DTypeLike) -> CentredTiles:
    tiles = AboutTiles(kernel, p, dtype)
    try:
        tiles.of(X.data[:1], X.data[:1])
    except (
        AttributeError,
        TypeError,
    ):  # of a formula that asks for what this reading does not know
        return DifferenceTiles(kernel, p, dtype)
    return tiles
