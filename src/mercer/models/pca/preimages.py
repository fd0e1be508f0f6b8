"""Pre-images: rows whose features are near a given sum of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Floats, Ints, Is
from mercer.kernels import Gaussian, Linear, Scale
from mercer.kernels.base import Kernel
from mercer.kernels.defaults import spread
from mercer.linalg.least_squares import exact
from mercer.models.pca.eigenvectors import DualComponents
from mercer.operators.kernel import KernelOperator
from mercer.ops.tiles import cuts
from mercer.store import register

STEPS, TOL = 200, 1e-7  # of the fixed point; in units of the spread of each column
MOST = 3000  # rows that a regression learns from, and that a fixed point may begin at
PIECE_BYTES = 16 << 20  # of one array of queries by rows, of which a step needs a few


def unscaled(kernel: Kernel) -> Kernel:
    """The kernel inside of factors, which move no pre-image.

    >>> unscaled(2 * (3 * Gaussian()))
    Gaussian()
    """
    return unscaled(kernel.kernel) if isinstance(kernel, Scale) else kernel


@register("pca.Regression")
@dataclass(frozen=True, eq=False)
class Regression:
    """x from scores: kernel ridge regression of rows on their scores (Bakir, Weston and Scholkopf,
    2003)."""

    kernel: Gaussian
    scores: Array
    coef: Array
    intercept: Array

    must = dict(
        kernel=Is("Kernel"), scores=Floats("n", "k"), coef=Floats("n", "d"), intercept=Floats("d")
    )

    @classmethod
    def of(cls, scores: Array, rows: Matrix) -> Regression:
        """From at most 3,000 of the rows, evenly spaced."""
        some = evenly(len(scores))
        S = scores[some]
        kernel = Gaussian(float(np.sqrt(spread(S))))
        s = exact(KernelOperator(kernel, S), _dense(rows[some]), 1e-6 * len(some))
        return cls(kernel, S, s.coef, s.intercept)

    def __call__(self, Z: Array) -> Array:
        return np.asarray(KernelOperator(self.kernel, Z, self.scores) @ self.coef + self.intercept)


def evenly(n: int) -> Array:
    """At most 3,000 of n rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST)).astype(int))


def _dense(rows: Matrix) -> Array:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, np.float64)


@register("pca.Candidates")
@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows x_j that a fixed point may begin at, with <phi(x_j), mean + V z> = mean_j +
    z'projection_j."""

    rows: Array  # their positions
    mean: Array
    projection: Array

    must = dict(rows=Ints("c", below=1 << 48), mean=Floats("c"), projection=Floats("c", "k"))

    @classmethod
    def of(cls, kernel: Kernel, rows: Table, found: DualComponents) -> Candidates:
        some, n = evenly(len(rows)), len(rows)
        mean = KernelOperator(kernel, rows[some], rows) @ np.full(n, 1 / n)
        return cls(some, mean, found.training_scores()[some] + found.offset)

    def best(self, Z: Array) -> tuple[Array, Array]:
        """For each z the position of the row with the largest <phi(x), mean + V z> (the nearest,
        where k(x, x) is constant), and it."""
        there = self.mean + Z @ self.projection.T
        first = there.argmax(axis=1)
        return self.rows[first], there[np.arange(len(Z)), first]


@register("pca.PreImages")
@dataclass(frozen=True, eq=False)
class PreImages:
    """x with phi(x) near mean + V z = sum_i gamma_i phi(x_i), V the components of the kernel matrix
    of rows x_i.

    Linear kernels: sum_i gamma_i x_i. Gaussian ones: the fixed point x = sum_i g_i x_i / sum_i g_i,
    g_i = gamma_i k(x, x_i) (Mika, Scholkopf, Smola, Muller, Scholz and Ratsch, 1999), begun at the
    regression or at the best of the rows, whichever is nearer, and left there where it has no
    weight. Others: the regression. A factor of the kernel changes nothing.
    """

    regression: Regression | None
    candidates: Candidates | None

    must = dict(regression=Is("preimages.Regression") | None, candidates=Is("Candidates") | None)

    @classmethod
    def of(cls, kernel: Kernel, rows: Table, found: DualComponents) -> PreImages:
        """What all queries share."""
        inner, rows = unscaled(kernel), rows.astype(np.float64)
        if isinstance(inner, Linear) and inner.metric is None:
            return cls(None, None)
        regression = Regression.of(found.training_scores(), rows.data)
        return cls(
            regression, Candidates.of(kernel, rows, found) if isinstance(inner, Gaussian) else None
        )

    def __call__(self, kernel: Kernel, rows: Table, found: DualComponents, Z: Array) -> Array:
        """A row for each of Z (m, k), some at a time: no (m, n) array is formed."""
        rows = rows.astype(np.float64)
        step = max(1, PIECE_BYTES // (8 * len(rows)))
        if self.regression is None:
            return np.vstack(
                [np.asarray(found.expansion(Z[at]) @ rows.data) for at in cuts(len(Z), step)]
            )
        if self.candidates is None:
            return self.regression(Z)
        point = FixedPoint.of(kernel, rows)
        return np.vstack(
            [self._begun(point, found.expansion(Z[at]), Z[at]) for at in cuts(len(Z), step)]
        )

    def _begun(self, point: FixedPoint, gamma: Array, Z: Array) -> Array:
        assert self.regression is not None
        assert self.candidates is not None
        x = self.regression(Z) - point.centre
        at, value = self.candidates.best(Z)
        better = np.flatnonzero(value > point.weights(x, gamma).sum(axis=1))
        x[better] = _dense(point.rows.data[at[better]])
        return point(x, gamma) + point.centre


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Steps x = sum_i g_i x_i / sum_i g_i until none is above 1e-7 of the spread of any column; x
    and rows are about `centre`."""

    kernel: Kernel
    rows: Table
    centre: Array
    unit: Array

    @classmethod
    def of(cls, kernel: Kernel, rows: Table) -> FixedPoint:
        centre = np.zeros(rows.width) if rows.sparse else rows.data.mean(axis=0)
        data = rows.data if rows.sparse else rows.data - centre
        unit = np.asarray(abs(data).mean(axis=0)).ravel()
        return cls(kernel, Table(data, rows.columns), centre, unit)

    def weights(self, x: Array, gamma: Array) -> Array:
        """gamma_i k(x, x_i), (m, n)."""
        return np.asarray(
            gamma
            * self.kernel(
                Table(sp.csr_array(x) if self.rows.sparse else x, self.rows.columns), self.rows
            )
        )

    def __call__(self, x: Array, gamma: Array) -> Array:
        x, on = x.copy(), np.arange(len(gamma))
        for _ in range(STEPS):
            new = self._step(x[on], gamma[on])
            moved = (np.abs(new - x[on]) > TOL * self.unit).any(axis=1)
            x[on] = new
            on = on[moved]
            if not len(on):
                break
        return x

    def _step(self, x: Array, gamma: Array) -> Array:
        G = self.weights(x, gamma)
        total, size = G.sum(axis=1), np.abs(G).sum(axis=1)
        fine = total > 1e-3 * size  # else x would leave the rows
        new = np.asarray(G @ self.rows.data) / np.where(fine, total, 1)[:, None]
        return np.where(fine[:, None], new, x)
