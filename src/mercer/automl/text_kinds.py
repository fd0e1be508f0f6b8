"""Linear models of texts: the kinds of n-grams that are raced, the columns that they give, and the
fits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.automl import ranking
from mercer.inputs import Array
from mercer.models.linear import OneScore
from mercer.models.sparse_newton import SparseProblem, minimise
from mercer.models.sparse_rows import SparseRows
from mercer.models.svm.hinge import HingeDual
from mercer.tables.arrow import Column
from mercer.tables.sequences import SequenceWords
from mercer.tables.texts import LinearScores, beside, weighed
from mercer.text.ngrams import NGrams

SHORT = 200  # characters on average, up to which single letters count too, also across words
# columns that n-grams are hashed to: half as many as there are bytes of text, within these
LEAST_BITS, MOST_BITS = 14, 22
MAX_COEFFICIENTS = 1 << 23  # of all scores of a table
COLUMN_BYTES = 200.0  # that a column takes while all parts are fitted, of a quarter of the memory
GAP, MAX_SWEEPS = 0.05, 100  # of hinge losses: the share that the dual may leave
TOL, MAX_ROUNDS = 1e-2, 30  # of squares
# bytes that n-grams take of a byte of text, with the rows of a fold once more
WORD_BYTES, CHAR_BYTES = 12.0, 36.0


@dataclass(frozen=True)
class TextKind:
    """A way to turn documents into columns; `ratio` weighs each n-gram by the logarithm of how much
    more often one class has it than the other (Wang and Manning, 2012), to rows of length 1."""

    name: str
    blocks: tuple[dict[str, Any] | SequenceWords, ...]  # settings of n-grams, or words of letters
    ratio: bool = False
    bytes_a_byte: float = WORD_BYTES


def text_kinds(n_bytes: float, n_documents: int, bits: int, two_classes: bool) -> list[TextKind]:
    """Those that suit so many bytes of documents, the cheapest first."""
    short = n_bytes < SHORT * n_documents
    size: dict[str, Any] = dict(n_features=1 << bits, dtype=np.float32)
    tfidf = dict(weight="tfidf", sublinear=not short, **size)
    words = dict(words=(1, 2), **tfidf)
    chars = dict(chars=(1 if short else 3, 5), within_words=not short, **tfidf)
    binary = dict(words=(1, 2), weight="binary", norm=None, **size)
    letters = "1 to 5 letters" if short else "3 to 5 letters within words"
    both = WORD_BYTES + CHAR_BYTES
    return [
        TextKind("one and two words", (words,)),
        *[TextKind("one and two words, by the ratio of the classes", (binary,), ratio=True)]
        * two_classes,
        TextKind(letters, (chars,), bytes_a_byte=CHAR_BYTES),
        TextKind(f"one and two words beside {letters}", (words, chars), bytes_a_byte=both),
    ]


def n_bits(n_bytes: float, n_scores: int, memory: float) -> int:
    """The logarithm of the number of columns of a block, where so many scores are to be held.

    >>> n_bits(1e3, 1, 4e9), n_bits(4.8e5, 1, 4e9), n_bits(3.3e7, 1, 4e9), n_bits(3.3e7, 20, 4e9)
    (14, 17, 22, 18)
    """
    most = min(MAX_COEFFICIENTS / n_scores, memory / 4 / COLUMN_BYTES)
    top = max(LEAST_BITS, min(MOST_BITS, int(math.log2(most))))
    return int(np.clip(math.log2(max(n_bytes / 2, 1)), LEAST_BITS, top))


@dataclass(frozen=True, eq=False)
class TextRows:
    """Documents as sparse rows of the columns that some of them have."""

    lifts: tuple[NGrams | SequenceWords, ...]
    X: sp.csr_matrix  # (n, p)
    columns: Array  # (p,) where these stand among all of the n-grams

    def spread(self, found: LinearScores) -> LinearScores:
        """Scores of all columns, by those of the ones that are here."""
        D = sum(lift.n_features_out_ for lift in self.lifts)
        coef = np.zeros((D, found.coef.shape[1]), np.float32)
        coef[self.columns] = found.coef
        if found.ratios is None:
            return LinearScores(coef, found.intercept)
        ratios = np.zeros(D, np.float32)
        ratios[self.columns] = found.ratios
        return LinearScores(coef, found.intercept, ratios)


def vectorised(kind: TextKind, cells: Column) -> TextRows:
    """Rows of documents by n-grams that are fitted to them without a look at any target."""
    lifts = tuple(NGrams(**b) if isinstance(b, dict) else b for b in kind.blocks)
    X = beside([lift.fit_transform(cells) for lift in lifts])
    there = np.bincount(X.indices, minlength=X.shape[1]) > 0
    columns, names = np.flatnonzero(there), np.cumsum(there, dtype=np.int32) - np.int32(1)
    few = sp.csr_matrix((X.data, names[X.indices], X.indptr), shape=(X.shape[0], len(columns)))
    return TextRows(lifts, few, columns)


def log_ratios(X: sp.csr_matrix, y: Array, w: Array) -> Array:
    """log of (1 + weight of the rows with y > 0 that have a column) / (1 + of the others that do),
    less that of the sums of both.

    >>> X = sp.csr_matrix(np.array([[1.0, 0], [1, 1]]))
    >>> log_ratios(X, np.array([1.0, -1]), np.ones(2)).round(2)
    array([ 0.29, -0.41], dtype=float32)
    """
    p, q = (1.0 + abs(X).T @ (w * side) for side in (y > 0, y <= 0))
    return np.asarray(np.log(p / p.sum()) - np.log(q / q.sum()), np.float32)


class Squares(OneScore):
    """w (f - y)^2"""

    def value(self, f: Array, Y: Array, w: Array) -> float:
        return float(w @ np.square(f - Y)[:, 0])

    def slope(self, f: Array, Y: Array, w: Array) -> Array:
        return 2 * w[:, None] * (f - Y)

    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        return 2 * w


class LinearPath:
    """Linear scores of sparse rows, for each column of Y: those of least hinge losses of Y = +-1, or
    of least squares, and of a penalty after another, each from where the last one ended.

    sum_i w_i loss(y_i, f_i) + penalty/2 mean|x|^2 |coef|^2: penalties are in units of the mean
    square of a row, so that they mean the same for every kind of n-grams.
    """

    def __init__(
        self, X: sp.csr_matrix, Y: Array, w: Array | None, ratio: bool, classes: bool
    ) -> None:
        self.w = np.ones(len(Y)) if w is None else np.asarray(w, np.float64)
        self.ratios = log_ratios(X, Y[:, 0], self.w) if ratio else None
        found = X if self.ratios is None else weighed(X, self.ratios)
        self.rows, self.Y, self.classes = SparseRows.of(found, intercept=True), Y, classes
        self.size = float(self.rows.squares.mean()) or 1.0
        self.starts: list[Array | None] = [None] * Y.shape[1]

    def at(self, penalty: float) -> LinearScores:
        """The scores of this penalty."""
        one = self._hinge if self.classes else self._squares
        found = [one(k, penalty * self.size) for k in range(self.Y.shape[1])]
        self.starts = [last for _, last in found]
        theta = np.concatenate([model for model, _ in found], axis=1)
        coef, intercept = self.rows.unshifted(theta[: self.rows.p], theta[self.rows.p])
        return LinearScores(np.ascontiguousarray(coef.T, np.float32), intercept, self.ratios)

    def _hinge(self, k: int, alpha: float) -> tuple[Array, Array | None]:
        """The model, and where the next one starts; a constant where rows are of one class."""
        y = self.Y[:, k]
        signs = np.unique(y[self.w > 0])
        if len(signs) < 2:
            constant = np.zeros((self.rows.p + 1, 1))
            constant[-1] = signs.sum()
            return constant, None
        found = HingeDual(self.rows, y, self.w / alpha, True, self.starts[k]).solve(GAP, MAX_SWEEPS)
        return found.theta, found.last

    def _squares(self, k: int, alpha: float) -> tuple[Array, Array | None]:
        p = SparseProblem(self.rows, Squares(), self.Y[:, k : k + 1], self.w, alpha, True)
        found = minimise(p, TOL, MAX_ROUNDS, self.starts[k])
        return found.theta, found.theta


def held_out_score(scores: Array, Y: Array, classes: bool) -> float:
    """How well scores tell the rows apart: the mean area under the curve of classes, or the squared
    correlation with numbers.

    >>> y = np.array([[-1.0], [-1], [1], [1]])
    >>> held_out_score(y + 3, y, True), held_out_score(-y, -y, False), held_out_score(0 * y, y, True)
    (1.0, 1.0, 0.5)
    """
    pairs = list(zip(scores.T, Y.T, strict=True))
    if classes:
        found = [ranking.area(y > 0, s, np.ones(len(y))) for s, y in pairs]
        areas = [f[0] for f in found if f is not None]
        return float(np.mean(areas)) if areas else 0.5
    s, y = pairs[0]
    if s.std() == 0 or y.std() == 0:
        return 0.0
    return float(max(np.corrcoef(s, y)[0, 1], 0.0) ** 2)
