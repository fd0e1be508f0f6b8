"""A stand-in for n-grams until `mercer.text` is there."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from mercer.store import register


@register("tables.NGrams")
class NGrams(BaseEstimator):
    def __init__(
        self,
        words: Any = (1, 2),
        chars: Any = None,
        within_words: bool = False,
        weight: str = "count",
        sublinear: bool = False,
        norm: Any = "l2",
        n_features: int = 2**20,
        dtype: Any = np.float64,
    ) -> None:
        self.words, self.chars, self.within_words, self.weight = words, chars, within_words, weight
        self.sublinear, self.norm, self.n_features, self.dtype = sublinear, norm, n_features, dtype

    def _hasher(self) -> Any:
        analyzer = "word" if self.chars is None else "char_wb" if self.within_words else "char"
        return HashingVectorizer(
            analyzer=analyzer,
            ngram_range=self.words if self.chars is None else self.chars,
            n_features=self.n_features,
            norm=None,
            binary=self.weight == "binary",
            alternate_sign=False,
        )

    def fit(self, texts: Any, y: Any = None) -> Any:
        self.n_features_out_ = self.n_features
        if self.weight == "tfidf":
            X = self._hasher().transform(list(map(str, texts)))
            self.idf_ = TfidfTransformer().fit(X).idf_
        return self

    def transform(self, texts: Any) -> Any:
        X = self._hasher().transform(list(map(str, texts)))
        if self.weight == "tfidf":
            t = TfidfTransformer(sublinear_tf=self.sublinear, norm=self.norm)
            t.idf_ = self.idf_
            X = t.transform(X)
        return X.astype(self.dtype)
