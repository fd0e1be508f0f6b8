"""Steps of two duals over a small block of a kernel matrix, by second-order choice, in SIMD.

    min_b b'Kb/2 - t'b + e |b|_1,   lo <= b <= hi,   lo <= 0 <= hi,   the sum of b kept (or free)

is the dual of a classifier (e = 0, t = y), of a regression (t = y) and of one class (t = 0). G = Kb
- t. A dual below hi may rise, at the slope G + e (G - e where b < 0); one above lo may fall,
likewise. UP and DOWN hold those +-e, and +-MAX_GRADIENT where it may not, so that every choice is a
sum and a comparison without a branch.
"""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

# candidates kept side by side: a pass has no reduction, which LLVM would not vectorise, until its
# end; `_least` counts on 64
LANE = 64
MAX_GRADIENT = 1e300
FAR = 1 << 60  # beyond all places
# the least curvature of a step, relative to the largest diagonal entry: twins and rounding leave
# less
MIN_CURVATURE = 1e-7
FAST = {"contract", "nsz"}


def lanes(q: int) -> int:
    """Lanes for q entries.

    >>> lanes(64), lanes(65)
    (1, 2)
    """
    return -(-q // LANE)


@njit(fastmath=FAST)
def gate(b, lo, hi, e):  # type: ignore[no-untyped-def]
    """What G needs for the slopes of a rise and of a fall."""
    up = MAX_GRADIENT if b >= hi else e if b >= 0 else -e
    down = -MAX_GRADIENT if b <= lo else e if b > 0 else -e
    return up, down


# what is done once a round is plain NumPy: compiling it would take longer than all its calls
def gates(b: Array, lo: Array, hi: Array, e: float, up: Array, down: Array) -> None:
    """`gate` of every dual."""
    np.multiply(b >= hi, MAX_GRADIENT, out=up)  # no branch, which would be guessed wrongly
    np.multiply(b <= lo, -MAX_GRADIENT, out=down)
    if e:  # nothing beside those out of reach
        up += np.where(b >= 0, e, -e)
        down += np.where(b > 0, e, -e)


def snap(b: Array, lo: Array, hi: Array, change: Array) -> int:
    """Duals that rounding left beside a bound, or zero, go onto it, as they would pass for free;
    how many, and by what."""
    # bounds far beyond all duals say nothing about their rounding
    size = np.abs(b).max(initial=0.0)
    at = np.flatnonzero((b != lo) & (b != hi) & (b != 0))  # others lie there
    some, lo, hi = b[at], lo[at], hi[at]
    near = 1e-12 * np.minimum(hi - lo, size)
    zero = np.where(np.abs(some) <= near, 0.0, some)
    end = np.where(hi - some <= near, hi, np.where(some - lo <= near, lo, zero))
    change[:] = 0.0
    change[at] = end - some
    b[at] = end
    return int(np.count_nonzero(end != some))


# the choice among lanes has no branch: what it finds is new in every step, and a branch that is
# guessed wrongly takes as long as a dozen lanes
@njit(fastmath=FAST)
def _least(values, spare):  # type: ignore[no-untyped-def]
    """The least of all lanes, by halves."""
    for k in range(32):
        spare[k] = values[k] if values[k] < values[k + 32] else values[k + 32]
    for k in range(16):
        spare[k] = spare[k] if spare[k] < spare[k + 16] else spare[k + 16]
    for k in range(8):
        spare[k] = spare[k] if spare[k] < spare[k + 8] else spare[k + 8]
    for k in range(4):
        spare[k] = spare[k] if spare[k] < spare[k + 4] else spare[k + 4]
    a = spare[0] if spare[0] < spare[1] else spare[1]
    b = spare[2] if spare[2] < spare[3] else spare[3]
    return a if a < b else b


@njit(fastmath=FAST)
def _place(values, least, at):  # type: ignore[no-untyped-def]
    """The first of all entries with this value, where each lane has its least at a row of lanes."""
    first = FAR
    for k in range(LANE):
        here = at[k] * LANE + k if values[k] == least else FAR
        first = here if here < first else first
    return first


@njit(fastmath=FAST)
def _move(G, UP, DOWN, K, i, j, step, low, high, at, spare):  # type: ignore[no-untyped-def]
    """G += step (K_i - K_j); then the least slope of a rise, where, and the largest slope of a
    fall."""
    for k in range(LANE):
        low[k], high[k], at[k] = MAX_GRADIENT, MAX_GRADIENT, 0
    for c in range(G.shape[0]):
        for k in range(LANE):
            g = G[c, k] + (
                step * K[i, c, k] - step * K[j, c, k]
            )  # in float64: the difference of two float32 would be rounded
            G[c, k] = g
            u, d, least, most = g + UP[c, k], -(g + DOWN[c, k]), low[k], high[k]
            at[k] = c if u < least else at[k]
            low[k] = u if u < least else least
            high[k] = d if d < most else most
    top = _least(low, spare)
    return top, _place(low, top, at), -_least(high, spare)


@njit(fastmath=FAST)
def _partner(G, DOWN, K, i, diagonal, top, own, tiny, gain, at, spare):  # type: ignore[no-untyped-def]
    """The fall that, with a rise of slope `top`, lowers the objective most."""
    for k in range(LANE):
        gain[k], at[k] = 1.0, 0
    for c in range(G.shape[0]):
        for k in range(LANE):
            d = G[c, k] + DOWN[c, k] - top
            d = d if d > 0.0 else 0.0
            q = own + diagonal[c, k] - 2.0 * K[i, c, k]
            q = q if q > tiny else tiny
            v, most = -(d * d / q), gain[k]
            at[k] = c if v < most else at[k]
            gain[k] = v if v < most else most
    return _place(gain, _least(gain, spare), at)


@njit(fastmath=FAST)
def pairs(K, G, b, lo, hi, e, tol, most):  # type: ignore[no-untyped-def]
    """Steps of two duals until slopes differ by at most tol; b (q,) and G (L, LANE) are changed.
    The number of steps.

    K (q, L, LANE) is the block with its columns in lanes; entries beyond q are never chosen.
    """
    UP, DOWN, diagonal, tiny = settings(K, G, b, lo, hi, e)
    low, high, spare, at = np.empty(LANE), np.empty(LANE), np.empty(LANE), np.empty(LANE, np.int64)
    i, j, step = len(b) - 1, len(b) - 1, 0.0  # a literal would compile what is called twice
    for s in range(most):
        top, i, worst = _move(G, UP, DOWN, K, i, j, step, low, high, at, spare)
        if not worst - top > tol:
            return s
        own = diagonal[i // LANE, i % LANE]
        j = _partner(G, DOWN, K, i, diagonal, top, own, tiny, low, at, spare)
        c, r = j // LANE, j % LANE
        curvature = max(own + diagonal[c, r] - 2.0 * K[i, c, r], tiny)
        end_i, end_j = hi[i] if b[i] >= 0 else 0.0, lo[j] if b[j] <= 0 else 0.0
        step = min((G[c, r] + DOWN[c, r] - top) / curvature, end_i - b[i], b[j] - end_j)
        b[i] = end_i if step >= end_i - b[i] else b[i] + step
        b[j] = end_j if step >= b[j] - end_j else b[j] - step
        UP[i // LANE, i % LANE], DOWN[i // LANE, i % LANE] = gate(b[i], lo[i], hi[i], e)
        UP[c, r], DOWN[c, r] = gate(b[j], lo[j], hi[j], e)
    _move(G, UP, DOWN, K, i, j, step, low, high, at, spare)  # of the last step
    return most


@njit(fastmath=FAST)
def settings(K, G, b, lo, hi, e):  # type: ignore[no-untyped-def]
    """The gates and the diagonal in lanes, and the least curvature."""
    UP, DOWN, diagonal = np.empty(G.shape), np.empty(G.shape), np.empty(G.shape)
    largest = 0.0
    for c in range(G.shape[0]):
        for r in range(LANE):
            UP[c, r], DOWN[c, r], diagonal[c, r] = MAX_GRADIENT, -MAX_GRADIENT, 0.0
    for k in range(len(b)):
        c, r = k // LANE, k % LANE
        UP[c, r], DOWN[c, r] = gate(b[k], lo[k], hi[k], e)
        diagonal[c, r] = K[k, c, r]
        largest = max(largest, diagonal[c, r])
    return UP, DOWN, diagonal, max(MIN_CURVATURE * largest, 1e-300)


@njit(fastmath=FAST)
def _single(G, UP, DOWN, K, i, diagonal, tiny, step, gain, at, spare):  # type: ignore[no-untyped-def]
    """G += step K_i; then the dual whose own step lowers the objective most."""
    for k in range(LANE):
        gain[k], at[k] = 1.0, 0
    for c in range(G.shape[0]):
        for k in range(LANE):
            g = G[c, k] + step * K[i, c, k]
            G[c, k] = g
            u, d = -(g + UP[c, k]), g + DOWN[c, k]
            d = d if d > u else u
            d = d if d > 0.0 else 0.0
            q, most = diagonal[c, k], gain[k]
            v = -(d * d / (q if q > tiny else tiny))
            at[k] = c if v < most else at[k]
            gain[k] = v if v < most else most
    return _place(gain, _least(gain, spare), at)


@njit(fastmath=FAST)
def _steepest(G, UP, DOWN):  # type: ignore[no-untyped-def]
    """The dual with the largest slope, whatever it gains."""
    best, most = 0, -1.0
    for c in range(G.shape[0]):
        for k in range(LANE):
            slope = max(-(G[c, k] + UP[c, k]), G[c, k] + DOWN[c, k])
            if slope > most:
                best, most = c * LANE + k, slope
    return best


@njit(fastmath=FAST)
def singles(K, G, b, lo, hi, e, tol, most):  # type: ignore[no-untyped-def]
    """`pairs` without a bias: the sum of b is free, and a step moves one dual, until every slope is
    at most tol."""
    UP, DOWN, diagonal, tiny = settings(K, G, b, lo, hi, e)
    gain, spare, at = np.empty(LANE), np.empty(LANE), np.empty(LANE, np.int64)
    i, step = len(b) - 1, 0.0
    for s in range(most):
        i = _single(G, UP, DOWN, K, i, diagonal, tiny, step, gain, at, spare)
        c, r = i // LANE, i % LANE
        if (
            not max(-(G[c, r] + UP[c, r]), G[c, r] + DOWN[c, r]) > tol
        ):  # what gains most is not what is steepest
            i = _steepest(G, UP, DOWN)
            c, r = i // LANE, i % LANE
        rise, fall = -(G[c, r] + UP[c, r]), G[c, r] + DOWN[c, r]
        if not max(rise, fall) > tol:
            return s
        q = max(diagonal[c, r], tiny)
        if rise > fall:
            end = hi[i] if b[i] >= 0 else 0.0
            new = min(b[i] + rise / q, end)
        else:
            end = lo[i] if b[i] <= 0 else 0.0
            new = max(b[i] - fall / q, end)
        step, b[i] = new - b[i], new
        UP[c, r], DOWN[c, r] = gate(b[i], lo[i], hi[i], e)
    _single(G, UP, DOWN, K, i, diagonal, tiny, step, gain, at, spare)  # of the last step
    return most


def shares(h: Array, b: Array, lo: Array, hi: Array, e: float = 0.0) -> Array:
    """What every dual adds to the gap, convex in its slope h: `reference_shares` where bounds are
    finite and there is no ridge, in few passes."""
    if e:
        free = h - np.clip(h, -e, e)
        return np.asarray(h * b + e * np.abs(b) - free * np.where(free < 0, hi, lo))
    return np.asarray(h * (b - np.where(h < 0, hi, lo)))


def reference_shares(h: Array, b: Array, lo: Array, hi: Array, e: float, ridge: Array) -> Array:
    """The same plainly, whatever bounds and ridge are."""
    with np.errstate(all="ignore"):  # bounds may be infinite, and 0 times them is no gain
        free = np.where(hi > 0, -h - e, np.where(lo < 0, h - e, 0.0))
        square = 0.5 * np.square(np.maximum(free, 0.0)) / np.where(ridge > 0, ridge, 1.0)
        gain = np.fmax(np.fmax(-(h + e) * hi, -(h - e) * lo), 0.0)
        own = h * b + e * np.abs(b) + 0.5 * ridge * np.square(b)
        return np.asarray(own + np.where(ridge > 0, square, gain))


def _shares(h: Array, b: Array, lo: Array, hi: Array, e: float, ridge: Array) -> Array:
    if ridge.any() or np.isinf(hi - lo).any():
        return reference_shares(h, b, lo, hi, e, ridge)
    return shares(h, b, lo, hi, e)


def gap(G: Array, b: Array, lo: Array, hi: Array, e: float, ridge: Array, nu: float) -> float:
    """The duality gap at the multiplier nu of the sum: what other values between the bounds could
    at most gain.

    G = (K + diag(ridge))b - t; every dual adds the most that a value of its own gains on the
    objective with Kb held.
    """
    return float(_shares(G - ridge * b - nu, b, lo, hi, e, ridge).sum())


def gap_within(
    G: Array, b: Array, lo: Array, hi: Array, e: float, ridge: Array, nu: float, error: Array
) -> float:
    """The largest gap where every G is within its error of what is given: a dual clearly at a bound
    adds nothing."""
    h = G - ridge * b - nu
    ends = (_shares(h + side * error, b, lo, hi, e, ridge) for side in (-1.0, 1.0))
    return float(np.maximum(*ends).sum())


@njit(fastmath={"contract", "reassoc"})
def sweep(F, y, a, c, square, active, order, coef, state):  # type: ignore[no-untyped-def]
    """One sweep of dual coordinate descent over rows of features, a step a row in that order, on
    views.

    Returns the sum of a y, and the extreme projected gradients.
    """
    b, scale, total, above, below = state
    high, low = -np.inf, np.inf
    for i in order:
        dot = F.dtype.type(0)
        for j in range(F.shape[1]):
            dot += F[i, j] * coef[j]
        g = y[i] * (dot + b + scale * total) - 1
        if (a[i] <= 0 and g > above) or (a[i] >= c[i] and g < below):
            active[i] = False
            continue
        if (a[i] <= 0 and g >= 0) or (a[i] >= c[i] and g <= 0):
            continue
        high, low = max(high, g), min(low, g)
        new = min(max(a[i] - g / max(square[i] + scale, 1e-300), 0.0), c[i])
        move = (new - a[i]) * y[i]
        a[i] = new
        total += move
        step = F.dtype.type(move)
        for j in range(F.shape[1]):
            coef[j] += step * F[i, j]
    return total, high, low


def reference_pairs(
    K: Array, t: Array, lo: Array, hi: Array, e: float, tol: float, most: int = 10**6
) -> Array:
    """The duals of the whole problem with a bias, from zero, plainly: what `pairs` computes in
    lanes."""
    b, G = np.zeros(len(t)), -t.astype(np.float64)
    tiny = max(MIN_CURVATURE * float(np.diag(K).max()), 1e-300)
    for _ in range(most):
        rise = np.where(b >= hi, np.inf, G + np.where(b >= 0, e, -e))
        fall = np.where(b <= lo, -np.inf, G + np.where(b > 0, e, -e))
        i = int(np.argmin(rise))
        if not fall.max() - rise[i] > tol:
            break
        curvature = np.maximum(K[i, i] + np.diag(K) - 2 * K[i], tiny)
        j = int(np.argmax(np.maximum(fall - rise[i], 0) ** 2 / curvature))
        step = min(
            (fall[j] - rise[i]) / curvature[j],
            (hi[i] if b[i] >= 0 else 0.0) - b[i],
            b[j] - (lo[j] if b[j] <= 0 else 0.0),
        )
        b[i], b[j] = b[i] + step, b[j] - step
        G += step * (K[i] - K[j])
    return b
