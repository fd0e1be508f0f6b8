import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from mercer import store
from mercer.tables.encoders import APART, TextEncoder, from_state
from mercer.tables.scale import Standardizer
from mercer.tables.texts import (
    LONGEST,
    LinearScores,
    TextScores,
    TextScoresEncoder,
    documents,
    scored_classes,
)
from mercer.text.ngrams import NGrams

SIZES = TextEncoder(None, Standardizer(), Standardizer())
CELLS = pa.array(["good film", "bad film", None, "", "good good book", "good film"])


def scores(c: int = 1, ratios: bool = False, seed: int = 0) -> TextScores:
    lift = NGrams(words=(1, 2), n_features=64, norm=None).fit(documents(CELLS))
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(64, c)).astype(np.float32)
    r = rng.normal(size=64).astype(np.float32) if ratios else None
    return TextScores((lift,), LinearScores(coef, rng.normal(size=c), r))


def test_documents_are_whole_and_never_missing():
    found = documents(pa.chunked_array([[" a ", None], ["x" * (LONGEST + 9)]]))
    assert found.null_count == 0
    assert [len(t) for t in found.to_pylist()] == [1, 0, LONGEST]


@pytest.mark.parametrize(
    ("counts", "codes"),
    [((3, 9), (1,)), ((3, 9, 5), (0, 1, 2)), (tuple(range(40)), tuple(range(8, 40)))],
)
def test_scored_classes_are_the_frequent_ones(counts, codes):
    assert scored_classes(counts) == codes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_linear_in_the_rows_or_in_their_directions(dtype):
    rng = np.random.default_rng(1)
    X = sp.random_array((9, 30), density=0.3, random_state=rng, dtype=dtype, format="csr")
    X.data[:] = 1
    W, b, r = rng.normal(size=(30, 2)).astype(np.float32), rng.normal(size=2), rng.normal(size=30)
    dense = X.toarray().astype(np.float64)
    assert LinearScores(W, b)(X) == pytest.approx(dense @ W + b, abs=1e-5)
    found = LinearScores(W, b, r.astype(np.float32))(X)
    weighed = dense * r
    size = np.linalg.norm(weighed, axis=1, keepdims=True)
    assert found == pytest.approx(weighed @ W / np.where(size > 0, size, 1) + b, abs=1e-5)


def test_standardised_scores():
    X, f = sp.csr_array(np.eye(3)), LinearScores(np.ones((3, 2), np.float32), np.arange(2.0))
    made = f.standardised(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    assert made(X) == pytest.approx((f(X) - [1, 2]) / [2, 4])


@pytest.mark.parametrize("ratios", [False, True])
def test_every_document_has_its_score_whatever_the_batch(ratios):
    model, cells = scores(2, ratios), documents(CELLS)
    whole = model(cells)
    one_by_one = np.concatenate([model(cells.slice(i, 1)) for i in range(len(cells))])
    assert np.array_equal(whole, one_by_one)
    assert np.array_equal(whole[2], whole[3])  # missing is an empty document
    assert whole[3] == pytest.approx(model.linear.intercept)
    assert np.array_equal(whole[0], whole[5])
    assert not np.array_equal(whole[0], whole[1])


def test_model_and_encoder_survive_a_file(tmp_path):
    made = scores(1, True)
    store.save(made, tmp_path / "scores", kind="text scores")
    back = store.load(tmp_path / "scores")
    assert np.array_equal(back(documents(CELLS)), made(documents(CELLS)))
    e = TextScoresEncoder(SIZES, ("yes",), True, made)
    again = from_state(e.state())
    assert np.array_equal(again.features(again.read(CELLS)[0]), e.features(e.read(CELLS)[0]))


def test_scores_that_do_not_fit_their_columns_are_refused():
    good = scores()
    with pytest.raises(ValueError, match="coefficients"):
        TextScores(good.lifts, LinearScores(np.ones((63, 1), np.float32), np.zeros(1)))
    with pytest.raises(ValueError, match="NGrams"):
        TextScores(("words",), good.linear)
    with pytest.raises(ValueError, match="not finite"):
        LinearScores(np.full((4, 1), np.nan, np.float32), np.zeros(1))
    with pytest.raises(ValueError, match="each of its 2 outputs"):
        TextScoresEncoder(SIZES, ("a", "b"), scores=good)
    with pytest.raises(ValueError, match="each of its 1 outputs"):
        TextScoresEncoder(SIZES, ("a",), scores="words")


def test_features_are_sizes_the_indicator_and_the_scores():
    made = scores(2)
    e = TextScoresEncoder(SIZES, ("a", "b"), True, made)
    values, unread = e.read(CELLS)
    X = e.features(values)
    assert unread == 0
    assert e.names("t") == ("t length", "t words", "t missing", "t score of a", "t score of b")
    assert X.shape == (6, 5)
    assert X[:, 2].tolist() == [0, 0, APART, APART, 0, 0]  # an empty cell is a missing one
    assert np.array_equal(X[:, 3:], made(documents(CELLS)))
    assert TextScoresEncoder(SIZES, ("target",)).names("t")[-1] == "t score"


@pytest.mark.parametrize("c", [1, 2, 5])
def test_until_scores_are_known_equal_documents_are_equal_and_others_are_not(c):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["up", "down", "left"], 9)) for _ in range(200)]
    e = TextScoresEncoder(SIZES, tuple("abcde"[:c]))
    X = e.features(e.read(pa.array(texts + texts))[0]).astype(np.float32)
    assert np.isfinite(X).all()
    assert np.array_equal(X[:200], X[200:])
    assert len(np.unique(X[:200, e.n_sizes], axis=0)) == len(set(texts))
