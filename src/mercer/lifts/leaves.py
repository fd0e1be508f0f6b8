"""Leaves: a row becomes the leaves that it falls into; a forest is a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from mercer.inputs import Array, Matrix, Table, validate_data
from mercer.invariants import Ints, Is
from mercer.kernels import Linear
from mercer.kernels.base import whole
from mercer.kernels.params import plain
from mercer.lifts.algebra import unique
from mercer.lifts.base import Lift, Seed, seed_of
from mercer.lifts.mondrian import mondrian
from mercer.lifts.trees import (
    GrownTrees,
    OneTree,
    as_compared,
    check_grower,
    in_single,
    trees_of,
)
from mercer.stats.sample import row_hashes
from mercer.store import register

MOST_CLASSES = 100  # whole numbers of more values are numbers
SHARE = 1 / 3  # of the columns that a split looks at
STEP = 0.2  # of boosting
SINGLE_THREAD_CELLS = 4_000_000
FEWEST = 20  # rows a leaf, or a twentieth of fewer than 400


@register("lifts.Leaves")
class Leaves(Lift):
    """phi_l(x) = 1{x falls into leaf l} / sqrt(T), for all leaves l of T trees.

    The kernel is the share of trees in which two rows meet. Features are CSR rows, named by the
    conditions of their leaves.

    Trees grown on y know the targets of their rows, and a model over their leaves would take
    what they know for what they can tell. So they are cross-fitted: the trees are grown in
    `cross_fit` blocks, each without the rows of one fold. A row of `fit` (known again by its
    values) has the leaves of the T_k trees of its own fold's block alone, each as sqrt(T) /
    T_k, and any other row those of all trees. Between a row of `fit` and a new one the kernel
    is then the share of those trees, which have not seen that row's target, and a linear model
    over the features is the mean of one model a block, each fitted to rows that its trees have
    not seen. Rows of different folds share no leaf, so left-out rows (`KernelRidge(cv=...,
    lift=Leaves())`, its intervals) are as honest as of a map without targets. Copies of a row
    lie in one fold.

    Parameters
    ----------
    estimator : estimator, default=None
        A forest, extra trees, gradient boosting (also by histograms) or a tree of scikit-learn,
        whose trees are grown for each fold by its own settings. None grows boosted trees by
        histograms for numbers and two classes, and a random forest for more classes or outputs.
        Floats are numbers, whole numbers of at most 100 values classes.
    n_trees : int, default=100
        The number T of trees of all blocks together, where no estimator is given.
    max_leaves : int, default=16
        The most of a tree, where no estimator is given.
    how : {"supervised", "random"}, default="supervised"
        "random" grows Mondrian trees, which need no y: boxes around rows are cut at random
        places, more often across long sides, in units of the columns' standard deviations.
    cross_fit : int, default=5
        The number of folds; None grows all trees on all rows.
    random_state : int, RandomState, Generator or None, default=None
        The seed of folds and trees.

    Attributes
    ----------
    trees_ : GrownTrees
        The trees as arrays.
    keys_ : ndarray of shape (m,)
        Hashes of the distinct rows of `fit`, in order; None without folds.
    folds_ : ndarray of shape (m,)
        Their folds.

    Notes
    -----
    Missing values (NaN) go where the trees send them: to the side that served y best where
    `fit` saw some, else to the one of more rows; names tell nothing of them. Models pass their
    targets on (`KernelRidge(lift=Leaves())`); weights of rows do not enter the trees.

    References
    ----------
    Breiman, Some infinity theory for predictor ensembles (2000); Balog, Lakshminarayanan,
    Ghahramani, Roy and Teh, The Mondrian kernel (2016).

    Examples
    --------
    >>> X = np.array([[25.0, 1.0], [28.0, 9.0], [45.0, 2.0], [60.0, 8.0]])
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> phi = Leaves(DecisionTreeClassifier(max_depth=1), cross_fit=None, random_state=0)
    >>> F = phi.fit_transform(X, [0, 0, 1, 1])
    >>> list(phi.get_feature_names_out(["age", "income"])), F.toarray()[:, 0]
    (['age <= 36.5', 'age > 36.5'], array([1., 1., 0., 0.]))
    >>> phi = Leaves(n_trees=10, max_leaves=3, how="random", random_state=0).fit(X)
    >>> phi.kernel_(X[:1], X[1:]).round(1)
    array([[0.3, 0.5, 0. ]])
    """

    trees_: GrownTrees
    keys_: Array | None
    folds_: Array | None

    must = dict(
        trees_=Is("GrownTrees", width="n_features_in_", size="n_features_out_"),
        keys_=Ints("m", below=1 << 62, distinct=True) | None,
        folds_=Ints("m", below="trees_.n_folds") | None,
    )

    def _laws(self) -> str | None:
        if (self.keys_ is None) != (self.folds_ is None):
            return "has keys of rows without their folds"
        if self.keys_ is not None and not (np.diff(self.keys_) > 0).all():
            return "has keys of rows that are not in order"
        counts = np.bincount(self.trees_.folds, minlength=self.trees_.n_folds)
        return None if counts.all() else "has a fold without trees"

    def __init__(
        self,
        estimator: Any = None,
        n_trees: int = 100,
        max_leaves: int = 16,
        *,
        how: str = "supervised",
        cross_fit: int | None = 5,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.n_trees = n_trees
        self.max_leaves = max_leaves
        self.how = how
        self.cross_fit = cross_fit
        self.random_state = random_state

    # growing
    def _learn(self, X: Array, y: Any = None) -> None:
        self._check_settings()
        seed = seed_of(self.random_state)
        self.keys_ = self.folds_ = None
        self.trees_ = self._random(X, seed) if self.how == "random" else self._grown(X, y, seed)
        self.n_features_out_ = self.trees_.size
        self.kernel_ = Linear().warped(self._map)

    def _check_settings(self) -> None:
        if self.how not in ("supervised", "random"):
            raise ValueError(f"how must be 'supervised' or 'random', got {self.how!r}.")
        if self.estimator is not None:
            if self.how == "random":
                raise ValueError("how='random' grows trees of its own; give no estimator with it.")
            check_grower(self.estimator)
        whole(plain(self.n_trees), "n_trees", least=1)
        whole(plain(self.max_leaves), "max_leaves", least=2)
        if self.cross_fit is None:
            return
        k = whole(plain(self.cross_fit), "cross_fit", least=2)
        if self.how == "supervised" and self.estimator is None and self.n_trees < k:
            raise ValueError(
                f"n_trees must be at least cross_fit={k}, a tree a fold, got {self.n_trees}; give more trees, or fewer folds."
            )

    def _random(self, X: Array, seed: int) -> GrownTrees:
        rng = np.random.default_rng(seed)
        scale = _spreads(X)
        trees = [
            (0, mondrian(X, int(self.max_leaves), rng, scale=scale)) for _ in range(self.n_trees)
        ]
        return GrownTrees.of(trees, X.shape[1], single=False)

    def _grown(self, X: Array, y: Any, seed: int) -> GrownTrees:
        y = _target(y, len(X))
        single = in_single(self._grower(y, 1, len(X), seed))
        fold, k = self._split(as_compared(X, single=single), seed)
        trees = []
        for j in range(k):
            some = fold != j
            share = len(range(j, int(self.n_trees), k))
            grower = self._grower(y, share, int(some.sum()), seed + j)
            trees += [(j, tree) for tree in _trees(grower, X[some], y[some])]
        return GrownTrees.of(trees, X.shape[1], single=single)

    def _split(self, X: Array, seed: int) -> tuple[Array, int]:
        """The fold of every row, and how many there are: copies lie in one fold; -1 where there is
        nothing to part."""
        keys, copy = np.unique(_keys(X), return_inverse=True)
        if self.cross_fit is None or len(keys) < 2:
            return np.full(len(X), -1), 1
        k = min(int(self.cross_fit), len(keys))
        folds = np.random.default_rng(seed).permutation(len(keys)) % k
        self.keys_, self.folds_ = keys, folds.astype(np.int32)
        return folds[copy], k

    def _grower(self, y: Array, n_trees: int, n: int, seed: int) -> Any:
        """An estimator for so many trees on n rows of such targets, with a seed."""
        if self.estimator is None:
            return default_grower(y, n_trees, int(self.max_leaves), n, seed % 2**32)
        grower = clone(self.estimator)
        open_ = grower.get_params().get("random_state", 0) is None
        return grower.set_params(random_state=seed % 2**32) if open_ else grower

    # lifting
    def _map(self, X: Array) -> Matrix:
        trees, n = self.trees_, len(X)
        leaf, T = trees(X), len(trees.roots)
        value = np.full(n, 1 / np.sqrt(T))
        here = np.ones((n, T), bool)
        if self.keys_ is not None:
            fold = self._fold_of(as_compared(X, single=trees.single))
            known = fold >= 0
            counts = np.bincount(trees.folds, minlength=trees.n_folds)
            value[known] = np.sqrt(T) / counts[fold[known]]
            here[known] = trees.folds == fold[known, None]
        of_row = here.sum(1)
        indptr = np.concatenate([[0], np.cumsum(of_row)])
        data = np.repeat(value, of_row).astype(X.dtype)
        return sp.csr_matrix((data, leaf[here], indptr), (n, trees.size))

    def _fold_of(self, X: Array) -> Array:
        """The fold of rows of `fit`, -1 of others."""
        assert self.keys_ is not None
        assert self.folds_ is not None
        keys = _keys(X)
        at = np.minimum(np.searchsorted(self.keys_, keys), len(self.keys_) - 1)
        return np.where(self.keys_[at] == keys, self.folds_[at], -1)

    def _names(self, inputs: list[str]) -> list[str]:
        return unique(self.trees_.conditions(inputs))

    # the contract
    def _check(self, X: Any, *, reset: bool) -> Matrix:
        if isinstance(X, Table):
            return self._accept(X, reset=reset)
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite="allow-nan",
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = self.how != "random"
        return tags


def default_grower(y: Array, n_trees: int, max_leaves: int, n: int, seed: int) -> Any:
    """Boosted trees for one column of numbers and for two classes, whose trees are one a round; else
    a forest, whose trees serve all classes or outputs."""
    classes = _are_classes(y)
    shared: dict[str, Any] = dict(
        max_leaf_nodes=max_leaves,
        max_features=SHARE,
        min_samples_leaf=max(1, min(FEWEST, n // FEWEST)),
        random_state=seed,
    )
    if y.ndim == 1 and (not classes or len(np.unique(y)) <= 2):
        return _ensemble("HistGradientBoosting", classes)(
            max_iter=n_trees,
            learning_rate=STEP,
            early_stopping=False,
            categorical_features=None,
            **shared,
        )
    return _ensemble("RandomForest", classes)(n_trees, **shared)


def _ensemble(kind: str, classes: bool) -> Any:
    from sklearn import ensemble  # here, because importing it takes longer than most first fits

    return getattr(ensemble, kind + ("Classifier" if classes else "Regressor"))


def _are_classes(y: Array) -> bool:
    """Whether targets are classes: not floats, nor whole numbers of many values."""
    if y.ndim > 1 or y.dtype.kind == "f":
        return False
    return y.dtype.kind not in "iu" or len(np.unique(y)) <= MOST_CLASSES


def _target(y: Any, n: int) -> Array:
    """Checked targets: (n,) or (n, q)."""
    if y is None:
        raise ValueError(
            "Leaves requires y to be passed, but the target y is None; give targets, or how='random'."
        )
    y = np.asarray(y)
    y = np.array(y.tolist()) if y.dtype == object else y
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if len(y) != n or y.ndim > 2:
        raise ValueError(
            f"y must have one target for each of {n} rows, but its shape is {y.shape}."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity; leave those rows out.")
    if y.dtype.kind not in "biufU":
        raise ValueError(
            f"y must hold numbers or classes, got an array of {y.dtype} (Unknown label type)."
        )
    return y


def _trees(grower: Any, X: Array, y: Array) -> list[OneTree]:
    """The trees that an estimator grows on rows; one leaf where the targets are all alike."""
    if (y == y[:1]).all():
        return [OneTree.leaf()]
    few = X.size < SINGLE_THREAD_CELLS  # threads would wait for each other at every node
    with threadpool_limits(1 if few else None, user_api="openmp"):
        return list(trees_of(grower.fit(X, y)))


def _keys(X: Array) -> Array:
    """A hash of each row's values, of 62 bits, which is one for all kinds of NaN."""
    hashes = row_hashes(np.where(np.isnan(X), np.nan, X))
    return (hashes >> np.uint64(2)).astype(np.int64)


def _spreads(X: Array) -> Array:
    """The standard deviations of columns, of values that are there; 1 where they are all alike."""
    A = np.ma.masked_invalid(X.astype(np.float64))
    top = np.ma.filled(np.abs(A).max(axis=0), 0.0)
    top = np.where(top > 0, top, 1.0)
    spread = np.ma.filled((A / top).std(axis=0), 0.0) * top
    return np.where(spread > 0, spread, 1.0)
