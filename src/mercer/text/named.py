"""Rows of (name, value), however they came: crossed, hashed to CSR rows, and counted by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array
from mercer.invariants import Counts, Floats, Ints, Whole, check
from mercer.text.hashed_rows import canonical_rows
from mercer.text.murmur import columns_of, murmur3, packed, signs_of
from mercer.text.names import Distinct

ANY_WIDTH = 2**63 - 1  # of rows of dicts, whose names may be any


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows of values by name: entry t, `indptr[i] <= t < indptr[i + 1]`, gives row i the value
    `values[t]` under `tokens[codes[t]]`.

    A token is a name ("age") or a name and its level ("city=Oslo"): that of `names[owners[code]]`.

    >>> rows = NamedRows(("age", "city"), ("age", "city=Oslo"), np.array([0, 1]), np.array([0, 2]),
    ...     np.array([0, 1], np.int32), np.array([30.0, 1.0]))
    >>> rows.crossed([("age", "city")]).tokens[-1]
    'age & city=Oslo'
    """

    names: tuple[str, ...]
    tokens: tuple[str, ...]
    owners: Array  # int64 (k,)
    indptr: Array  # int64 (n + 1,)
    codes: Array  # int32 (e,)
    values: Array  # float64 (e,)
    width: int = ANY_WIDTH
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.float64)

    must = dict(
        owners=Ints("n_tokens", below="n_names"),
        indptr=Counts("n + 1"),
        codes=Ints("e", below="n_tokens"),
        values=Floats("e"),
        width=Whole(1),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        steps = np.diff(self.indptr)
        ends = len(self.indptr) and self.indptr[0] == 0 and self.indptr[-1] == len(self.codes)
        return None if ends and (steps >= 0).all() else "has rows that do not follow each other"

    @property
    def n_names(self) -> int:
        return len(self.names)

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.width

    def without_zeros(self) -> NamedRows:
        """The rows without entries of value 0, which add nothing."""
        there = self.values != 0
        if there.all():
            return self
        before = np.concatenate([[0], np.cumsum(there)])
        return replace(
            self,
            indptr=before[self.indptr],
            codes=self.codes[there],
            values=self.values[there],
        )

    def crossed(self, crosses: Sequence[tuple[str, ...]]) -> NamedRows:
        """With the products of some names: "city=Oslo & job=cook" where a row has both, "age &
        job=cook" with the row's age as value."""
        if not len(crosses):
            return self
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        parts = [Entries(rows, self.codes, self.values, self.tokens, self.owners)]
        names = list(self.names)
        for cross in crosses:
            product = reduce(_product, [self._entries(rows, name) for name in cross])
            parts.append(product._replace(owners=np.full(len(product.tokens), len(names))))
            names.append(" & ".join(cross))
        return self._of(names, parts)

    def _entries(self, rows: Array, name: str) -> Entries:
        at = np.flatnonzero((np.array(self.names, object) == name)[self.owners][self.codes])
        return Entries(rows[at], self.codes[at], self.values[at], self.tokens, self.owners)

    def _of(self, names: list[str], parts: list[Entries]) -> NamedRows:
        """Entries in one, each row's beside each other."""
        starts = np.cumsum([0, *(len(p.tokens) for p in parts)])
        rows = np.concatenate([p.rows for p in parts])
        codes = np.concatenate([p.codes + s for p, s in zip(parts, starts, strict=False)])
        order = np.argsort(rows, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.shape[0]))])
        return replace(
            self,
            names=tuple(names),
            tokens=tuple(t for p in parts for t in p.tokens),
            owners=np.concatenate([p.owners for p in parts]),
            indptr=indptr,
            codes=codes[order].astype(np.int32),
            values=np.concatenate([p.values for p in parts])[order],
        )

    def places(self, m: int, s: int, signed: bool, seed: int) -> Places:
        """Where tokens lie among m features: one column in each of s blocks of m/s, by seeds one
        after another."""
        buffer, offsets = self._packed
        hashes = [murmur3(buffer, offsets, (seed + i) % 2**32) for i in range(s)]
        columns = [columns_of(h, m // s) + np.int32(i * (m // s)) for i, h in enumerate(hashes)]
        signs = [signs_of(h) if signed else np.ones(len(h), np.int32) for h in hashes]
        return Places(np.stack(columns), np.stack(signs), buffer, offsets)

    @cached_property
    def _packed(self) -> tuple[Array, Array]:
        return packed(self.tokens)

    def hashed(self, places: Places, m: int) -> Any:
        """CSR rows (n, m): every value in its token's columns with its signs, over sqrt(s); equal
        columns of a row added up, sums of zero left out."""
        factors = places.signs / np.sqrt(len(places.signs))
        parts = canonical_rows(self.indptr, self.codes, self.values, places.columns, factors)
        F = sp.csr_array(parts, shape=(self.shape[0], m))
        F.has_canonical_format = True  # known, so that SciPy need not look
        if not np.isfinite(F.data).all():
            raise ValueError("X holds values whose sums are not finite; scale them first.")
        return F

    def distinct(self, places: Places) -> Distinct:
        """The tokens that occur, with their columns, signs and counts."""
        counts = np.bincount(self.codes, minlength=self.n_tokens)
        s, there = len(places.columns), np.flatnonzero(counts)
        blocks = [
            Distinct(places.columns[i], places.signs[i], counts, places.buffer, places.offsets)
            for i in range(s)
        ]
        return _stacked([block.take(there, counts[there]) for block in blocks])


class Places(NamedTuple):
    """Columns and signs (s, k) of tokens, and their bytes."""

    columns: Array
    signs: Array
    buffer: Array
    offsets: Array


class Entries(NamedTuple):
    """Entries in the order of their rows; their tokens, and the name that each is of."""

    rows: Array
    codes: Array
    values: Array
    tokens: tuple[str, ...]
    owners: Array


def _product(a: Entries, b: Entries) -> Entries:
    """Every entry of a with every one of b in the same row."""
    first, last = (np.searchsorted(b.rows, a.rows, side) for side in ("left", "right"))
    left = np.repeat(np.arange(len(a.rows)), last - first)
    starts = np.cumsum(last - first) - (last - first)
    right = np.arange(len(left)) - np.repeat(starts - first, last - first)
    pairs = a.codes[left].astype(np.int64) * len(b.tokens) + b.codes[right]
    found, codes = np.unique(pairs, return_inverse=True)
    both = (divmod(pair, len(b.tokens)) for pair in found.tolist())
    tokens = tuple(f"{a.tokens[i]} & {b.tokens[j]}" for i, j in both)
    with np.errstate(over="ignore"):  # said where they are summed
        values = a.values[left] * b.values[right]
    return Entries(a.rows[left], codes, values, tokens, np.zeros(len(tokens), np.int64))


def _stacked(parts: list[Distinct]) -> Distinct:
    """Names of several blocks of columns in one."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(p.buffer) for p in parts)])
    offsets = [p.offsets[:-1] + start for p, start in zip(parts, starts, strict=False)]
    columns, signs, counts, buffer = (
        np.concatenate([getattr(p, part) for p in parts])
        for part in ("columns", "signs", "counts", "buffer")
    )
    return Distinct(columns, signs, counts, buffer, np.concatenate([*offsets, starts[-1:]]))
