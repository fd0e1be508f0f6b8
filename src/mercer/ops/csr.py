"""Loops over compressed rows: products with vectors and of pairs, sweeps of dual coordinates; places were
checked where the rows came in (`mercer.inputs.sound`), and are unsigned, so that no loop asks whether
one counts from the end."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

FUSED = {
    "contract"
}  # sums in the order of the entries: gathers in lanes are slower than one by one


@njit
def counts(places: Array, out: Array) -> None:
    """out[j] += how often j is among the places."""
    for t in range(places.shape[0]):
        out[places[t]] += 1


@njit
def renamed(places: Array, names: Array, out: Array) -> None:
    """out = names[places]."""
    for t in range(places.shape[0]):
        out[t] = names[places[t]]


@njit
def transpose(
    pointers: Array, places: Array, values: Array, next_: Array, rows: Array, moved: Array
) -> None:
    """The same entries by column, the rows of each ascending; `next_` holds where every column
    begins, and is spent."""
    for i in range(pointers.shape[0] - 1):
        for t in range(pointers[i], pointers[i + 1]):
            at = next_[places[t]]
            rows[at] = i
            moved[at] = values[t]
            next_[places[t]] += np.uint64(1)


@njit(fastmath=FUSED)
def times_vector(
    pointers: Array, places: Array, values: Array, v: Array, out: Array, first: int, last: int
) -> None:
    """out_i = sum_j x_ij v_j of the rows from first to last."""
    for i in range(first, last):
        total = 0.0
        for t in range(pointers[i], pointers[i + 1]):
            total += values[t] * v[places[t]]
        out[i] = total


@njit
def times_matrix(
    pointers: Array, places: Array, values: Array, V: Array, out: Array, first: int, last: int
) -> None:
    """out_i = sum_j x_ij V_j, V (p, k)."""
    for i in range(first, last):
        for k in range(V.shape[1]):
            out[i, k] = 0.0
        for t in range(pointers[i], pointers[i + 1]):
            x, j = values[t], places[t]
            for k in range(V.shape[1]):
                out[i, k] += x * V[j, k]


@njit(fastmath=FUSED)
def times_squares(
    pointers: Array, places: Array, values: Array, q: Array, out: Array, first: int, last: int
) -> None:
    """out_i = sum_j x_ij^2 q_j."""
    for i in range(first, last):
        total = 0.0
        for t in range(pointers[i], pointers[i + 1]):
            x = np.float64(values[t])
            total += x * x * q[places[t]]
        out[i] = total


@njit(fastmath=FUSED)
def add_rows(
    pointers: Array, places: Array, values: Array, r: Array, out: Array, first: int, last: int
) -> None:
    """out += sum_i r_i x_i over the rows from first to last, one after another; rows of zero cost
    nothing."""
    for i in range(first, last):
        if r[i] != 0:
            for t in range(pointers[i], pointers[i + 1]):
                out[places[t]] += r[i] * values[t]


@njit(fastmath=FUSED)
def add_outer(
    pointers: Array, places: Array, values: Array, R: Array, out: Array, first: int, last: int
) -> None:
    """out += sum_i x_i R_i', out (p, k)."""
    for i in range(first, last):
        for t in range(pointers[i], pointers[i + 1]):
            x, j = values[t], places[t]
            for k in range(R.shape[1]):
                out[j, k] += x * R[i, k]


@njit(fastmath=FUSED)
def add_pairs(
    pointers: Array, places: Array, values: Array, h: Array, since: int, out: Array
) -> None:
    """out[a, b] += sum_i h_i x_ia x_ib for columns a >= since and b <= a; places ascend in a row."""
    for i in range(pointers.shape[0] - 1):
        for s in range(pointers[i], pointers[i + 1]):
            a = places[s]
            if a >= since:
                o, v = out[a - since], h[i] * values[s]
                for t in range(pointers[i], s + 1):
                    o[places[t]] += v * values[t]


@njit(fastmath=FUSED)
def sweep(  # type: ignore[no-untyped-def]
    pointers, places, values, y, a, c, square, active, order, coef, state
):
    """One sweep of dual coordinate descent over the hinge, a step a row in that order; a, active
    and coef are changed.

    `state` is [b, scale, sum of a y, above, below]: what `mercer.ops.smo.sweep` does of dense
    rows. Returns the sum of a y, and the extreme projected gradients.
    """
    b, scale, total, above, below = state
    high, low, one = -np.inf, np.inf, np.uint64(1)
    for i in order:
        even, odd, t, last = 0.0, 0.0, pointers[i], pointers[i + 1]
        while t + one < last:  # two sums: an addition need not wait for the one before
            even += values[t] * coef[places[t]]
            odd += values[t + one] * coef[places[t + one]]
            t += one + one
        if t < last:
            even += values[t] * coef[places[t]]
        g = y[i] * (even + odd + b + scale * total) - 1
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
        for t in range(pointers[i], pointers[i + 1]):
            coef[places[t]] += move * values[t]
    return total, high, low


@njit(fastmath=FUSED)
def tube_sweep(  # type: ignore[no-untyped-def]
    pointers, places, values, t, a, c, square, active, order, coef, state
):
    """One sweep over the dual of max(0, |t - f| - e), -c <= a <= c with a kink at zero; a, active and
    coef are changed.

    `state` is [b, scale, sum of a, e, slack]: rows that stay at zero or at a bound by more than
    the slack are left out from then on. Returns the sum of a, and the largest violation.
    """
    b, scale, total, e, slack = state
    worst, one = 0.0, np.uint64(1)
    for i in order:
        even, odd, k, last = 0.0, 0.0, pointers[i], pointers[i + 1]
        while k + one < last:
            even += values[k] * coef[places[k]]
            odd += values[k + one] * coef[places[k + one]]
            k += one + one
        if k < last:
            even += values[k] * coef[places[k]]
        g = even + odd + b + scale * total - t[i]
        rise = g + (e if a[i] >= 0 else -e)  # slopes to either side
        fall = g + (e if a[i] > 0 else -e)
        out = min(rise if a[i] < c[i] else np.inf, -fall if a[i] > -c[i] else np.inf)
        if out >= 0:
            active[i] = out <= slack
            continue
        worst = max(worst, -out)
        q = max(square[i] + scale, 1e-300)
        free = a[i] - g / q
        free = max(free - e / q, 0.0) + min(free + e / q, 0.0)
        move = min(max(free, -c[i]), c[i]) - a[i]
        a[i] += move
        total += move
        for k in range(pointers[i], pointers[i + 1]):
            coef[places[k]] += move * values[k]
    return total, worst
