"""Texts by what their words say of the target: the scores of a linear model over n-grams, beside
their length and number of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array
from mercer.invariants import Each, Floats, Is, check
from mercer.store import register
from mercer.tables.arrow import Column
from mercer.tables.encoders import APART, Encoder, TextEncoder
from mercer.tables.sequences import SequenceWords
from mercer.tables.sketch import hashes, short
from mercer.tables.values import null, text
from mercer.text.ngrams import NGrams

MAX_SCORES = 32  # classes that have a score of their own
LONGEST = 1 << 20  # characters of a document that count
HASH_BITS = 24  # that float32 holds


def documents(column: Column) -> Column:
    """The cells as documents, none of them missing; of very long ones the beginning.

    >>> from mercer.tables.arrow import pa
    >>> documents(pa.array([" a word ", None, "NA"])).to_pylist()
    ['a word', '', '']
    """
    return short(text(column).fill_null(""), LONGEST)


def scored_classes(counts: Sequence[int], most: int = MAX_SCORES) -> tuple[int, ...]:
    """Of classes with these counts those that have a score: of two the second, else the most
    frequent.

    >>> scored_classes((5, 9)), scored_classes((5, 9, 7)), scored_classes((5, 9, 7), 2)
    ((1,), (0, 1, 2), (1, 2))
    """
    if len(counts) == 2:
        return (1,)
    often = np.argsort(-np.asarray(counts), kind="stable")[:most]
    return tuple(sorted(often.tolist()))


@register("tables.LinearScores")
@dataclass(frozen=True, eq=False)
class LinearScores:
    """s(x) = x W + b of sparse rows x; where there are ratios r, of (x r) / |x r| in their place.

    >>> f = LinearScores(np.ones((2, 1), np.float32), np.zeros(1), np.array([3.0, 4.0], np.float32))
    >>> f(sp.csr_matrix(np.ones((1, 2)))).round(6)
    array([[1.4]])
    """

    coef: Array  # (D, c)
    intercept: Array  # (c,)
    ratios: Array | None = None  # (D,)

    must = dict(coef=Floats("D", "c"), intercept=Floats("c"), ratios=Floats("D") | None)

    def __post_init__(self) -> None:
        check(self)

    def __call__(self, X: sp.csr_matrix) -> Array:
        """(n, c)."""
        return np.asarray(self.rows(X) @ self.coef, np.float64) + self.intercept

    def rows(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """What the coefficients are of: the rows, or their directions after the ratios."""
        return X if self.ratios is None else weighed(X, self.ratios)

    def standardised(self, mean: Array, std: Array) -> LinearScores:
        """(s - mean) / std, in float32."""
        coef = np.asarray(self.coef / std, np.float32)
        return LinearScores(coef, (self.intercept - mean) / std, self.ratios)


def weighed(X: sp.csr_matrix, ratios: Array) -> sp.csr_matrix:
    """Columns times their ratios, rows to length 1."""
    out = sp.csr_matrix((X.data * ratios[X.indices], X.indices, X.indptr), shape=X.shape)
    sizes = np.sqrt(np.asarray(out.multiply(out).sum(1), np.float64).ravel())
    out.data /= np.repeat(np.where(sizes > 0, sizes, 1.0), np.diff(out.indptr)).astype(out.dtype)
    return out


@register("tables.TextScores")
@dataclass(frozen=True, eq=False)
class TextScores:
    """The scores (n, c) of documents: linear ones of the columns of n-grams side by side.

    Parameters
    ----------
    lifts : tuple of NGrams or SequenceWords
        Fitted.
    linear : LinearScores
        Of all their columns.
    """

    lifts: tuple[NGrams | SequenceWords, ...]
    linear: LinearScores

    must = dict(lifts=Each(Is("NGrams", "SequenceWords"), least=1), linear=Is("LinearScores"))

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        size, known = sum(lift.n_features_out_ for lift in self.lifts), len(self.linear.coef)
        return None if size == known else f"has {known:,} coefficients for {size:,} columns"

    def __call__(self, cells: Column) -> Array:
        """Of documents, as `documents` gives them."""
        return self.linear(beside([lift.transform(cells) for lift in self.lifts]))


def beside(blocks: list[sp.csr_matrix]) -> sp.csr_matrix:
    """Blocks of columns side by side."""
    return blocks[0] if len(blocks) == 1 else sp.hstack(blocks, "csr")


@dataclass(frozen=True)
class TextScoresEncoder(Encoder):
    """A text: its frequent values, its length and its number of words, whether it is missing, and
    scores of a linear model over its n-grams, one for each of `outputs` (the target, or classes
    of it).

    Until the model is known, bits of a hash of the document stand in for its scores: so equal
    documents are equal, and others are not. Training rows get the scores of models that were not
    fitted to their part of the rows, so that no row's own target is among its features.
    """

    sizes: TextEncoder
    outputs: tuple[str, ...]
    gone: bool = False
    scores: TextScores | None = None

    def __post_init__(self) -> None:
        known = self.scores is None or (
            isinstance(self.scores, TextScores)
            and len(self.scores.linear.intercept) == len(self.outputs)
        )
        if not self.outputs or not known:
            raise ValueError(
                f"TextScoresEncoder needs a score for each of its {len(self.outputs)} outputs; fit the model again."
            )

    @property
    def takes(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def n_sizes(self) -> int:
        """Features before the scores."""
        return len(self.sizes.names("")) + self.gone

    def read(self, column: Column) -> tuple[Array, int]:
        cells = text(column)
        read, whole = self.sizes.read(cells)[0], documents(cells)
        read[null(cells), 2] = np.nan
        return np.hstack(
            [read, self._hashed(whole) if self.scores is None else self.scores(whole)]
        ), 0

    def _hashed(self, cells: Column) -> Array:
        found = hashes(cells)
        shifts = [np.uint64(HASH_BITS * (j % 2)) for j in range(len(self.outputs))]
        mask = np.uint64((1 << HASH_BITS) - 1)
        return np.stack([(found >> s) & mask for s in shifts], axis=1).astype(np.float64)

    def features(self, values: Array) -> Array:
        missing = np.isnan(values[:, 2:3]) * APART
        return np.hstack(
            [self.sizes.features(values[:, :3]), *[missing] * self.gone, values[:, 3:]]
        )

    def names(self, name: str) -> tuple[str, ...]:
        gone = (f"{name} missing",) * self.gone
        scores = tuple(
            f"{name} score" if o == "target" else f"{name} score of {o}" for o in self.outputs
        )
        return (*self.sizes.names(name), *gone, *scores)

    def with_scores(self, scores: TextScores) -> TextScoresEncoder:
        return replace(self, scores=scores)
