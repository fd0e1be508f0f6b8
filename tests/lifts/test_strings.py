"""Features of strings: exact rows, hashed ones in the mean, names."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from mercer import KernelRidge
from mercer.lifts import StringFeatures
from mercer.strings import Gapped, Mismatch, Spectrum, Subsequence, WeightedDegree
from tests.strings.words import strings

ANY = [*strings(0, 25, "ACGT", 14), "", "A", "ACGN"]
EVEN = strings(1, 25, "ACGT", 11, 11)
KERNELS = [
    Spectrum(3), Mismatch(3, 1), Mismatch(4, 2), Gapped(4, 2), Gapped(3, 0), Subsequence(3, 0.7),
    WeightedDegree(3), WeightedDegree(2, shift=3), WeightedDegree(4, shift=20),
]  # fmt: skip


def rows(k):
    return EVEN if isinstance(k, WeightedDegree) else ANY


@pytest.mark.parametrize("k", KERNELS, ids=repr)
@pytest.mark.parametrize("strands", ["one", "both"])
@pytest.mark.parametrize("unknown", ["skip", "letter"])
def test_the_kernel_is_the_product_of_features(k, strands, unknown):
    k = k.clone().set_params(alphabet="dna", strands=strands, unknown=unknown)
    X = rows(k)
    phi = k.lift()
    F = phi.fit(X[:5]).transform(X)
    assert F.shape[1] == phi.n_features_out_ == phi._layout.width
    assert F.has_canonical_format
    assert np.allclose((F @ F.T).toarray(), k(X), rtol=1e-12)
    names = phi.get_feature_names_out()
    assert len(set(names)) == F.shape[1]


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_hashed_rows_give_the_kernel_in_the_mean(k):
    X = rows(k)[:10]
    K = k(X)
    found = np.array([_product(k.lift(64, random_state=s).fit_transform(X)) for s in range(150)])
    error = np.abs(found.mean(0) - K)
    assert (error <= 5 * found.std(0) / np.sqrt(150) + 1e-9 * K.max()).all()
    assert np.array_equal(found[3], _product(k.lift(64, random_state=3).fit_transform(X)))


def _product(F):
    return (F @ F.T).toarray()


def test_names_are_words_with_gaps_and_places():
    assert Gapped(3, 1).lift().fit(["ab"]).get_feature_names_out()[:2].tolist() == ["aa.", "ab."]
    assert Subsequence(2).lift().fit(["ab"]).get_feature_names_out()[1] == "a..b"
    assert WeightedDegree(2).lift().fit(["aba"]).get_feature_names_out()[-1] == "bb at 1"
    assert Spectrum(1, unknown="letter").lift().fit(["ab"]).get_feature_names_out()[-1] == "?"


def test_names_of_hashed_columns():
    X = ["ACGACG", "ACGT", "TTTT"]
    k = Spectrum(3, alphabet="dna")
    phi = k.lift(4, keep_names=True).fit(X)
    found = [entry for c in range(4) for entry in phi.names(c)]
    assert {(w, n) for w, n, _ in found} == {
        ("ACG", 2),
        ("CGA", 1),
        ("GAC", 1),
        ("CGT", 1),
        ("TTT", 1),
    }
    assert phi.collisions_ > 0
    F, exact = phi.transform(["ACG"]).toarray()[0], {w: s for w, _, s in found}
    assert np.abs(F).sum() == 1
    assert F[np.argmax(np.abs(F))] == exact["ACG"]
    with pytest.raises(ValueError, match="were not kept"):
        k.lift(4).fit(X).names(0)
    others = k.lift(4).fit(X)
    assert [e for c in range(4) for e in others.names(c, texts=X)] == found
    assert k.lift().fit(X).names(0) == [("AAA", 0, 1)]
    with pytest.raises(ValueError, match="column 4 is out of range"):
        phi.names(4)


def test_a_linear_model_over_features_is_the_kernel_machine():
    y = np.array([x.count("CG") for x in ANY], float)
    k = Gapped(3, 1, alphabet="dna")
    over = make_pipeline(k.lift(), KernelRidge("linear")).fit(ANY, y)
    assert np.allclose(over.predict(ANY), KernelRidge(k).fit(ANY, y).predict(ANY), atol=1e-6)


@pytest.mark.parametrize(("make", "said"), [
    (lambda: Spectrum(40, alphabet="dna").lift().fit(["A"]), "give n_features"),
    (lambda: Spectrum(40, alphabet="dna").lift(8).fit(["A"]), "62 bits"),
    (lambda: Spectrum(2).lift(0).fit(["A"]), "n_features must be"),
    (lambda: StringFeatures("spectrum").fit(["A"]), "kernel of strings"),
    (lambda: Spectrum(2).lift().fit([[1.0]]), "must list strings"),
    (lambda: WeightedDegree(2).lift().fit(["AC"]).transform(["A"]), "one length, 2 letters in fit"),
    (lambda: Subsequence(9, alphabet="protein").lift().fit(["A"]), "smaller p"),
    (lambda: Spectrum(2).lift().fit(["AC"]).transform([None]), "row 0 is None"),
])  # fmt: skip
def test_bad_input_is_a_sentence(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_it_is_a_transformer():
    phi = Spectrum(2).lift(16, keep_names=True)
    assert clone(phi).get_params()["kernel__k"] == 2
    F = phi.fit(ANY).transform(ANY)
    assert abs(F - clone(phi).fit_transform(ANY)).nnz == 0
    many = ANY * 20
    assert abs(phi.transform(many)[: len(ANY)] - F).nnz == 0


def test_strings_without_letters_have_no_places():
    with pytest.raises(ValueError, match="no features of strings without letters"):
        StringFeatures(WeightedDegree(2, alphabet="dna")).fit(["", ""])


def test_weights_of_words_are_held_a_few_strings_at_a_time(monkeypatch):
    k = Subsequence(3, 0.7, alphabet="dna", strands="both")
    whole = StringFeatures(k).fit_transform(ANY)
    monkeypatch.setattr("mercer.strings.subsequence.MOST_HELD", 200)  # 3 strings
    assert (StringFeatures(k).fit_transform(ANY) != whole).nnz == 0
