"""Hashed columns are those of HashingVectorizer, sums of keys are in order, long rows are whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.utils import murmurhash3_32

from mercer.text import reference, rows
from mercer.text.documents import Part
from mercer.text.grams import Grams, HashedColumns
from mercer.text.ngrams import NGrams
from mercer.text.tokens import CHARS, WITHIN, WORDS
from tests.text.test_tokens import ANALYZERS, TEXT

UNITS = [WORDS, CHARS, WITHIN]
LEAST_HASH = "akqlrggi"  # its hash is -2**31, which has no absolute value in 32 bits


def written(seed, n=30):
    """Documents of a small language with long and short words, gaps and all kinds of characters."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdeéßΣσİ中_9"))
    words = ["".join(rng.choice(letters, rng.integers(1, 12))) for _ in range(40)]
    gaps = np.array([" ", "  ", "\t", "\n\n", "-", ", ", "\x00"])
    return [
        "".join(w + g for w, g in zip(rng.choice(words, k), rng.choice(gaps, k), strict=True))
        for k in rng.integers(0, 80, n)
    ]


def theirs(texts, unit, orders, **options):
    X = HashingVectorizer(analyzer=ANALYZERS[unit], ngram_range=orders, **options).transform(texts)
    X.eliminate_zeros()
    return X


def ours(unit, orders, **options):
    where = {"words": orders} if unit == WORDS else {"chars": orders}
    return NGrams(**where, within_words=unit == WITHIN, **options)


def assert_same(X, Y):
    """Equal matrices, and X canonical."""
    assert X.shape == Y.shape
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert (X.indptr == Y.indptr).all()
    assert (X.indices == Y.indices).all()
    assert (X.data == Y.data).all()


@pytest.mark.parametrize("orders", [(1, 1), (1, 2), (2, 3), (3, 5), (7, 7)])
@pytest.mark.parametrize("unit", UNITS)
def test_whole_matrices_are_those_of_scikit_learn(unit, orders):
    texts = written(len(unit) + orders[1])
    for options in ({}, {"norm": None, "n_features": 50}, {"lowercase": False}):
        assert_same(ours(unit, orders, **options).transform(texts), theirs(texts, unit, orders, **options))  # fmt: skip


@pytest.mark.parametrize("width", [1, 2, 3, 1 << 10, 1_000_003, 2**31 - 2])
def test_any_number_of_columns(width):
    texts = [*written(3), LEAST_HASH]
    assert murmurhash3_32(LEAST_HASH) == -(2**31)
    X = NGrams(n_features=width, norm=None).transform(texts)
    assert_same(X, theirs(texts, WORDS, (1, 2), n_features=width, norm=None))


def test_the_most_columns():
    width = 2**31 - 1
    X = NGrams(words=(1, 1), n_features=width, norm=None).transform([LEAST_HASH, "ab"])
    assert X.indices.tolist() == [2**31 % width, abs(murmurhash3_32("ab")) % width]


@pytest.mark.parametrize("width", [7, 1 << 20])
def test_presence_has_no_signs_and_never_cancels(width):
    texts = written(5)
    X = NGrams(weight="binary", n_features=width, norm=None).transform(texts)
    Y = HashingVectorizer(ngram_range=(1, 2), binary=True, norm=None, n_features=width)
    assert_same(X, Y.transform(texts))


@pytest.mark.parametrize("unit", UNITS)
@given(texts=st.lists(TEXT, max_size=4), least=st.integers(1, 3), more=st.integers(0, 3))
def test_loops_agree_with_the_plain_reference(unit, texts, least, more):
    grams = Grams(unit, least, least + more)
    t = HashedColumns(grams, 97).tally(Part(0, texts), signed=True)
    found = [
        dict(zip(t.indices[a:b].tolist(), t.values[a:b].tolist(), strict=True))
        for a, b in zip(t.indptr, t.indptr[1:], strict=False)
    ]
    assert found == [reference.hashed(text, grams, 97) for text in texts]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("room", [1, 7, 64, 1000])
def test_rows_that_do_not_fit_at_once_are_whole(monkeypatch, unit, room):
    texts = [*written(9, 12), "", "ab " * 500, ""]
    for width in (5, 1 << 20):
        columns = HashedColumns(Grams(unit, 2, 4), width)
        whole = columns.tally(Part(0, texts), signed=True, keep=width == 5)
        with monkeypatch.context() as m:
            m.setattr(rows, "ROOM", room)
            pieces = columns.tally(Part(0, texts), signed=True, keep=width == 5)
        for a, b in zip(vars(whole).values(), vars(pieces).values(), strict=True):
            assert (a == b).all()


def test_columns_that_cancel_are_kept_only_where_asked():
    texts = written(1)
    columns = HashedColumns(Grams(WORDS, 1, 1), 3)
    kept, left = (columns.tally(Part(0, texts), signed=True, keep=k) for k in (True, False))
    assert (kept.values == 0).any()
    without = kept.nonzero()
    for a, b in zip(vars(without).values(), vars(left).values(), strict=True):
        assert (a == b).all()
