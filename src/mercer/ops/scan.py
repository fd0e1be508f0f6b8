"""The perceptron's ordered scan: row after row, an update at every mistake; dense and sparse
rows."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

SUMS = {
    "contract",
    "reassoc",
}  # a dot product may be added up in any order: the same one for every row


def reference(
    F: Array, labels: Array, W: Array, U: Array, seen: float, offset: bool, wrong: Array
) -> int:
    """The same as `scan`, in plain NumPy: f = W (x, 1); at a mistake W += step, U += (rows before)
    step.

    W (1, D + 1): labels are -1 or 1, a mistake is y f <= 0. W (C, D + 1): labels are rows of W, a
    mistake is a rival's score >= the label's own; the label gains x, the best rival loses it. W - U
    / rows is the mean of W over all rows.
    """
    for i, y in enumerate(labels):
        x = np.append(F[i].astype(np.float64), float(offset))
        step, f = np.zeros_like(W), W @ x
        if len(W) == 1:
            wrong[i], step[0] = not y * f[0] > 0, y * x
        else:
            rival = int(np.argmax(np.where(np.arange(len(W)) == y, -np.inf, f)))
            wrong[i], step[y], step[rival] = not f[y] > f[rival], x, -x
        if wrong[i]:
            W += step
            U += (seen + i) * step
    return int(wrong.sum())


@njit(fastmath=SUMS)
def scan(
    F: Array, labels: Array, W: Array, U: Array, seen: float, offset: bool, wrong: Array
) -> int:
    """Scan dense rows F (n, D); W and U are changed, wrong[i] tells the mistakes, their number is
    returned."""
    scores, mistakes, D = np.empty(W.shape[0]), 0, F.shape[1]
    for i in range(F.shape[0]):
        for c in range(W.shape[0]):
            total = 0.0
            for j in range(D):
                total += W[c, j] * F[i, j]
            scores[c] = total + (W[c, D] if offset else 0.0)
        own, sign, rival = _judge(scores, labels[i])
        wrong[i] = own >= 0
        if own >= 0:
            mistakes += 1
            _add(F[i], W, U, own, sign, seen + i, offset)
            if rival >= 0:
                _add(F[i], W, U, rival, -sign, seen + i, offset)
    return mistakes


@njit(fastmath=SUMS)
def scan_csr(
    pointers: Array,
    columns: Array,
    values: Array,
    labels: Array,
    W: Array,
    U: Array,
    seen: float,
    offset: bool,
    wrong: Array,
) -> int:
    """The same over CSR rows, at the cost of their nonzeros."""
    scores, mistakes, D = np.empty(W.shape[0]), 0, W.shape[1] - 1
    for i in range(pointers.shape[0] - 1):
        at, x = columns[pointers[i] : pointers[i + 1]], values[pointers[i] : pointers[i + 1]]
        for c in range(W.shape[0]):
            total = 0.0
            for t in range(x.shape[0]):
                total += W[c, at[t]] * x[t]
            scores[c] = total + (W[c, D] if offset else 0.0)
        own, sign, rival = _judge(scores, labels[i])
        wrong[i] = own >= 0
        if own >= 0:
            mistakes += 1
            _add_csr(at, x, W, U, own, sign, seen + i, offset)
            if rival >= 0:
                _add_csr(at, x, W, U, rival, -sign, seen + i, offset)
    return mistakes


@njit
def _judge(scores: Array, label: int) -> tuple[int, float, int]:
    """(row that gains, its sign, row that loses or -1); (-1, 0, -1) where there is no mistake."""
    if scores.shape[0] == 1:
        return (
            (-1, 0.0, -1) if label * scores[0] > 0 else (0, float(label), -1)
        )  # not a number is a mistake
    rival = 1 if label == 0 else 0
    for c in range(scores.shape[0]):
        if c != label and scores[c] > scores[rival]:
            rival = c
    return (-1, 0.0, -1) if scores[label] > scores[rival] else (label, 1.0, rival)


@njit
def _add(x: Array, W: Array, U: Array, c: int, sign: float, before: float, offset: bool) -> None:
    for j in range(x.shape[0]):
        W[c, j] += sign * x[j]
        U[c, j] += before * sign * x[j]
    if offset:
        W[c, x.shape[0]] += sign
        U[c, x.shape[0]] += before * sign


@njit
def _add_csr(
    columns: Array,
    values: Array,
    W: Array,
    U: Array,
    c: int,
    sign: float,
    before: float,
    offset: bool,
) -> None:
    for t in range(columns.shape[0]):
        W[c, columns[t]] += sign * values[t]
        U[c, columns[t]] += before * sign * values[t]
    if offset:
        W[c, W.shape[1] - 1] += sign
        U[c, W.shape[1] - 1] += before * sign
