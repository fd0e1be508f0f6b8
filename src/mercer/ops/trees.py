"""Walks down binary trees: the leaf of every tree that a row falls into, or the sum of their
values."""

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


def add_values(
    X: Array,
    roots: Array,
    columns: Array,
    numbers: Array,
    children: Array,
    sets: Array,
    goes: Array,
    out: Array,
) -> Array:
    """out[i, t mod K] += the value that tree t gives to row i; out (n, K), which is changed.

    Node v sends a row on by x = X[i, columns[v]]: where sets[v] < 0 to children[v, 0] if
    x <= numbers[v], else to children[v, 1]; where s = sets[v] >= 0 by goes[s, x], of whole numbers
    x from 0 on that it has; to children[v, 2] where x is NaN or none of those. A leaf has no
    children (0), and its value in numbers[v]. The loop looks at no bounds: columns are those of X,
    sets rows of `goes`, and a node's children stand behind it. Trees are added in order.

    >>> at = np.array([[1, 2, 2], [0, 0, 0], [0, 0, 0]]), np.full(3, -1), np.zeros((0, 1), bool)
    >>> X, trees = np.array([[0.5], [3.0]]), (np.array([0]), np.zeros(3, int), np.array([1.0, 7.0, 8.0]))
    >>> add_values(X, *trees, *at, np.zeros((2, 1))).ravel()
    array([7., 8.])
    """
    parallel_map(
        lambda at: _add_values(X[at], roots, columns, numbers, children, sets, goes, out[at]),
        cuts(len(X), ROWS),
    )
    return out


def add_values_reference(
    X: Array,
    roots: Array,
    columns: Array,
    numbers: Array,
    children: Array,
    sets: Array,
    goes: Array,
    out: Array,
) -> Array:
    """`add_values`, all rows one level at a time."""
    at = np.repeat(roots[None], len(X), axis=0)
    known = np.concatenate([goes, np.zeros((1, goes.shape[1]), bool)])
    while (inner := children[at, 0] > 0).any():
        x = np.take_along_axis(X, columns[at], axis=1)
        codes = np.where((x >= 0) & (x < goes.shape[1]), x, 0).astype(np.int64)
        left = np.where(sets[at] < 0, x <= numbers[at], known[sets[at], codes])
        lost = np.isnan(x) | ((sets[at] >= 0) & (codes != x))
        at = np.where(inner, children[at, np.where(lost, 2, np.where(left, 0, 1))], at)
    for t in range(len(roots)):
        out[:, t % out.shape[1]] += numbers[at[:, t]]
    return out


@njit
def _add_values(
    X: Array,
    roots: Array,
    columns: Array,
    numbers: Array,
    children: Array,
    sets: Array,
    goes: Array,
    out: Array,
) -> None:
    for t in range(roots.shape[0]):
        k = t % out.shape[1]
        for i in range(X.shape[0]):
            v = roots[t]
            while children[v, 0] > 0:
                x, s, side = X[i, columns[v]], sets[v], 1
                if np.isnan(x):
                    side = 2
                elif s < 0:
                    side = 0 if x <= numbers[v] else 1
                elif 0 <= x < goes.shape[1] and x == np.floor(x):
                    side = 0 if goes[s, int(x)] else 1
                else:
                    side = 2
                v = children[v, side]
            out[i, k] += numbers[v]


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
