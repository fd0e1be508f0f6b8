"""Splines of single columns: piecewise polynomials between knots, with an answer to missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix
from mercer.invariants import Is, Text
from mercer.kernels import Linear
from mercer.kernels.base import whole
from mercer.kernels.params import plain
from mercer.lifts.algebra import unique
from mercer.lifts.base import TILE_BYTES, Lift
from mercer.ops.tiles import cuts
from mercer.store import register

MISSING = ("error", "zeros", "indicator")


@register("lifts.Splines")
class Splines(Lift):
    """B-splines of each column: a basis of piecewise polynomials that are smooth at the knots.

    scikit-learn's `SplineTransformer` inside; a column that is constant in the rows gets knots
    around its value, one that is missing throughout knots around 0.

    Parameters
    ----------
    n_knots : int, default=5
        The number of knots, those at both ends included: n_knots + degree - 1 splines a column.
    degree : int, default=3
        Of the polynomials.
    knots : {"uniform", "quantile"} or array-like of shape (m,) or (m, d), default="uniform"
        Ascending numbers are for every column, or one list a column; n_knots is then not used.
        Quantiles that are equal, of columns with ties, are spread evenly up to the next.
    extrapolation : str, default="constant"
        As in `SplineTransformer`.
    include_bias : bool, default=True
        Whether to keep the last spline of each column, which is 1 minus the others.
    handle_missing : {"error", "zeros", "indicator"}, default="error"
        What a missing value (NaN) is: an error; 0 in all splines of its column; or that and 1
        in a feature more, one for each column behind all splines. Knots are those of the values
        that are there. `kernel_` compares rows without missing values.
    sparse_output : bool, default=False
        Whether features come as CSR rows: degree + 1 of those of a column are not 0.

    Examples
    --------
    >>> phi = Splines(n_knots=3, degree=1).fit([[0.0], [2.0]])
    >>> phi.transform([[0.5]]), list(phi.get_feature_names_out())
    (array([[0.5, 0.5, 0. ]]), ['spline0(x0)', 'spline1(x0)', 'spline2(x0)'])
    >>> phi = Splines(2, 1, handle_missing="indicator").fit([[0.0], [2.0]])
    >>> phi.transform([[0.5], [np.nan]]), list(phi.get_feature_names_out())
    (array([[0.75, 0.25, 0.  ],
           [0.  , 0.  , 1.  ]]), ['spline0(x0)', 'spline1(x0)', 'missing(x0)'])
    """

    missing_: str = "error"  # as files of before have it

    must = dict(
        splines_=Is("SplineTransformer", n_features_in_="n_features_in_"), missing_=Text(*MISSING)
    )

    def __init__(
        self,
        n_knots: int = 5,
        degree: int = 3,
        knots: Any = "uniform",
        extrapolation: str = "constant",
        include_bias: bool = True,
        *,
        handle_missing: str = "error",
        sparse_output: bool = False,
    ) -> None:
        self.n_knots = n_knots
        self.degree = degree
        self.knots = knots
        self.extrapolation = extrapolation
        self.include_bias = include_bias
        self.handle_missing = handle_missing
        self.sparse_output = sparse_output

    def _laws(self) -> str | None:
        D = self._indicators + int(self.splines_.n_features_out_)
        return (
            None
            if self.n_features_out_ == D
            else f"has {D} splines for {self.n_features_out_} features"
        )

    def _learn(self, X: Array) -> None:
        from sklearn.preprocessing import SplineTransformer  # here, as it is of no use to others

        knots, degree = self._knots(X), whole(plain(self.degree), "degree")
        options = {"extrapolation": self.extrapolation, "include_bias": self.include_bias}
        self.splines_ = SplineTransformer(degree=degree, knots=knots, **options).fit(
            knots
        )  # the knots alone decide
        self.missing_ = _checked_missing(self.handle_missing)
        self.n_features_out_ = int(self.splines_.n_features_out_) + self._indicators
        self.kernel_ = Linear().warped(self._map)

    @property
    def _indicators(self) -> int:
        return self.n_features_in_ if self.missing_ == "indicator" else 0

    def _knots(self, X: Array) -> Array:
        """(n_knots, d), in ascending order."""
        if not isinstance(self.knots, str):
            return _ascending(self.knots, X.shape[1])
        at = np.linspace(0, 1, whole(plain(self.n_knots), "n_knots", least=2))[:, None]
        X = np.where(np.isnan(X).all(0), X.dtype.type(0), X)
        low, high = np.nanmin(X, 0).astype(np.float64), np.nanmax(X, 0).astype(np.float64)
        size = np.maximum(np.abs(low), np.abs(high))
        apart = high / 2 - low / 2 > 4 * len(at) * np.spacing(size)  # so that knots differ
        room = np.where(apart, 0.0, np.maximum(1.0, size) / 2)
        if self.knots == "uniform":
            return (low - room) * (1 - at) + (high + room) * at
        if self.knots == "quantile":
            Q = np.where(apart, np.nanquantile(X.astype(np.float64), at.ravel(), axis=0), low)
            return np.apply_along_axis(_distinct, 0, Q + room * (2 * at - 1))
        raise ValueError(f'knots must be "uniform", "quantile" or numbers, got {self.knots!r}.')

    def _map(self, X: Array) -> Matrix:
        if not self.sparse_output:
            return self._dense(X)
        tiles = cuts(len(X), max(1, TILE_BYTES // (8 * self.n_features_out_)))
        return sp.vstack([sp.csr_array(self._dense(X[t])) for t in tiles], format="csr")

    def _dense(self, X: Array) -> Array:
        gone = np.isnan(X)
        if self.missing_ == "error" or not gone.any():
            F = self._splines(X)
        else:
            inside = [(b.t[b.k] + b.t[-b.k - 1]) / 2 for b in self.splines_.bsplines_]
            F = self._splines(np.where(gone, np.asarray(inside, X.dtype), X))
            F[np.repeat(gone, self.splines_.n_features_out_ // X.shape[1], axis=1)] = 0
        return np.hstack([F, gone], dtype=F.dtype) if self._indicators else F

    def _splines(self, X: Array) -> Array:
        """Steps go on as they end, which scikit-learn has no code for: rows beyond them are moved
        to the ends."""
        splines = self.splines_
        if splines.degree or splines.extrapolation not in ("constant", "linear"):
            return splines.transform(X)
        low, high = (np.array([b.t[at] for b in splines.bsplines_]) for at in (0, -1))
        return splines.transform(np.clip(X.astype(np.float64), low, high)).astype(X.dtype)

    def _names(self, inputs: list[str]) -> list[str]:
        each = int(self.splines_.n_features_out_) // self.n_features_in_
        splines = [f"spline{k}({name})" for name in inputs for k in range(each)]
        return unique(splines + [f"missing({name})" for name in inputs if self._indicators])

    @property
    def _finite(self) -> bool | str:
        return "allow-nan" if _checked_missing(self.handle_missing) in MISSING[1:] else True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.handle_missing in MISSING[1:]
        return tags


def _checked_missing(given: Any) -> str:
    if given not in MISSING:
        raise ValueError(f'handle_missing must be "error", "zeros" or "indicator", got {given!r}.')
    return str(given)


def _distinct(knots: Array) -> Array:
    """Knots of which some are equal, as quantiles of ties are: these go on evenly to the next.

    >>> _distinct(np.array([0.0, 0.0, 0.0, 3.0, 5.0, 5.0])).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    first = np.flatnonzero(np.diff(knots, prepend=-np.inf) > 0)
    first[-1] = len(knots) - 1
    return np.interp(np.arange(len(knots)), first, knots[first])


def _ascending(knots: Any, d: int) -> Array:
    """Given knots, (m, d)."""
    try:
        out = np.asarray(knots, np.float64)
    except (TypeError, ValueError):
        out = np.empty(0)
    out = np.repeat(out[:, None], d, axis=1) if out.ndim == 1 else out
    if (
        out.ndim != 2
        or len(out) < 2
        or not np.isfinite(out).all()
        or not (np.diff(out, axis=0) > 0).all()
    ):
        raise ValueError(
            f"knots must be two or more ascending finite numbers, (m,) or (m, {d}), got shape {np.shape(out)}."
        )
    if out.shape[1] != d:
        raise ValueError(
            f"knots has {out.shape[1]} columns, but X has {d}; give one list of knots a column, or one for all."
        )
    return out
