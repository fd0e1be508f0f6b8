"""Blocks of features side by side: a sum of kernels whose weights are chosen on rows left out."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelLogistic, KernelRidge, NGrams, load
from mercer.models.blocks import WeightedUnion

WORDS = np.array(["red", "green", "blue", "grey", "pink", "teal", "gold", "plum"])


def table(n=300, seed=0, text=2.0, number=0.0):
    """Rows of words, of which eight may tell the target, and two numbers, of which one may."""
    rng = np.random.default_rng(seed)
    there = rng.random((n, 8)) < 0.4
    noise = rng.integers(0, 400, size=(n, 20))
    texts = [
        " ".join([*WORDS[r], *map("w{}".format, k)]) for r, k in zip(there, noise, strict=True)
    ]
    X = pd.DataFrame({"words": texts})
    X["a"], X["b"] = 1e6 + rng.normal(size=n), 1e-6 * rng.normal(size=n)
    score = text * (there @ np.array([1, -1, 1, -1, 0, 0, 0, 0])) + number * (X["a"] - 1e6)
    return X, score.to_numpy(), (score + rng.logistic(size=n) > 0).to_numpy().astype(int)


def blocks(weight="count"):
    return [
        ("text", NGrams(words=(1, 1), weight=weight, n_features=2**10), "words"),
        ("numbers", StandardScaler(), ["a", "b"]),
    ]


def test_equal_weights_are_a_sum_of_kernels_of_mean_one():
    X, _, y = table()
    phi = WeightedUnion(blocks(), weights={"text": 2.0, "numbers": 0.5})
    F = phi.fit_transform(X, y)
    text, numbers = (
        NGrams(words=(1, 1), n_features=2**10).transform(X["words"]),
        StandardScaler().fit_transform(X[["a", "b"]]),
    )
    K = 4 * (text @ text.T).toarray() + 0.25 * numbers @ numbers.T / 2
    np.testing.assert_allclose((F @ F.T).toarray(), K, atol=1e-9)
    assert sp.issparse(F)
    assert F.has_canonical_format
    np.testing.assert_allclose(phi.transform(X[:5]).toarray(), F[:5].toarray())


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize(("text", "number", "wins"), [(2.0, 0.0, "text"), (0.0, 2.0, "numbers")])
def test_the_block_that_tells_more_weighs_more(kind, text, number, wins):
    X, score, labels = table(500, 1, text, number)
    phi = WeightedUnion(blocks(), random_state=0).fit(X, labels if kind == "classes" else score)
    ratio = phi.weights_["numbers"] / phi.weights_["text"]
    assert ratio < 0.5 if wins == "text" else ratio >= 2
    losses = dict(phi.losses_)
    assert min(losses.values()) == losses[(1.0, phi.weights_["numbers"])]


def test_chosen_weights_do_better_on_new_rows_than_equal_ones():
    X, _, y = table(500, 2, 0.0, 2.0)
    new, _, truth = table(2000, 3, 0.0, 2.0)
    learnt, equal = (
        make_pipeline(WeightedUnion(blocks(), weights=w, random_state=0), KernelLogistic("linear"))
        .fit(X, y)
        .predict_proba(new)[np.arange(2000), truth]
        for w in ("learn", "equal")
    )
    assert np.log(learnt).mean() > np.log(equal).mean()


def test_weights_that_learn_from_targets_give_nothing_away():
    """Ratios of classes fitted to all rows would make the text look best where it tells nothing."""
    rng = np.random.default_rng(0)
    X, _, _ = table(300)
    X["words"] = [f"w{i} v{i}" for i in range(300)]
    y = (X["a"] + 0.5 * rng.normal(size=300) > 1e6).to_numpy()
    phi = WeightedUnion(blocks("ratio"), random_state=0).fit(X, y)
    assert phi.weights_["numbers"] > 1


def test_several_blocks_names_clones_and_seeds():
    X, _, y = table()
    three = [*blocks(), ("raw", "passthrough", ["b"])]
    phi = WeightedUnion(three, random_state=3)
    a, b = phi.fit_transform(X, y), clone(phi).fit_transform(X, y)
    assert (a != b).nnz == 0
    assert len(phi.get_feature_names_out()) == a.shape[1]
    assert phi.get_feature_names_out()[-1] == "raw__b"
    assert phi.set_params(weights="equal").fit(X).weights_ == {"text": 1, "numbers": 1, "raw": 1}


def test_dense_blocks_stay_dense_and_rare_classes_pass():
    X, _, y = table(40)
    y[:] = 0
    y[0] = 1
    dense = [("a", StandardScaler(), ["a"]), ("b", StandardScaler(), ["b"])]
    phi = WeightedUnion(dense, random_state=0)
    with pytest.raises(ValueError, match="1 class"):
        phi.fit(X, np.zeros(40, int))
    assert phi.fit(X, y).weights_["a"] == 1
    F = WeightedUnion(dense, "equal").fit_transform(X, y)
    assert isinstance(F, np.ndarray)
    constant = pd.DataFrame({"a": np.ones(40), "b": np.arange(40.0)})
    assert np.isfinite(
        WeightedUnion(dense, random_state=0).fit_transform(constant, constant["b"].to_numpy() + 0.5)
    ).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(weights="best"), "weights must be 'learn', 'equal' or a number"),
        (dict(weights={"text": 1.0}), "a number for each of text, numbers"),
        (dict(weights={"text": -1.0, "numbers": 1.0}), "numbers >= 0"),
        (dict(weights={"text": 0.0, "numbers": 0.0}), "not all 0"),
        (dict(weights={"text": "1", "numbers": 1.0}), "weights must be numbers"),
        (dict(cv=1), "cv"),
        (dict(transformers=[]), "names that differ"),
        (dict(transformers=[("a", "passthrough", ["a"])] * 2), "names that differ"),
        (dict(transformers=["text"]), "in a list"),
    ],
)
def test_what_is_wrong_is_said(options, match):
    X, _, y = table(30)
    with pytest.raises(ValueError, match=match):
        WeightedUnion(**(dict(transformers=blocks()) | options)).fit(X, y)
    with pytest.raises(ValueError, match="needs y"):
        WeightedUnion(blocks()).fit(X)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda y: y[:20], r"each of the 30 rows, but has shape \(20,\)"),
        (lambda y: np.concatenate([y, y]), r"each of the 30 rows, but has shape \(60,\)"),
        (lambda y: np.stack([y, y], 1), "give a vector"),
        (lambda y: np.where(np.arange(30) == 7, np.nan, y), "y is nan in row 7"),
    ],
)
def test_targets_are_one_number_or_class_a_row(change, match):
    X, _, y = table(30)
    with pytest.raises(ValueError, match=match):
        WeightedUnion(blocks(), random_state=0).fit(X, change(y))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sizes_", {"text": 1.0}),
        ("sizes_", {"text": 0.0, "raw": 1.0}),
        ("weights_", {"text": 1.0, "other": 1.0}),
        ("weights_", {"text": np.nan, "raw": 1.0}),
    ],
)
def test_files_that_lack_a_size_or_weight_are_refused(name, value, tmp_path):
    X, _, y = table(30)
    two = [blocks()[0], ("raw", "passthrough", ["a"])]
    phi = WeightedUnion(two, "equal").fit(X, y)
    phi.save(tmp_path / "good.mercer")
    assert (load(tmp_path / "good.mercer").transform(X) != phi.transform(X)).nnz == 0
    setattr(phi, name, value)
    with pytest.raises(ValueError, match=r"(sizes or weights|fitted blocks)"):
        phi.save(tmp_path / "bad.mercer")


def test_ridge_takes_the_blocks_as_they_are():
    X, score, _ = table(200, 5, 1.0, 1.0)
    m = make_pipeline(WeightedUnion(blocks(), random_state=0), KernelRidge("linear", 0.01)).fit(
        X, score
    )
    assert m.score(X, score) > 0.95
