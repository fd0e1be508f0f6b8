"""Boosted trees as plain arrays: what a model file holds of an ensemble that scikit-learn has grown,
and how it predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from mercer.inputs import Array
from mercer.invariants import Each, Floats, Ints, Is, Number, Text, Truths, Whole, check
from mercer.ops.tiles import cuts
from mercer.ops.trees import add_values
from mercer.store import register

MAX_CODES = 255
BLOCK_ROWS = 1 << 13
LOG_LOSSES = ("poisson", "gamma")
LINKS = ("identity", "log", "logit", "softmax")


class _Nodes(NamedTuple):
    """Of one tree, or of several behind each other; see `mercer.ops.trees.add_values`."""

    columns: Array
    numbers: Array
    children: Array
    sets: Array


@register("automl.TreeEnsemble")
@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """f_k(x) = baseline_k + the sum of the values of the leaves that x falls into, over every
    K-th of the trees; and its link: numbers f or exp(f), of two classes 1 / (1 + exp(-f)), of more
    exp(f_k) / sum_l exp(f_l).

    Nodes are those of `mercer.ops.trees.add_values`, the root of each tree first: `numbers` are
    thresholds, of leaves values; `children` the first, the second, and where what is missing goes.
    """

    roots: Array  # (T,)
    columns: Array  # (N,)
    numbers: Array  # (N,)
    children: Array  # (N, 3), 0 of leaves
    sets: Array  # (N,): the row of `goes` where a node splits categories, else -1
    goes: Array  # (S, C): which codes go to the first child
    baseline: Array  # (K,)
    link: str
    width: int  # of rows

    must = dict(
        roots=Ints("T", below="N", distinct=True),
        columns=Ints("N", below="width"),
        numbers=Floats("N", finite=False),
        children=Ints("N", 3, below="N"),
        sets=Ints("N", low=-1, below="S"),
        goes=Truths("S", "C"),
        baseline=Floats("K"),
        link=Text(*LINKS),
        width=Whole(1),
    )

    @classmethod
    def of(cls, model: Any) -> Self:
        """Of a fitted HistGradientBoosting of scikit-learn; categories are whole numbers from 0 on.

        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> X = np.arange(60.0)[:, None]
        >>> model = HistGradientBoostingRegressor(max_iter=3).fit(X, X[:, 0] ** 2)
        >>> bool(np.array_equal(TreeEnsemble.of(model).predict(X), model.predict(X)))
        True
        """
        parts, goes = _read(model)
        sizes = [len(part.columns) for part in parts]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        columns, numbers, children, sets = (np.concatenate(v) for v in zip(*parts, strict=True))
        below = np.where(children < 0, 0, children + np.repeat(roots, sizes)[:, None])
        return cls(
            roots.astype(np.int32),
            columns.astype(np.int32),
            numbers,
            below.astype(np.int32),
            sets.astype(np.int32),
            goes,
            np.asarray(model._baseline_prediction, np.float64).reshape(-1),
            _link(model),
            int(model.n_features_in_),
        )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        """A walk goes forward inside its tree, and every output has as many trees."""
        nodes, inner = np.arange(len(self.numbers)), self.children[:, 0] > 0
        if np.isnan(self.numbers).any():
            return "has thresholds or values that are not numbers"
        if not len(self.roots) or self.roots[0] != 0 or not (np.diff(self.roots) > 0).all():
            return "has roots that are not in order"
        tree = np.searchsorted(self.roots, nodes, side="right")
        below = self.children[inner]
        if not (below > nodes[inner, None]).all() or (tree[below] != tree[inner, None]).any():
            return "has children that do not stand behind their parents"
        if self.children[~inner].any():
            return "has leaves with children"
        if len(self.roots) % len(self.baseline) or (len(self.baseline) > 1) != (
            self.link == "softmax"
        ):
            return f"has {len(self.roots)} trees for {len(self.baseline)} outputs of {self.link}"
        return None

    @property
    def n_outputs(self) -> int:
        """Of `predict`: 1 of numbers, or the number of classes."""
        return {"logit": 2}.get(self.link, len(self.baseline))

    @property
    def rounds(self) -> int:
        return len(self.roots) // len(self.baseline)

    def predict(self, X: Array) -> Array:
        """Numbers (n,), or probabilities (n, classes)."""
        if X.ndim != 2 or X.shape[1] != self.width:
            raise ValueError(
                f"X has shape {X.shape}, but these trees were grown on rows of {self.width:,} columns; give as many."
            )
        f = np.repeat(self.baseline[None], len(X), axis=0).astype(np.float64)
        nodes = (self.columns, self.numbers, self.children, self.sets, self.goes)
        add_values(np.ascontiguousarray(X), self.roots, *nodes, f)
        match self.link:
            case "identity":
                return f[:, 0]
            case "log":
                return np.exp(f[:, 0])
            case "logit":
                p = expit(f[:, 0])
                return np.stack([1 - p, p], axis=1)
        return np.asarray(softmax(f, axis=1))


def _link(model: Any) -> str:
    if isinstance(model, HistGradientBoostingClassifier):
        return "softmax" if model.n_trees_per_iteration_ > 1 else "logit"
    return "log" if model.loss in LOG_LOSSES else "identity"


def _read(model: Any) -> tuple[list[_Nodes], Array]:
    """Nodes of every tree, children counted from its root and -1 of leaves; and which codes go to
    the first child where categories are split.

    Fitting has put categories first, each numbered by the order of its codes; here columns and
    codes are those of the rows given.
    """
    if not isinstance(model, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        raise ValueError(
            f"model must be a fitted HistGradientBoosting of scikit-learn, got {type(model).__name__}."
        )
    mask = model.is_categorical_
    back = np.arange(model.n_features_in_)
    codes: list[Array] = []
    if mask is not None:
        back = np.concatenate([np.flatnonzero(mask), np.flatnonzero(~mask)])
        codes = [_codes(c) for c in _categories(model)]
    width = 1 + max((int(c.max(initial=0)) for c in codes), default=0)
    parts: list[_Nodes] = []
    goes = [np.zeros((0, width), bool)]
    for stage in model._predictors:
        for tree in stage:
            parts.append(_nodes(tree.nodes, back, sum(map(len, goes))))
            goes.append(np.array(list(_sets(tree, codes, width)), bool).reshape(-1, width))
    return parts, np.concatenate(goes)


def _categories(model: Any) -> Iterator[Array]:
    """Of every column of categories, in order, without what is missing."""
    if not model.is_categorical_.any():
        return
    for values in model._preprocessor.named_transformers_["encoder"].categories_:
        yield values[~np.isnan(np.asarray(values, np.float64))]


def _codes(values: Array) -> Array:
    v = np.asarray(values, np.float64)
    if not ((v >= 0) & (v < 1 << 16) & (v == np.floor(v))).all():
        raise ValueError(
            f"categories must be whole numbers from 0 to {(1 << 16) - 1:,} to be kept, got {v[:3]}; number them."
        )
    return v.astype(np.int64)


def _nodes(nodes: Array, back: Array, first: int) -> _Nodes:
    """Of one tree; its sets of categories are numbered from `first` on."""
    ends = nodes["is_leaf"].astype(bool)
    two = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64)
    lost = np.where(nodes["missing_go_to_left"].astype(bool), two[:, 0], two[:, 1])
    split = nodes["is_categorical"].astype(bool) & ~ends
    return _Nodes(
        np.where(ends, 0, back[np.where(ends, 0, nodes["feature_idx"])]),
        np.where(ends, nodes["value"], np.where(split, 0.0, nodes["num_threshold"])),
        np.where(ends[:, None], -1, np.concatenate([two, lost[:, None]], axis=1)),
        np.where(split, nodes["bitset_idx"].astype(np.int64) + first, -1),
    )


def _sets(tree: Any, codes: Sequence[Array], width: int) -> Iterator[Array]:
    """Of every split by categories, which codes go to the first child: those never seen go as what
    is missing does."""
    nodes = tree.nodes[(tree.nodes["is_categorical"] != 0) & (tree.nodes["is_leaf"] == 0)]
    for node in nodes[np.argsort(nodes["bitset_idx"])]:
        known = codes[int(node["feature_idx"])]
        words = np.ascontiguousarray(tree.raw_left_cat_bitsets[int(node["bitset_idx"])])
        bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
        out = np.full(width, bool(node["missing_go_to_left"]))
        out[known] = bits[: len(known)]
        yield out


@register("automl.TreeColumns")
@dataclass(frozen=True, eq=False)
class TreeColumns:
    """Treated columns for trees: the indicators of one category joined to one column of codes, all
    else as it is."""

    single: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]

    must = dict(single=Each(Whole(0, 1 << 31)), blocks=Each(Each(Whole(0, 1 << 31), least=1)))

    @classmethod
    def of(cls, origin: Sequence[int], kinds: Sequence[str], X: Array) -> TreeColumns:
        """A block is what the indicators of a category look like: several columns of two values
        each."""
        single: list[int] = []
        blocks: list[tuple[int, ...]] = []
        for j in range(len(kinds)):
            mine = [i for i, o in enumerate(origin) if o == j]
            hot = [i for i in mine if len(np.unique(X[:5000, i])) <= 2]
            joined = 2 < len(hot) <= MAX_CODES
            blocks += [tuple(hot)] * joined
            single += [i for i in mine if not (joined and i in hot)]
        return cls(tuple(single), tuple(blocks))

    @property
    def categorical(self) -> Array:
        return np.arange(self.size) >= len(self.single)

    @property
    def size(self) -> int:
        """Columns that trees see."""
        return len(self.single) + len(self.blocks)

    @property
    def last(self) -> int:
        """The last of the treated columns that is looked at."""
        return max(map(max, filter(None, (self.single, *self.blocks))), default=0)

    def __call__(self, X: Array) -> Array:
        out = np.empty((len(X), self.size), np.float32)
        for s in cuts(len(X), 1 << 14):
            out[s, : len(self.single)] = X[s][:, list(self.single)]
            for j, block in enumerate(self.blocks):
                out[s, len(self.single) + j] = X[s][:, list(block)].argmax(1)
        return out


@register("automl.BoostedTrees")
@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """A grown ensemble of treated rows; like the other predictors, numbers or probabilities, where
    a class that its rows lack has probability 0."""

    trees: TreeEnsemble
    design: TreeColumns
    codes: tuple[int, ...]  # of the classes that its rows have; none of numbers
    n_classes: int
    width: int  # of treated rows
    low: float = -np.inf  # of numbers: 0 where none was negative, as for all others

    must = dict(
        trees=Is("TreeEnsemble"),
        design=Is("TreeColumns", size="trees.width"),
        codes=Each(Whole(0, "n_classes")),
        n_classes=Whole(),
        width=Whole(1),
        low=Number(finite=False),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        if self.design.last >= self.width:
            return f"looks at column {self.design.last} of {self.width}"
        if len(set(self.codes)) < len(self.codes) or self.trees.n_outputs != max(
            len(self.codes), 1
        ):
            return f"has {self.trees.n_outputs} outputs for classes {self.codes}"
        if bool(self.codes) != bool(self.n_classes) or bool(self.codes) != (
            self.trees.link in ("logit", "softmax")
        ):
            return f"has the link {self.trees.link} for {self.n_classes} classes"
        return None

    @property
    def plan_(self) -> str:
        """What it is, in words."""
        return f"{self.trees.rounds:,} rounds of boosted trees, {len(self.trees.numbers):,} nodes"

    def __call__(self, X: Array) -> Array:
        if X.ndim != 2 or X.shape[1] != self.width:
            raise ValueError(
                f"X has shape {X.shape}, but these trees were grown on treated rows of {self.width:,} columns; give as many."
            )
        parts = [self.trees.predict(self.design(X[s])) for s in cuts(len(X), BLOCK_ROWS)]
        found = np.concatenate(parts) if parts else np.zeros((0, max(len(self.codes), 1)))
        if not self.n_classes:
            return np.maximum(found.reshape(len(X)), self.low)
        out = np.zeros((len(X), self.n_classes))
        out[:, list(self.codes)] = found
        return out
