"""Kernels of strings, trees and bags in every learner: with the answers of the Gram matrix, in
searches, pipelines, streams and files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline

import mercer
from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogistic,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    OneClassSVM,
)
from mercer.kernels import Gaussian
from mercer.lifts import Nystrom
from mercer.strings import Spectrum, SubTree

RNG = np.random.default_rng(0)
N = 36
STRINGS = ["".join(RNG.choice(list("ACGT"), RNG.integers(0, 12))) for _ in range(N - 2)]
STRINGS += [STRINGS[0], "AAAA"]
TREES = [
    ("S", ("A", str(a)), ("B", ("C", str(b)), str(c)))
    for a, b, c in RNG.choice(list("xyz"), (N, 3))
]
BRACKETS = [f"(S (A {t[1][1]}) (B (C {t[2][1][1]}) {t[2][2]}))" for t in TREES]
BAGS = [RNG.normal(size=(int(m), 2)) for m in RNG.integers(1, 5, N)]
STRING_BAGS = [STRINGS[i : i + 1 + i % 3] for i in range(N - 2)] + [[], ["ACGT"]]
ITEMS = {
    "strings": (Spectrum(2).normalized(), STRINGS),
    "trees": (SubTree().normalized() + 0.1, TREES),
    "bracketed": (2.0 * SubTree("subtree"), BRACKETS),
    "bags": (Gaussian(1.5).over_sets(), BAGS),
    "bags of strings": (Spectrum(2).over_sets("sum").normalized() ** 2, STRING_BAGS),
}
Y = np.array([np.sin(i) for i in range(N)])
TWO = (Y > 0).astype(int)
LEARNERS = {
    "ridge": (KernelRidge(alpha=0.1), Y),
    "svc": (KernelSVC(), TWO),
    "svr": (KernelSVR(), Y),
    "logistic": (KernelLogistic(), TWO),
    "gp": (GaussianProcessRegressor(noise=0.1), Y),
    "gp classifier": (GaussianProcessClassifier(fixed=True), TWO),
    "perceptron": (KernelPerceptron(), TWO),
    "one class": (OneClassSVM(), None),
    "clusters": (KernelKMeans(2, random_state=0), None),
    "components": (KernelPCA(2), None),
    "landmarks": (Nystrom(n_landmarks=N, random_state=0), None),
}


NO_GRAM = "logistic", "gp classifier"  # which want a kernel


def told(model, X):
    if isinstance(model, Nystrom):
        return (F := model.transform(X)) @ F.T
    ways = ("decision_function", "predict", "transform")
    return getattr(model, next(w for w in ways if hasattr(model, w)))(X)


SOME = [
    name if name in ("strings", "bags") else pytest.param(name, marks=pytest.mark.long)
    for name in ITEMS
]


@pytest.mark.parametrize("items", SOME)
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_answer_as_with_the_gram_matrix(name, items, tmp_path):
    (model, y), (k, X) = LEARNERS[name], ITEMS[items]
    y = None if y is None else y[:30]
    m = clone(model).set_params(kernel=k).fit(X[:30], y)
    found = told(m, X[30:])
    assert np.ptp(found) > 0 or isinstance(m, KernelKMeans)
    if name not in NO_GRAM:
        fixed = k.settled(mercer.inputs.Table(X[:30]))
        gram = clone(model).set_params(kernel="precomputed").fit(fixed(X[:30]), y)
        same = told(gram, fixed(X[30:], X[:30]))
        np.testing.assert_allclose(np.abs(found), np.abs(same), rtol=1e-5, atol=1e-5)
    m.save(tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(told(loaded, X[30:]), found)
    assert loaded.kernel_ == m.kernel_


def test_a_search_over_the_length_of_words():
    y = np.array(["AC" in s for s in STRINGS])
    found = GridSearchCV(
        KernelSVC(Spectrum(1)), {"kernel__k": [1, 2, 3], "C": [1.0]}, cv=3, error_score="raise"
    ).fit(STRINGS, y)
    assert found.best_params_["kernel__k"] == 2
    nested = GridSearchCV(
        KernelRidge(SubTree().normalized()), {"kernel__kernel__decay": [0.1, 0.9]}, cv=3
    ).fit(TREES, Y)
    assert nested.best_estimator_.kernel_.kernel.decay in (0.1, 0.9)


@pytest.mark.parametrize("items", SOME)
def test_pipelines(items):
    k, X = ITEMS[items]
    model = make_pipeline(Nystrom(k, 12, random_state=0), LogisticRegression())
    assert cross_val_predict(model, X, TWO, cv=3).shape == (N,)


FORMS = {
    "tuple": tuple,
    "array": np.array,
    "objects": lambda s: np.array(s, dtype=object),
    "bytes": lambda s: [w.encode() for w in s],
    "array of bytes": lambda s: np.array(s, dtype="S"),
    "series": pd.Series,
    "series of strings": lambda s: pd.Series(s, dtype="string", index=range(5, 5 + len(s))),
    "categories": lambda s: pd.Series(s, dtype="category"),
    "arrow": lambda s: pytest.importorskip("pyarrow").array(s),
    "arrow chunks": lambda s: pytest.importorskip("pyarrow").chunked_array([s[:5], s[5:]]),
    "polars": lambda s: pytest.importorskip("polars").Series(s),
    "one column": lambda s: np.array(s)[:, None],
    "frame": lambda s: pd.DataFrame({"s": s}),
    "arrow table": lambda s: pytest.importorskip("pyarrow").table({"s": s}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("items", ["strings", "bracketed"])
def test_strings_of_any_form(form, items):
    k, X = ITEMS[items]
    given = FORMS[form](X)
    np.testing.assert_array_equal(k(given), k(X))
    found = KernelSVC(k).fit(given, TWO).decision_function(given)
    np.testing.assert_array_equal(found, KernelSVC(k).fit(X, TWO).decision_function(X))


@pytest.mark.parametrize("items", ITEMS)
def test_streams(items):
    k, X = ITEMS[items]
    parts = [slice(0, 12), slice(12, 24), slice(24, N)]
    scan, ridge = KernelPerceptron(k), KernelRidge(k, alpha=0.1)
    for s in parts:
        scan.partial_fit(X[s], TWO[s], classes=[0, 1])
        ridge.partial_fit(X[s], Y[s])
    first = k.settled(mercer.inputs.Table(X[:12]))
    assert scan.kernel_ == ridge.kernel_ == first
    fixed = KernelRidge(first, alpha=0.1)
    for s in parts:
        fixed.partial_fit(X[s], Y[s])
    np.testing.assert_array_equal(ridge.predict(X), fixed.predict(X))
    assert np.ptp(ridge.predict(X)) > 0
    again = KernelPerceptron(first, shuffle=False, max_iter=1).fit(X, TWO)
    np.testing.assert_allclose(scan.decision_function(X), again.decision_function(X), rtol=1e-9)


def test_the_alphabet_of_a_stream_is_that_of_its_first_rows():
    scan = KernelPerceptron(Spectrum(2)).partial_fit(["AACC", "CCAA"], [0, 1])
    scan.partial_fit(["GGTT", "TTGG"], [0, 1])
    assert scan.kernel_ == Spectrum(2, alphabet="AC")
    with pytest.raises(ValueError, match="kernel changed in the middle of a stream"):
        scan.set_params(kernel=Spectrum(3)).partial_fit(["AA"], [0])


def test_a_gaussian_process_scales_the_members_of_bags():
    model = GaussianProcessRegressor(Gaussian(1.0).over_sets(), random_state=0)
    y = np.array([b.mean(0)[0] for b in BAGS])
    assert np.corrcoef(model.fit(BAGS, y).predict(BAGS), y)[0, 1] > 0.9


@pytest.mark.parametrize("levels", [30, 150, 3000])
def test_nested_trees_of_any_depth_in_files(levels, tmp_path):
    deep, lists = "x", ["T"]
    for i in range(levels):
        deep, lists = (str(i % 7), deep), [str(i % 5), lists, "y"]
    X = [deep, lists, ("0", "x"), ("1", "x")]
    model = KernelSVC(SubTree(decay=0.5).normalized()).fit(X, [0, 1, 0, 1])
    model.save(tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
