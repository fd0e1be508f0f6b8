"""Counts as weighted rows: logarithms, tf-idf, naive-Bayes ratios, norms, and the CSR matrix of all
parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array
from mercer.invariants import Text, check
from mercer.ops.jit import njit
from mercer.ops.threads import parallel_map
from mercer.store import register
from mercer.text.rows import Tally

WEIGHTS = ("count", "binary", "tfidf", "ratio")
NO_SCALE = np.ones(1)


@register("text.Weighting")
@dataclass(frozen=True, eq=False)
class Weighting:
    """How a count becomes a value: f(count) times the scale of its column, in a row of norm 1 or
    any."""

    weight: str = "count"
    sublinear: bool = False
    norm: str | None = "l2"

    must = dict(weight=Text(*WEIGHTS), norm=Text("l2") | None)

    def __post_init__(self) -> None:
        check(self)

    @property
    def signed(self) -> bool:
        """Whether hashed n-grams have signs: what is there or not has none."""
        return self.weight in ("count", "tfidf")

    @property
    def learns(self) -> bool:
        return self.weight in ("tfidf", "ratio")

    def scale(self, documents: Array | None, n: Array) -> Array:
        """The scale of every column, by the documents (classes, columns) that have it, of n a
        class."""
        if not self.learns or documents is None:
            return NO_SCALE
        return idf(documents.sum(0), int(n.sum())) if self.weight == "tfidf" else ratio(documents)

    def flags(self, shift: int) -> Array:
        """What the loop is told: presence alone, logarithm, norm, and what is added to columns."""
        present = self.weight in ("binary", "ratio")
        return np.array([present, self.sublinear, self.norm == "l2", self.learns, shift], np.int64)


def idf(documents: Array, n: int) -> Array:
    """log((1 + n) / (1 + documents)) + 1, as scikit-learn's.

    >>> idf(np.array([1, 3]), 3).round(3)
    array([1.693, 1.   ])
    """
    return np.log((1.0 + n) / (1.0 + documents)) + 1.0


def ratio(documents: Array) -> Array:
    """The log-ratio of two classes, log(p / |p|) - log(q / |q|) with p and q one more than the
    documents of each class that have a column.

    >>> ratio(np.array([[3, 0], [0, 3]])).round(3)
    array([-1.386,  1.386])
    """
    p = 1.0 + documents
    shares = np.log(p / p.sum(1, keepdims=True))
    return shares[1] - shares[0]


def matrix(
    parts: Sequence[Sequence[Tally]], scales: Sequence[Array], widths: Sequence[int], how: Weighting, dtype: Any
) -> sp.csr_matrix:  # fmt: skip
    """The weighted rows of all parts, of blocks of columns side by side; the tallies of a part are
    let go when they are written."""
    sizes = [np.sum([np.diff(t.indptr) for t in blocks], axis=0) for blocks in parts]
    indptr = np.zeros(1 + sum(map(len, sizes)), np.int64)
    np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]), out=indptr[1:])
    nnz, width = int(indptr[-1]), sum(widths)
    index = np.int32 if max(nnz, width) < 2**31 else np.int64
    indices, data = np.empty(nnz, index), np.empty(nnz, dtype)
    firsts = np.cumsum([0, *map(len, sizes)]).tolist()
    left = list(parts)

    def write(k: int) -> None:
        places, shift = indptr[firsts[k] : firsts[k + 1]], 0
        for t, scale, w in zip(left[k], scales, widths, strict=True):
            weigh(t.indices, t.values, t.indptr, scale, how.flags(shift), places, indices, data)
            places, shift = places + np.diff(t.indptr), shift + w
        left[k] = ()

    parallel_map(write, range(len(left)))
    out = sp.csr_matrix((data, indices, indptr.astype(index)), shape=(len(indptr) - 1, width))
    out.has_canonical_format = True  # known, so that SciPy need not look
    return out


@njit
def weigh(
    columns: Array,
    counts: Array,
    indptr: Array,
    scale: Array,
    how: Array,
    places: Array,
    indices: Array,
    data: Array,
) -> None:
    """Write weighted rows; how[0]: presence for counts, how[1]: 1 + log, how[2]: norm 1, how[3]:
    times scale[column], how[4]: what is added to columns. Row i goes to places[i] and on."""
    for i in range(len(indptr) - 1):
        at, square = places[i], 0.0
        for j in range(indptr[i], indptr[i + 1]):
            v: Any = np.float64(counts[j])
            sign = 1.0 if v > 0 else -1.0
            if how[0]:
                v = sign
            elif how[1]:
                v = sign * (1.0 + np.log(abs(v)))
            if how[3]:
                v *= scale[columns[j]]
            square += v * v
            indices[at], data[at] = columns[j] + how[4], v
            at += 1
        if how[2] and square > 0:
            norm = np.sqrt(square)
            for k in range(places[i], at):
                data[k] /= norm
