"""Tokens are scikit-learn's, whatever the characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from mercer.text import reference
from mercer.text.documents import Part
from mercer.text.grams import Grams
from mercer.text.tokens import CHARS, WITHIN, WORDS, tokens

ANALYZERS = {WORDS: "word", CHARS: "char", WITHIN: "char_wb"}
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TRICKY = "aAbZ_09²½①Ⅷ \t\n\x1c\x85\xa0\u200b\u0301\u00adéÉßİıΣσςΟΔΑẞǅȺⱥKÅ नस्ते हि中文\U0001f600\U00010400\U0001d7ce.-'"
TEXT = st.one_of(
    st.text(st.sampled_from(TRICKY), max_size=40),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)


def spelled(texts, unit, lowercase=True):
    """The normal text of every document."""
    t = tokens(Part(0, texts), unit, lowercase)
    return [bytes(t.text[t.starts[a] : t.starts[b]]).decode() for a, b in zip(t.docs, t.docs[1:], strict=False)]  # fmt: skip


def expected(texts):
    analyse = CountVectorizer().build_analyzer()
    return ["".join(f"{word} " for word in analyse(text)) for text in texts]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cafe\u0301", "cafe"),
        ("नमस्ते", "नमस"),
        ("हिन्दी", ""),
        ("中文字", "中文字"),
        ("é éé", "éé"),
        ("İstanbul", "stanbul"),
        ("ΟΔΟΣ ΟΔΟΣΑ Σ", "οδος οδοσα"),
        ("x² ½ ①② Ⅷ_", "x² ①② ⅷ_"),
        ("don't a\u00adbc a\u200dbc", "don bc bc"),
        ("nul\x00inside", "nul inside"),
        ("ȺB \u212aX", "ⱥb kx"),
        ("", ""),
    ],
)
def test_words_of_the_issue(text, words):
    assert spelled([text], WORDS) == expected([text]) == ["".join(f"{w} " for w in words.split())]


@pytest.mark.parametrize("around", ["{}", "a{}b", "ab{}cd", "Σ{}", "Α{}Σ"])
def test_characters_alone_and_between_letters(around):
    some = [c for c in POINTS if c < 0x600 or c % 97 == 0]
    texts = [around.format(chr(c)) for c in some]
    assert spelled(texts, WORDS) == expected(texts)
    assert spelled(texts, CHARS) == [text.lower() for text in texts]


@pytest.mark.long
@pytest.mark.parametrize("around", ["{}", "a{}b", "ab{}cd", "Α{}Σ"])
def test_every_character_alone_and_between_letters(around):
    texts = [around.format(chr(c)) for c in POINTS]
    assert spelled(texts, WORDS) == expected(texts)
    assert spelled(texts, CHARS) == [text.lower() for text in texts]


@pytest.mark.parametrize("lowercase", [True, False])
@given(texts=st.lists(TEXT, max_size=5))
def test_documents_of_any_characters(lowercase, texts):
    analyse = CountVectorizer(lowercase=lowercase).build_analyzer()
    assert [s.split(" ")[:-1] for s in spelled(texts, WORDS, lowercase)] == [
        analyse(text) for text in texts
    ]
    plain = [text.lower() if lowercase else text for text in texts]
    squeezed = [CountVectorizer._white_spaces.sub(" ", text) for text in plain]
    assert spelled(texts, CHARS, lowercase) == squeezed
    within = spelled(texts, WITHIN, lowercase)
    assert within == ["".join(f"{word} " for word in text.split()) for text in plain]


@pytest.mark.parametrize("unit", [WORDS, CHARS, WITHIN])
@given(text=TEXT, least=st.integers(1, 4), more=st.integers(0, 3))
def test_the_plain_reference_has_the_ngrams_of_scikit_learn(unit, text, least, more):
    orders = (least, least + more)
    theirs = CountVectorizer(analyzer=ANALYZERS[unit], ngram_range=orders).build_analyzer()
    assert sorted(reference.ngrams(text, Grams(unit, *orders))) == sorted(theirs(text))
