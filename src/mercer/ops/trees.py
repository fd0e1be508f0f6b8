"""Walks down binary trees: the leaf of every tree that a row falls into."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

ROWS = 256  # that walk down a tree together


def walk(
    X: Array,
    roots: Array,
    columns: Array,
    thresholds: Array,
    children: Array,
    missing: Array,
    leaves: Array,
) -> Array:
    """The number of the leaf of each row (n, d) in each tree, (n, T).

    Node v sends a row to children[v, 0] where X[i, columns[v]] <= thresholds[v], or where it is NaN
    and missing[v]; else to children[v, 1]. Of a leaf leaves[v] is its number, of others -1. The loop
    looks at no bounds: columns are those of X, and a node's children stand behind it.

    >>> at = np.array([[1, 2], [0, 0], [0, 0]]), np.zeros(3, bool), np.array([-1, 0, 1])
    >>> X, trees = np.array([[0.5], [3.0]]), (np.array([0]), np.zeros(3, int), np.ones(3))
    >>> walk(X, *trees, *at).ravel()
    array([0, 1], dtype=int32)
    """
    out = np.empty((len(X), len(roots)), np.int32)
    parallel_map(
        lambda at: _walk(X[at], roots, columns, thresholds, children, missing, leaves, out[at]),
        cuts(len(X), ROWS),
    )
    return out


def walk_reference(
    X: Array,
    roots: Array,
    columns: Array,
    thresholds: Array,
    children: Array,
    missing: Array,
    leaves: Array,
) -> Array:
    """`walk`, all rows one level at a time."""
    at = np.repeat(roots[None], len(X), axis=0)
    while (inner := leaves[at] < 0).any():
        x = np.take_along_axis(X, columns[at], axis=1)
        left = np.where(np.isnan(x), missing[at], x <= thresholds[at])
        at = np.where(inner, children[at, np.where(left, 0, 1)], at)
    return leaves[at].astype(np.int32)


@njit
def _walk(
    X: Array,
    roots: Array,
    columns: Array,
    thresholds: Array,
    children: Array,
    missing: Array,
    leaves: Array,
    out: Array,
) -> None:
    for t in range(roots.shape[0]):  # the nodes of one tree stay in cache for all rows
        for i in range(X.shape[0]):
            v = roots[t]
            while leaves[v] < 0:
                x = X[i, columns[v]]
                left = missing[v] if np.isnan(x) else x <= thresholds[v]
                v = children[v, 0] if left else children[v, 1]
            out[i, t] = leaves[v]
