"""Letters and their codes: case, unknown letters, strands, what is refused."""

import numpy as np
import pytest

from mercer.strings import Alphabet, Gapped, Sequences, Spectrum, Subsequence, WeightedDegree
from mercer.strings.alphabet import learn
from tests.strings.words import (
    gapped_words,
    gram,
    spectrum,
    strings,
    subsequences,
    weighted_degree,
)


def test_codes_follow_the_letters_and_65535_is_none():
    s = Alphabet.named("TGCA").encode(["ACGT", "", b"xA"])
    assert s.codes.tolist() == [3, 2, 1, 0, 65535, 3]
    assert s.offsets.tolist() == [0, 4, 4, 6]


@pytest.mark.parametrize(("name", "case", "same"), [
    ("dna", None, True), ("dna", "keep", False), ("ACGT", None, False), ("acgt", "fold", True),
])  # fmt: skip
def test_named_alphabets_fold_case(name, case, same):
    a = Alphabet.named(name, case)
    codes = a.encode(["acgt", "ACGT"]).codes.reshape(2, 4)
    assert np.array_equal(*codes) == same


def test_unknown_letters_are_skipped_or_one_letter_or_refused():
    X = ["ACNGT", "ACRGT"]
    skip, letter = (Spectrum(2, alphabet="dna", unknown=u)(X)[0, 1] for u in ("skip", "letter"))
    assert (skip, letter) == (2.0, 4.0)
    with pytest.raises(ValueError, match="'N' at place 2 of row 0"):
        Spectrum(2, alphabet="dna", unknown="raise")(X)


def test_other_letters_than_ascii_ones():
    X = ["naïve", "naïf", "Ωnaï"]
    assert Spectrum(3)(X)[0].tolist() == [3.0, 1.0, 1.0]
    assert learn([X], fold=True) == "AEFNVïΩ"
    assert np.array_equal(Spectrum(3)([x.encode() for x in X]), Spectrum(3)(X))


def test_too_many_letters():
    X = ["".join(map(chr, range(0x10000, 0x10000 + 65_535)))]
    with pytest.raises(ValueError, match="65,535 letters, and at most 65,534"):
        Spectrum(1)(X)
    with pytest.raises(ValueError, match="65,534 letters, and at most 65,533"):
        Spectrum(1, alphabet=X[0][1:], unknown="letter")
    assert Spectrum(1, alphabet=X[0][:900], unknown="letter")(["??"]).tolist() == [[4.0]]


def test_alphabets_of_thousands_of_letters():
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 5000)))
    some = many[:2] + many[254:258] + many[-2:]
    X = [*strings(0, 9, some, 12), many[3:9] * 2]
    even = [x.ljust(12, many[0]) for x in X]
    for k, K in (
        (Spectrum(2), spectrum(X, X, 2)),
        (Spectrum(6), spectrum(X, X, 6)),  # whose words do not fit 64 bits
        (Gapped(4, 2), gram(*[[gapped_words(x, 4, 2) for x in X]] * 2)),
        (Subsequence(2, 0.5), gram(*[[subsequences(x, 2, 0.5) for x in X]] * 2)),
    ):
        settled = k.set_params(alphabet=many)
        assert np.allclose(settled(X), K)
        assert np.allclose(settled.diag(X), np.diag(K))
    K = [[weighted_degree(x, z, 3, 1) for z in even] for x in even]
    assert np.allclose(WeightedDegree(3, 1, alphabet=many)(even), K)


@pytest.mark.parametrize(("settings", "said"), [
    (dict(alphabet="AAC"), "'A' twice"), (dict(alphabet="aA", case="fold"), "'A' twice"),
    (dict(alphabet=4), "alphabet must be"), (dict(case="lower"), "case must be"),
    (dict(unknown="drop"), "unknown must be"), (dict(strands=2), "strands must be"),
    (dict(alphabet="protein", strands="both"), "strands='both' needs"), (dict(k=0), "k must be"),
    (dict(alphabet="ACGTU", strands="both"), "needs letters in pairs, .* has 'T' beside 'U'"),
    (dict(alphabet="DNA"), "letters D, N, A; give 'dna' .* or 'ADN'"), (dict(alphabet="Protein"), "give 'protein'"),
])  # fmt: skip
def test_wrong_settings_are_named(settings, said):
    with pytest.raises(ValueError, match=said):
        Spectrum(**settings)


@pytest.mark.parametrize(("X", "said"), [
    (["ab", None], "row 1 is None"), (["ab", 3.0], "row 1 is 3.0"), ([b"\xff\xfe"], "no UTF-8"),
    ([["a", "b"]], "row 0 is"),
])  # fmt: skip
def test_what_is_no_string_is_named(X, said):
    with pytest.raises(ValueError, match=said):
        Spectrum(2)(X)


def test_rows_of_numbers_are_refused():
    with pytest.raises(ValueError, match="compares items, got rows of numbers"):
        Spectrum(2)([[1.0, 2.0]])


@pytest.mark.parametrize(("codes", "offsets", "size"), [
    ([0, 1], [0, 3], 2), ([0, 1], [1, 2], 2), ([0, 2], [0, 2], 2), ([0, 0, 0], [0, 2, 1, 3], 1),
    ([0], [0, 1], 65535), ([], [], 1),
])  # fmt: skip
def test_sequences_are_checked_where_they_are_made(codes, offsets, size):
    with pytest.raises(ValueError, match=r"offsets|codes"):
        Sequences(np.array(codes, np.uint16), np.array(offsets, np.int64), size)


def test_reverse_complements():
    a = Alphabet.named("dna", strands="both")
    s = a.encode(["AACGN", "", "T"])
    assert s.reversed(a.complement).codes.tolist() == [65535, 1, 2, 3, 3, 0]
    both = s.beside(s.reversed(a.complement))
    assert both.lengths.tolist() == [11, 1, 3]
    assert both.codes[-3:].tolist() == [3, 65535, 0]


def test_partners_of_lower_case_letters():
    assert Alphabet.named("acgu", strands="both").complement[:4].tolist() == [3, 2, 1, 0]
    assert Alphabet.named("acgt", strands="both").complement[:4].tolist() == [3, 2, 1, 0]
