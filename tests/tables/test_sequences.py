"""Words of sequences against a plain count, and what is a sequence."""

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest

from mercer.strings import Spectrum
from mercer.tables.sequences import SequenceWords, alphabet_of, common_length

PAIR = dict(zip("ACGT", "TGCA", strict=True))
RNG = np.random.default_rng(0)
DNA = ["".join(RNG.choice(list("ACGT"), n)) for n in (9, 9, 30, 1, 2)]
DNA += ["", "NNNN", "acgtNacgt", DNA[0], "AAAAAAAA"]


def counted(sequence, f):
    """How often each named word of a map occurs, by a look at every place."""
    found = {}
    sides = [sequence.upper()]
    if f.both:
        sides.append("".join(PAIR.get(c, "N") for c in reversed(sides[0])))
    for text in sides:
        for k in f.lengths:
            patterns = combinations(range(k), k - f.gaps)
            for pattern, at in product(list(patterns), range(len(text) - k + 1)):
                window = text[at : at + k]
                word = "".join(c if i in pattern else "." for i, c in enumerate(window))
                if set(word) <= set("ACGT."):
                    name = word.strip(".") if f.gaps else word
                    name += f" at {at + 1}" if f.places else ""
                    key = (k, pattern, name)
                    found[key] = found.get(key, 0) + 1
    return found


MAPS = [
    SequenceWords("dna", (1, 3)),
    SequenceWords("dna", (2,)),
    SequenceWords("dna", (4,), gaps=2),
    SequenceWords("dna", (1, 2), places=9),
    SequenceWords("dna", (3,), both=True),
]


@pytest.mark.parametrize("f", MAPS, ids=str)
def test_words_are_counted_and_named(f):
    X = f.transform(pa.array(DNA)).toarray()
    assert X.shape == (len(DNA), f.n_features_out_)
    assert X.dtype == np.float32
    for row, text in zip(X, DNA, strict=True):
        found = counted(text, f)
        if f.places:  # words beyond the last place have none
            found = {k: v for k, v in found.items() if int(k[2].split(" at ")[1]) <= f.places}
        names = sorted(f.name(j) for j in np.flatnonzero(row))
        assert names == sorted(name for _, _, name in found)
        size = np.linalg.norm(row)
        assert size == pytest.approx(1.0 if found else 0.0, abs=1e-5)
        if len(f.lengths) == 1 and found:
            counts = sorted(found.values())
            values = np.sort(row[row > 0])
            np.testing.assert_allclose(values, counts / np.linalg.norm(counts), rtol=1e-5)


def test_all_columns_have_names_of_their_own():
    for f in MAPS[:2] + MAPS[3:]:
        assert len({f.name(j) for j in range(f.n_features_out_)}) == f.n_features_out_


def test_words_of_one_length_are_a_normalised_spectrum():
    X = SequenceWords("dna", (3,)).transform(DNA)
    K = Spectrum(3, alphabet="dna").normalized()(DNA)
    np.testing.assert_allclose((X @ X.T).toarray(), K, atol=1e-5)


def test_parts_of_sequences_are_as_the_whole(monkeypatch):
    f = SequenceWords("dna", (1, 2), places=30)
    whole = f.transform(DNA).toarray()
    monkeypatch.setattr("mercer.tables.sequences.PART_LETTERS", 12)
    assert (f.transform(DNA).toarray() == whole).all()
    assert f.transform([]).shape == (0, f.n_features_out_)


def test_both_strands_do_not_differ():
    f = SequenceWords("dna", (3, 4), both=True)
    turned = ["".join(PAIR[c] for c in reversed(s)) for s in DNA[:3]]
    np.testing.assert_allclose(
        f.transform(DNA[:3]).toarray(), f.transform(turned).toarray(), rtol=1e-6
    )


@pytest.mark.parametrize(
    "wrong",
    [
        dict(alphabet="letters", lengths=(2,)),
        dict(alphabet="dna", lengths=()),
        dict(alphabet="dna", lengths=(0,)),
        dict(alphabet="dna", lengths=(2, 3), gaps=1),
        dict(alphabet="dna", lengths=(2,), gaps=2),
        dict(alphabet="dna", lengths=(2,), places=-1),
        dict(alphabet="protein", lengths=(9,)),
    ],
    ids=str,
)
def test_what_no_file_may_hold(wrong):
    with pytest.raises(ValueError, match="SequenceWords"):
        SequenceWords(**wrong)


def proteins(n=50):
    return ["".join(RNG.choice(list("ACDEFGHIKLMNPQRSTVWY"), 60)) for _ in range(n)]


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["ACGTACGTACGT", None, "acgtnnacgtacgtacgtacgtacgtacgtacgtacgtacgtacgt"], "dna"),
        (["GGGCUUAACGUA", "GGGCUAACGUAC"], "rna"),
        (["NNNNNNNNACGTACGTACGTTGCA", "ACGTTGCATTGCANNNN"], "dna"),  # masked
        (["..ACGTACGT--ACGTTGCA", "ACGTT--GCATTGCA.."], "dna"),  # aligned
        ([None] * 2500 + ["ACGTACGTACGT"], "dna"),
        (["NNNNNNNNNNNNNNNNNNNNNACGT"] * 3, None),
        ([p + "X" * 9 for p in proteins()], "protein"),
        (proteins(), "protein"),
        ([p + "xX*" for p in proteins()], "protein"),
        ([p.lower() for p in proteins()], None),  # a text may be that
        (["a cat", "gat"], None),
        (["ACG", "TTT", "GAT"], None),  # too short
        (["AAAAAAAAAAAAAAAA"] * 5, None),
        (["ACGT1ACGTACGT", "ACGTACGTACGT"], None),
        (["ACGTÄACGTACGT"] * 3, None),
        (["THE SMALL CAT SAT ON A MAT AND A RED HAT"] * 5, None),
        (["INTERNATIONALIZATION", "UNCOMMUNICATIVENESS"], None),
        ([None, None], None),
        ([], None),
    ],
)
def test_what_is_a_sequence(cells, found):
    assert alphabet_of(pa.array(cells, pa.string())) == found


def test_a_common_length_is_that_of_nearly_all():
    assert common_length(pa.array(["ACGT"] * 99 + ["AC"])) == 4
    assert common_length(pa.array(["ACGT"] * 9 + ["AC"])) == 0
    assert common_length(pa.array(["", ""])) == 0


def test_words_in_regions_are_sums_of_words_at_places():
    rng = np.random.default_rng(3)
    cells = ["".join(rng.choice(list("ACGTN"), n)) for n in (0, 1, 20, 31, 40, 40)]
    first, places, wide = 5, 23, 7
    found = SequenceWords("dna", (2,), places=places, first=first, wide=wide)
    assert found.n_features_out_ == 4 * 16
    got = found.transform(cells).toarray()
    want = np.zeros_like(got)
    for row, cell in enumerate(cells):
        for at in range(first, min(first + places, len(cell) - 1)):
            word = cell[at : at + 2]
            if "N" not in word:
                code = 4 * "ACGT".index(word[0]) + "ACGT".index(word[1])
                want[row, (at - first) // wide * 16 + code] += 1
    sizes = np.linalg.norm(want, axis=1, keepdims=True)
    np.testing.assert_allclose(got, want / np.where(sizes > 0, sizes, 1), atol=1e-6)
    assert found.name(16 + 6) == "CG at 13 to 19"
    assert found.name(3 * 16) == "AA at 27 to 28"
