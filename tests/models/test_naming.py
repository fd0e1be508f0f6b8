"""Coefficients by name: the strongest, signed, of every learner."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from mercer import KernelLogistic, KernelRidge, KernelSVC, NGrams, Perceptron, methods
from mercer.lifts import HashedFeatures, Identity
from mercer.models.naming import strongest

TEXTS = [f"{a} film with {b}" for a in ("good", "bad") for b in ("songs", "cars", "a dog", "kings")]
LABELS = np.array(["fine"] * 4 + ["poor"] * 4)


@pytest.mark.parametrize(
    "model", [KernelSVC("linear", via="features"), KernelLogistic("linear"), Perceptron()]
)
def test_words_of_two_classes(model):
    words = CountVectorizer()
    m = model.fit(words.fit_transform(TEXTS).astype(float), LABELS)
    for names in (words, words.get_feature_names_out(), list(words.get_feature_names_out())):
        found = m.coef_by_name(names, top=2)
        assert list(found) == ["poor"]
        assert {name: weight > 0 for name, weight in found["poor"]} == {"bad": True, "good": False}


def test_classes_outputs_and_ways_of_naming():
    X = sp.random(60, 40, 0.1, "csr", random_state=0)
    y = np.arange(60) % 3
    m = KernelLogistic("linear").fit(X, y)
    every = m.coef_by_name()
    assert list(every) == [0, 1, 2]
    for k, pairs in every.items():
        weights = np.array([w for _, w in pairs])
        assert (np.diff(np.abs(weights)) <= 0).all()
        assert all(m.coef_[k, int(name[1:])] == w for name, w in pairs)
    assert m.coef_by_name(lambda j: f"n{j}", top=1)[0][0][0].startswith("n")
    assert m.coef_by_name({}, top=3) == m.coef_by_name(top=3)
    ridge = KernelRidge("linear").fit(X, np.stack([y, -y], axis=1))
    named = ridge.coef_by_name(top=4)
    assert [n for n, _ in named[0]] == [n for n, _ in named[1]]
    np.testing.assert_allclose([w for _, w in named[0]], [-w for _, w in named[1]])
    assert list(KernelRidge("linear").fit(X, y).coef_by_name(top=1)) == [0]


def test_names_of_columns_and_of_other_maps():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"])
    m = KernelLogistic("poly", via=methods.Exact()).fit(frame, frame["a"] > 0)
    assert "a" in dict(m.coef_by_name()[True])


def test_refusals_and_ties():
    coef = np.array([[1.0, -1.0, 0.0, 1.0]])
    assert strongest(coef, ["y"], Identity(), None, 2) == {"y": [("x0", 1.0), ("x1", -1.0)]}
    with pytest.raises(ValueError, match="names must be 4 names"):
        strongest(coef, ["y"], Identity(), ["a"], None)
    with pytest.raises(ValueError, match="top must be"):
        strongest(coef, ["y"], Identity(), None, 0)
    with pytest.raises(AttributeError, match="dual_coef_"):
        KernelSVC("rbf").fit([[0.0], [1.0]], [0, 1]).coef_by_name()


@pytest.mark.parametrize("settings", [{}, {"weight": "tfidf"}, {"vocabulary": "learn"}], ids=str)
@pytest.mark.parametrize("n_features", [2**20, 16])
def test_signs_of_hashed_words_are_taken_out(settings, n_features):
    """A word that was hashed with -1 has the sign of what it tells, not of its column."""
    colours = ["red", "green", "blue", "black", "white", "brown", "grey", "pink", "gold", "plum"]
    texts = [f"{a} {b} thing" for a in colours for b in colours]
    y = np.array([sum(c in t.split() for c in colours[:5]) >= 2 for t in texts])
    hashed = "vocabulary" not in settings
    phi = NGrams(words=(1, 1), n_features=n_features, keep_names=hashed, **settings)
    m = KernelLogistic("linear", 0.1).fit(phi.fit_transform(texts), y)
    found = dict(m.coef_by_name(phi)[True])
    if n_features > 16 or not hashed:
        assert all((found[c] > 0) == (c in colours[:5]) for c in colours)
        signs = {phi.names(j)[0][2] for j in phi.transform(texts).indices}
        assert signs == ({-1, 1} if hashed else {1})
    else:
        assert any(" | " in name for name in found)


def test_names_of_hashed_rows():
    rows = [{"city": c, "age": float(i)} for i, c in enumerate(["Oslo", "Rome"] * 20)]
    phi = HashedFeatures(2**16)
    m = KernelLogistic("linear", 0.01).fit(phi.fit_transform(rows), ["n", "s"] * 20)
    found = dict(m.coef_by_name(phi)["s"])
    assert found["city=Rome"] > 0 > found["city=Oslo"]
