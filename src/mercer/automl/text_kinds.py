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
from mercer.tables.arrow import Column
from mercer.tables.ngrams_seam import NGrams
from mercer.tables.texts import LinearScores, beside

SHORT = 200  # characters on average, up to which single letters and pairs of them are taken too
# columns that n-grams are hashed to: half as many as there are bytes of text, within these, and with
# all scores no more coefficients than the last
LEAST_BITS, MOST_BITS = 14, 21
MAX_COEFFICIENTS = 1 << 23
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


def vectorised(kind: TextKind, cells: Column) -> tuple[tuple[NGrams, ...], sp.csr_array]:
    """The n-grams, fitted to documents without a look at any target, and their columns."""
    lifts = tuple(NGrams(**block).fit(cells) for block in kind.blocks)
    return lifts, beside([lift.transform(cells) for lift in lifts])


def log_ratios(X: sp.csr_array, y: Array) -> Array:
    """log of (1 + rows with y > 0 that have a column) / (1 + the others that do), less that of the
    sums of both.

    >>> log_ratios(sp.csr_array(np.array([[1.0, 0], [1, 1]])), np.array([1.0, -1])).round(2)
    array([ 0.22, -0.47], dtype=float32)
    """
    p, q = (1.0 + np.asarray(abs(X[rows]).sum(0), np.float64).ravel() for rows in (y > 0, y <= 0))
    return np.asarray(np.log(p / p.sum()) - np.log(q / q.sum()), np.float32)


def weighed(X: sp.csr_array, ratios: Array) -> sp.csr_array:
    """Columns times their ratios, rows to length 1."""
    out = sp.csr_array((X.data * ratios[X.indices], X.indices, X.indptr), shape=X.shape)
    sizes = np.sqrt(np.asarray(out.multiply(out).sum(1), np.float64).ravel())
    out.data /= np.repeat(np.where(sizes > 0, sizes, 1.0), np.diff(out.indptr)).astype(out.dtype)
    return out


def fit_scores(
    X: sp.csr_array, Y: Array, w: Array | None, penalty: float, ratio: bool, classes: bool
) -> LinearScores:
    """Linear scores, for each column of Y: of least squared hinge losses of Y = +-1, or squares; the
    penalty is in units of the mean square of a row, so that it means the same for every kind.
    """
    r = log_ratios(X, Y[:, 0]) if ratio else None
    rows = X if r is None else weighed(X, r)
    alpha = penalty * (float(rows.multiply(rows).sum()) / max(rows.shape[0], 1) or 1.0)
    found = [(hinge if classes else squares)(rows, y, w, alpha) for y in Y.T]
    coef = np.stack([c for c, _ in found], axis=1).astype(np.float32)
    return LinearScores(coef, np.array([b for _, b in found]), r)


def hinge(X: sp.csr_array, y: Array, w: Array | None, alpha: float) -> tuple[Array, float]:
    """Least sum of squared hinge losses, and of coefficients."""
    from sklearn.svm import LinearSVC

    if len(np.unique(y)) < 2:
        return np.zeros(X.shape[1]), float(y[0])
    made = LinearSVC(C=1 / alpha, max_iter=100).fit(X, y, sample_weight=w)
    return made.coef_[0], float(made.intercept_[0])


def squares(X: sp.csr_array, y: Array, w: Array | None, alpha: float) -> tuple[Array, float]:
    from sklearn.linear_model import Ridge

    made = Ridge(alpha=alpha, solver="sparse_cg", tol=1e-4).fit(X, y, sample_weight=w)
    return made.coef_, float(made.intercept_)


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
