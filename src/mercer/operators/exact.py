"""Few kernel values in float64, whatever the precision of an operator is: what solvers of duals
measure rounding by."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array, Matrix, Table
from mercer.kernels import Gaussian
from mercer.operators.base import TiledOperator
from mercer.operators.tiled import TileOperator, with_diagonal
from mercer.ops.distances import TOLERANCE, precise_enough
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.pairs import Side, Tile
from mercer.pairs.gaussian import usual
from mercer.pairs.side import product, square_norms

PIECE_BYTES = 1 << 19  # of columns, as rows in float64
SPARSE_PIECE = 1024  # of which at least so many are sparse
WIDE = np.dtype(np.float64)


def exact(op: TiledOperator, rows: Array, cols: Array) -> Array:
    """K[rows, cols] of few rows in float64."""
    if isinstance(op, TileOperator):
        return _of_rows(op, rows, cols)
    out = np.empty((len(rows), len(cols)))
    op.wide.fill(op.wide.side(rows, left=True), op.wide.side(cols, left=False), out)
    return with_diagonal(op.wide, out, rows, cols)


def _of_rows(op: TileOperator, rows: Array, cols: Array) -> Array:
    """The same from rows as they came: columns go by pieces that stay in a core's cache, and
    nothing is copied as a whole."""
    X, Z = (op.X, op.Z) if op.given is None else (op.given, op.given)
    few, every = X[rows].astype(WIDE), len(cols) == len(Z) and bool((np.diff(cols) == 1).all())
    plain = _Products.of(op, few)
    out = np.empty((len(rows), len(cols)))
    step = 256 if X.items else int(np.clip(PIECE_BYTES // (8 * X.width), 16, 4096))
    step = max(step, SPARSE_PIECE) if X.sparse else step

    def work(c: slice) -> None:
        some = Z[c if every else cols[c]].astype(WIDE)
        if plain is None or not plain.fill(some.data, out[:, c]):
            out[:, c] = op.kernel.on(Tile(Side(few, op.centre), Side(some, op.centre)))

    parallel_map(work, cuts(len(cols), step))
    return with_diagonal(op, out, rows, cols)


class _Products:
    """Values of a Gaussian of one bandwidth by products of rows as they are, neither moved nor
    scaled."""

    def __init__(self, rows: Matrix, bandwidth: float) -> None:
        self.rows, self.bandwidth = rows, bandwidth
        self.norms = self._norms(rows)

    def _norms(self, rows: Matrix) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(square_norms(rows) / self.bandwidth / self.bandwidth)

    @classmethod
    def of(cls, op: TileOperator, few: Table) -> _Products | None:
        """None of other kernels, and of bandwidths whose square has no digits."""
        kernel = op.kernel
        if type(kernel) is not Gaussian or not usual(kernel.bandwidth) or few.items:
            return None
        assert isinstance(kernel.bandwidth, float)
        return cls(few.data, kernel.bandwidth)

    def fill(self, cols: Matrix, out: Array) -> bool:
        """Whether these columns had the digits for it."""
        norms = self._norms(cols)
        if not precise_enough(self.norms, norms, WIDE, TOLERANCE[WIDE]):
            return False
        P = product(self.rows, cols)
        P *= -2 / self.bandwidth / self.bandwidth
        P += self.norms[:, None]
        P += norms
        np.exp(np.multiply(np.abs(P, out=P), -0.5, out=P), out=out)
        return True
