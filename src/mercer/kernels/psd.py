"""Counter-examples: points whose Gram matrix has a negative eigenvalue, searched at random and then
refined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array, Table, table
from mercer.invariants import Floats, Samples
from mercer.kernels.base import Kernel
from mercer.kernels.domain import OutsideError
from mercer.kernels.dot import Callable as KernelFunction
from mercer.store import register

TOLERANCE = 1e-9  # relative to the largest eigenvalue: below that, rounding explains it
MAX_ROWS = 400


@register("kernels.Counterexample")
@dataclass(frozen=True, eq=False)
class Counterexample:
    """Points whose Gram matrix K has v'Kv = eigenvalue < 0 for the unit vector v.

    So the function is not a kernel.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        The points.
    eigenvalue : float
        v'Kv, below zero.
    vector : ndarray of shape (n,)
        The v, of norm 1.

    Examples
    --------
    >>> found = check_psd(lambda X, Z: -np.abs(X - Z.T), np.array([[0.0], [1.0]]))
    >>> found.eigenvalue < 0, bool(np.isclose(np.linalg.norm(found.vector), 1))
    (True, True)
    """

    points: Array
    eigenvalue: float
    vector: Array

    must = dict(points=Samples("n", None), vector=Floats("n"))

    def __str__(self) -> str:
        return f"not positive semidefinite: v'Kv = {self.eigenvalue:.3g} for a unit vector v on {len(self.points)} points"


def check_psd(k: Any, X: Any, *, random_state: int = 0, trials: int = 24) -> Counterexample | None:
    """Search for points near X on which k is not positive semidefinite; None if none is found.

    Tries rows of X, then random points of X's mean and spread at several scales and sizes; the
    worst are refined by moving single points. Finding none is evidence, `k.proof()` is proof.

    Parameters
    ----------
    k : Kernel or callable
        A kernel, or a function of (X, Z) that gives (n, m).
    X : array-like of shape (n, d)
        The rows to begin with.
    random_state : int, default=0
        The seed of the search.
    trials : int, default=24
        How many sets of points are tried.

    Returns
    -------
    Counterexample or None

    Examples
    --------
    >>> from mercer.kernels import Callable, Gaussian
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> check_psd(Gaussian(), X) is None
    True
    >>> check_psd(Callable(lambda X, Z: np.tanh(X @ Z.T)), X).eigenvalue < 0
    True
    """
    k = k if isinstance(k, Kernel) else KernelFunction(k)
    rows = table(X, "X", items=k.takes_items).astype(np.float64)
    rng = np.random.default_rng(random_state)
    if len(rows) > MAX_ROWS:
        rows = rows[np.sort(rng.choice(len(rows), MAX_ROWS, replace=False))]
    _check_symmetric(k, rows[:50])
    candidates = (
        []
        if rows.items or rows.sparse
        else [Table(P, rows.columns) for P in _candidates(rows.data, rng, trials)]
    )
    tried = [found for P in [rows, *candidates] if (found := _lowest(k, P)) is not None]
    if not tried:
        raise ValueError("k is not finite on X nor near it; give X where the kernel is defined.")
    worst = sorted(tried, key=lambda t: t[0])[:4]
    best = min(
        [worst[0], *(_refine(k, t, rng) for t in worst if isinstance(t[2].data, np.ndarray))],
        key=lambda t: t[0],
    )
    return Counterexample(best[2].data, best[1], best[3]) if best[0] < -TOLERANCE else None


def _candidates(X: Array, rng: np.random.Generator, trials: int) -> Iterator[Array]:
    centre, spread = X.mean(0), X.std(0) + 1e-12
    for t in range(trials):
        n, scale = (10, 40, 160)[t % 3], 10.0 ** rng.uniform(-1.5, 1)
        # Half about the origin: functions of inner products often fail only there.
        yield (centre if t % 2 else 0) + scale * spread * rng.normal(size=(n, X.shape[1]))


Found = tuple[
    float, float, Table, Array
]  # relative lowest eigenvalue, the eigenvalue, points, vector


def _lowest(k: Kernel, P: Table) -> Found | None:
    with np.errstate(all="ignore"):
        try:
            K = np.asarray(k(P), dtype=np.float64)
        except OutsideError:  # of a kernel of numbers >= 0
            P = Table(np.abs(P.data), P.columns)
            K = np.asarray(k(P), dtype=np.float64)
    if not np.isfinite(K).all():
        return None
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    size = max(abs(values[0]), abs(values[-1]))
    return float(values[0] / size) if size else 0.0, float(values[0]), P, vectors[:, 0]


def _refine(k: Kernel, found: Found, rng: np.random.Generator, steps: int = 60) -> Found:
    """Move the points that weigh most in the eigenvector, keeping what lowers the eigenvalue."""
    weigh_most = np.argsort(-np.abs(found[3]))[:40]
    found = _lowest(k, found[2][weigh_most]) or found
    step = np.std(found[2].data, axis=0) + 1e-12
    for t in range(steps):
        moved = np.array(found[2].data)
        moved[rng.random(len(moved)) < 0.3] *= 1 + 0.2 * rng.normal()
        moved += rng.normal(size=moved.shape) * step * 0.5 ** (t / 8)
        new = _lowest(k, Table(moved, found[2].columns))
        if new is not None and new[0] < found[0]:
            found = new
    return found


def _check_symmetric(k: Kernel, P: Table) -> None:
    back = slice(None, None, -1)
    with np.errstate(all="ignore"):
        K, T = np.asarray(k(P, P[:])), np.asarray(k(P[back], P))[back]
    if not np.allclose(K, K.T, rtol=1e-6, atol=1e-9, equal_nan=True) or not np.allclose(
        K, T, rtol=1e-6, atol=1e-9, equal_nan=True
    ):
        raise ValueError(
            "k is not symmetric: k(x, z) and k(z, x) differ on rows of X; use (k(x, z) + k(z, x)) / 2."
        )
