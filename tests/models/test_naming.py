"""Coefficients by name: the strongest, signed, of every learner."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from mercer import KernelLogistic, KernelRidge, KernelSVC, Perceptron, methods
from mercer.lifts import Identity
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
