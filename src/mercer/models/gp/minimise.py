"""A local minimum within bounds of a function of few variables: quasi-Newton steps with a whole
matrix of curvatures, which the next search begins with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array

LONGEST = 2.0  # a step in any variable
ENOUGH, SHORTEST = (
    1e-4,
    1e-3,
)  # share of the slope's promise that a step must keep; of it, of a step
DAMPED = 0.2  # of the curvature that was thought, the least that a step may teach
# a value, and its slope, which is dear and asked for only where the search goes on from there
Loss = Callable[[Array], tuple[float, Callable[[], Array]]]


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where a search is: the variables, the loss and its slope there, and the curvature as far as
    it is known."""

    z: Array
    loss: float
    slope: Array
    curvature: Array | None = None
    tried: int = 1  # values of the loss on the way

    def free(self, lower: Array, upper: Array) -> Array:
        """The variables that no bound holds."""
        held = ((self.z <= lower) & (self.slope > 0)) | ((self.z >= upper) & (self.slope < 0))
        return np.flatnonzero(~held)


def minimise(
    f: Loss, at: Iterate, lower: Array, upper: Array, *, tol: float, steps: int
) -> Iterate:
    """Damped BFGS from a place, until what a step promises or brings is below tol.

    >>> def f(z):
    ...     return float(z @ z) / 2, lambda: z
    >>> z = np.array([3.0, 1.0])
    >>> found = minimise(f, Iterate(z, 5.0, z), np.array([1.0, -5.0]), np.full(2, 5.0), tol=1e-9, steps=20)
    >>> bool(np.abs(found.z - [1.0, 0.0]).max() < 1e-4)
    True
    """
    brought = np.inf
    for _ in range(steps):
        move = downhill(at, lower, upper)
        promised = -0.5 * float(at.slope @ move)
        if promised <= tol * (1 if brought <= tol else 0.1):
            break
        new = searched(f, at, move, lower, upper)
        if new is None:
            break
        brought = at.loss - new.loss
        at = new
    return at


def downhill(at: Iterate, lower: Array, upper: Array) -> Array:
    """A Newton step of the variables that no bound holds, cut to `LONGEST`."""
    on, B = at.free(lower, upper), curvature_at(at)
    if len(on) == len(at.z):
        move = -np.linalg.solve(B, at.slope)
    else:
        move = np.zeros(len(at.z))
        move[on] = -np.linalg.solve(B[np.ix_(on, on)], at.slope[on])
    longest = float(np.abs(move).max(initial=0))
    return move if longest <= LONGEST else move * (LONGEST / longest)


def searched(f: Loss, at: Iterate, move: Array, lower: Array, upper: Array) -> Iterate | None:
    """The first of shorter and shorter steps that brings enough; None where none does."""
    t, tried = 1.0, at.tried
    while t > SHORTEST:
        z = np.clip(at.z + t * move, lower, upper)
        s = z - at.z
        loss, slope_there = f(z)
        tried, promise = tried + 1, float(at.slope @ s)
        if loss <= at.loss + ENOUGH * promise:
            slope = slope_there()
            return Iterate(z, loss, slope, learnt(at, s, slope - at.slope), tried)
        bent = loss - at.loss - promise  # of the parabola through both values and the slope
        t *= min(0.5, max(0.1, -0.5 * promise / bent)) if np.isfinite(bent) and bent > 0 else 0.1
    return None


def curvature_at(at: Iterate) -> Array:
    """As known; before any step one that makes the first as long as 1."""
    if at.curvature is not None:
        return at.curvature
    return np.eye(len(at.z)) * max(float(np.linalg.norm(at.slope)), 1e-300)


def learnt(at: Iterate, s: Array, y: Array) -> Array:
    """The curvature after a step s that changed the slope by y; damped, so that it stays
    positive."""
    sy, B = float(s @ y), curvature_at(at)
    if at.curvature is None and sy > 0:
        B = np.eye(len(s)) * float(y @ y) / sy
    Bs = B @ s
    sBs = float(s @ Bs)
    if not sBs > 0:
        return B
    if sy < DAMPED * sBs:
        share = (1 - DAMPED) * sBs / (sBs - sy)
        y = share * y + (1 - share) * Bs
        sy = float(s @ y)
    return np.asarray(B + y[:, None] * (y / sy) - Bs[:, None] * (Bs / sBs))
