"""Grid: bumps at the points of a grid, whose inner products near the Gaussian kernel."""

from __future__ import annotations

import math
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from scipy.special import erfcinv

from mercer.inputs import Array
from mercer.invariants import Each, Floats, Whole
from mercer.kernels import Gaussian
from mercer.kernels.base import positive, whole
from mercer.kernels.defaults import resolve
from mercer.kernels.params import plain
from mercer.lifts.algebra import outer_rows, unique
from mercer.lifts.base import Lift
from mercer.lifts.columnwise import positions
from mercer.pairs.side import per_column
from mercer.store import register


@register("lifts.Grid")
class Grid(Lift):
    """phi_t(x) = sqrt(cell) (4 / (pi b))^(d/4) exp(-2 |x - t|^2 / b), b = 2 bandwidth^2.

    For t on a grid.

    The integral of phi_t(x) phi_t(z) over all t is exp(-|x - z|^2 / b), the Gaussian kernel. A
    grid of spacing h changes it by a factor 1 + 2 exp(-pi^2 bandwidth^2 / (2 h^2)) a column, a
    grid that ends a margin m beyond the rows by the tail of a normal law: spacing and margin
    are chosen so that together they stay below `tol`.

    Parameters
    ----------
    bandwidth : float or tuple of float, default=None
        That of the Gaussian, one number or one a column; None scales it to the data.
    tol : float, default=0.001
        The largest error of the kernel between any two points in the box of the fitted rows.
    max_features : int, default=20000
        More centres are refused; their number grows like c^d.
    columns : list of int or str, default=None
        Names or positions; None is all.

    Examples
    --------
    >>> phi = Grid(bandwidth=1.0).fit([[0.0], [1.0]])
    >>> F = phi.transform([[0.0], [1.0]])
    >>> F.shape, (F @ F.T).round(3), phi.kernel_([[0.0], [1.0]]).round(3)
    ((2, 8), array([[1.   , 0.606], [0.606, 1.   ]]), array([[1.   , 0.607], [0.607, 1.   ]]))
    """

    must = dict(
        columns_=Each(Whole(0, "n_features_in_"), size="m"),
        centres_=Each(Floats(None), size="m"),
        scale_=Floats("m"),
        spacing_=Floats("m"),
    )

    def _laws(self) -> str | None:
        size = math.prod(map(len, self.centres_))
        return (
            None
            if size == self.n_features_out_
            else f"has {size} centres for {self.n_features_out_} features"
        )

    def __init__(
        self,
        bandwidth: Any = None,
        tol: float = 1e-3,
        max_features: int = 20_000,
        columns: Any = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.tol = tol
        self.max_features = max_features
        self.columns = columns

    def _learn(self, X: Array) -> None:
        self.columns_ = positions(self, self.columns)
        X = X[:, self.columns_]
        k: Any = resolve(None, X) if self.bandwidth is None else Gaussian(self.bandwidth)
        self.kernel_ = k if self.columns is None else k.on_columns(self.columns_)
        self.scale_ = per_column(k.bandwidth, X.shape[1])
        self._place(X.min(0).astype(np.float64), X.max(0).astype(np.float64))

    def _place(self, low: Array, high: Array) -> None:
        """The centres of each column, a margin beyond its rows on both sides."""
        share = min(positive(plain(self.tol), "tol"), 1.0) / (
            4 * len(low)
        )  # the other half is for products of errors
        self.spacing_ = self.scale_ * math.pi / math.sqrt(2 * math.log(2 / share))
        margin = self.scale_ * float(erfcinv(share)) / math.sqrt(2)
        with np.errstate(over="ignore"):
            cells = np.ceil((high - low + 2 * margin) / self.spacing_)
        self._check_size(cells + 1)
        start = low / 2 + high / 2 - cells * self.spacing_ / 2
        self.centres_ = [
            a + h * np.arange(m + 1) for a, h, m in zip(start, self.spacing_, cells, strict=True)
        ]

    def _check_size(self, counts: Array) -> None:
        with np.errstate(over="ignore"):
            total = float(np.prod(counts))
        if not total <= whole(plain(self.max_features), "max_features", least=1):
            raise ValueError(
                f"Grid needs {total:.3g} centres for {len(counts)} columns, more than max_features={self.max_features}; "
                "choose columns, widen the bandwidth or tol, or use RandomFourier, which does not grow with the columns."
            )
        self.n_features_out_ = int(total)

    def _map(self, X: Array) -> Array:
        return reduce(outer_rows, [self._bumps(X[:, [j]], i) for i, j in enumerate(self.columns_)])

    def _bumps(self, x: Array, i: int) -> Array:
        """(n, number of centres) of one column (n, 1)."""
        s, h = self.scale_[i], self.spacing_[i]
        with np.errstate(over="ignore", under="ignore"):
            bumps = np.exp(-(((x.astype(np.float64) - self.centres_[i]) / s) ** 2))
            return (math.sqrt(h * math.sqrt(2 / math.pi) / s) * bumps).astype(x.dtype)

    def _names(self, inputs: list[str]) -> list[str]:
        axes = [
            [f"{inputs[j]}={t:.4g}" for t in centres]
            for j, centres in zip(self.columns_, self.centres_, strict=True)
        ]
        return unique([f"bump({','.join(t)})" for t in product(*axes)])
