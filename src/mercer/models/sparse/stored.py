"""Dictionaries of features that are held in memory, a dense array or CSR, centred implicitly; or are
read some rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Each, Is, Text, Whole, check
from mercer.lifts import Lift
from mercer.models.maps import FittedMap
from mercer.models.sparse.copies import (
    dense_column,
    groups,
    marking,
    paired_twins,
    sparse_column,
    twins,
)
from mercer.models.sparse.dictionary import Features, Found
from mercer.models.sparse.streamed import PIECE, StreamedFeatures, pieces, sums
from mercer.ops.tiles import cuts
from mercer.store import register

HARDLY = 0.3  # of all values that are not zero, beyond which CSR takes no less memory
MOST_PAIRED = 4096  # features


@register("sparse.LiftedFeatures")
@dataclass(frozen=True, eq=False)
class LiftedFeatures:
    """The features of a fitted lift; of None the columns themselves."""

    phi: FittedMap | None
    width: int
    columns_in: tuple[str, ...] | None  # names of the columns; None: x0, x1, ...

    must = dict(phi=Is("FittedMap") | None, width=Whole(1), columns_in=Each(Text()) | None)

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        size = self.width if self.phi is None else self.phi.width
        if self.width != size:
            return f"has a width of {self.width}, not of {size}"
        named = self.columns_in is None or len(self.columns_in) == self._reads
        return None if named else "has names for other columns"

    @property
    def _reads(self) -> int:
        if self.phi is None:
            return self.width
        return int(getattr(self.phi.lift, "n_features_in_", len(self.columns_in or ("",))))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns."""
        named = self.columns_in
        return tuple(f"x{j}" for j in range(self._reads)) if named is None else named

    def all(self, rows: Table) -> Matrix:
        """Every feature of rows; those that are hardly sparse are dense, as implicit centring
        costs digits."""
        F = rows.data if self.phi is None else self.phi.transform(rows)
        return F.toarray() if sp.issparse(F) and F.nnz > HARDLY * F.shape[0] * F.shape[1] else F

    def columns(self, rows: Table, ids: Array) -> Array:
        """Those of these features, (m, k) in float64."""
        out = np.empty((len(rows), len(ids)))
        step = max(256, PIECE // (8 * self.width))
        for at in cuts(len(rows), 1 << 30 if self.phi is None else step):
            F = self.all(rows[at])[:, ids]
            out[at] = F.toarray() if sp.issparse(F) else F
        return out

    def names(self, ids: Array) -> list[str]:
        """Their names; of a transformer that gives none, their numbers."""
        if self.phi is None:
            named = self.columns_in
            return [f"x{j}" if named is None else named[j] for j in ids.tolist()]
        lift = self.phi.lift
        if isinstance(lift, Lift) or hasattr(lift, "get_feature_names_out"):
            every = lift.get_feature_names_out(np.asarray(self.inputs, dtype=object))
            return [str(every[j]) for j in ids]
        return [f"{type(lift).__name__.lower()}{j}" for j in ids]


@dataclass(frozen=True, eq=False)
class StoredDictionary:
    """Features F (n, p), dense, CSR or streamed, of rows of weights w that sum to 1."""

    F: Matrix | StreamedFeatures
    w: Array
    features: Features
    unit: bool  # whether columns are divided by their standard deviations
    paired: bool = True  # whether products of all pairs would be of use

    @property
    def n(self) -> int:
        return int(self.F.shape[0])

    @property
    def p(self) -> int:
        return int(self.F.shape[1])

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.F)

    @cached_property
    def raw_means(self) -> Array:
        """Of the features before they are divided."""
        return np.asarray(sums(self.F, self.w), np.float64).ravel()

    @cached_property
    def products(self) -> Array:
        """sum_i w_i (F_i - mean)(F_i - mean)', (p, p), some rows at a time."""
        m, root = self.raw_means, np.sqrt(self.w)[:, None]
        if not isinstance(self.F, StreamedFeatures) and sp.issparse(self.F):
            A = sp.diags_array(root[:, 0]) @ self.F.astype(np.float64)
            return np.asarray((A.T @ A).todense()) - m * m[:, None]
        G = np.zeros((self.p, self.p))
        for rows in pieces(self.F):
            A = self.F[rows] - m  # means are float64, and so is A
            A *= root[rows]
            G += A.T @ A
        return G

    @cached_property
    def deviations(self) -> Array:
        """sqrt(sum_i w_i (F_ij - mean_j)^2), 0 where rounding alone is left of it."""
        m = self.raw_means
        s = np.sqrt(np.maximum(np.diag(self.products) if self.fits else self._squares(), 0.0))
        rounding = 8 * float(np.finfo(self.F.dtype).eps) * np.sqrt(self.n)  # of a mean
        return np.where(s > max(1e-7 * self.sparse, rounding) * np.abs(m), s, 0.0)

    @property
    def fits(self) -> bool:
        """Whether the products of all pairs of features are worth their memory and time."""
        return self.paired and self.p <= MOST_PAIRED

    def _squares(self) -> Array:
        m, F = self.raw_means, self.F
        if not isinstance(F, StreamedFeatures) and sp.issparse(F):
            squares = sp.csr_array((F.data.astype(np.float64) ** 2, F.indices, F.indptr), F.shape)
            return np.asarray(squares.T @ self.w).ravel() - m * m
        total = np.zeros(self.p)
        for rows in pieces(F):
            D = F[rows] - m
            total += self.w[rows] @ (D * D)
        return total

    @cached_property
    def divisors(self) -> Array:
        return np.where(self.deviations > 0, self.deviations, 1.0) if self.unit else np.ones(self.p)

    @cached_property
    def kept(self) -> Array:
        """The features that vary and are no copies of one before, also not of its negative."""
        vary = np.flatnonzero(self.deviations > 0)
        return np.setdiff1d(vary, np.fromiter(self.copies, np.int64, len(self.copies)))

    @cached_property
    def copies(self) -> dict[int, int]:
        """Features that are another, before them, up to a factor and an offset: by number."""
        vary, norms = np.flatnonzero(self.deviations > 0), self._norms()
        if len(vary) < 2:
            return {}
        marks = np.abs(self._products(marking(self.w)) / norms)[vary]
        found: dict[int, int] = {}
        if isinstance(self.F, StreamedFeatures):  # columns would be made anew for each group
            for group in groups(vary, marks):
                found |= paired_twins(group, self.products)
            return found
        eps = 16 * float(np.finfo(self.F.dtype).eps)
        close = eps * (1 + np.abs(self.raw_means) / norms)
        dense = dense_column(self.F, self.raw_means, norms)
        column = sparse_column(self.csc) if self.sparse else dense
        for group in groups(vary, marks):
            found |= twins(group, column, close)
        return found

    @cached_property
    def csc(self) -> Matrix:
        """Sparse features by columns."""
        return sp.csc_array(self.F)

    def _norms(self) -> Array:
        return np.where(self.deviations > 0, self.deviations, 1.0)

    def _products(self, r: Array) -> Array:
        """(F_j - mean_j)'r of every feature."""
        return sums(self.F, r) - self.raw_means * r.sum()

    @property
    def width(self) -> int:
        return len(self.kept)

    def columns(self, ids: Array) -> Matrix:
        if not isinstance(self.F, StreamedFeatures) and sp.issparse(self.F):
            A = sp.csc_array(self.csc[:, ids], dtype=np.float64)
            A.data /= np.repeat(self.divisors[ids], np.diff(A.indptr))
            return A
        return self.F[:, ids].astype(np.float64) / self.divisors[ids]

    def scales(self, ids: Array) -> Array:
        return self.divisors[ids]

    def means(self, ids: Array) -> Array:
        return self.raw_means[ids] / self.divisors[ids]

    def norms(self, ids: Array) -> Array:
        return self.deviations[ids] / self.divisors[ids]

    def largest(self, r: Array, k: int, above: float) -> Found:
        kept = self.kept
        t = (self._products(r) / self.divisors)[kept]
        size, m = np.abs(t), min(k, len(t))
        top = np.argpartition(-size, m - 1)[:m] if m and m < len(t) else np.arange(len(t))
        top = top[size[top] > above]
        top = top[np.argsort(-size[top], kind="stable")]
        others = np.delete(size, top)
        return Found(kept[top], t[top], float(others.max(initial=0.0)))

    def names(self, ids: Array) -> list[str]:
        return self.features.names(ids)
