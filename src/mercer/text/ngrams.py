"""NGrams: documents as sparse rows of their n-grams, hashed or in a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from mercer.engines.lazy import take_dask
from mercer.inputs import Array
from mercer.invariants import Is
from mercer.store import Saved, register
from mercer.text.distinct import all_collisions, names_in
from mercer.text.fitted import FittedGrams
from mercer.text.learning import learn, merged, targets
from mercer.text.names import Collisions
from mercer.text.settings import GramSettings, floating, settings
from mercer.text.vocabulary import Vocabulary


@register("text.NGrams")
class NGrams(Saved, TransformerMixin, BaseEstimator):
    """phi(text)_j = f(how often the n-grams of column j come in the text) s_j / |phi(text)|.

    The n-grams are scikit-learn's: of words (two or more letters, digits or "_", after
    `str.lower`), of characters, or of characters within words (`char_wb`). Columns are hashed
    (MurmurHash3 with signs, the columns and values of `HashingVectorizer`, but for the zeros of
    n-grams that cancel each other) or a vocabulary (the columns of `CountVectorizer`). Words
    and characters asked for together are two blocks of columns, each of norm 1. Documents are a
    list or generator, a NumPy array, or a column of pandas, polars or Arrow, of which no text
    is copied; a missing document is refused. Rows are the same bits for any number of threads.

    Parameters
    ----------
    words : (int, int), default=None
        The least and the most words of an n-gram; None is (1, 2) unless there are `chars`.
    chars : (int, int), default=None
        The least and the most characters of an n-gram.
    within_words : bool, default=False
        Whether n-grams of characters stay within words, with a blank on either side.
    weight : {"count", "binary", "tfidf", "ratio"}, default="count"
        f and s: the count (hashed: with signs) or 1, with s = 1; "tfidf" the count and s =
        log((1 + n) / (1 + documents)) + 1; "ratio" 1 and the naive-Bayes log-ratio of two
        classes, log(p / |p|) - log(q / |q|), p and q one more than the documents of each.
    sublinear : bool, default=False
        Whether a count c becomes 1 + log(c).
    norm : "l2" or None, default="l2"
        Whether rows have norm 1.
    n_features : int, default=2**20
        The number of hashed columns, of each block, where there is no vocabulary.
    vocabulary : None, "learn", list of str or dict, default=None
        None: hashed; "learn": a column for each n-gram of the documents, by its code points;
        or the n-grams, or their columns.
    min_df : int or float, default=1
        The least documents, or their share, that an n-gram to be learnt is in.
    max_df : int or float, default=1.0
        The most.
    max_features : int, default=None
        The most n-grams to learn: those that come most often.
    lowercase : bool, default=True
        Whether documents are in lower case first.
    keep_names : bool, default=False
        Whether `fit` and `partial_fit` keep the n-grams of hashed columns, for `names` and
        `collisions_`: exactly within 64 MB, beyond that those that come most often.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        That of the rows.

    Attributes
    ----------
    vocabulary_ : dict
        The column of every n-gram, where there is a vocabulary.
    idf_ : array of shape (n_features_out_,)
        The weights s of columns with weight="tfidf".
    ratio_ : array of shape (n_features_out_,)
        Those with weight="ratio".
    collisions_ : Collisions
        The shares of n-grams, and of their occurrences, that lie in a column with another one,
        with keep_names=True.
    n_features_out_ : int
        The number of columns.

    References
    ----------
    Weinberger et al., Feature hashing for large scale multitask learning (2009); Wang and
    Manning, Baselines and bigrams (2012).

    Examples
    --------
    >>> phi = NGrams(words=(1, 2), vocabulary="learn", norm=None)
    >>> phi.fit_transform(["to be or not to be", "to do"]).toarray()
    array([[2., 1., 0., 1., 1., 1., 1., 2., 2., 0.],
           [0., 0., 1., 0., 0., 0., 0., 1., 0., 1.]])
    >>> phi.get_feature_names_out()[:3]
    array(['be', 'be or', 'do'], dtype=object)
    >>> NGrams(chars=(3, 5)).transform(["no words of before are needed"]).shape
    (1, 1048576)
    >>> phi = NGrams(words=(1, 1), n_features=8, keep_names=True).fit(["to be or not to be"])
    >>> phi.names(6)
    [('be', 2, -1)]
    """

    fitted_: FittedGrams

    must = dict(fitted_=Is("FittedGrams"))

    def __init__(
        self,
        words: tuple[int, int] | None = None,
        chars: tuple[int, int] | None = None,
        *,
        within_words: bool = False,
        weight: str = "count",
        sublinear: bool = False,
        norm: str | None = "l2",
        n_features: int = 2**20,
        vocabulary: str | Iterable[str] | Mapping[str, int] | None = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        lowercase: bool = True,
        keep_names: bool = False,
        dtype: Any = np.float64,
    ) -> None:
        self.words = words
        self.chars = chars
        self.within_words = within_words
        self.weight = weight
        self.sublinear = sublinear
        self.norm = norm
        self.n_features = n_features
        self.vocabulary = vocabulary
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.lowercase = lowercase
        self.keep_names = keep_names
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the vocabulary and weights from documents; hashed counts need neither, and look at
        none."""
        how = self._settings()
        self.fitted_ = learn(X, how, targets(y, how))[0].cut(how.selection)
        return self

    def _fit_dask(self, X: Any, y: Any = None) -> Self:
        """`fit` of a dask series of texts: what partitions have learnt adds."""
        from mercer.text.partitions import fit_partitions

        self.fitted_ = fit_partitions(self, X).cut(self._settings().selection)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """`fit`, and the rows of the same documents, which are read once."""
        how = self._settings()
        fitted, found = learn(X, how, targets(y, how), rows=True)
        self.fitted_ = fitted.cut(how.selection)
        return self.fitted_.rows(found, how.dtype)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from more documents: the same as `fit` on all of them together.

        `classes` are those of all documents, for weight="ratio"; only the first call needs them.
        """
        how, before = self._settings(), getattr(self, "fitted_", None)
        known = classes if before is None or before.classes is None else before.classes
        self.fitted_ = learn(X, how, targets(y, how, known), before)[0]
        return self

    def merge(self, other: NGrams) -> Self:
        """Add what another one, of the same settings, has learnt from other documents."""
        if not isinstance(other, NGrams):
            raise ValueError(f"other must be an NGrams, got {type(other).__name__}; give one.")
        mine, theirs = self.get_params(), other.get_params()
        differ = [name for name in mine if not _alike(mine[name], theirs[name])]
        if differ:
            raise ValueError(
                f"{differ[0]} is {mine[differ[0]]!r:.40} here and {theirs[differ[0]]!r:.40} in the other; merge those that agree."
            )
        self.fitted_ = merged(self._fitted(), other._fitted(), self._settings())
        return self

    def transform(self, X: Any) -> sp.csr_matrix:
        """The rows of documents: CSR with sorted indices, none twice."""
        return self._fitted().transform(X, floating(self.dtype))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The n-grams of a vocabulary, or numbered names of hashed columns; of words and characters
        together with the block's name before."""
        return np.asarray(self._fitted().names(), dtype=object)

    def names(self, column: int, texts: Any = None) -> list[tuple[str, int, int]]:
        """(n-gram, count, sign) of every n-gram of a column, the most frequent first.

        Of hashed columns those that keep_names=True has kept, or those of documents that are given
        here, which are read once more; of a vocabulary the one there is, with its documents.
        """
        fitted = self._fitted()
        b, at = fitted.block_of(column)
        block = fitted.blocks[b]
        if isinstance(block, Vocabulary):
            return block.name_of(at)
        if texts is not None:
            return names_in(texts, block, at, fitted.weighting.signed)
        if not fitted.kept:
            raise ValueError(
                "names of hashed columns were not kept; fit with keep_names=True, or give documents as texts."
            )
        return fitted.kept[b].names(at)

    @property
    def collisions_(self) -> Collisions:
        kept = self._fitted().kept
        if not kept:
            raise AttributeError(
                "collisions_ needs the n-grams of columns; fit with keep_names=True."
            )
        return all_collisions(kept)

    @property
    def vocabulary_(self) -> dict[str, int]:
        blocks = self._fitted().blocks
        if not all(isinstance(b, Vocabulary) for b in blocks):
            raise AttributeError(
                "vocabulary_ is that of n-grams with columns of their own; give vocabulary='learn'."
            )
        return {name: i for i, name in enumerate(self._fitted().names())}

    @property
    def idf_(self) -> Array:
        return self._scale("tfidf")

    @property
    def ratio_(self) -> Array:
        return self._scale("ratio")

    @property
    def n_features_out_(self) -> int:
        return sum(self._fitted().widths)

    def _scale(self, weight: str) -> Array:
        fitted = self._fitted()
        if fitted.weighting.weight != weight:
            raise AttributeError(
                f"there are no such weights with weight={fitted.weighting.weight!r}."
            )
        return np.concatenate(fitted.scales)

    def _settings(self) -> GramSettings:
        return settings(self.get_params(deep=False))

    def _fitted(self) -> FittedGrams:
        """What was fitted; of hashed counts, and n-grams that are given, there is nothing to fit."""
        if hasattr(self, "fitted_"):
            return self.fitted_
        how = self._settings()
        if how.columns is None or how.weighting.learns:
            what = "vocabulary" if how.columns is None else "weights"
            raise NotFittedError(
                f"This {type(self).__name__} learns its {what}, but is not fitted yet; call fit first."
            )
        return FittedGrams(how.columns, how.weighting, np.zeros(1, np.int64))

    def __sklearn_is_fitted__(self) -> bool:
        try:
            self._fitted()
        except NotFittedError:
            return False
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = self.weight == "ratio"
        tags.requires_fit = self.vocabulary is not None or self.weight in ("tfidf", "ratio")
        return tags


take_dask(NGrams)


def _alike(a: Any, b: Any) -> bool:
    """Whether two parameters are equal, of arrays and columns every item."""
    if type(a) is not type(b):
        return False
    columns = isinstance(a, Iterable) and hasattr(a, "dtype")
    return bool(list(a) == list(b) if columns else a == b)
