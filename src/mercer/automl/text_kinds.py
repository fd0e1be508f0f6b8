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
from mercer.models.svm.hinge import SquaredHinge
from mercer.tables.arrow import Column
from mercer.tables.texts import LinearScores, beside, weighed
from mercer.text.ngrams import NGrams

SHORT = 200  # characters on average, up to which single letters and pairs of them are taken too
# columns that n-grams are hashed to: half as many as there are bytes of text, within these, and with
# all scores no more coefficients than the last
LEAST_BITS, MOST_BITS = 14, 21
MAX_COEFFICIENTS = 1 << 23
TOL, MAX_ROUNDS = 3e-3, 30
# bytes that n-grams take of a byte of text, with the rows of a fold once more
WORD_BYTES, CHAR_BYTES = 12.0, 36.0


@dataclass(frozen=True)
class TextKind:
    """A way to turn documents into columns; `ratio` weighs each n-gram by the logarithm of how much
    more often one class has it than the other (Wang and Manning, 2012), to rows of length 1."""

    name: str
    blocks: tuple[dict[str, Any], ...]
    ratio: bool = False
    bytes_a_byte: float = WORD_BYTES


def text_kinds(
    n_bytes: float, n_documents: int, n_outputs: int, two_classes: bool
) -> list[TextKind]:
    """Those that suit so many bytes of documents, the cheapest first."""
    size = 1 << n_bits(n_bytes, n_outputs)
    tfidf = dict(weight="tfidf", sublinear=True, n_features=size, dtype=np.float32)
    low = 1 if n_bytes < SHORT * n_documents else 3
    words = dict(words=(1, 2), **tfidf)
    chars = dict(words=None, chars=(low, 5), within_words=True, **tfidf)
    binary = dict(words=(1, 2), weight="binary", norm=None, n_features=size, dtype=np.float32)
    ratio = TextKind("one and two words, by the ratio of the classes", (binary,), ratio=True)
    return [
        TextKind("one and two words", (words,)),
        *[ratio] * two_classes,
        TextKind(f"{low} to 5 letters within words", (chars,), bytes_a_byte=CHAR_BYTES),
        TextKind(
            f"one and two words beside {low} to 5 letters",
            (words, chars),
            bytes_a_byte=WORD_BYTES + CHAR_BYTES,
        ),
    ]


def n_bits(n_bytes: float, n_outputs: int) -> int:
    """The logarithm of the number of columns of a block.

    >>> n_bits(1e3, 1), n_bits(4.8e5, 1), n_bits(3.3e7, 1), n_bits(3.3e7, 20)
    (14, 17, 21, 18)
    """
    most = min(MOST_BITS, int(math.log2(MAX_COEFFICIENTS / n_outputs)))
    return int(np.clip(math.log2(max(n_bytes / 2, 1)), LEAST_BITS, most))


def vectorised(kind: TextKind, cells: Column) -> tuple[tuple[NGrams, ...], sp.csr_matrix]:
    """The n-grams, fitted to documents without a look at any target, and their columns."""
    lifts = tuple(NGrams(**block) for block in kind.blocks)
    return lifts, beside([lift.fit_transform(cells) for lift in lifts])


def log_ratios(X: sp.csr_matrix, y: Array) -> Array:
    """log of (1 + rows with y > 0 that have a column) / (1 + the others that do), less that of the
    sums of both.

    >>> log_ratios(sp.csr_array(np.array([[1.0, 0], [1, 1]])), np.array([1.0, -1])).round(2)
    array([ 0.22, -0.47], dtype=float32)
    """
    p, q = (1.0 + np.asarray(abs(X[rows]).sum(0), np.float64).ravel() for rows in (y > 0, y <= 0))
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
    """Linear scores of sparse rows, for each column of Y: those of least squared hinge losses of
    Y = +-1, or of least squares, and of a penalty after another, each from where the last one ended.

    sum_i w_i loss(y_i, f_i) + penalty/2 mean|x|^2 |coef|^2: penalties are in units of the mean
    square of a row, so that they mean the same for every kind of n-grams.
    """

    def __init__(self, X: sp.csr_matrix, Y: Array, w: Array | None, ratio: bool, classes: bool):
        self.ratios = log_ratios(X, Y[:, 0]) if ratio else None
        found = X if self.ratios is None else weighed(X, self.ratios)
        self.rows, self.Y = SparseRows.of(found), Y
        self.w = np.ones(len(Y)) if w is None else np.asarray(w, np.float64)
        self.size = float(self.rows.squares.mean()) or 1.0
        self.loss = SquaredHinge() if classes else Squares()
        self.starts: list[Array | None] = [None] * Y.shape[1]

    def at(self, penalty: float) -> LinearScores:
        """The scores of this penalty."""
        for k, y in enumerate(self.Y.T):
            p = SparseProblem(self.rows, self.loss, y[:, None], self.w, penalty * self.size, True)
            self.starts[k] = minimise(p, TOL, MAX_ROUNDS, self.starts[k]).theta
        theta = np.concatenate([t for t in self.starts if t is not None], axis=1)
        coef = self.rows.spread(theta[: self.rows.p]).T.astype(np.float32)
        return LinearScores(np.ascontiguousarray(coef), theta[self.rows.p], self.ratios)


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
