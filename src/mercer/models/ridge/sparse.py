"""Ridge regression over sparse features as they are: conjugate gradients that pass over the
nonzeros, about means that are never subtracted from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.linalg.bidiagonal import damped_images
from mercer.linalg.cg import gradients_by_column
from mercer.linalg.least_squares import PrimalSolution
from mercer.models.ridge.cross_validation import FoldErrors, spread
from mercer.models.sparse_rows import SparseRows
from mercer.ops.threads import parallel_map

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class SparsePasses:
    """sum w (y - f)^2 + alpha |coef|^2 without some fold, as `FoldPasses` of dense features: rows
    that a problem leaves out have weight zero in it."""

    rows: SparseRows
    Y: Array  # (n, q)
    weight: Array  # (n,)
    fold: Array  # (n,)
    k: int
    intercept: bool

    @property
    def width(self) -> int:
        """Occupied columns, those that are solved for."""
        return self.rows.p

    def spread(self, found: PrimalSolution) -> PrimalSolution:
        """Coefficients of all D columns."""
        coef, intercept = self.rows.unshifted(found.coef, found.intercept)
        return PrimalSolution(coef.T.copy(), intercept)

    @property
    def finite(self) -> bool:
        """Whether all sums are numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.rows.by_column.times_squares(self.weight)
            y = self.weight @ np.square(self.Y)
        return bool(np.isfinite(squares).all() and np.isfinite(y).all())

    def solve(
        self, left_out: Array, alphas: Array, tol: float, steps: int
    ) -> tuple[PrimalSolution, int, float]:
        """The models without fold `left_out[s]`, for penalty `alphas[s]`; output by output, (p, S
        q). Also passes and residual."""
        q = self.Y.shape[1]
        penalty = np.repeat(alphas, q) if alphas.ndim == 1 else alphas.ravel()
        W = self.weight[:, None] * (self.fold[:, None] != np.repeat(left_out, q))  # (n, S q)
        total, Y = W.sum(0), np.tile(self.Y, len(left_out))
        mean_y = (W * Y).sum(0) / total * self.intercept
        mean, square = self._about_means(W, total, q)
        b = self.rows.back(W * (Y - mean_y))

        def product(P: Array) -> Array:
            U = self.rows.times(P)
            U -= (W * U).sum(0) / total * self.intercept
            return self.rows.back(W * U) + penalty * P

        # every column in its own unit, so that a large one does not hide what is left of the others
        root = np.sqrt(square + penalty + np.finfo(float).tiny)
        scaled, passes = gradients_by_column(
            lambda U: product(U / root) / root, b / root, np.ones_like(b), 0.5 * tol, steps
        )
        coef = scaled / root
        size = np.linalg.norm(b / root, axis=0)
        left = np.linalg.norm((b - product(coef)) / root, axis=0) / np.where(size > 0, size, 1)
        found = PrimalSolution(coef, mean_y - np.sum(mean * coef, axis=0))
        return found, passes + 3, float(left.max(initial=0))

    def _about_means(self, W: Array, total: Array, q: int) -> tuple[Array, Array]:
        """The means of the columns in every problem, zero without an intercept, and their squares
        about these: (p, S q)."""
        first = W[:, ::q]  # the outputs of a problem share its weights
        square = np.stack([self.rows.by_column.times_squares(w) for w in first.T.copy()], axis=1)
        mean = self.rows.back(first) / total[::q] * self.intercept
        centred = np.maximum(square - total[::q] * mean**2, EPS * square)
        return np.repeat(mean, q, axis=1), np.repeat(centred, q, axis=1)

    def errors(self, alphas: Array, tol: float, steps: int, width: int) -> FoldErrors:
        """Every fold and penalty: penalties share the passes over the nonzeros, and folds are solved
        side by side."""
        k, q = self.k, self.Y.shape[1]
        error, each = np.full((len(alphas), k, q), np.nan), np.full((k, q), np.nan)
        held = [np.flatnonzero((self.fold == j) & (self.weight > 0)) for j in range(k)]
        used = [j for j in range(k) if 0 < len(held[j]) < np.count_nonzero(self.weight)]
        self.rows.by_column  # noqa: B018 (made once, before the threads that share it)

        def of(j: int) -> None:
            w, Y = self.weight[held[j]], self.Y[held[j]]
            each[j] = spread(Y, w)
            for i in range(q):
                f = self._without(j, held[j], i, alphas, tol, steps)
                error[:, j, i] = w @ np.square(Y[:, i, None] - f)

        parallel_map(of, used)
        return FoldErrors(error, each, spread(self.Y, self.weight))

    def _without(
        self, j: int, held: Array, output: int, alphas: Array, tol: float, steps: int
    ) -> Array:
        """What the models without fold j, one a penalty, predict of the rows held out: (h, a)."""
        w = np.where(self.fold == j, 0.0, self.weight)
        root, total, y = np.sqrt(w), float(w.sum()), self.Y[:, output]
        mean_y = float(w @ y) / total * self.intercept

        def times(v: Array) -> tuple[Array, Array]:
            U = self.rows.times(v)
            U -= float(w @ U) / total * self.intercept
            return root * U, U[held]

        def back(u: Array) -> Array:
            u = u - root * (float(root @ u) / total * self.intercept)
            return self.rows.back(root * u)

        found, _ = damped_images(times, back, root * (y - mean_y), alphas, tol, steps)
        return found + mean_y
