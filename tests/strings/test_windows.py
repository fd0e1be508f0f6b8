"""Kernels of windows against brute force over all words; their three ways one against another."""

import itertools

import numpy as np
import pytest

from mercer.ops import windows as loops
from mercer.strings import Gapped, Mismatch, Spectrum
from mercer.strings.profile import Profile
from mercer.strings.window_engine import EXACT_IN_SINGLE, WindowEngine
from tests.strings.words import (
    differ,
    gapped_words,
    gram,
    near_words,
    reverse_complement,
    spectrum,
    strings,
)

SHORT = [*strings(0, 12, "abc", 9), "", "a", "aaaaaaaaaaaa", "abcabcabc", "abcabcabc"]


def ways(k, X, Z=None):
    """The values by each way, and the diagonal by each."""
    x = k.read(X)
    z = x if Z is None else k.read(Z)
    e = k.engine(k.letters)
    return {w: getattr(e, f"_{w}")(x, z) for w in ("counts", "words", "pairs")}


@pytest.mark.parametrize(("k", "m"), [(1, 0), (2, 1), (3, 1), (4, 2), (4, 3), (5, 0)])
def test_against_all_words(k, m):
    near = [near_words(s, k, m, "abc") for s in SHORT]
    gaps = [gapped_words(s, k, m) for s in SHORT]
    for kernel, features in (
        (Mismatch(k, m, alphabet="abc"), near),
        (Gapped(k, m, alphabet="abc"), gaps),
    ):
        K = gram(features, features)
        for way, found in ways(kernel, SHORT).items():
            assert np.array_equal(found, K), way
        assert np.array_equal(kernel(SHORT), K)
        assert np.array_equal(kernel.diag(SHORT), np.diag(K))
        assert np.array_equal(kernel(SHORT[:5], SHORT[3:]), K[:5, 3:])


def test_without_mismatches_all_three_are_the_spectrum():
    K = spectrum(SHORT, SHORT, 3)
    for k in (Spectrum(3), Mismatch(3, 0), Gapped(3, 0)):
        assert np.array_equal(k(SHORT), K)


@pytest.mark.parametrize("letters", [1, 2, 4, 20])
def test_profiles_count_words_near_both(letters):
    alphabet = "ACDEFGHIKLMNPQRSTVWY"[:letters]
    k, m = (2, 1) if letters == 20 else (4, 2)
    words = ["".join(w) for w in itertools.product(alphabet, repeat=k)]
    profile = Profile.mismatch(k, m, letters)
    for h in range(k + 1 if letters > 1 else 1):
        a, b = alphabet[0] * k, alphabet[-1] * h + alphabet[0] * (k - h)
        both = sum(differ(u, a) <= m and differ(u, b) <= m for u in words)
        assert profile.weights[h] == both
        told = sum(
            c * len(list(itertools.combinations(range(k - h), j)))
            for j, c in profile.agreeing.items()
        )
        assert told == both


@pytest.mark.parametrize("seed", range(6))
def test_the_three_ways_agree(seed):
    rng = np.random.default_rng(seed)
    letters = "ACDEFGHIKLMNPQRSTVWY"[: rng.integers(1, 21)]
    X, Z = (strings(seed + i, rng.integers(1, 40), letters, 30) for i in (10, 20))
    g = int(rng.integers(1, 4))
    for k in (Gapped(g, g - 1, alphabet=letters), Mismatch(g, min(1, g - 1), alphabet=letters)):
        counts, words, pairs = ways(k, X, Z).values()
        assert np.array_equal(words, counts)
        assert np.array_equal(pairs, counts)
        x = k.read(X)
        by_words = np.zeros(len(X))
        for j, a in Profile(k.engine(k.letters).profile.weights).agreeing.items():
            part = np.zeros(len(X))
            loops.add_own(x.all.loop, x.engine.profile.places(j), x.all.shape(j), part)
            by_words += a * part
        assert np.array_equal(by_words, x.own)
        assert np.array_equal(x.own, np.diag(ways(k, X)["pairs"]))


@pytest.mark.parametrize("mask", [(1 << 64) - 1, 7, 0])
def test_words_beyond_64_bits_are_confirmed(mask):
    """Also where all hashes collide."""
    core = strings(1, 1, "ACGT", 60, 60)[0]
    X = [core, core[3:] + "ACG", core[:30] + "A" + core[31:], "T" * 70, "T" * 68 + "GA", core * 2]
    e = WindowEngine(Spectrum(40, alphabet="dna").letters, Profile.spectrum(40), mask=mask)
    x = e.side(e.letters.encode(X))
    K = spectrum(X, X, 40)
    assert np.array_equal(e._words(x, x), K)
    own = np.zeros(len(X))
    loops.add_own(x.all.loop, e.profile.places(40), x.all.shape(40, mask), own)
    assert np.array_equal(own, np.diag(K))
    assert np.array_equal(e._pairs(x, x), K)


def test_counts_stay_exact_beyond_float32():
    X = ["A" * 4501, "A" * 4097 + "C"]
    k = Spectrum(1, alphabet="dna")
    assert k(X)[0, 0] == 4501.0**2 > EXACT_IN_SINGLE
    for k in (Gapped(3, 1, alphabet="dna"), Mismatch(3, 1, alphabet="dna")):
        counts, words, pairs = ways(k, X).values()
        assert np.array_equal(counts, words)
        assert np.array_equal(counts, pairs)


def test_both_strands():
    X = strings(3, 15, "ACGT", 14)
    R = [reverse_complement(x) for x in X]
    for k in (Spectrum(3), Mismatch(3, 1), Gapped(4, 2)):
        one, both = (k.clone().set_params(alphabet="dna", strands=s) for s in ("one", "both"))
        K = both(X)
        assert np.array_equal(K, one(X) + one(R) + one(X, R) + one(R, X))
        assert np.array_equal(both(X, R), K)
        assert np.array_equal(both(R), K)
        assert np.array_equal(both.diag(X), np.diag(K))
        for found in ways(both, X).values():
            assert np.array_equal(found, K)


def test_long_words_and_short_strings_are_worth_nothing():
    K = Spectrum(50).normalized()(["abc", "", "abd"])
    assert K.tolist() == [[0.0] * 3] * 3
    assert np.allclose(
        Gapped(3, 1).normalized()(["abc", "", "abc"]), [[1, 0, 1], [0, 0, 0], [1, 0, 1]]
    )


@pytest.mark.parametrize(("make", "said"), [
    (lambda: Mismatch(3, 3), "m must be below k"), (lambda: Gapped(2, 5), "m must be below g"),
    (lambda: Gapped(0, 0), "g must be an integer >= 1"), (lambda: Mismatch(3, -1), "m must be an integer >= 0"),
])  # fmt: skip
def test_wrong_windows_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_windows_of_a_thousand_letters():
    x = "ACGT" * 300
    n = [sum(i % 4 == r for i in range(len(x) - 999)) for r in range(4)]
    X = [x, x[:1000] + "T" * 200, "ACGT"]
    own = float(sum(a * a for a in n))
    for k in (
        Spectrum(1000, alphabet="dna"),
        Mismatch(1000, 0, alphabet="dna"),
        Gapped(1000, 0, alphabet="dna"),
    ):
        assert k(X)[0].tolist() == [own, n[0], 0.0]
        assert k.diag(X)[[0, 2]].tolist() == [own, 0.0]
    near = Mismatch(700, 1, alphabet="dna")(["ACGT" * 175])
    assert near.tolist() == [[1.0 + 3 * 700]]
    assert Spectrum(100_000)(["abc", "a"]).tolist() == [[0.0] * 2] * 2


def test_more_words_than_floats_are_a_sentence():
    for k in (Gapped(2000, 1000), Mismatch(2000, 900, alphabet="dna")):
        with pytest.raises(ValueError, match="windows of 2000 letters share more words"):
            k(["ACGT" * 600])


def test_a_plan_names_its_way():
    assert Spectrum(1, alphabet="dna").plan(["ACGT" * 40] * 3).way == "counts"
    plan = Gapped(10, 4, alphabet="dna").plan(["ACGT" * 25] * 300)
    assert plan.way == "words"
    assert "210 choices" in plan.why
    assert Mismatch(9, 4, alphabet="ab" * 1).plan(["ab" * 6] * 9).rejected


@pytest.mark.parametrize("quarter", [25_000, pytest.param(2_500_000, marks=pytest.mark.long)])
def test_a_very_long_string(quarter):
    x = "ACGT" * quarter
    for g in (6, 12):
        times = [len(range(i, 4 * quarter - g + 1, 4)) for i in range(4)]
        found = Spectrum(g, alphabet="dna")([x, x[:99]])[0, 1]
        assert found == sum(a * len(range(i, 99 - g + 1, 4)) for i, a in enumerate(times))
