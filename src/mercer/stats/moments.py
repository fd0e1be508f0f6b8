"""Second moments of rows [phi, y] about a fixed shift: sums that add, subtract, and answer least
squares for any penalty."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Number, Whole
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.store import register

BLOCK_ROWS = (
    1 << 13
)  # rows whose products are summed in their own precision before they join the float64 sums
TILE_BYTES = 1 << 19  # of rows that one thread shifts and sums


@register("stats.Moments")
@dataclass(eq=False)
class Moments:
    """n = sum w, s = sum w z, S = sum w z z' over rows z = row - shift, in float64.

    Plain sums, so that an all-reduce merges them. Raw float32 sums would lose everything at large
    means: batches are shifted first, and added up in float64. Subtracting is exact to rounding of
    the largest sums ever held, `peak`.

    >>> A, B = np.arange(6.0).reshape(3, 2), np.ones((2, 2))
    >>> both = Moments.of(A, shift=np.zeros(2)) + Moments.of(B, shift=np.zeros(2))
    >>> np.allclose(both.covariance(), np.cov(np.vstack([A, B]).T, bias=True))
    True
    """

    shift: Array  # (p,)
    n: float
    s: Array  # (p,)
    S: Array  # (p, p)
    count: int = 0
    peak: float = 0.0
    held: int = 0  # rows ever taken in
    eps: float = float(np.finfo(np.float64).eps)  # of the coarsest batch

    must = dict(
        shift=Floats("p"),
        n=Number(),
        s=Floats("p"),
        S=Floats("p", "p"),
        count=Whole(),
        peak=Number(0),
        held=Whole(),
        eps=Number(0),
    )

    @classmethod
    def zero(cls, shift: Array) -> Self:
        p = len(shift)
        return cls(np.asarray(shift, np.float64), 0.0, np.zeros(p), np.zeros((p, p)))

    @classmethod
    def of(cls, rows: Array, weight: Array | None = None, *, shift: Array) -> Self:
        """The moments of a batch (b, p)."""
        return cls.zero(shift).add(rows, weight)

    def add(self, rows: Array, weight: Array | None = None, beside: Array | None = None) -> Self:
        """Take in a batch, in place; `beside` are the last columns, in float64, whose digits the
        type of `rows` may not hold."""
        rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
        if rows.shape[1] + (0 if beside is None else beside.shape[1]) != len(self.shift):
            raise ValueError(
                f"the rows have {rows.shape[1]} columns, but the moments are of {len(self.shift)}."
            )
        for at in cuts(len(rows), BLOCK_ROWS):
            w, more = (None if v is None else v[at] for v in (weight, beside))
            self._add_block(rows[at], w, more)
        self.peak = max(self.peak, float(np.abs(np.diag(self.S)).max(initial=0)))
        return self

    def _add_block(self, rows: Array, w: Array | None, beside: Array | None) -> None:
        Z = np.empty((len(rows), len(self.shift)), rows.dtype)
        tiles = cuts(len(rows), max(16, TILE_BYTES // max(1, Z[:1].nbytes)))
        for part in parallel_map(
            lambda t: self._fill(
                Z[t], rows[t], *(None if v is None else v[t] for v in (w, beside))
            ),
            tiles,
        ):
            self.s += part
        self.S += Z.T @ Z  # one array and its transpose: BLAS computes one triangle
        self.eps = max(self.eps, float(np.finfo(Z.dtype).eps))
        self.n += float(len(Z) if w is None else np.sum(w, dtype=np.float64))
        self.count += len(Z)
        self.held += len(Z)

    def _fill(self, Z: Array, rows: Array, w: Array | None, beside: Array | None) -> Array:
        """Z = sqrt(w) (row - shift), and the sum of w (row - shift)."""
        p = rows.shape[1]
        np.subtract(rows, self.shift[:p].astype(rows.dtype), out=Z[:, :p])
        if beside is not None:
            Z[:, p:] = beside - self.shift[p:]
        if w is None:
            return np.asarray(Z.sum(0, dtype=np.float64))
        Z *= np.sqrt(w, dtype=Z.dtype)[:, None]
        return np.asarray(np.sqrt(w, dtype=np.float64) @ Z.astype(np.float64))

    def about(self, shift: Array) -> Moments:
        """The same rows about another shift."""
        if np.array_equal(shift, self.shift):
            return self
        d = self.shift - shift
        S = self.S + np.outer(self.s, d) + np.outer(d, self.s) + self.n * np.outer(d, d)
        return replace(self, shift=np.asarray(shift, np.float64), s=self.s + self.n * d, S=S)

    def __add__(self, other: Moments) -> Moments:
        o = other.about(self.shift)
        return self._sum(o, self.S + o.S)

    def joined(self, batch: Moments) -> Moments:
        """With a batch that was gathered apart and is spent: its S becomes that of the sum, so that
        no third one is held.

        These moments stay as they are, whoever else holds them, and whatever happens in between.
        """
        o = batch.about(self.shift)
        o.S += self.S
        return self._sum(o, o.S)

    def _sum(self, o: Moments, S: Array) -> Moments:
        peak = max(self.peak, o.peak, float(np.abs(np.diag(S)).max(initial=0)))
        return self._with(o, self.n + o.n, self.s + o.s, S, self.count + o.count, peak)

    def __sub__(self, other: Moments) -> Moments:
        """Without those rows, to rounding of the largest sums ever held: `rounding`."""
        o = other.about(self.shift)
        peak = max(self.peak, o.peak)
        return self._with(o, self.n - o.n, self.s - o.s, self.S - o.S, self.count - o.count, peak)

    def _with(self, o: Moments, n: float, s: Array, S: Array, count: int, peak: float) -> Moments:
        return Moments(self.shift, n, s, S, count, peak, self.held + o.held, max(self.eps, o.eps))

    @property
    def possible(self) -> bool:
        """Whether these can be the moments of rows at all: no negative weight or variance, beyond
        `rounding`.

        What is left after subtracting rows that were never added is often impossible, but not
        always.
        """
        if self.count < 0 or self.n < -1e-9:
            return False
        if self.n <= 1e-9 or not self.count:
            return True
        C = self.centred()
        C[np.diag_indices(len(C))] += len(C) * self.rounding + np.finfo(float).tiny
        return bool(np.linalg.eigvalsh(C)[0] >= 0) if len(C) else True

    @property
    def rounding(self) -> float:
        """How far an entry of S may be off: rounding (of the coarsest batch) of the largest entry
        ever held."""
        return self.eps * self.peak * max(self.held, 1) ** 0.5

    @property
    def mean(self) -> Array:
        return self.shift + self.s / self.n

    def centred(self) -> Array:
        """sum w (row - mean)(row - mean)'."""
        return self.S - np.outer(self.s, self.s) / self.n

    def about_zero(self) -> Array:
        """sum w row row'."""
        return self.about(np.zeros_like(self.shift)).S

    def covariance(self) -> Array:
        return self.centred() / self.n

    def arrays(self) -> dict[str, Any]:
        """What there is to save."""
        return asdict(self)
