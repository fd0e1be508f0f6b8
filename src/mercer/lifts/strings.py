"""StringFeatures: the features of a kernel of strings as sparse rows, all of them or hashed to
fewer columns, by name."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Table, table
from mercer.invariants import Counts, Ints, Is, Whole
from mercer.kernels.base import whole
from mercer.lifts.base import Seed, seed_of
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.store import Saved, register
from mercer.strings.base import StringKernel
from mercer.strings.layouts import Emitted, Layout
from mercer.strings.sequences import Sequences

MOST_COLUMNS = (1 << 31) - 1
MOST_NAMED = 1 << 22  # names that are made at once
PIECE_ROWS = 256


@register("lifts.StringFeatures")
class StringFeatures(Saved, TransformerMixin, BaseEstimator):
    """phi(x) of a kernel of strings: CSR rows with phi(x)'phi(z) = k(x, z).

    All features are columns, or with n_features each is added, with a random sign, to one of
    fewer columns chosen by a hash: k(x, z) is then the mean over seeds.

    Parameters
    ----------
    kernel : StringKernel
        The k: `Spectrum`, `Mismatch`, `Gapped`, `Subsequence` or `WeightedDegree`.
    n_features : int, default=None
        The number of hashed columns; None: all features, up to 2^31 - 1.
    keep_names : bool, default=False
        Whether `fit` keeps which features its strings have, and how many strings have each: for
        `names` of hashed columns and `collisions_`.
    random_state : int, RandomState, Generator or None, default=0
        The seed of the hash.

    Attributes
    ----------
    kernel_ : StringKernel
        The kernel with the alphabet of the strings of `fit`.
    n_features_out_ : int
        The number of columns.
    length_ : int
        The letters of every string, where the features depend on it; else 0.
    collisions_ : float
        The share of features of `fit` that lie in a column with another one, where names were
        kept.

    References
    ----------
    Weinberger et al., Feature hashing for large scale multitask learning (2009).

    Examples
    --------
    >>> from mercer.strings import Spectrum
    >>> phi = StringFeatures(Spectrum(2))
    >>> phi.fit_transform(["abab", "bb"]).toarray()
    array([[0., 2., 1., 0.],
           [0., 0., 0., 1.]])
    >>> phi.get_feature_names_out()
    array(['aa', 'ab', 'ba', 'bb'], dtype=object)
    >>> phi = StringFeatures(Spectrum(9), 64, keep_names=True).fit(["abcabcabcabc"])
    >>> phi.names(int(phi.transform(["abcabcabc"]).indices[0]))
    [('abcabcabc', 1, -1)]
    """

    kernel_: StringKernel
    n_features_out_: int
    length_: int
    seed_: int
    hashed_: bool
    features_: Array | None
    counts_: Array | None

    must = dict(
        kernel_=Is("StringKernel"),
        n_features_out_=Whole(1, MOST_COLUMNS + 1),
        length_=Whole(0),
        seed_=Whole(0),
        features_=Ints("m", below=1 << 62, distinct=True) | None,
        counts_=Counts("m") | None,
    )

    def __init__(
        self,
        kernel: Any,
        n_features: int | None = None,
        *,
        keep_names: bool = False,
        random_state: Seed = 0,
    ) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.keep_names = keep_names
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the alphabet, and which features there are where names are kept."""
        if not isinstance(self.kernel, StringKernel):
            raise ValueError(f"kernel must be a kernel of strings, got {self.kernel!r:.60}.")
        rows = self._rows(X)
        kernel: Any = self.kernel.settled(rows)
        length = int(kernel.letters.encode(rows.data[:1]).lengths[0])
        layout = kernel.engine(kernel.letters).layout(length)
        width = layout.width
        if self.n_features is None and width > MOST_COLUMNS:
            raise ValueError(
                f"{kernel!r} has {width:,} features, and at most {MOST_COLUMNS:,} are made; give n_features, which hashes them."
            )
        if width == 0:
            raise ValueError(
                f"{kernel!r} has no features of strings without letters, such as the first of X; leave them out."
            )
        if width >= 1 << 62:
            raise ValueError(
                f"{kernel!r} has more features than numbers of 62 bits; use the kernel itself, which compares words."
            )
        self.kernel_, self.seed_ = kernel, seed_of(self.random_state) % (1 << 63)
        self.length_ = length if layout != kernel.engine(kernel.letters).layout(length + 1) else 0
        self.n_features_out_ = (
            max(width, 1) if self.n_features is None else whole(self.n_features, "n_features", 1)
        )
        self.hashed_ = self.n_features is not None
        self.features_ = self.counts_ = None
        if self.keep_names:
            found = parallel_map(lambda s: self._kept(rows[s]), cuts(len(rows), PIECE_ROWS))
            ids = np.concatenate(found)
            self.features_, self.counts_ = np.unique(ids, return_counts=True)
        return self

    def transform(self, X: Any) -> sp.csr_array:
        """The rows of strings: CSR with sorted indices, none twice."""
        check_is_fitted(self)
        rows = self._rows(X)
        parts = parallel_map(lambda s: self._csr(rows[s]), cuts(len(rows), PIECE_ROWS))
        return sp.vstack(parts, format="csr") if len(parts) > 1 else parts[0]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The words, or numbered names of hashed columns."""
        check_is_fitted(self)
        if self.hashed_:
            return np.array([f"hashed{i}" for i in range(self.n_features_out_)], dtype=object)
        if self.n_features_out_ > MOST_NAMED:
            raise ValueError(
                f"there are {self.n_features_out_:,} features; ask for the names of some by names(column)."
            )
        layout = self._layout
        return np.array([layout.name(i) for i in range(self.n_features_out_)], dtype=object)

    def names(self, column: int, texts: Any = None) -> list[tuple[str, int, int]]:
        """(word, strings that have it, sign) of every feature of a column, the most frequent first.

        Of hashed columns those that keep_names=True has kept, or those of strings that are given
        here.
        """
        check_is_fitted(self)
        at = whole(column, "column")
        if at >= self.n_features_out_:
            raise ValueError(f"column {at} is out of range; there are {self.n_features_out_:,}.")
        ids, counts = self._known(texts) if self.hashed_ or texts is not None else (None, None)
        if ids is None or counts is None:
            return [(self._layout.name(at), 0 if self.counts_ is None else self._count(at), 1)]
        columns, signs = self._places(ids)
        there = np.flatnonzero(columns == at)
        there = there[np.argsort(-counts[there], kind="stable")]
        return [(self._layout.name(int(ids[t])), int(counts[t]), int(signs[t])) for t in there]

    @property
    def collisions_(self) -> float:
        if self.features_ is None:
            raise AttributeError("collisions_ needs the features of fit; give keep_names=True.")
        columns = self._places(self.features_)[0]
        return float((np.bincount(columns)[columns] > 1).mean()) if len(columns) else 0.0

    # inside
    def _known(self, texts: Any) -> tuple[Array, Array]:
        if texts is not None:
            ids, counts = np.unique(self._kept(self._rows(texts)), return_counts=True)
            return ids, counts
        if self.features_ is None or self.counts_ is None:
            raise ValueError(
                "names of hashed columns were not kept; fit with keep_names=True, or give strings as texts."
            )
        return self.features_, self.counts_

    def _count(self, feature: int) -> int:
        assert self.features_ is not None
        assert self.counts_ is not None
        at = int(np.searchsorted(self.features_, feature))
        known = at < len(self.features_) and self.features_[at] == feature
        return int(self.counts_[at]) if known else 0

    @property
    def _layout(self) -> Layout:
        return self.kernel_.engine(self.kernel_.letters).layout(self.length_)

    def _rows(self, X: Any) -> Table:
        rows = table(X, "X", items=True)
        if not rows.items:
            raise ValueError("X must list strings, got rows of numbers.")
        return rows

    def _emitted(self, rows: Table) -> Emitted:
        letters = self.kernel_.letters
        x = letters.encode(rows.data)
        self._check_lengths(x)
        parts = [self._layout.emit(x)]
        if letters.both:
            parts.append(self._layout.emit(x.reversed(letters.complement)))
        return Emitted.joined(parts)

    def _check_lengths(self, x: Sequences) -> None:
        if self.length_ and (x.lengths != self.length_).any():
            other = int(x.lengths[np.argmax(x.lengths != self.length_)])
            raise ValueError(
                f"{type(self.kernel_).__name__} compares strings of one length, {self.length_} letters in fit, but one of X has "
                f"{other}; cut or pad them to one length, or use Gapped."
            )

    def _kept(self, rows: Table) -> Array:
        """The features of every string, each once."""
        e, n = self._emitted(rows), len(rows)
        order = np.lexsort((e.ids, e.rows))
        ids, of = e.ids[order], e.rows[order]
        new = np.ones(len(ids), bool)
        new[1:] = (ids[1:] != ids[:-1]) | (of[1:] != of[:-1])
        assert n or not len(ids)
        return ids[new]

    def _places(self, ids: Array) -> tuple[Array, Array]:
        """Columns and signs of features."""
        if not self.hashed_:
            return ids, np.ones(len(ids))
        bits = _mixed(ids, self.seed_)
        signs = 1.0 - 2.0 * (bits >> np.uint64(63)).astype(np.float64)
        columns = (bits & np.uint64((1 << 63) - 1)) % np.uint64(self.n_features_out_)
        return columns.astype(np.int64), signs

    def _csr(self, rows: Table) -> sp.csr_array:
        e = self._emitted(rows)
        columns, signs = self._places(e.ids)
        shape = len(rows), self.n_features_out_
        out = sp.coo_array((e.values * signs, (e.rows, columns)), shape=shape).tocsr()
        out.sum_duplicates()
        out.eliminate_zeros()
        out.indices, out.indptr = (a.astype(np.int32) for a in (out.indices, out.indptr))
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _mixed(ids: Array, seed: int) -> Array:
    """64 bits of every number, as a finaliser of MurmurHash3 mixes them."""
    bits = ids.astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % (1 << 64))
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53), (33, 1)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits
