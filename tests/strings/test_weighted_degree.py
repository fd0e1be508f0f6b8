"""Words at the same place against their definition, shifts, and the proof of these."""

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.strings import WeightedDegree
from tests.strings.words import reverse_complement, strings, weighted_degree


def brute(X, Z, d, shift):
    return np.array([[weighted_degree(x, z, d, shift) for z in Z] for x in X])


@pytest.mark.parametrize("length", [1, 7, 63, 64, 65, 130])
@pytest.mark.parametrize(("d", "shift"), [(1, 0), (3, 0), (5, 2), (2, 9)])
def test_against_the_definition(length, d, shift):
    X = [*strings(length, 6, "abcde", length, length), "a" * length, "ab" * length]
    X = [x[:length] for x in X]
    k, K = WeightedDegree(d, shift), brute(X, X, d, shift)
    assert np.allclose(k(X), K, rtol=1e-13)
    assert np.allclose(k(X[:3], X[2:]), K[:3, 2:], rtol=1e-13)
    assert np.allclose(k.diag(X), np.diag(K), rtol=1e-13)
    assert np.linalg.eigvalsh(k(X))[0] > -1e-9 * K.max()


def test_one_letter_counts_those_that_agree():
    X = strings(0, 20, "ACGT", 50, 50)
    same = [[sum(a == b for a, b in zip(x, z, strict=True)) for z in X] for x in X]
    assert np.array_equal(WeightedDegree(1)(X), same)


def test_unknown_letters_agree_with_nothing():
    k = WeightedDegree(2, alphabet="dna")
    assert k(["ACNT"]).item() == pytest.approx(brute(["ACxT"], ["ACyT"], 2, 0).item())
    assert WeightedDegree(2, alphabet="dna", unknown="letter")(
        ["ACNT"], ["ACRT"]
    ).item() == pytest.approx(4 * 2 / 3 + 3 / 3)


def test_both_strands():
    X = strings(2, 9, "ACGT", 12, 12)
    R = [reverse_complement(x) for x in X]
    one, both = (WeightedDegree(3, 2, alphabet="dna", strands=s) for s in ("one", "both"))
    K = one(X) + one(R) + one(X, R) + one(R, X)
    assert np.allclose(both(X), K)
    assert np.allclose(both(R, X), K)
    assert np.allclose(both.diag(R), np.diag(K))


def test_unequal_lengths_are_a_sentence():
    k = WeightedDegree(2)
    with pytest.raises(
        ValueError, match="strings of one length, but one of X has 2 letters and another 3"
    ):
        k(["ab", "abc"])
    with pytest.raises(ValueError, match="strings of one length, got 2 and 3"):
        k(["ab"], ["abc"])
    m = KernelRidge(k).fit(["ab", "ba"], [0.0, 1.0])
    with pytest.raises(ValueError, match="strings of one length"):
        m.predict(["abc"])


def test_the_proof_speaks_of_shifts():
    assert WeightedDegree(3).proof()
    proof = WeightedDegree(3, shift=4).proof()
    assert proof
    assert "Rogosinski" in str(proof)
    with pytest.raises(ValueError, match="shift must be an integer >= 0"):
        WeightedDegree(3, shift=-1)


def test_the_weights_of_shifts_are_no_free_choice():
    """Equal weights of shifts would be no kernel: what the proof says of other weights."""
    T = np.array([[float(abs(i - j) <= 1) for j in range(9)] for i in range(9)])
    assert np.linalg.eigvalsh(T)[0] < -0.5
