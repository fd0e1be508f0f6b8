"""Features of bags: kernel = inner products of means of features."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from mercer import lifts
from mercer.kernels import Gaussian, Polynomial
from mercer.lifts import Nystrom, OverSetsLift
from mercer.strings import Spectrum, SubTree


def bags(seed=0, n=30, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(int(m), 2)).astype(dtype) for m in rng.integers(0, 9, n)]


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_features_of_bags_are_those_of_the_kernel(how):
    X, k = bags(), Polynomial(2).over_sets(how)
    phi = k.lift().fit(X)
    F = phi.transform(X)
    assert isinstance(phi, OverSetsLift)
    assert phi.kernel_ == k
    np.testing.assert_allclose(F @ F.T, k(X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(phi.transform(X[:3]), F[:3], rtol=1e-12)


def test_random_features_of_bags_have_the_kernel_as_their_mean():
    X, k = bags(n=8), Gaussian().over_sets()
    K = [F @ F.T for s in range(30) for F in [k.lift(200, random_state=s).fit_transform(X)]]
    np.testing.assert_allclose(np.mean(K, 0), k(X), atol=0.02)


def test_pieces_of_members_add_up(monkeypatch):
    X = bags()
    whole = OverSetsLift(lifts.Monomials(2)).fit_transform(X)
    monkeypatch.setattr("mercer.lifts.bags.PIECE", 5)
    np.testing.assert_allclose(OverSetsLift(lifts.Monomials(2)).fit_transform(X), whole, rtol=1e-12)


def test_float32_stays():
    X = bags(dtype=np.float32)
    assert Gaussian().over_sets().lift(20).fit_transform(X).dtype == np.float32


def test_members_may_be_items():
    X = [["(S a)", "(S (B b))"], [], ["(S (B b) (B a))"]]
    k = SubTree(decay=0.5)
    F = OverSetsLift(Nystrom(k, 10)).fit_transform(X)
    np.testing.assert_allclose(F @ F.T, k.over_sets()(X), atol=1e-10)


def test_words_of_bags_of_strings():
    X = [["ACG", "CGT"], ["AAA"], []]
    k = Spectrum(2).over_sets("sum")
    phi = k.lift().fit(X)
    F = phi.transform(X)
    assert F.format == "csr"
    assert phi.kernel_ == Spectrum(2, alphabet="ACGT").over_sets("sum")
    np.testing.assert_allclose((F @ F.T).toarray(), k(X), rtol=1e-12)
    named = dict(zip(phi.get_feature_names_out(), F.toarray()[0], strict=True))
    assert {n: v for n, v in named.items() if v} == {"AC": 1, "CG": 2, "GT": 1}


def test_a_pipeline_learns_from_bags():
    X = bags(n=60)
    y = np.array([x.mean(0)[0] ** 2 if len(x) else 0.0 for x in X])
    model = make_pipeline(Polynomial(4).over_sets().lift(), Ridge(1e-6)).fit(X[:40], y[:40])
    assert model.predict(X[40:]).shape == (20,)


def test_what_is_no_list_of_bags():
    with pytest.raises(ValueError, match="it is a table of numbers"):
        OverSetsLift(lifts.Monomials(2)).fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="no bag with a member"):
        OverSetsLift(lifts.Monomials(2)).fit([np.zeros((0, 2))])
    with pytest.raises(ValueError, match="how must be 'mean' or 'sum', got 'max'"):
        OverSetsLift(lifts.Monomials(2), "max").fit(bags())


@pytest.mark.parametrize("k", [SubTree(), 2.0 * Gaussian().over_sets(), Spectrum(2) + 1.0])
def test_kernels_of_items_without_features_name_landmarks(k):
    items = ["(S a)", "(S b)"] if "SubTree" in repr(k) else [[[1.0], [2.0]]]
    items = ["AC", "GT"] if "Spectrum" in repr(k) else items
    with pytest.raises(ValueError, match="other than by landmarks; use Nystrom"):
        k.lift(10).fit(items)
