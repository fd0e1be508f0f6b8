"""Letters and their codes: case, unknown letters, strands, what is refused."""

import numpy as np
import pytest

from mercer.strings import Alphabet, Sequences, Spectrum
from mercer.strings.alphabet import learn


def test_codes_follow_the_letters_and_255_is_none():
    s = Alphabet.named("TGCA").encode(["ACGT", "", b"xA"])
    assert s.codes.tolist() == [3, 2, 1, 0, 255, 3]
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
    X = ["".join(map(chr, range(0x4E00, 0x4E00 + 300)))]
    with pytest.raises(ValueError, match="300 letters, and at most 254"):
        Spectrum(1)(X)
    with pytest.raises(ValueError, match="254 letters, and at most 253"):
        Spectrum(1, alphabet=X[0][:254], unknown="letter")
    assert Spectrum(1, alphabet=X[0][:253], unknown="letter")(["??"]).tolist() == [[4.0]]


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
    ([0], [0, 1], 255), ([], [], 1),
])  # fmt: skip
def test_sequences_are_checked_where_they_are_made(codes, offsets, size):
    with pytest.raises(ValueError, match=r"offsets|codes"):
        Sequences(np.array(codes, np.uint8), np.array(offsets, np.int64), size)


def test_reverse_complements():
    a = Alphabet.named("dna", strands="both")
    s = a.encode(["AACGN", "", "T"])
    assert s.reversed(a.complement).codes.tolist() == [255, 1, 2, 3, 3, 0]
    both = s.beside(s.reversed(a.complement))
    assert both.lengths.tolist() == [11, 1, 3]
    assert both.codes[-3:].tolist() == [3, 255, 0]


def test_partners_of_lower_case_letters():
    assert Alphabet.named("acgu", strands="both").complement[:4].tolist() == [3, 2, 1, 0]
    assert Alphabet.named("acgt", strands="both").complement[:4].tolist() == [3, 2, 1, 0]
