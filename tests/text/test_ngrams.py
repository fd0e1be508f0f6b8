"""NGrams: streamed, batch and merged are one; threads change no bit; settings and files."""

import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.utils import get_tags

import mercer
from mercer.ops.threads import limit
from mercer.text import fitted
from mercer.text.ngrams import NGrams
from tests.text.test_hashing import UNITS, assert_same, ours, written
from tests.text.test_vocabulary import assert_close

LEARNING = {
    "hashed tfidf": dict(weight="tfidf", n_features=500),
    "hashed ratio": dict(weight="ratio", n_features=500),
    "names": dict(keep_names=True, n_features=500),
    "learnt": dict(vocabulary="learn"),
    "learnt tfidf": dict(vocabulary="learn", weight="tfidf", min_df=2),
    "learnt ratio": dict(vocabulary="learn", weight="ratio", max_features=50),
    "given tfidf": dict(vocabulary=["ab", "中"], weight="tfidf"),
}


def labels(texts):
    return np.array(["no", "yes"])[[sum(map(ord, t)) % 2 for t in texts]]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", sorted(LEARNING))
def test_streamed_batch_and_merged_are_one(monkeypatch, unit, name):
    monkeypatch.setattr(fitted, "PART_BYTES", 100)
    monkeypatch.setattr(fitted, "LEARN_BYTES", 150)
    texts = written(11, 25)
    y = labels(texts)
    phi = ours(unit, (1, 3), **LEARNING[name])
    whole = clone(phi).fit_transform(texts, y)
    assert_same(clone(phi).fit((t for t in texts), y).transform(t for t in texts), whole)
    streamed, parts = clone(phi), []
    for rows in (slice(0, 3), slice(3, 4), slice(4, 25)):
        streamed.partial_fit(texts[rows], y[rows], classes=["yes", "no"])
        parts.append(clone(phi).partial_fit(texts[rows], y[rows], classes=["yes", "no"]))
    merged = parts[2].merge(parts[0]).merge(parts[1])
    for other in (streamed, merged):
        assert_same(other.transform(texts), whole)
        assert other.get_feature_names_out().tolist() == streamed.get_feature_names_out().tolist()
    if name == "names":
        assert [streamed.names(j) for j in range(500)] == [merged.names(j) for j in range(500)]


@pytest.mark.parametrize("name", ["plain", *sorted(LEARNING)])
def test_threads_change_no_bit(monkeypatch, name):
    monkeypatch.setattr(fitted, "PART_BYTES", 64)
    monkeypatch.setattr(fitted, "LEARN_BYTES", 64)
    texts = written(12, 60)
    phi = NGrams(**LEARNING.get(name, {}))
    found = []
    for threads in (1, 2, 7):
        with limit(threads):
            a = clone(phi)
            found.append((a.fit_transform(texts, labels(texts)), a.transform(texts)))
    for F, G in found[1:]:
        assert_same(F, found[0][0])
        assert_same(G, found[0][1])


@pytest.mark.parametrize("sublinear", [True, False])
def test_hashed_tfidf_is_that_of_scikit_learn(sublinear):
    texts, more = written(13), written(14)
    unsigned = dict(ngram_range=(1, 2), norm=None, n_features=300)
    theirs = TfidfTransformer().fit(HashingVectorizer(**unsigned).transform(texts))
    phi = NGrams(weight="tfidf", n_features=300).fit(texts)
    assert np.abs(phi.idf_ - theirs.idf_).max() <= 1e-12
    Y = theirs.transform(HashingVectorizer(**unsigned).transform(more))
    Y.eliminate_zeros()
    assert_close(phi.transform(more), Y, 1e-12)
    counts = HashingVectorizer(**unsigned).transform(more)
    X = NGrams(n_features=300, norm=None, sublinear=sublinear).transform(more)
    v = np.abs(X.data)
    counts.eliminate_zeros()
    expected = np.sign(counts.data) * (1 + np.log(np.abs(counts.data)) if sublinear else v)
    assert np.allclose(X.data, expected, rtol=1e-14)


def test_ratios_are_those_of_the_formula():
    texts = ["good good film", "good plot", "bad film", "bad bad bad", "film"]
    y = [1, 1, 0, 0, 0]
    phi = NGrams(words=(1, 1), vocabulary="learn", weight="ratio", norm=None)
    X = phi.fit_transform(texts, y)
    assert phi.get_feature_names_out().tolist() == ["bad", "film", "good", "plot"]
    p, q = np.array([0, 1, 2, 1]) + 1.0, np.array([2, 2, 0, 0]) + 1.0
    expected = np.log(p / p.sum()) - np.log(q / q.sum())
    assert np.allclose(phi.ratio_, expected, rtol=1e-14)
    present = np.array([[0, 1, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    assert np.allclose(X.toarray(), present * expected, rtol=1e-14)
    unit = clone(phi).set_params(norm="l2").fit_transform(texts, y)
    assert np.allclose((unit.multiply(unit)).sum(1), 1)


def test_words_and_characters_are_side_by_side():
    texts = written(15)
    for options in (dict(n_features=100), dict(vocabulary="learn", weight="tfidf")):
        both = NGrams(words=(1, 2), chars=(2, 3), **options)
        parts = [("w", NGrams(words=(1, 2), **options)), ("c", NGrams(chars=(2, 3), **options))]
        union = FeatureUnion(parts).fit(texts)
        X = both.fit_transform(texts)
        assert_close(X, sp.csr_matrix(union.transform(texts)))
        assert X.has_canonical_format
        names = both.get_feature_names_out()
        assert len(set(names)) == len(names) == X.shape[1] == both.n_features_out_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_of_the_dtype_asked_for(dtype):
    texts = written(16)
    X = NGrams(weight="tfidf", dtype=dtype).fit_transform(texts)
    assert X.dtype == dtype
    Y = NGrams(weight="tfidf").fit_transform(texts)
    assert np.abs(X.data - Y.data).max() <= np.finfo(dtype).eps


def test_names_come_back():
    texts = ["to be or not to be", "to do", "Not to"]
    phi = NGrams(n_features=7, keep_names=True).fit(texts)
    all_names = sorted(name for j in range(7) for name in phi.names(j))
    vocabulary = NGrams(vocabulary="learn", norm=None).fit(texts)
    counts = np.asarray(vocabulary.transform(texts).sum(0)).ravel().astype(int)
    assert [(n, c) for n, c, _ in all_names] == list(zip(vocabulary.get_feature_names_out(), counts, strict=True))  # fmt: skip
    for name, _, sign in all_names:
        X = NGrams(words=(1, 2), n_features=7, norm=None, vocabulary=None).transform([name])
        single = [j for j in range(7) if name in [n for n, _, _ in phi.names(j)]]
        assert len(single) == 1
        if " " not in name:
            assert X[0, single[0]] == sign
    again = NGrams(n_features=7)
    assert [again.names(j, texts) for j in range(7)] == [phi.names(j) for j in range(7)]
    assert 0 < phi.collisions_.names <= 1
    shared = [len(phi.names(j)) for j in range(7) if len(phi.names(j)) > 1]
    assert phi.collisions_.names == pytest.approx(sum(shared) / len(all_names))


def test_names_of_blocks_and_of_presence_have_no_signs():
    texts = written(17, 5)
    phi = NGrams(words=(1, 1), chars=(1, 1), n_features=9, keep_names=True, weight="binary")
    phi.fit(texts)
    assert {sign for j in range(18) for _, _, sign in phi.names(j)} == {1}
    assert all(len(name) == 1 for j in range(9, 18) for name, _, _ in phi.names(j))
    assert phi.names(12) == NGrams(chars=(1, 1), n_features=9, weight="binary").names(3, texts)
    assert phi.collisions_.names > 0
    learnt = NGrams(vocabulary="learn").fit(["to be", "be"])
    assert [learnt.names(j) for j in range(3)] == [[("be", 2, 1)], [("to", 1, 1)], [("to be", 1, 1)]]  # fmt: skip


@pytest.mark.parametrize("column", [-1, 8, 1.5, "a"])
def test_columns_that_are_none_have_no_names(column):
    phi = NGrams(n_features=8, keep_names=True).fit(["ab"])
    with pytest.raises(ValueError, match="column must be a whole number from 0 to 7"):
        phi.names(column)


def test_what_was_not_kept_is_said():
    phi = NGrams().fit(["ab"])
    with pytest.raises(ValueError, match="fit with keep_names=True, or give documents"):
        phi.names(0)
    with pytest.raises(AttributeError, match="fit with keep_names=True"):
        _ = phi.collisions_
    for name in ("vocabulary_", "idf_", "ratio_"):
        assert not hasattr(phi, name)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (dict(words=(2, 1)), r"words must be .* got \(2, 1\)"),
        (dict(words=(0, 1)), r"words must be .* got \(0, 1\)"),
        (dict(chars=(1, 2, 3)), "chars must be"),
        (dict(chars=3), "chars must be"),
        (dict(words=(1.5, 2)), "words must be"),
        (dict(words=(True, 2)), "words must be"),
        (dict(words=(1, 1 << 16)), "words must be"),
        (dict(within_words=True), "within_words=True is about chars"),
        (dict(within_words="yes", chars=(1, 2)), "within_words must be True or False"),
        (dict(n_features=0), "n_features must be"),
        (dict(n_features=2**31), "n_features must be"),
        (dict(n_features=2.0), "n_features must be"),
        (dict(n_features=2**30, words=(1, 1), chars=(1, 1)), "and 2 times as many"),
        (dict(n_features=2**30, weight="tfidf"), "counts documents of n_features"),
        (dict(weight="idf"), "weight must be one of count, binary, tfidf, ratio"),
        (dict(norm="l1"), "norm must be 'l2' or None"),
        (dict(dtype=np.int64), "dtype must be float64 or float32"),
        (dict(sublinear=1), "sublinear must be True or False"),
        (dict(lowercase=None), "lowercase must be True or False"),
        (dict(vocabulary=["a"], words=(1, 1), chars=(1, 1)), "give one of them"),
        (dict(min_df=2), "give vocabulary='learn'"),
        (dict(max_features=5, vocabulary=["a"]), "give vocabulary='learn'"),
        (dict(min_df=0, vocabulary="learn"), "min_df must be"),
        (dict(max_df=1.5, vocabulary="learn"), "max_df must be"),
        (dict(max_df=True, vocabulary="learn"), "max_df must be"),
        (dict(max_features=0, vocabulary="learn"), "max_features must be"),
        (dict(weight="ratio"), "but y is None"),
    ],
)
def test_settings_are_looked_at(settings, said):
    with pytest.raises(ValueError, match=said):
        NGrams(**settings).fit(["ab cd"])


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([1, 1], "has 1"),
        ([0, 1, 2], "has 3"),
        ([0, 1, 0], r"y has 3 classes for 2 documents"),
        ([[0], [1]], "one class a document"),
        ([0, np.nan], "classes that are missing"),
        ([None, "a"], "classes that are missing"),
    ],
)
def test_classes_of_ratios_are_looked_at(y, said):
    for options in ({}, {"vocabulary": "learn"}):
        with pytest.raises(ValueError, match=said):
            NGrams(weight="ratio", **options).fit(["ab", "cd"], y)


def test_classes_that_are_new_are_refused():
    phi = NGrams(weight="ratio").partial_fit(["ab", "cd"], [0, 1])
    with pytest.raises(ValueError, match="y has classes that are not among"):
        phi.partial_fit(["ab"], [2])


def test_what_learns_must_be_fitted():
    for options in ({"vocabulary": "learn"}, {"weight": "tfidf"}, {"weight": "ratio"}):
        with pytest.raises(NotFittedError, match="call fit first"):
            NGrams(**options).transform(["ab"])
    assert NGrams().transform(["ab"]).nnz == 1
    assert NGrams(vocabulary=["ab"]).transform(["ab"]).nnz == 1


def test_a_vocabulary_that_was_cut_learns_no_more():
    phi = NGrams(vocabulary="learn", min_df=2).fit(["ab", "ab"])
    with pytest.raises(ValueError, match="use partial_fit from the first documents on"):
        phi.partial_fit(["cd"])


@pytest.mark.parametrize(
    "other",
    [
        dict(vocabulary="learn"),
        dict(weight="ratio"),
        dict(words=(1, 3)),
        dict(lowercase=False),
        dict(n_features=9),
        dict(keep_names=True),
        dict(chars=(1, 2), words=(1, 2)),
    ],
)
def test_other_settings_do_not_go_on(other):
    phi = NGrams(weight="tfidf", n_features=8).fit(["ab", "cd"])
    with pytest.raises(ValueError, match="of other settings than those of before"):
        phi.set_params(**other).partial_fit(["ab", "cd"], [0, 1])


@pytest.mark.parametrize("vocabulary", [["cd", "ab"], ["ab", "ef"], {"ab": 1, "cd": 0}])
def test_other_vocabularies_do_not_go_on(vocabulary):
    phi = NGrams(words=(1, 1), weight="tfidf", vocabulary=["ab", "cd"]).partial_fit(["ab"])
    with pytest.raises(ValueError, match="of other settings than those of before"):
        phi.set_params(vocabulary=vocabulary).partial_fit(["ab"])
    assert phi.set_params(vocabulary={"cd": 1, "ab": 0}).partial_fit(["ab"]).idf_[0] == 1


@pytest.mark.parametrize("classes", [[1, 2], ["a", "b"]])
@pytest.mark.parametrize("vocabulary", [None, "learn"])
def test_ratios_of_other_classes_do_not_merge(vocabulary, classes):
    a, b = (
        NGrams(weight="ratio", vocabulary=vocabulary).fit(["ab", "cd"], y)
        for y in ([0, 1], classes)
    )
    with pytest.raises(ValueError, match="give the same classes to both"):
        a.merge(b)


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_equal_vocabularies_merge_however_they_came(make):
    a, b = (
        NGrams(words=(1, 1), weight="tfidf", vocabulary=make(["ab", "cd"])).fit([text])
        for text in ("ab", "cd")
    )
    assert a.merge(b).idf_[0] == a.idf_[1] == pytest.approx(np.log(1.5) + 1)
    with pytest.raises(ValueError, match="vocabulary is"):
        a.merge(clone(a).set_params(vocabulary=make(["ab", "cd", "ef"])).fit(["ab"]))


@pytest.mark.parametrize("dtype", ["text", np.int64])
def test_rows_are_of_floats_also_after_fit(dtype):
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        NGrams(dtype=dtype).fit(["ab"])
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        NGrams().fit(["ab"]).set_params(dtype=dtype).transform(["ab"])


def test_others_of_other_settings_do_not_merge():
    with pytest.raises(ValueError, match="other must be an NGrams, got int"):
        NGrams().merge(3)
    with pytest.raises(ValueError, match="weight is 'tfidf' here and 'count' in the other"):
        NGrams(weight="tfidf").fit(["a"]).merge(NGrams().fit(["a"]))


@pytest.mark.parametrize("name", sorted(LEARNING))
def test_files_and_copies_give_the_same_rows(tmp_path, name):
    texts = written(18)
    phi = NGrams(**LEARNING[name]).fit(texts, labels(texts))
    phi.save(tmp_path / "a.mercer")
    loaded = mercer.load(tmp_path / "a.mercer")
    assert_same(loaded.transform(texts), phi.transform(texts))
    assert loaded.get_params() == phi.get_params()
    if name == "names":
        assert loaded.names(3) == phi.names(3)
    fresh = clone(loaded)
    assert not hasattr(fresh, "fitted_")
    assert fresh.set_params(words=(1, 1)).words == (1, 1)


def test_scikit_learn_takes_it():
    texts, y = ["good film", "bad film", "good", "bad"] * 5, [1, 0, 1, 0] * 5
    for weight in ("count", "tfidf", "ratio"):
        model = make_pipeline(NGrams(weight=weight, n_features=64), LogisticRegression()).fit(
            texts, y
        )
        assert model.score(texts, y) == 1.0
    for learns in (NGrams(vocabulary="learn"), NGrams(weight="ratio")):
        tags = get_tags(learns)
        assert tags.requires_fit
        assert tags.input_tags.string
        assert tags.target_tags.required == (learns.weight == "ratio")
    assert not get_tags(NGrams()).requires_fit
    assert mercer.NGrams is mercer.lifts.NGrams is NGrams


def test_documents_of_nothing_are_rows_of_nothing():
    for phi in (NGrams(), NGrams(chars=(1, 2)), NGrams(weight="tfidf")):
        X = phi.fit(["", " "]).transform(["", " . ", "\x00"])
        assert X.shape == (3, 1 << 20)
        assert X.nnz <= 5


LONG = textwrap.dedent("""
    import resource, sys
    import numpy as np
    from mercer.text.ngrams import NGrams
    options = dict(eval(sys.argv[1]))
    size = int(sys.argv[2])
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(5000)])
    NGrams(**options).fit_transform(["ab cd ef"])
    text = (" ".join(rng.choice(words, 50_000).tolist()) + " ") * (size // 300_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    NGrams(**options).fit_transform([text])
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(text))
""")


@pytest.mark.long
@pytest.mark.parametrize(
    "options", ["words=(1, 2)", "chars=(3, 5)", "words=(1, 2), vocabulary='learn'"]
)
def test_a_long_document_takes_five_times_its_size(options):
    done = subprocess.run(
        [sys.executable, "-c", LONG, f"dict({options})", str(100_000_000)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(done.stdout) < 5


def test_names_of_a_vocabulary_are_kept_in_any_case():
    phi = NGrams(words=(1, 1), vocabulary="learn", keep_names=True).fit(["to be", "be"])
    assert [phi.names(j)[0][0] for j in range(2)] == ["be", "to"]
