"""Transformers of text keep their contract, and those that break a law are told which."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from mercer.testing import check_text_transformer
from mercer.text.ngrams import NGrams

OURS = {
    "words": NGrams(n_features=1 << 12),
    "few columns": NGrams(n_features=3, norm=None),
    "chars": NGrams(chars=(1, 3), n_features=1 << 12),
    "within words": NGrams(chars=(2, 4), within_words=True, weight="binary", n_features=999),
    "both": NGrams(words=(1, 1), chars=(2, 2), weight="tfidf", n_features=1 << 10),
    "tfidf": NGrams(weight="tfidf", sublinear=True, n_features=1 << 12),
    "ratio": NGrams(weight="ratio", norm=None, dtype=np.float32, n_features=1 << 12),
    "names": NGrams(keep_names=True, n_features=64),
    "vocabulary": NGrams(vocabulary="learn", weight="tfidf"),
    "vocabulary of ratios": NGrams(words=(1, 3), vocabulary="learn", weight="ratio"),
    "some of them": NGrams(vocabulary="learn", min_df=2, max_features=4, weight="tfidf"),
    "characters": NGrams(chars=(1, 3), vocabulary="learn", max_df=0.8),
    "both vocabularies": NGrams(
        words=(1, 2), chars=(2, 5), within_words=True, vocabulary="learn", weight="ratio"
    ),
    "given": NGrams(vocabulary=["to be", "question", "中文", "be,"]),
    "given columns": NGrams(vocabulary={"to": 1, "be": 0}, weight="tfidf"),
}


@pytest.mark.parametrize("name", sorted(OURS))
def test_ours_keep_the_contract(name):
    check_text_transformer(OURS[name])


class Lengths(TransformerMixin, BaseEstimator):
    """A user's own: the length of every document."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if isinstance(X, str):
            raise ValueError("give a list")
        sizes = []
        for i, text in enumerate(X):
            if not isinstance(text, str):
                raise ValueError(f"document {i} is {text!r}")
            sizes.append([float(len(text))])
        return np.array(sizes)

    def get_feature_names_out(self, input_features=None):
        return np.array(["length"], object)


class Counting(Lengths):
    """Its rows tell where they are."""

    def transform(self, X):
        return super().transform(X) + np.arange(len(list(X)) if isinstance(X, list) else 7)[:, None]


class Forgiving(Lengths):
    """It takes anything."""

    def transform(self, X):
        return np.array([[float(len(str(text)))] for text in X])


class Nameless(Lengths):
    """It has no names."""

    def get_feature_names_out(self, input_features=None):
        return np.array([], object)


class Fickle(Lengths):
    """It teaches another thing in parts."""

    def fit(self, X, y=None):
        self.n_ = len(X)
        return self

    partial_fit = fit

    def transform(self, X):
        return super().transform(X) + self.n_


def test_a_users_own_keeps_it():
    check_text_transformer(Lengths())


@pytest.mark.parametrize(
    ("own", "law"),
    [
        (Counting(), "order of documents"),
        (Forgiving(), "None among documents is refused"),
        (Nameless(), "every column has a name"),
        (Fickle(), "documents in parts"),
    ],
)
def test_a_broken_law_is_named(own, law):
    with pytest.raises(AssertionError, match=law):
        check_text_transformer(own)
