"""WeightedUnion: features of several kinds side by side, texts beside numbers, with weights that are
chosen on rows left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix
from mercer.invariants import Each, Whole
from mercer.kernels.checks import whole
from mercer.lifts.base import seed_of
from mercer.models.logistic import KernelLogistic
from mercer.models.ridge import KernelRidge
from mercer.models.settings import Seed
from mercer.ops.philox import Stream, permutation
from mercer.store import Saved, register

FACTORS = (0.0, 1 / 8, 1 / 4, 1 / 2, 2.0, 4.0, 8.0)  # tried for a block, about its weight so far
PENALTIES = (0.1, 1.0, 10.0)  # of which each choice of weights has its best
N_ROWS = 4_000  # on which weights are chosen


@register("models.WeightedUnion")
class WeightedUnion(Saved, TransformerMixin, BaseEstimator):
    """phi(x) = (w_1 phi_1(x) / s_1, ..., w_B phi_B(x) / s_B), features of a sum of kernels.

    k(x, z) = sum_b (w_b / s_b)^2 phi_b(x)'phi_b(z), where s_b is the root of the mean of
    |phi_b(x)|^2 over the rows of `fit`, so that blocks of any size count alike at equal
    weights. Sparse blocks stay sparse: n-grams of a text and numbers are rows of one CSR
    matrix, on which linear learners work as it is.

    Parameters
    ----------
    transformers : list of (str, transformer, columns)
        The blocks, as in scikit-learn's `ColumnTransformer`: a name, a transformer
        ("passthrough" for columns as they are), and the columns that it is given (one name for
        a text).
    weights : "learn", "equal" or dict of float by name, default="learn"
        "learn": that of the first block is 1, the others are chosen one after another by the
        loss of linear models on rows left out, squared where y is of floats that are not all
        whole, logistic elsewhere; 0 leaves a block out.
        Transformers are fitted without those rows, so that ones that learn from y give nothing
        away.
    cv : int, default=2
        The folds by which weights are chosen, of at most 4,000 rows.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sample.

    Attributes
    ----------
    weights_ : dict of float by name
        w_b.
    sizes_ : dict of float by name
        s_b.
    blocks_ : list
        The fitted transformers, in order; None for columns as they are.
    widths_ : list of int
        The number of features of each.
    losses_ : list of (tuple of float, float)
        The weights that were tried, and the loss of each on rows left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mercer import KernelLogistic, NGrams
    >>> table = pd.DataFrame({"text": ["good film", "bad film"] * 20, "year": range(40)})
    >>> words, scale = NGrams(words=(1, 1)), StandardScaler()
    >>> phi = WeightedUnion([("text", words, "text"), ("year", scale, ["year"])])
    >>> phi.fit(table, [1, 0] * 20).transform(table).shape
    (40, 1048577)
    >>> phi.weights_["text"], phi.weights_["year"] < 1
    (1.0, True)
    """

    must = dict(widths_=Each(Whole()))

    def _laws(self) -> str | None:
        names = self._names()
        fits = len(names) == len(self.blocks_) == len(self.widths_)
        if not fits or not set(names) == set(self.weights_) == set(self.sizes_):
            return f"has other than {len(names)} fitted blocks"
        if min(self.sizes_.values()) <= 0 or not np.isfinite(self._factors()).all():
            return "has sizes or weights that are no numbers, or sizes of 0"
        return None

    def __init__(
        self,
        transformers: Sequence[tuple[str, Any, Any]],
        weights: str | Mapping[str, float] = "learn",
        cv: int = 2,
        random_state: Seed = None,
    ) -> None:
        self.transformers = transformers
        self.weights = weights
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the blocks and choose their weights, of rows X with targets y (n,)."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Matrix:
        """`fit`, and the features of its rows."""
        names, given = self._names(), self._given()
        blocks, parts = self._blocks(X, y)
        if given is None and len(names) > 1:
            if y is None:
                raise ValueError("weights='learn' needs y; give it, or weights='equal'.")
            weights, losses = self._chosen(X, _targets(y, parts[0].shape[0]), names)
        else:
            weights, losses = given or dict.fromkeys(names, 1.0), []
        self.blocks_, self.widths_ = blocks, [F.shape[1] for F in parts]
        self.sizes_ = dict(zip(names, map(_size, parts), strict=True))
        self.weights_, self.losses_ = weights, losses
        return _beside(parts, self._factors())

    def transform(self, X: Any) -> Matrix:
        """The features of rows, CSR where any block is sparse."""
        check_is_fitted(self)
        return _beside(self._features(X, self.blocks_), self._factors())

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the features, each after that of its block."""
        check_is_fitted(self)
        found = zip(self.transformers, self.blocks_, self.widths_, strict=True)
        names = [
            f"{name}__{feature}"
            for (name, _, columns), block, width in found
            for feature in _names_of(block, columns, width)
        ]
        return np.asarray(names, dtype=object)

    def _factors(self) -> list[float]:
        """What multiplies the features of each block."""
        return [self.weights_[name] / self.sizes_[name] for name in self._names()]

    def _blocks(self, X: Any, y: Any) -> tuple[list[Any], list[Matrix]]:
        """Transformers fitted to their columns, and the features of these rows."""
        blocks, parts = [], []
        for _, given, columns in self.transformers:
            block = None if isinstance(given, str) and given == "passthrough" else clone(given)
            rows = _picked(X, columns)
            parts.append(_matrix(rows if block is None else block.fit_transform(rows, y)))
            blocks.append(block)
        return blocks, parts

    def _features(self, X: Any, blocks: list[Any]) -> list[Matrix]:
        given = zip(self.transformers, blocks, strict=True)
        rows = [(_picked(X, columns), block) for (_, _, columns), block in given]
        return [_matrix(part if block is None else block.transform(part)) for part, block in rows]

    def _names(self) -> list[str]:
        try:
            names = [name for name, _, _ in self.transformers]
        except (TypeError, ValueError) as e:
            raise ValueError(
                f"transformers must be (name, transformer, columns) in a list, got {self.transformers!r:.80}."
            ) from e
        if not names or len(set(names)) < len(names):
            raise ValueError(f"transformers must have names that differ, one or more, got {names}.")
        return names

    def _given(self) -> dict[str, float] | None:
        """The weights that were given; None where they are to be chosen."""
        names, w = self._names(), self.weights
        if isinstance(w, str) and w in ("learn", "equal"):
            return None if w == "learn" else dict.fromkeys(names, 1.0)
        if not isinstance(w, Mapping) or set(w) != set(names):
            raise ValueError(
                f"weights must be 'learn', 'equal' or a number for each of {', '.join(names)}, got {w!r}."
            )
        numbers = all(isinstance(v, Real) and np.isfinite(v) and v >= 0 for v in w.values())
        if not numbers or not any(w.values()):
            raise ValueError(f"weights must be numbers >= 0, not all 0, got {w!r}.")
        return {name: float(w[name]) for name in names}

    # choice
    def _chosen(
        self, X: Any, y: Array, names: list[str]
    ) -> tuple[dict[str, float], list[tuple[tuple[float, ...], float]]]:
        """The weights of least loss, one block after another, twice where there are more than two."""
        parts, numeric = [*self._parts(X, y)], _numeric(y)
        if not parts:
            raise ValueError(
                "weights='learn' needs y of two classes or of numbers, but it has 1 class; give weights='equal'."
            )
        best, losses = (1.0,) * len(names), dict[tuple[float, ...], float]()

        def loss(w: tuple[float, ...]) -> float:
            if w not in losses:
                losses[w] = _loss(parts, w, numeric)
            return losses[w]

        for _ in range(1 if len(names) == 2 else 2):
            for j in range(1, len(names)):
                tried = [(*best[:j], f * (best[j] or 1.0), *best[j + 1 :]) for f in FACTORS]
                best = min([best, *tried], key=loss)
        return dict(zip(names, best, strict=True)), [*losses.items()]

    def _parts(self, X: Any, y: Array) -> Iterator[_Part]:
        """The blocks of rows fitted and left out, of folds that have two classes to fit."""
        k = whole(self.cv, "cv", least=2)
        n = len(y)
        some = np.sort(permutation(Stream(seed_of(self.random_state)), n)[:N_ROWS])
        rows, targets = _safe_indexing(X, some), y[some]
        from sklearn.model_selection import KFold, StratifiedKFold  # a tenth of a first use

        make = KFold if _numeric(y) else StratifiedKFold
        if not _numeric(y) and np.unique(targets, return_counts=True)[1].min() < k:
            make = KFold
        for fitted, out in make(k, shuffle=True, random_state=0).split(targets, targets):
            if not _numeric(y) and len(np.unique(targets[fitted])) < 2:
                continue
            blocks, F = self._blocks(_safe_indexing(rows, fitted), targets[fitted])
            G = self._features(_safe_indexing(rows, out), blocks)
            yield _Part(F, targets[fitted], G, targets[out])


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows fitted and rows left out, by block, with their targets."""

    F: list[Matrix]
    y: Array
    G: list[Matrix]
    t: Array

    def weighted(self, w: tuple[float, ...]) -> tuple[Matrix, Matrix]:
        factors = [weight / _size(F) for weight, F in zip(w, self.F, strict=True)]
        return _beside(self.F, factors), _beside(self.G, factors)


def _loss(parts: list[_Part], w: tuple[float, ...], numeric: bool) -> float:
    """The mean over rows left out, at the best penalty."""
    totals, count = np.zeros(len(PENALTIES)), 0
    for part in parts:
        F, G = part.weighted(w)
        count += len(part.t)
        for i, alpha in enumerate(PENALTIES):
            totals[i] += _squared(F, G, part, alpha) if numeric else _logistic(F, G, part, alpha)
    return float(totals.min() / count)


def _squared(F: Matrix, G: Matrix, part: _Part, alpha: float) -> float:
    found = KernelRidge("linear", alpha, via="features", tol=1e-3).fit(F, part.y).predict(G)
    return float(np.square(found - part.t).sum())


def _logistic(F: Matrix, G: Matrix, part: _Part, alpha: float) -> float:
    """Minus the log-likelihood; of a class that the fitted rows lack, that of one in as many."""
    m = KernelLogistic("linear", alpha, via="features", tol=1e-3).fit(F, part.y)
    P, at = m.predict_proba(G), np.searchsorted(m.classes_, part.t)
    known = np.isin(part.t, m.classes_)
    p = np.where(known, P[np.arange(len(at)), np.minimum(at, P.shape[1] - 1)], 1 / len(part.y))
    return float(-np.log(np.maximum(p, 1e-12)).sum())


def _targets(y: Any, n: int) -> Array:
    """The targets of n rows."""
    out = np.asarray(y)
    if out.shape != (n,):
        raise ValueError(
            f"y must be one target for each of the {n} rows, but has shape {out.shape}; give a vector."
        )
    if out.dtype.kind == "f" and not np.isfinite(out).all():
        bad = int(np.flatnonzero(~np.isfinite(out))[0])
        raise ValueError(f"y is {out[bad]} in row {bad}; leave such rows out.")
    return out


def _numeric(y: Array) -> bool:
    return y.dtype.kind == "f" and type_of_target(y) == "continuous"


def _picked(X: Any, columns: Any) -> Any:
    """Columns of a table: one alone, by its name or place, as a vector, several as a table."""
    return _safe_indexing(X, columns, axis=1)


def _matrix(F: Any) -> Matrix:
    if sp.issparse(F):
        return sp.csr_matrix(F)
    F = np.asarray(F)
    return F.reshape(len(F), -1)


def _names_of(block: Any, columns: Any, width: int) -> Sequence[str]:
    if block is not None and hasattr(block, "get_feature_names_out"):
        return list(block.get_feature_names_out())
    given = [columns] if isinstance(columns, str) else columns
    known = isinstance(given, list) and len(given) == width
    return [str(c) for c in given] if known else [str(i) for i in range(width)]


def _size(F: Matrix) -> float:
    """The root of the mean squared norm of the rows; 1 where it is zero."""
    values = np.asarray(F.data if sp.issparse(F) else F, np.float64)
    size = float(np.sqrt(np.square(values).sum() / max(F.shape[0], 1)))
    return size if 0 < size < np.inf else 1.0


def _beside(parts: list[Matrix], factors: Sequence[float]) -> Matrix:
    """The blocks side by side, each times its factor; a block of factor 0 holds no entries."""
    dtype = np.result_type(np.float32, *(F.dtype for F in parts))
    blocks = [F.astype(dtype) * dtype.type(f) for F, f in zip(parts, factors, strict=True)]
    if not any(map(sp.issparse, blocks)):
        return np.hstack(blocks)
    out = sp.csr_matrix(sp.hstack([sp.csr_matrix(F) for F in blocks], format="csr"))
    out.eliminate_zeros()
    return out
