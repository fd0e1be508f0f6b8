"""Grown trees as plain arrays, read from scikit-learn's: what a map of leaves walks and keeps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Ints, Truths, Whole, check
from mercer.ops.trees import walk
from mercer.store import register

LARGEST = float(np.finfo(np.float64).max)
LARGEST_SINGLE = float(np.finfo(np.float32).max)
HISTOGRAMS, BOOSTED, FORESTS, SINGLES = (
    tuple(f"{module}.{kind}{task}" for kind in kinds for task in ("Classifier", "Regressor"))
    for module, kinds in (
        ("ensemble", ("HistGradientBoosting",)),
        ("ensemble", ("GradientBoosting",)),
        ("ensemble", ("RandomForest", "ExtraTrees")),
        ("tree", ("DecisionTree",)),
    )
)


def is_one_of(model: object, names: tuple[str, ...]) -> bool:
    """Whether a model is of one of these classes of scikit-learn, none of which is imported: that
    takes longer than the first fit of most models."""
    loaded = (name.split(".") for name in names)
    modules = ((sys.modules.get(f"sklearn.{module}"), name) for module, name in loaded)
    return any(module and isinstance(model, getattr(module, name)) for module, name in modules)


class OneTree(NamedTuple):
    """Nodes of one tree, the root first and children behind their parents; -1 for children of
    leaves. Rows of value <= the threshold go to the first child, and where it is NaN as `missing`
    says."""

    columns: Array
    thresholds: Array
    children: Array
    missing: Array

    @classmethod
    def leaf(cls) -> Self:
        """A tree of one leaf."""
        return cls(np.zeros(1, int), np.zeros(1), np.full((1, 2), -1), np.zeros(1, bool))


@register("lifts.GrownTrees")
@dataclass(frozen=True, eq=False)
class GrownTrees:
    """Trees one after the other, each grown without the rows of one fold (or of none).

    Leaves are numbered through; `single` says that rows are compared in float32, as the trees of
    forests are grown.
    """

    roots: Array  # (T,)
    folds: Array  # (T,)
    columns: Array  # (N,)
    thresholds: Array  # (N,)
    children: Array  # (N, 2), 0 of leaves
    missing: Array  # (N,)
    leaves: Array  # (N,): the number of a leaf, -1 of other nodes
    width: int  # of rows
    size: int  # the number of leaves
    n_folds: int
    single: bool

    must = dict(
        roots=Ints("T", below="N", distinct=True),
        folds=Ints("T", below="n_folds"),
        columns=Ints("N", below="width"),
        thresholds=Floats("N"),
        children=Ints("N", 2, below="N"),
        missing=Truths("N"),
        leaves=Ints("N", low=-1, below="size"),
        width=Whole(1),
        size=Whole(1),
        n_folds=Whole(1),
    )

    @classmethod
    def of(cls, trees: list[tuple[int, OneTree]], width: int, *, single: bool) -> Self:
        """Of trees and the folds that they have not seen."""
        sizes = np.array([len(tree.columns) for _, tree in trees])
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        children = np.concatenate([tree.children for _, tree in trees])
        ends = children[:, 0] < 0
        thresholds = np.concatenate([tree.thresholds for _, tree in trees])
        return cls(
            roots=roots.astype(np.int32),
            folds=np.array([fold for fold, _ in trees], np.int32),
            columns=np.where(ends, 0, np.concatenate([t.columns for _, t in trees])).astype(
                np.int32
            ),
            thresholds=np.where(ends, 0.0, np.clip(thresholds, -LARGEST, LARGEST)),
            children=np.where(ends[:, None], 0, children + np.repeat(roots, sizes)[:, None]).astype(
                np.int32
            ),
            missing=np.concatenate([tree.missing for _, tree in trees]).astype(bool),
            leaves=np.where(ends, np.cumsum(ends) - 1, -1).astype(np.int32),
            width=width,
            size=int(ends.sum()),
            n_folds=1 + max(fold for fold, _ in trees),
            single=single,
        )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        """A walk goes forward inside its tree and ends at a leaf of its own number."""
        nodes, inner = np.arange(len(self.leaves)), self.leaves < 0
        if self.roots[0] != 0 or not (np.diff(self.roots) > 0).all():
            return "has roots that are not in order"
        tree = np.searchsorted(self.roots, nodes, side="right")
        below = self.children[inner]
        if not (below > nodes[inner, None]).all() or (tree[below] != tree[inner, None]).any():
            return "has children that do not stand behind their parents"
        if not np.array_equal(self.leaves[~inner], np.arange(self.size)):
            return "has leaves that are not numbered through"
        return None

    def __call__(self, X: Array) -> Array:
        """The number of each row's leaf in each tree, (n, T)."""
        nodes = (self.columns, self.thresholds, self.children, self.missing, self.leaves)
        return walk(np.ascontiguousarray(as_compared(X, single=self.single)), self.roots, *nodes)

    def conditions(self, names: list[str]) -> list[str]:
        """Of every leaf, what holds of the rows in it (of values that are there)."""
        bounds: list[dict[int, tuple[float, float]]] = [{} for _ in self.leaves]
        out = []
        for v, leaf in enumerate(self.leaves):
            if leaf >= 0:
                out.append(" and ".join(_told(names[j], *b) for j, b in bounds[v].items()) or "all")
                continue
            j, t = int(self.columns[v]), float(self.thresholds[v])
            low, high = bounds[v].get(j, (-np.inf, np.inf))
            first, second = self.children[v]
            bounds[first] = {**bounds[v], j: (low, min(high, t))}
            bounds[second] = {**bounds[v], j: (max(low, t), high)}
        return out


def as_compared(X: Array, *, single: bool) -> Array:
    """Rows as trees compare them, in float32 where those are grown so."""
    if not single or X.dtype == np.float32:
        return X
    return np.clip(X, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32)


def _told(name: str, low: float, high: float) -> str:
    """
    >>> _told("age", 20.0, 30.0), _told("age", -np.inf, 30.0), _told("age", 20.0, np.inf)
    ('20 < age <= 30', 'age <= 30', 'age > 20')
    """
    if np.isinf(low):
        return f"{name} <= {high:.6g}"
    return f"{name} > {low:.6g}" if np.isinf(high) else f"{low:.6g} < {name} <= {high:.6g}"


# of scikit-learn's
def trees_of(model: Any) -> Iterator[OneTree]:
    """The trees of a fitted estimator; ValueError where it has none that can be read."""
    match model:
        case _ if is_one_of(model, HISTOGRAMS):
            yield from (_of_histograms(p.nodes) for stage in model._predictors for p in stage)
        case _ if is_one_of(model, SINGLES):
            yield _of_tree(model.tree_)
        case _:
            yield from (_of_tree(e.tree_) for e in np.ravel(model.estimators_))


def check_grower(estimator: Any) -> None:
    """ValueError where the trees of an estimator cannot be read."""
    if not is_one_of(estimator, HISTOGRAMS + BOOSTED + FORESTS + SINGLES):
        raise ValueError(
            "estimator must be a random forest, extra trees, (hist) gradient boosting or a decision tree of scikit-learn, "
            f"got {type(estimator).__name__}."
        )


def in_single(estimator: Any) -> bool:
    """Whether its trees compare rows in float32."""
    return not is_one_of(estimator, HISTOGRAMS)


def _of_tree(tree: Any) -> OneTree:
    children = np.stack([tree.children_left, tree.children_right], axis=1)
    missing = getattr(tree, "missing_go_to_left", None)
    missing = np.zeros(len(children)) if missing is None else missing
    return OneTree(tree.feature, tree.threshold, children, missing.astype(bool))


def _of_histograms(nodes: Array) -> OneTree:
    ends = nodes["is_leaf"].astype(bool)
    if (nodes["is_categorical"][~ends] != 0).any():
        raise ValueError(
            "estimator splits by sets of categories, which have no threshold; give one-hot codes, and no categorical_features."
        )
    children = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64)
    return OneTree(
        nodes["feature_idx"],
        nodes["num_threshold"],
        np.where(ends[:, None], -1, children),
        nodes["missing_go_to_left"].astype(bool),
    )
