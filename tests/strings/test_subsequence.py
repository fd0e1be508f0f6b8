"""Subsequences against enumeration: all words, dynamic programming, slopes by the decay."""

import numpy as np
import pytest

from mercer import GaussianProcessRegressor
from mercer.models.gp.hyperparameters import HyperparameterSpec
from mercer.models.gp.space import space
from mercer.strings import Subsequence
from tests.strings.words import gram, reverse_complement, strings, subsequences

X = [*strings(0, 9, "abc", 8), "", "a", "aaaaaaa", "abcab", "abcab"]


def brute(p, decay, A=X, B=X):
    return gram(*([subsequences(s, p, decay) for s in S] for S in (A, B)))


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("decay", [1.0, 0.6, 0.05])
def test_both_ways_against_enumeration(p, decay):
    k = Subsequence(p, decay, alphabet="abc")
    x, e, K = k.read(X), k.engine(k.letters), brute(p, decay)
    F, dF = x.features
    values, slopes = e.by_pairs(x, x)
    for found in (F @ F.T, values, k(X)):
        assert np.allclose(found, K, rtol=1e-12, atol=1e-300)
    assert np.allclose(k.diag(X), np.diag(K), rtol=1e-12)
    h = 1e-6
    central = (brute(p, decay + h) - brute(p, decay - h)) / (2 * h)
    for found in (dF @ F.T + F @ dF.T, slopes):
        assert np.allclose(found, central, rtol=1e-6, atol=1e-8)
    assert np.allclose(k.own_slopes(x)["decay"], np.diag(central), rtol=1e-6, atol=1e-8)


def test_unknown_letters_are_spanned():
    k = Subsequence(2, 0.5, alphabet="ab")
    assert k(["axb"], ["ab"]).item() == 0.5 ** (3 + 2)
    x = k.read(["axb", "ab"])
    assert k.engine(k.letters).by_pairs(x, x)[0][0, 1] == 0.5**5


def test_long_subsequences_go_pair_by_pair():
    k = Subsequence(9, 0.8)
    assert k.plan(["abcdefghijklm"]).way == "pairs"
    assert np.allclose(
        k(["abcdefghijklm", "abcdefghij"]), brute(9, 0.8, *[["abcdefghijklm", "abcdefghij"]] * 2)
    )
    assert np.allclose(k.diag(["abcdefghijklm"]), brute(9, 0.8, *[["abcdefghijklm"]] * 2)[0])


def test_both_strands():
    D = strings(1, 8, "ACGT", 9)
    R = [reverse_complement(s) for s in D]
    for p in (2, 8):  # by words, and by pairs
        one, both = (Subsequence(p, 0.7, alphabet="dna", strands=s) for s in ("one", "both"))
        K = one(D) + one(R) + one(D, R) + one(R, D)
        assert np.allclose(both(D), K)
        assert np.allclose(both(R, D), K)
        assert np.allclose(both.diag(D), np.diag(K))


@pytest.mark.parametrize("make", [
    lambda k: k, lambda k: 2.0 * k.normalized() + 1, lambda k: (k * k + 0.5) ** 2,
])  # fmt: skip
def test_slopes_through_the_algebra(make):
    G = np.random.default_rng(0).normal(size=(len(X), len(X)))
    k = make(Subsequence(2, 0.6, alphabet="abc"))
    at = list(k.parameters())
    found = k.gradient(X, G)
    op = k.operator(X).pullback(G, np.eye(len(X)))
    assert np.allclose(op, found)
    for i, path in enumerate(at):
        h = 1e-6
        up, down = (
            k.clone().set_params(**{path: k.parameters()[path] + s * h})(X) for s in (1, -1)
        )
        assert np.isclose(found[i], np.sum(G * (up - down)) / (2 * h), rtol=1e-5, atol=1e-7)


def test_a_process_learns_the_decay():
    T = strings(5, 30, "ab", 9, 4)
    y = np.array([sum(subsequences(t, 2, 0.9).get(u, 0) for u in ("ab",)) for t in T])
    m = GaussianProcessRegressor(Subsequence(2, 0.3), random_state=0).fit(T, y)
    k = m.kernel_.kernel  # behind a scale
    assert k.alphabet == "ab"
    assert 0.5 < k.decay <= 1


def test_a_search_ends_at_a_decay_of_one():
    k = (2.0 * Subsequence(2, 0.3)).normalized() + Subsequence(3, 0.2)
    told = HyperparameterSpec(bounds={"terms__1__decay": (0.01, 7.0)})
    s = space(k, told, None)
    logs = dict(zip(s.names, np.append(s.upper, 0.0)[s.group], strict=True))
    assert logs["terms__0__kernel__kernel__decay"] == logs["terms__1__decay"] == 0


def test_subsequences_longer_than_all_strings():
    k = Subsequence(1_000_000, 0.5)
    assert k(["abc", "ab"]).tolist() == [[0.0] * 2] * 2
    assert k.normalized()(["abc", ""]).tolist() == [[0.0] * 2] * 2


@pytest.mark.parametrize(("settings", "said"), [
    (dict(decay=0.0), "decay must be"), (dict(decay=1.5), "decay must be above 0 and at most 1"),
    (dict(p=0), "p must be an integer >= 1"), (dict(decay="a"), "decay must be"),
])  # fmt: skip
def test_wrong_settings_are_named(settings, said):
    with pytest.raises(ValueError, match=said):
        Subsequence(**settings)
