"""Vocabularies are those of CountVectorizer and TfidfVectorizer: columns, names, counts and weights."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from mercer.invariants import Broken
from mercer.text import rows, trie, vocabulary
from mercer.text.documents import Part
from mercer.text.grams import Grams
from mercer.text.ngrams import NGrams
from mercer.text.tokens import CHARS, WITHIN, WORDS, tokens
from tests.text.test_hashing import UNITS, ours, written
from tests.text.test_tokens import ANALYZERS, TEXT

ORDERS = [(1, 1), (1, 2), (2, 4), (4, 6)]


def assert_close(X, Y, tolerance=0.0):
    Y = Y.sorted_indices()
    assert X.shape == Y.shape
    assert (X.indptr == Y.indptr).all()
    assert (X.indices == Y.indices).all()
    assert np.abs(X.data - Y.data).max(initial=0) <= tolerance


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("unit", UNITS)
def test_counts_and_names_are_those_of_scikit_learn(unit, orders):
    texts, more = written(1), written(2)
    theirs = CountVectorizer(analyzer=ANALYZERS[unit], ngram_range=orders)
    phi = ours(unit, orders, vocabulary="learn", norm=None)
    assert_close(phi.fit_transform(texts), theirs.fit_transform(texts))
    assert phi.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert_close(phi.transform(more), theirs.transform(more))
    assert phi.vocabulary_ == theirs.vocabulary_


@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.parametrize("unit", UNITS)
def test_tfidf_is_that_of_scikit_learn(unit, sublinear):
    texts, more = written(3), written(4)
    theirs = TfidfVectorizer(analyzer=ANALYZERS[unit], ngram_range=(1, 3), sublinear_tf=sublinear)
    phi = ours(unit, (1, 3), vocabulary="learn", weight="tfidf", sublinear=sublinear)
    assert_close(phi.fit_transform(texts), theirs.fit_transform(texts), 1e-12)
    assert_close(phi.transform(more), theirs.transform(more), 1e-12)
    assert np.abs(phi.idf_ - theirs.idf_).max() <= 1e-12


@pytest.mark.parametrize("weight", ["count", "binary", "tfidf"])
@pytest.mark.parametrize(
    "limits",
    [
        {"min_df": 2},
        {"min_df": 0.1, "max_df": 0.5},
        {"max_df": 4},
        {"max_features": 7},
        {"max_features": 40, "min_df": 2},
        {"min_df": 1.0},
        {"max_features": 10**6},
    ],
)
def test_what_is_left_out_is_what_scikit_learn_leaves_out(weight, limits):
    texts = [*written(5), *["both both ab"] * 3] if limits != {"min_df": 1.0} else ["ab cd", "ab"]
    if weight == "tfidf":
        theirs = TfidfVectorizer(ngram_range=(1, 2), **limits)
    else:
        theirs = CountVectorizer(ngram_range=(1, 2), binary=weight == "binary", **limits)
    phi = NGrams(vocabulary="learn", weight=weight, norm="l2" if weight == "tfidf" else None, **limits)  # fmt: skip
    assert_close(phi.fit_transform(texts), theirs.fit_transform(texts), 1e-12)
    assert phi.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert_close(phi.transform(written(6)), theirs.transform(written(6)), 1e-12)


@pytest.mark.parametrize("unit", UNITS)
@given(texts=st.lists(TEXT, min_size=1, max_size=5), least=st.integers(1, 3))
def test_any_documents_have_the_ngrams_of_scikit_learn(unit, texts, least):
    theirs = CountVectorizer(analyzer=ANALYZERS[unit], ngram_range=(least, least + 1))
    phi = ours(unit, (least, least + 1), vocabulary="learn", norm=None)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(ValueError, match=r"no n-gram is left .* give documents with words"):
            phi.fit(texts)
        return
    assert_close(phi.fit_transform(texts), expected)
    assert phi.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    "given_",
    [
        ["to be", "be", "or not", "never there", "a-b"],
        {"be": 1, "to": 2, "to be": 0},
        {"to", "be or"},
        np.array(["be", "to"]),
    ],
)
def test_a_given_vocabulary_is_kept(given_):
    texts = ["to be or not to be", "nothing", "to to"]
    theirs = CountVectorizer(ngram_range=(1, 2), vocabulary=given_)
    phi = NGrams(vocabulary=given_, norm=None)
    assert_close(phi.transform(texts), theirs.fit_transform(texts))
    assert phi.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


@pytest.mark.parametrize("unit", [CHARS, WITHIN])
def test_characters_may_be_given(unit):
    given_ = ["ab", "b c", "é", " a", "中", "İ"]
    texts = ["ab  c É", "中ab"]
    theirs = CountVectorizer(analyzer=ANALYZERS[unit], ngram_range=(1, 3), vocabulary=given_, lowercase=False)  # fmt: skip
    phi = ours(unit, (1, 3), vocabulary=given_, norm=None, lowercase=False)
    assert_close(phi.transform(texts), theirs.fit_transform(texts))


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ([], "has 0, 0 distinct"),
        (["a", "a"], "has 2, 1 distinct"),
        (["a", ""], "has ''"),
        (["a", 3], "has 3"),
        (["a", "\ud800"], "has .*, which no UTF-8 can hold"),
        ({"a": 0, "b": 2}, "columns 0 to 1"),
        ({"a": 0, "b": 0}, "columns 0 to 1"),
        ({"a": 0.5, "b": 1}, "columns 0 to 1"),
        ("words", "must be None, 'learn', a list"),
        (7, "must be None, 'learn', a list"),
    ],
)
def test_vocabularies_that_are_none_are_refused(given_, said):
    with pytest.raises(ValueError, match=said):
        NGrams(vocabulary=given_).fit(["a"])


@pytest.mark.parametrize("texts", [[], [""], ["", " . "], ["a b c"]])
def test_nothing_to_learn_is_said(texts):
    with pytest.raises(ValueError, match=r"no n-gram is left|there are none"):
        NGrams(vocabulary="learn").fit(texts)


@pytest.mark.parametrize("limits", [{"min_df": 2}, {"min_df": 2, "max_df": 1}])
def test_limits_that_leave_nothing_are_said(limits):
    phi = NGrams(vocabulary="learn", **limits)
    for call in (phi.fit, phi.fit_transform, phi.partial_fit(["ab cd"]).transform):
        with pytest.raises(ValueError, match=r"no n-gram is left to be a column, of . that came"):
            call(["ab cd", "ef gh"])


def test_what_is_rare_at_first_may_become_frequent():
    phi = NGrams(vocabulary="learn", min_df=2, norm=None).partial_fit(["ab cd"]).partial_fit(["ab"])
    assert phi.transform(["ab ab cd"]).toarray().tolist() == [[2.0]]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("room", [1, 5, 100])
def test_rows_that_do_not_fit_at_once_are_whole(monkeypatch, unit, room):
    texts = [*written(7, 8), "", "ab " * 300]
    phi = ours(unit, (1, 3), vocabulary="learn", norm=None)
    whole = phi.fit_transform(texts)
    monkeypatch.setattr(rows, "ROOM", room)
    assert_close(phi.fit_transform(texts), whole)
    assert_close(phi.transform(texts), whole)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("seed", range(3))
def test_tries_of_parts_are_the_trie_of_all(unit, seed):
    texts = written(seed, 20)
    grown = [trie.grown(tokens(Part(0, t), unit, True), unit, (1, 3)).trie for t in (texts[:5], texts[5:6], texts[6:])]  # fmt: skip
    all_of_them, places = trie.joined(grown)
    whole, _ = trie.joined([trie.grown(tokens(Part(0, texts), unit, True), unit, (1, 3)).trie])
    again, same = trie.joined([all_of_them])
    assert (same[0] == np.arange(len(whole))).all()
    for other in (whole, again, pickle.loads(pickle.dumps(whole))):
        assert all((a == b).all() for a, b in zip(all_of_them.__reduce__()[1], other.__reduce__()[1], strict=True))  # fmt: skip
    between = " " if unit == WORDS else ""
    names = np.array(all_of_them.names(between), object)
    for part, at in zip(grown, places, strict=True):
        assert names[at].tolist() == part.names(between)
    columns, width = all_of_them.columns(np.ones(len(names), np.int32))
    assert width == len(names)
    assert names[np.argsort(columns)].tolist() == sorted(names)


def test_words_whose_first_eight_bytes_agree_are_in_order():
    rng = np.random.default_rng(0)
    words = [
        "prefixes" + "".join(rng.choice(list("abé中"), rng.integers(0, 6))) for _ in range(300)
    ]
    phi = NGrams(words=(1, 1), vocabulary="learn").fit(words)
    assert phi.get_feature_names_out().tolist() == sorted(set(words))


def test_what_is_cut_keeps_its_columns():
    texts = written(8)
    v = NGrams(words=(2, 3), vocabulary="learn", min_df=3).fit(texts).fitted_.blocks[0]
    whole = NGrams(words=(2, 3), vocabulary="learn", min_df=3).partial_fit(texts).fitted_.blocks[0]
    assert whole.whole
    assert not v.whole
    assert len(v.trie) < len(whole.trie)
    assert v.names() == whole.names()
    assert (v.by_column() == whole.by_column()).all()


@pytest.mark.parametrize(
    "change",
    [
        {"columns": np.array([0, 0], np.int32)},
        {"columns": np.array([0, 2], np.int32)},
        {"columns": np.array([0], np.int32), "width": 1},
        {"width": 3},
        {"documents": np.zeros((1, 3), np.int64)},
    ],
)
def test_vocabularies_of_files_are_looked_at(change):
    v = vocabulary.given(Grams(WORDS, 1, 2), ["ab", "cd"])
    fields = {"grams": v.grams, "trie": v.trie, "columns": v.columns, "width": v.width} | change
    with pytest.raises(Broken):
        vocabulary.Vocabulary(**fields)


@pytest.mark.parametrize(
    "change",
    [
        {"prefixes": np.array([0], np.int32)},
        {"prefixes": np.array([-4], np.int32)},
        {"symbols": np.array([3], np.int32)},
        {"offsets": np.array([0, 2, 1, 4])},
        {"offsets": np.array([0, 2, 3, 40])},
        {"text": np.zeros(3, np.uint8)},
    ],
)
def test_tries_of_files_are_looked_at(change):
    fields = {
        "text": np.zeros(10, np.uint8),
        "offsets": np.array([0, 2, 4, 6]),
        "prefixes": np.array([-3], np.int32),
        "symbols": np.array([2], np.int32),
    }
    trie.Trie(**fields)
    with pytest.raises(Broken):
        trie.Trie(**(fields | change))
