"""A path for hard problems: first a small C, which rises while the duals rise with it."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.learners.smo_box import Box, Duals

RISE, LONGEST = math.sqrt(10.0), 30  # of C from one problem to the next, and the most that rise so, before the last

Run = Callable[[Box, Array, int], Duals]  # a problem, duals to start from, and rounds
Inner = Callable[[Box], "tuple[Array, bool] | None"]  # the duals of an interior-point method, and whether its kernel was exact


def by_path(run: Run, box: Box, diagonal: Array, start: Array, most: int, patience: int, inner: Inner) -> Duals:
    """`run`, and where it has not ended after `patience` rounds, from inside, or over a path that ends at the same problem.

    From far away, steps of two duals zigzag where C k(x, x) is large, as in a linear kernel of few columns. Kernels of low rank are
    then solved by an interior-point method; else, from the duals of a smaller C, which are nearly in proportion, steps do not.
    """
    found = run(box, start, min(most, patience))
    if found.converged or found.rounds >= most:
        return found
    if (within := inner(box)) is not None:
        found, exact = _from_inside(run, box, found, within[0], min(most - found.rounds, patience)), within[1]
        if found.converged or found.rounds >= most:
            return found
        if exact:  # all that is left is the rounding of K
            return replace(found, ended="rounding")
    shares = path(box, diagonal)
    last = _risen(run, box, shares, most - found.rounds, patience) if shares else run(box, found.b, most - found.rounds)
    best = last if last.converged or last.gap <= found.gap else found
    return replace(best, rounds=found.rounds + last.rounds, steps=found.steps + last.steps, made=max(found.made, last.made))


def _from_inside(run: Run, box: Box, before: Duals, b: Array, patience: int) -> Duals:
    """The best of what was found before, of the duals from inside, and of steps from these."""
    first = run(box, b, 0)
    after = first if first.converged else run(box, b, patience)
    close = any(m.gap < abs(m.objective) for m in (before, first, after))  # else no gap says anything
    best = after if after.converged else min(before, first, after, key=lambda m: m.gap if close else m.objective)
    rounds, steps = before.rounds + after.rounds + 1, before.steps + after.steps
    return replace(best, rounds=rounds, steps=steps, made=max(before.made, after.made))


def path(box: Box, diagonal: Array) -> list[float]:
    """The shares of C that lead to 1, from where C k(x, x) is of the size of the targets; none where that sum is fixed.

    >>> box = Box(np.array([1.0, -1.0]), np.array([0.0, -10.0]), np.array([10.0, 0.0]))
    >>> [round(s, 3) for s in path(box, np.ones(2))]
    [0.1, 0.316, 1.0]
    """
    size = float(np.abs(box.t).max())
    if size == 0 or box.total != 0:
        return []
    steep = box.C * float(np.abs(diagonal).max()) / size
    k = math.ceil(2 * math.log10(steep) - 1e-9) if steep > 1 else 0
    return [RISE**-i for i in range(k, max(k - LONGEST, 0), -1)] + [1.0] if k else []


def _risen(run: Run, box: Box, shares: list[float], most: int, patience: int) -> Duals:
    """The last problem of a path; every other has `patience` rounds."""
    now, b, rounds, steps = box.scaled(shares[0]), np.zeros(len(box.t)), 0, 0
    for share, following in zip(shares, [*shares[1:], None], strict=True):
        room = most - rounds if following is None else min(patience, (most - rounds) // 2)
        found = run(now, b, room)
        rounds, steps = rounds + found.rounds, steps + found.steps
        if following is not None:
            after = box.scaled(following)
            b = np.clip(found.b * stretch(found, now, after, following / share), after.lo, after.hi)
            now = after
    return replace(found, rounds=rounds, steps=steps)


def stretch(found: Duals, now: Box, after: Box, most: float) -> float:
    """The factor from 1 to `most` by which duals best meet the next problem: its objective along them is a parabola.

    Duals at their bounds rise with C; those of separated rows stay.
    """
    b = found.b
    gain = float(now.t @ b) - now.e * float(np.abs(b).sum())
    bend = 2 * (found.objective + gain)
    if now.ridge is not None and after.ridge is not None:
        bend -= float((now.ridge - after.ridge) @ np.square(b))
    return min(max(gain / bend, 1.0), most) if bend > 0 else most
