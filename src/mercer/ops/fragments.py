"""Shared fragments of labelled trees: a sum over pairs of nodes of equal production, children before
their parents, without recursion.

The nodes of a tree stand in postorder, so those below a node are the last subtrees on a stack: a row
of values by the nodes of the other tree that have its production, taken away when their parent has
read them. A chain of any depth holds one row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit


class Forest(NamedTuple):
    """The nodes of trees one after another; `places` says which are of a tree.

    `order` has the nodes of each tree by production, then by place; `rank` is the place of a node
    among those of its tree and production. Children are numbered from the first node of their tree.
    """

    places: Array  # (n + 1,)
    production: Array  # (N,) numbers that both forests of a call share
    first: Array  # (N + 1,) where the children of a node begin among all children
    children: Array
    order: Array  # (N,)
    rank: Array  # (N,)


@njit
def children_of(places: Array, counts: Array) -> Array:
    """The children of all nodes, given how many each has and postorder; empty where a tree has no
    or more than one root, or a node more children than there are."""
    children = np.empty(len(counts) - (places[1:] > places[:-1]).sum(), np.int64)
    stack = np.empty(len(counts) + 1, np.int64)
    filled = 0
    for t in range(len(places) - 1):
        height = 0
        for i in range(places[t], places[t + 1]):
            c = counts[i]
            if c < 0 or c > height or filled + c > len(children):
                return np.empty(0, np.int64)
            height -= c
            for k in range(c):
                children[filled + k] = stack[height + k]
            filled += c
            stack[height] = i - places[t]
            height += 1
        if height != (1 if places[t + 1] > places[t] else 0):
            return np.empty(0, np.int64)
    return children


@njit
def ranks(places: Array, production: Array, order: Array) -> Array:
    """The place of every node among those of its tree and production."""
    rank = np.zeros(len(order), np.int64)
    for t in range(len(places) - 1):
        for k in range(places[t] + 1, places[t + 1]):
            if production[order[k]] == production[order[k - 1]]:
                rank[order[k]] = rank[order[k - 1]] + 1
    return rank


@njit
def _ranges(x: Forest, a: int, z: Forest, b: int, low: Array, high: Array) -> int:
    """Where the nodes of tree b of z with the production of each node of tree a of x stand in the
    order of z; the number of pairs."""
    i, j, n = x.places[a], z.places[b], 0
    while i < x.places[a + 1]:
        p = x.production[x.order[i]]
        while j < z.places[b + 1] and z.production[z.order[j]] < p:
            j += 1
        end = j
        while end < z.places[b + 1] and z.production[z.order[end]] == p:
            end += 1
        while i < x.places[a + 1] and x.production[x.order[i]] == p:
            node = x.order[i] - x.places[a]
            low[node], high[node] = j, end
            n += end - j
            i += 1
        j = end
    return n


@njit
def _highest(x: Forest, a: int, low: Array, high: Array, begins: Array) -> int:
    """The most values that are on the stack at once."""
    height, top, most = 0, 0, 0
    for i in range(x.places[a + 1] - x.places[a]):
        node = x.places[a] + i
        c = x.first[node + 1] - x.first[node]
        if c:
            height -= c
            top = begins[height]
        begins[height] = top
        height += 1
        top += high[i] - low[i]
        most = max(most, top)
    return most


@njit
def _swapped(x: Forest, a: int, z: Forest, b: int) -> bool:
    """Whether tree b is to come first: an order of trees, so that k(x, z) and k(z, x) are added up
    alike."""
    n, m = x.places[a + 1] - x.places[a], z.places[b + 1] - z.places[b]
    if n != m:
        return n > m
    for k in range(n):
        p, q = x.production[x.places[a] + k], z.production[z.places[b] + k]
        if p != q:
            return p > q
    return False


@njit
def _pair(
    x: Forest, a: int, z: Forest, b: int, decay: float, sigma: float, scratch: Array
) -> tuple[float, float]:
    """The kernel of two trees, and its derivative by `decay`."""
    n = x.places[a + 1] - x.places[a]
    low, high, begins, nodes = scratch[0], scratch[1], scratch[2], scratch[3]
    if n == 0 or _ranges(x, a, z, b, low, high) == 0:
        return 0.0, 0.0
    value = np.empty(_highest(x, a, low, high, begins))
    slope = np.empty(len(value))
    row = np.empty((2, z.places[b + 1] - z.places[b]))
    total, moved, height, top = 0.0, 0.0, 0, 0
    for i in range(n):
        c = x.first[x.places[a] + i + 1] - x.first[x.places[a] + i]
        height -= c
        for j in range(low[i], high[i]):
            node = z.order[j]
            p, s = 1.0, 0.0
            for k in range(c):
                child = z.places[b] + z.children[z.first[node] + k]
                f, g = sigma, 0.0
                if z.production[child] == x.production[x.places[a] + nodes[height + k]]:
                    at = begins[height + k] + z.rank[child]
                    f += value[at]
                    g = slope[at]
                s = s * f + p * g
                p *= f
            row[0, j - low[i]], row[1, j - low[i]] = decay * p, p + decay * s
        top = begins[height] if c else top
        for k in range(high[i] - low[i]):
            value[top + k], slope[top + k] = row[0, k], row[1, k]
            total += row[0, k]
            moved += row[1, k]
        begins[height], nodes[height] = top, i
        height += 1
        top += high[i] - low[i]
    return total, moved


@njit
def shared_fragments(
    x: Forest, z: Forest, pairs: Array, decay: float, sigma: float, value: Array, slope: Array
) -> None:
    """Fill in the kernel of the trees x_i and z_j of every pair (i, j), and its derivative by
    `decay`."""
    longest = 0
    for f in (x, z):
        for t in range(len(f.places) - 1):
            longest = max(longest, f.places[t + 1] - f.places[t])
    scratch = np.empty((4, longest + 1), np.int64)
    for k in range(len(pairs)):
        i, j = pairs[k]
        if _swapped(x, i, z, j):
            value[k], slope[k] = _pair(z, j, x, i, decay, sigma, scratch)
        else:
            value[k], slope[k] = _pair(x, i, z, j, decay, sigma, scratch)
