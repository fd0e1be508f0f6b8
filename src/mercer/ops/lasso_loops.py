"""The active sets of `mercer.ops.lasso` as compiled loops: for supports of many features, which gain and
lose one row of a factor at a time."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf

from mercer.inputs import Array
from mercer.ops.jit import njit

DEPENDENT = 1e-11  # what is left of a column, squared, less than which it depends on the others
TIMES = 64  # that a feature may enter at one penalty: more is rounding that goes in circles
MOST = 48  # features that enter at a time
NEAR = 0.125  # of the largest violation: what else enters with it
MANY = 256  # features whose factor LAPACK makes faster than one row at a time
SOUND = 1e-7  # what is left of a column, squared, for a factor that is not made with care
ROUNDING = 8 * float(np.finfo(np.float64).eps)  # of a slope, in units of its feature and the target
FAST = {"reassoc", "contract", "nsz"}


@njit(fastmath=FAST)
def _dot(x, y, k):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(k):
        total += x[i] * y[i]
    return total


@njit(fastmath=FAST)
def _sub(out, x, t, k):  # type: ignore[no-untyped-def]
    """out[:k] -= t x[:k]"""
    for i in range(k):
        out[i] -= t * x[i]


@njit
def _forward(L, k, v):  # type: ignore[no-untyped-def]
    """L^-1 v, in place."""
    for i in range(k):
        v[i] = (v[i] - _dot(L[i], v, i)) / L[i, i]


@njit
def _backward(L, k, v):  # type: ignore[no-untyped-def]
    """L'^-1 v, in place."""
    for i in range(k - 1, -1, -1):
        v[i] /= L[i, i]
        _sub(v, L[i], v[i], i)


@njit
def _append(L, G, l2, act, k, j, z):  # type: ignore[no-untyped-def]
    """Give the factor the row of j; whether j is independent of the others."""
    for i in range(k):
        z[i] = G[j, act[i]]
    _forward(L, k, z)
    return _extend(L, G[j, j] + l2, k, z)


@njit
def _extend(L, size, k, z):  # type: ignore[no-untyped-def]
    """Give the factor the row z = L^-1 g of a feature; whether it is independent of the others."""
    left = size - _dot(z, z, k)
    if left <= DEPENDENT * size:
        return False
    for i in range(k):
        L[k, i] = z[i]
    L[k, k] = np.sqrt(left)
    return True


@njit
def _rows(L, G, act, k, new, m, Z):  # type: ignore[no-untyped-def]
    """Z[r] = L^-1 g of m new features, of which each row of L is read once for all."""
    for r in range(m):
        for i in range(k):
            Z[r, i] = G[new[r], act[i]]
    for i in range(k):
        for r in range(m):
            Z[r, i] = (Z[r, i] - _dot(L[i], Z[r], i)) / L[i, i]


@njit
def _remove(L, k, r, cos, sin):  # type: ignore[no-untyped-def]
    """Take row r out of a factor of k rows, by rotations of what stands below it, a row at a time;
    `cos` and `sin` are room for them."""
    for i in range(r + 1, k):  # row i of before is row i - 1 of now
        u = L[i, r]
        for j in range(r):
            L[i - 1, j] = L[i, j]
        for j in range(r, i - 1):
            y = L[i, j + 1]
            L[i - 1, j] = cos[j] * y + sin[j] * u
            u = cos[j] * u - sin[j] * y
        e = np.sqrt(L[i, i] * L[i, i] + u * u)
        cos[i - 1], sin[i - 1] = L[i, i] / e, u / e
        L[i - 1, i - 1] = e


@njit(fastmath=FAST)
def _sub_rows(out, G, rows, t, k):  # type: ignore[no-untyped-def]
    """out -= t[rows] G[rows], of k rows, four of which share a pass over `out`."""
    p, i = len(out), 0
    while i + 4 <= k:
        w, x, y, z = G[rows[i]], G[rows[i + 1]], G[rows[i + 2]], G[rows[i + 3]]
        a, b, c, d = t[rows[i]], t[rows[i + 1]], t[rows[i + 2]], t[rows[i + 3]]
        for j in range(p):
            out[j] -= a * w[j] + b * x[j] + c * y[j] + d * z[j]
        i += 4
    while i < k:
        _sub(out, G[rows[i]], t[rows[i]], p)
        i += 1


@njit
def _slopes(G, c, b, l2, act, k, q):  # type: ignore[no-untyped-def]
    """q = c - Gb - l2 b"""
    q[:] = c
    _sub_rows(q, G, act, b, k)
    for i in range(k):
        q[act[i]] -= l2 * b[act[i]]


@njit
def _leave(L, act, place, b, k, r, cos, sin):  # type: ignore[no-untyped-def]
    """The feature at place r of the active ones goes; how many are left."""
    _remove(L, k, r, cos, sin)
    b[act[r]], place[act[r]] = 0.0, -1
    for i in range(r, k - 1):
        act[i] = act[i + 1]
        place[act[i]] = i
    return k - 1


@njit
def _first_zero(b, d, s, act, k):  # type: ignore[no-untyped-def]
    """How far along d until a coefficient has the wrong sign, and which; 1 and -1 where none."""
    far, at = 1.0, -1
    for i in range(k):
        j = act[i]
        if d[i] * s[j] < 0 and (b[j] + d[i]) * s[j] <= 0:
            t = -b[j] / d[i]
            if t < far or at < 0:
                far, at = t, i
    return far, at


@njit
def _settle(L, b, s, q, l1, act, place, k, d, right):  # type: ignore[no-untyped-def]
    """Solve on the active features, which leave where their sign would turn; how many are left.

    `q` is kept right on them alone.
    """
    while k:
        for i in range(k):
            d[i] = q[act[i]] - l1 * s[act[i]]
            right[i] = d[i]
        _forward(L, k, d)
        _backward(L, k, d)
        t, out = _first_zero(b, d, s, act, k)
        for i in range(k):
            b[act[i]] += t * d[i]
            q[act[i]] -= t * right[i]
        if out < 0:
            return k
        k = _leave(L, act, place, b, k, out, d, right)
    return k


@njit
def _slide(G, L, b, s, act, place, k, j, sign, z, spare):  # type: ignore[no-untyped-def]
    """j depends on the active features: move along the direction that leaves Gb as it is until
    one of them comes to zero and leaves. How many are left, and whether there was such."""
    for i in range(k):
        z[i] = G[j, act[i]]
    _forward(L, k, z)
    _backward(L, k, z)
    far, at = np.inf, -1
    for i in range(k):
        v = -sign * z[i]
        if v * s[act[i]] < 0 and -b[act[i]] / v < far:
            far, at = -b[act[i]] / v, i
    if at < 0:
        return k, False
    for i in range(k):
        b[act[i]] -= far * sign * z[i]
    b[j] = far * sign
    return _leave(L, act, place, b, k, at, z, spare), True


@njit
def _violated(q, l1, tol, place, seen, new):  # type: ignore[no-untyped-def]
    """How many features may enter, those near the largest violation; `new` are they."""
    worst, m = 0.0, 0
    for j in range(len(q)):
        if place[j] < 0 and seen[j] < TIMES:
            worst = max(worst, abs(q[j]) - l1 - tol[j])
    if worst <= 0:
        return 0
    for j in range(len(q)):
        if place[j] < 0 and seen[j] < TIMES and abs(q[j]) - l1 - tol[j] >= NEAR * worst:
            new[m] = j
            m += 1
            if m == MOST:
                break
    return m


@njit
def _enter(G, L, l1, l2, b, s, q, act, place, k, seen, tol, new, Z, spare):  # type: ignore[no-untyped-def]
    """Let the features of the largest slopes in; how many are active, and how many came, or -1
    where others moved for one."""
    known, came = k, 0
    m = _violated(q, l1, tol, place, seen, new)
    _rows(L, G, act, k, new, m, Z)
    for r in range(m):
        j, z = new[r], Z[r]
        sign = 1.0 if q[j] > 0 else -1.0
        for i in range(known, k):  # those that came before it
            z[i] = (G[j, act[i]] - _dot(L[i], z, i)) / L[i, i]
        enters, slid = _extend(L, G[j, j] + l2, k, z), False
        if not enters and came:
            continue  # later, alone: the others must be settled
        seen[j] += 1
        if not enters:
            k, slid = _slide(G, L, b, s, act, place, k, j, sign, z, spare)
            if not slid:
                continue
            enters = _append(L, G, l2, act, k, j, z)
        if enters:
            act[k], place[j], s[j] = j, k, sign
            k, came = k + 1, came + 1
        else:
            b[j] = 0.0
        if slid:
            return k, -1
    return k, came


@njit
def _off(q, s, l1, act, k, tol):  # type: ignore[no-untyped-def]
    """How far beyond rounding the slopes of the active features are from theirs."""
    far = 0.0
    for i in range(k):
        far = max(far, abs(q[act[i]] - l1 * s[act[i]]) - tol[act[i]])
    return far


@njit
def _gap(b, q, rr, l1, act, k, tol):  # type: ignore[no-untyped-def]
    """The duality gap: the residual, scaled until every slope is within l1 but for its rounding, is
    a dual point."""
    top, norm, inner = 0.0, 0.0, 0.0
    for j in range(len(q)):
        top = max(top, abs(q[j]) - tol[j])
    scale = min(1.0, l1 / top) if top > 0 else 1.0
    for i in range(k):
        j = act[i]
        norm += abs(b[j])
        inner += b[j] * q[j]
    return (1 - scale) ** 2 * rr / 2 + l1 * norm - scale * inner


@njit
def _squares(c, yy, b, q, act, k):  # type: ignore[no-untyped-def]
    """|y - Xb|^2 + l2 |b|^2 = yy - c'b - q'b"""
    total = yy
    for i in range(k):
        total -= (c[act[i]] + q[act[i]]) * b[act[i]]
    return max(total, 0.0)


def factor(G: Array, l2: float, b: Array) -> Array:
    """(k, k) the factor of the features that are not zero, where they are many and far from
    dependent; else nothing.

    >>> factor(np.eye(2), 0.0, np.ones(2)).shape
    (0, 0)
    """
    some = np.flatnonzero(b)
    if len(some) < MANY:
        return np.empty((0, 0))
    A = G[np.ix_(some, some)]
    A[np.diag_indices(len(A))] += l2
    squares = SOUND * np.diag(A)
    U, bad = dpotrf(A.T, lower=0, overwrite_a=1)
    return U.T if not bad and (np.diag(U) ** 2 > squares).all() else np.empty((0, 0))


@njit
def _begin(G, L, l2, b, s, act, place, z, known):  # type: ignore[no-untyped-def]
    """A factor of the features that are not zero; those that depend on others become so. What is
    `known` of it, all or nothing, is not computed."""
    k = 0
    for j in range(len(b)):
        place[j] = -1
        if b[j] != 0.0:
            if len(known):
                L[k, : k + 1] = known[k, : k + 1]
            if len(known) or _append(L, G, l2, act, k, j, z):
                act[k], place[j], s[j] = j, k, 1.0 if b[j] > 0 else -1.0
                k += 1
            else:
                b[j] = 0.0
    return k


def units(G: Array, c: Array) -> tuple[Array, float]:
    """(p,) the norms of features, and the largest product of one of norm 1 with the target: what
    slopes and their rounding are measured by.

    >>> units(np.diag([4.0, 0.0]), np.array([6.0, 0.0]))
    (array([2., 0.]), 3.0)
    """
    roots = np.sqrt(np.maximum(G.diagonal()[: len(c)], 0.0))
    some = roots > 0
    return roots, float((np.abs(c[some]) / roots[some]).max(initial=0.0))


@njit
def _rounding(b, roots, top, least, tol):  # type: ignore[no-untyped-def]
    """tol[j] = least and what slope j may be off by."""
    norm = top
    for j in range(len(b)):
        norm += abs(b[j]) * roots[j]
    for j in range(len(b)):
        tol[j] = least + ROUNDING * norm * roots[j]


@njit
def _solve(G, c, l1, l2, b, s, q, L, act, place, k, seen, room, new, Z, rounds, roots, top):  # type: ignore[no-untyped-def]
    """One penalty, from where b is; how many features are active, and the rounds it took."""
    seen[:], again, tol = 0, 2, room[3]
    _slopes(G, c, b, l2, act, k, q)
    for step in range(rounds):
        k = _settle(L, b, s, q, l1, act, place, k, room[0], room[1])
        _slopes(G, c, b, l2, act, k, q)
        _rounding(b, roots, top, 1e-13 * l1, tol)
        k, came = _enter(G, L, l1, l2, b, s, q, act, place, k, seen, tol, new, Z, room[2])
        if came < 0:
            _slopes(G, c, b, l2, act, k, q)
        elif came == 0:
            if again == 0 or _off(q, s, l1, act, k, tol) <= 0:
                return k, step + 1
            again -= 1
    return k, rounds


def active_path(
    G: Array,
    c: Array,
    yy: float,
    alphas: Array,
    l1_ratio: float,
    b: Array,
    rounds: int,
    known: Array,
) -> tuple[Array, Array, Array]:
    """b (m, p) of every penalty, the gaps (m,), and the rounds it took (m,).

    G (p, p), or more of which the first p count, is symmetric, `yy` the squares of the target;
    `b` (p,) is where to start, and where the last penalty ends. l1 = alpha l1_ratio, l2 = alpha
    (1 - l1_ratio). `known` is what `factor` gives for b and the first l2, or empty.
    """
    return _active_path(G, c, yy, alphas, l1_ratio, b, rounds, known, *units(G, c))


@njit
def _active_path(G, c, yy, alphas, l1_ratio, b, rounds, known, roots, top):  # type: ignore[no-untyped-def]
    p, m = len(c), len(alphas)
    out, gaps, took = np.zeros((m, p)), np.zeros(m), np.zeros(m, np.int64)
    L, s, q, room = np.zeros((p, p)), np.zeros(p), np.zeros(p), np.zeros((4, p))
    new, Z = np.zeros(MOST, np.int64), np.zeros((MOST, p))
    act, place, seen = np.zeros(p, np.int64), np.zeros(p, np.int64), np.zeros(p, np.int64)
    k, last = 0, -1.0
    for a in range(m):
        l1, l2 = alphas[a] * l1_ratio, alphas[a] * (1 - l1_ratio)
        if l2 != last:  # another matrix: the factor is made anew
            k, last = _begin(G, L, l2, b, s, act, place, room[0], known[: (a == 0) * p]), l2
        k, took[a] = _solve(
            G, c, l1, l2, b, s, q, L, act, place, k, seen, room, new, Z, rounds, roots, top
        )
        for i in range(k):
            out[a, act[i]] = b[act[i]]
        _rounding(b, roots, top, 0.0, room[3])
        gaps[a] = _gap(b, q, _squares(c, yy, b, q, act, k), l1, act, k, room[3])
    return out, gaps, took
