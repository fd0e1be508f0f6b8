"""The n-grams that speak loudest in a linear model of texts: hashed columns have no names, so they
are found once more in some of the documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.automl.rows import hashes
from mercer.inputs import Array
from mercer.tables.arrow import Column, pa, pc
from mercer.tables.sequences import SequenceWords
from mercer.tables.texts import TextScores
from mercer.text.murmur import columns_of, murmur3, packed
from mercer.text.ngrams import NGrams

SHOWN = 24  # n-grams, of one score: half of them for it and half against; of several so many in all
MAX_OUTPUTS = 10  # scores of which some are shown
MIN_DOCUMENTS = 3  # that have an n-gram which is shown
NAMED_BYTES = 3e6  # of documents in which names are looked for
OFFSET = 53  # of the hash that samples documents, which is no other


@dataclass(frozen=True)
class Strong:
    """A column that moves a score: by `gain` on average in documents that have it."""

    column: int
    output: int
    gain: float


def strong_columns(X: sp.csr_matrix, coef: Array, columns: Array) -> list[Strong]:
    """The columns of the rows X (n, p) that matter most to each score, by the root mean square of
    what they add to it, and under the numbers `columns`; for every score the strongest first."""
    D, c = coef.shape
    values = X.data.astype(np.float64)
    often = np.bincount(X.indices, minlength=D)
    power = np.sqrt(np.bincount(X.indices, values**2, minlength=D))
    mean = np.bincount(X.indices, np.abs(values), minlength=D) / np.maximum(often, 1)
    able = often >= MIN_DOCUMENTS
    sign = np.sign(np.bincount(X.indices, values, minlength=D))
    out = []
    for k in range(min(c, MAX_OUTPUTS)):
        weight = np.where(able, coef[:, k] * power, 0.0)
        ends = _ends(weight * np.where(sign == 0, 1, sign), max(2, SHOWN // c), both=c == 1)
        out += [
            Strong(int(columns[at]), k, float(coef[at, k] * sign[at] * mean[at])) for at in ends
        ]
    return out


def _ends(weight: Array, count: int, both: bool) -> list[int]:
    """The places of the largest weights, and where `both` ends count of the smallest.

    >>> _ends(np.array([0.5, -3.0, 2.0, 0.0]), 4, True), _ends(np.array([0.5, -3.0, 2.0]), 1, False)
    ([2, 0, 1], [2])
    """
    order = np.argsort(-weight, kind="stable")
    top = [int(i) for i in order[: count // 2 if both else count] if weight[i] > 0]
    low = [int(i) for i in order[::-1][: count // 2] if weight[i] < 0] if both else []
    return top + low


def named(
    model: TextScores, strong: Sequence[Strong], cells: Column, outputs: tuple[str, ...]
) -> list[list[Any]]:
    """Of the strong columns the n-grams that most documents have in them: the n-gram, what it is
    for, its gain, and how many of the documents that were looked at have it. Of a model of letters
    alone, words, which say more to a reader."""
    some, begin = _some(cells), 0
    first = model.lifts[0]
    letters = isinstance(first, NGrams) and first.chars is not None
    if letters and (words := _words(model, some, outputs)):
        return words
    found: dict[int, tuple[str, int]] = {}
    for lift in model.lifts:
        size = lift.n_features_out_
        mine = [s.column - begin for s in strong if begin <= s.column < begin + size]
        found |= {begin + j: named_ for j, named_ in _names(lift, some, mine).items()}
        begin += size
    return merged(
        [found[s.column][0], outputs[s.output], s.gain, found[s.column][1]]
        for s in strong
        if s.column in found
    )


def merged(rows: Iterable[list[Any]]) -> list[list[Any]]:
    """Each word of a score once: gapped ones have a column for every place in a window, and a
    document with the word gains by all of them.

    >>> merged([["D.DG", "yes", 0.5, 9], ["AC", "yes", 0.3, 4], ["D.DG", "yes", 0.25, 8]])
    [['D.DG', 'yes', 0.75, 9], ['AC', 'yes', 0.3, 4]]
    """
    out: dict[tuple[str, str], list[Any]] = {}
    for word, of, gain, often in rows:
        row = out.setdefault((word, of), [word, of, 0.0, 0])
        row[2], row[3] = row[2] + gain, max(row[3], often)
    return list(out.values())


def _words(model: TextScores, cells: Column, outputs: tuple[str, ...]) -> list[list[Any]]:
    """Words by the score of their own letters, which is of a row of length 1: in a document it has
    about the share of the root of its letters among all."""
    letters = float(pc.mean(pc.utf8_length(cells)).as_py() or 1.0)
    listed = NGrams(words=(1, 1), vocabulary="learn", weight="binary", norm=None)
    try:
        rows = listed.fit_transform(cells)
    except ValueError:
        return []  # no document has a word
    counts = np.asarray(rows.sum(0), np.int64).ravel()
    often = np.flatnonzero(counts >= MIN_DOCUMENTS)
    if not len(often):
        return []
    words, counts = listed.get_feature_names_out()[often], counts[often]
    share = np.sqrt(np.minimum([len(w) / letters for w in words], 1.0))
    spaced = pa.chunked_array([[f" {w} " for w in words]], pa.large_string())
    gain = (model(spaced) - model.linear.intercept) * share[:, None]
    out: list[list[Any]] = []
    for k in range(min(len(outputs), MAX_OUTPUTS)):
        weight, c = gain[:, k] * np.sqrt(counts), len(outputs)
        ends = _ends(weight, max(2, SHOWN // c), both=c == 1)
        out += [[str(words[i]), outputs[k], float(gain[i, k]), int(counts[i])] for i in ends]
    return out


def _some(cells: Column) -> Column:
    """Documents in so many bytes, by a hash of their places."""
    order = np.argsort(hashes(np.arange(len(cells)), OFFSET), kind="stable")
    sizes = pc.binary_length(cells).to_numpy().astype(np.float64)[order]
    count = max(1, int(np.searchsorted(np.cumsum(sizes), NAMED_BYTES)))
    return cells.take(pa.array(np.sort(order[:count])))


def _sequence_words(
    lift: SequenceWords, cells: Column, wanted: list[int]
) -> dict[int, tuple[str, int]]:
    """For words of letters their names, and how many sequences have them."""
    often = lift.transform(cells).getnnz(axis=0)
    return {j: (lift.name(j), int(often[j])) for j in wanted if often[j] >= MIN_DOCUMENTS}


def _names(
    lift: NGrams | SequenceWords, cells: Column, wanted: list[int]
) -> dict[int, tuple[str, int]]:
    """For hashed columns the n-gram in each that most documents have, and how many do."""
    if isinstance(lift, SequenceWords):
        return _sequence_words(lift, cells, wanted)
    how = lift.get_params() | {"vocabulary": "learn", "weight": "binary", "norm": None}
    listed = NGrams(**how)
    if not wanted or not len(cells):
        return {}
    counts = np.asarray(listed.fit_transform(cells).sum(0), np.int64).ravel()
    names = listed.get_feature_names_out()
    columns = columns_of(murmur3(*packed(names.tolist())), lift.n_features)
    out: dict[int, tuple[str, int]] = {}
    for i in np.flatnonzero(np.isin(columns, wanted) & (counts >= MIN_DOCUMENTS)):
        before = out.get(int(columns[i]), ("", 0))
        if counts[i] > before[1]:
            out[int(columns[i])] = (str(names[i]), int(counts[i]))
    return out
