"""The kernel perceptron's ordered scan of a block of rows, and what it does when its points exceed
a budget.

Merging is apart, in `budget_merging`: the scan stops where a merger is due, and goes on after it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Ints, declare
from mercer.ops.jit import njit
from mercer.store import register

SUMS = {"contract", "reassoc"}  # a sum may be added up in any order: the same one for every row
UNLIMITED, RANDOM, OLDEST, FORGETRON, PROJECTRON, PLUS, MERGING = range(7)
SIZE, SEEN, MISTAKES, REDUCED, RADIUS, FORGOTTEN, UPDATES = range(7)  # places in the tally
# of k(x, x): a point nearer to the span of the others is projected, lest their inverse lose its
# digits
MIN_RESIDUAL = 1e-10


@register("ops.Memory")
class Memory(NamedTuple):
    """What a scan holds: points only by their kernel values, except where it makes new ones."""

    A: Array  # (C, n) weights of the points, one row for two classes
    U: Array  # (C, n) from which the mean of A over the rows follows
    owner: Array  # (n,) the row of the present rows that a point is, or -1
    born: Array  # (n,) rows seen before it
    source: Array  # (n,) its place before the block, or -1 - its row in the block
    # (n, n) kernel values between the points, or their inverse; (1, 1) where the policy needs
    # neither
    Q: Array
    P: Array  # (n, d) the points themselves, where merging makes new ones
    tally: Array  # counts: see SIZE, ...


declare(
    Memory,
    A=Floats("C", "n"),
    U=Floats("C", "n"),
    owner=Ints("n", low=-1, below=1 << 48),
    born=Floats("n"),
    source=Ints("n", low=-(1 << 10), below="n"),
    Q=Floats("q", "q"),
    P=Floats(None, None),
    tally=Floats(7),
)


@njit(fastmath=SUMS)
def scan(
    start: int,
    K: Array,
    G: Array,
    X: Array,
    labels: Array,
    ids: Array,
    slots: Array,
    draws: Array,
    m: Memory,
    wrong: Array,
    policy: int,
    budget: int,
    eta: float,
    margin: float,
    power: float,
) -> int:
    """Rows of a block in their order: K (b, n) their kernel values with the points, G (b, b) with
    each other.

    A mistake is y f <= 0, a margin error y f <= margin; both add a step of the row to the weights.
    `ids` are the places of the rows in `slots`, which tells the point that a row already is. K is
    changed. Returns the row to go on with: there are more points than the budget before it, where
    they are to be merged.
    """
    scores = np.empty(m.A.shape[0])
    for i in range(start, K.shape[0]):
        for c in range(m.A.shape[0]):
            total = 0.0
            for j in range(int(m.tally[SIZE])):
                total += m.A[c, j] * K[i, j]
            scores[c] = total
        own, rival, sign, gap = _judge(scores, labels[i])
        wrong[i] = not gap > 0
        m.tally[MISTAKES] += wrong[i]
        m.tally[RADIUS] = max(m.tally[RADIUS], G[i, i] * (1 if rival < 0 else 2))
        if not gap > margin and G[i, i] > 0:
            m.tally[UPDATES] += 1
            _update(
                i,
                K,
                G,
                X,
                ids,
                slots,
                draws,
                m,
                own,
                rival,
                sign,
                gap,
                policy,
                budget,
                eta,
                margin,
                power,
            )
        m.tally[SEEN] += 1
        if policy == MERGING and m.tally[SIZE] > budget:
            return i + 1
    return K.shape[0]


@njit(fastmath=SUMS)
def scan_unlimited(  # type: ignore[no-untyped-def]
    K, G, labels, ids, slots, A, U, owner, born, source, tally, wrong, margin, power
):
    """`scan` without a budget, which keeps every point: a small loop of its own, as that one takes
    seconds to compile."""
    scores, n = np.empty(A.shape[0]), int(tally[SIZE])
    for i in range(K.shape[0]):
        for c in range(A.shape[0]):
            total = 0.0
            for j in range(n):
                total += A[c, j] * K[i, j]
            scores[c] = total
        own, rival, sign, gap = _judge(scores, labels[i])
        wrong[i] = not gap > 0
        square = G[i, i] * (1 if rival < 0 else 2)
        tally[MISTAKES] += wrong[i]
        tally[RADIUS] = max(tally[RADIUS], square)
        if not gap > margin and G[i, i] > 0:
            tally[UPDATES] += 1
            step = sign * (1.0 if not gap > 0 else min(1.0, (margin - gap) / square))
            before, at = tally[SEEN] ** (power + 1), slots[ids[i]]
            if at < 0:
                at, n = n, n + 1
                for c in range(A.shape[0]):
                    A[c, at], U[c, at] = 0.0, 0.0
                owner[at], born[at], source[at], slots[ids[i]] = ids[i], tally[SEEN], -1 - i, at
                for t in range(i + 1, K.shape[0]):
                    K[t, at] = G[t, i]
            A[own, at] += step
            U[own, at] += before * step
            if rival >= 0:
                A[rival, at] -= step
                U[rival, at] -= before * step
        tally[SEEN] += 1
    tally[SIZE] = n


@njit
def _judge(scores: Array, label: int) -> tuple[int, int, float, float]:
    """(row that gains, row that loses or -1, sign, y f or the lead over the best rival)."""
    if scores.shape[0] == 1:
        return 0, -1, float(label), label * scores[0]
    rival = 1 if label == 0 else 0
    for c in range(scores.shape[0]):
        if c != label and scores[c] > scores[rival]:
            rival = c
    return label, rival, 1.0, scores[label] - scores[rival]


@njit
def _update(  # type: ignore[no-untyped-def]
    i, K, G, X, ids, slots, draws, m, own, rival, sign, gap, policy, budget, eta, margin, power
):
    square = G[i, i] * (1 if rival < 0 else 2)
    step = 1.0 if not gap > 0 else min(1.0, (margin - gap) / square)
    before = m.tally[SEEN] ** (power + 1)
    if slots[ids[i]] >= 0:
        _add(m, slots[ids[i]], own, rival, sign * step, before)
        return
    spans = policy in (PROJECTRON, PLUS)
    if spans and _projected(
        i, K, G, m, own, rival, sign, gap, step, before, policy, budget, eta, margin
    ):
        return
    _append(i, K, G, X, ids, slots, m, own, rival, sign * step, before, policy)
    if int(m.tally[SIZE]) <= budget or policy == UNLIMITED:
        return
    if policy == RANDOM:
        drop(int(draws[i] * budget), i, K, slots, m, policy)
    elif policy == OLDEST:
        drop(_oldest(m), i, K, slots, m, policy)
    elif policy == FORGETRON:
        drop(_shrunk(m, before), i, K, slots, m, policy)


@njit
def _add(m, j, own, rival, step, before):  # type: ignore[no-untyped-def]
    m.A[own, j] += step
    m.U[own, j] += before * step
    if rival >= 0:
        m.A[rival, j] -= step
        m.U[rival, j] -= before * step


@njit
def _append(i, K, G, X, ids, slots, m, own, rival, step, before, policy):  # type: ignore[no-untyped-def]
    n = int(m.tally[SIZE])
    _blend(m, n, 0.0, n, 0.0)
    _add(m, n, own, rival, step, before)
    m.owner[n], m.born[n], m.source[n], slots[ids[i]] = ids[i], m.tally[SEEN], -1 - i, n
    for t in range(i + 1, K.shape[0]):
        K[t, n] = G[t, i]
    if policy in (FORGETRON, MERGING):
        for j in range(n):
            m.Q[n, j] = m.Q[j, n] = K[i, j]
        m.Q[n, n] = G[i, i]
    for c in range(X.shape[1] if policy == MERGING else 0):
        m.P[n, c] = X[i, c]
    m.tally[SIZE] = n + 1


@njit
def drop(j, i, K, slots, m, policy):  # type: ignore[no-untyped-def]
    """Take point j away after row i; the last point takes its place."""
    last = int(m.tally[SIZE]) - 1
    if m.owner[j] >= 0:
        slots[m.owner[j]] = -1
    if j != last:
        _move(last, j, i, K, slots, m, policy)
    _blend(m, last, 0.0, last, 0.0)
    m.tally[SIZE] = last
    m.tally[REDUCED] += 1


@njit
def _move(last, j, i, K, slots, m, policy):  # type: ignore[no-untyped-def]
    _blend(m, last, 1.0, j, 0.0)
    m.owner[j], m.born[j], m.source[j] = m.owner[last], m.born[last], m.source[last]
    if m.owner[j] >= 0:
        slots[m.owner[j]] = j
    for t in range(i + 1, K.shape[0]):
        K[t, j] = K[t, last]
    if policy in (FORGETRON, MERGING):
        for l in range(last):
            m.Q[j, l] = m.Q[l, j] = m.Q[last, l]
        m.Q[j, j] = m.Q[last, last]
    for c in range(m.P.shape[1] if policy == MERGING else 0):
        m.P[j, c] = m.P[last, c]


@njit
def _blend(m, j, u, l, v):  # type: ignore[no-untyped-def]
    """The weights of point l as u times those of j and v times its own."""
    for c in range(m.A.shape[0]):
        m.A[c, l] = (u * m.A[c, j] if u != 0 else 0.0) + (v * m.A[c, l] if v != 0 else 0.0)
        m.U[c, l] = (u * m.U[c, j] if u != 0 else 0.0) + (v * m.U[c, l] if v != 0 else 0.0)


@njit
def _oldest(m):  # type: ignore[no-untyped-def]
    found = 0
    for j in range(int(m.tally[SIZE])):
        if m.born[j] < m.born[found]:
            found = j
    return found


@njit(fastmath=SUMS)
def _shrunk(m, before):  # type: ignore[no-untyped-def]
    """Shrink all weights by as little as the Forgetron's bound allows; which point goes."""
    r, n = _oldest(m), int(m.tally[SIZE])
    sigma, mu = 1e-300, 0.0
    for c in range(m.A.shape[0]):
        sigma = max(sigma, abs(m.A[c, r]))
    for c in range(m.A.shape[0]):
        for j in range(n):
            mu += m.A[c, r] / sigma * m.A[c, j] * m.Q[r, j]
    mu /= m.tally[RADIUS]
    a, b, c = (
        sigma * sigma - 2 * sigma * mu,
        2 * sigma,
        m.tally[FORGOTTEN] - 15 / 32 * m.tally[UPDATES],
    )
    phi = _largest(a, b, c)
    m.tally[FORGOTTEN] += a * phi * phi + b * phi
    for l in range(m.A.shape[0]):
        for j in range(n):
            m.U[l, j] += before * (phi - 1) * m.A[l, j]
            m.A[l, j] *= phi
    return r


@njit
def _largest(a, b, c):  # type: ignore[no-untyped-def]
    """The largest phi in (0, 1] with a phi^2 + b phi + c <= 0, where b > 0; 1 where there is
    none."""
    inside = b * b - 4 * a * c
    if a + b + c <= 0 or c >= 0 or inside < 0:
        return 1.0
    if a == 0:
        return min(1.0, -c / b)
    return min(1.0, (-b + math.sqrt(inside)) / (2 * a))


@njit(fastmath=SUMS)
def _projected(i, K, G, m, own, rival, sign, gap, step, before, policy, budget, eta, margin):  # type: ignore[no-untyped-def]
    """Add the projection of the row on the span of the points where it is near, or there is no
    room; whether that was done."""
    n = int(m.tally[SIZE])
    d, inside = np.zeros(n), 0.0
    for j in range(n):
        for l in range(n):
            d[j] += m.Q[j, l] * K[i, l]
        inside += d[j] * K[i, j]
    outside = max(G[i, i] - inside, 0.0)
    full = n >= budget or outside <= max(eta * eta, MIN_RESIDUAL) * G[i, i]
    if policy == PLUS and gap > 0:
        loss, many = margin - gap, 1 if rival < 0 else 2
        left = loss - math.sqrt(many * outside / G[i, i]) / eta
        if left <= 0 or inside <= 0:
            return True
        step, full = min(1.0, min(loss, 2 * left) / (many * inside)), True
    if full:
        for j in range(n):
            _add(m, j, own, rival, sign * step * d[j], before)
        m.tally[REDUCED] += 1
        return True
    for j in range(n):
        for l in range(n):
            m.Q[j, l] += d[j] * d[l] / outside
        m.Q[n, j] = m.Q[j, n] = -d[j] / outside
    m.Q[n, n] = 1 / outside
    return False
