"""The kernel perceptron row after row, in plain NumPy: what `mercer.ops.budget.scan` must agree
with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.inputs import Array
from mercer.ops.budget import (
    FORGETRON,
    MERGING,
    MIN_RESIDUAL,
    OLDEST,
    PLUS,
    PROJECTRON,
    RANDOM,
    UNLIMITED,
)


class Reference:
    """Points P, weights A (C, n) and their mean over the rows, after `take` of every row; k(X, Z)
    gives kernel values."""

    def __init__(
        self,
        k: Callable[[Array, Array], Array],
        C: int,
        d: int,
        policy: int,
        budget: int,
        eta: float,
        margin: float,
    ) -> None:
        self.k, self.policy, self.budget, self.eta, self.margin = k, policy, budget, eta, margin
        self.P, self.A, self.total = np.zeros((0, d)), np.zeros((C, 0)), np.zeros((C, 0))
        self.born: list[int] = []
        self.seen = self.mistakes = self.updates = 0
        self.radius: Any = 0.0
        self.forgotten: Any = 0.0

    def take(self, x: Array, label: int, draw: float) -> bool:
        """One row; whether it was a mistake."""
        values, top = self.k(x[None], self.P)[0], float(self.k(x[None], x[None])[0, 0])
        f = self.A @ values
        step = np.zeros(len(f))
        if len(f) == 1:
            gap, step[0] = label * f[0], label
        else:
            rival = int(np.argmax(np.where(np.arange(len(f)) == label, -np.inf, f)))
            gap, step[label], step[rival] = f[label] - f[rival], 1, -1
        square = top * float(step @ step)
        self.mistakes += gap <= 0
        self.radius = max(self.radius, square)
        if gap <= self.margin:
            self.updates += 1
            self._update(
                x,
                step * (1 if gap <= 0 else min(1, (self.margin - gap) / square)),
                gap,
                values,
                top,
                draw,
            )
        self.seen += 1
        self.total = self.total + self.A
        return bool(gap <= 0)

    def _update(
        self, x: Array, step: Array, gap: float, values: Array, top: float, draw: float
    ) -> None:
        if self.policy in (PROJECTRON, PLUS) and self._project(step, gap, values, top):
            return
        self.P, self.A = np.vstack([self.P, x]), np.column_stack([self.A, step])
        self.total = np.column_stack([self.total, np.zeros(len(step))])
        self.born.append(self.seen)
        if len(self.P) > self.budget and self.policy != UNLIMITED:
            ways = {
                RANDOM: lambda: int(draw * self.budget),
                OLDEST: self._oldest,
                FORGETRON: self._shrink,
                MERGING: self._merge,
            }
            self._drop(ways[self.policy]())

    def _drop(self, j: int) -> None:
        order = np.arange(len(self.P))
        order[j] = order[-1]
        self.P, self.A, self.total = (
            self.P[order[:-1]],
            self.A[:, order[:-1]],
            self.total[:, order[:-1]],
        )
        self.born = [self.born[i] for i in order[:-1]]

    def _oldest(self) -> int:
        return int(np.argmin(self.born))

    def _project(self, step: Array, gap: float, values: Array, top: float) -> bool:
        d: Any = (
            np.linalg.lstsq(self.k(self.P, self.P), values, rcond=None)[0]
            if len(values)
            else values
        )
        inside = float(d @ values)
        outside = max(top - inside, 0.0)
        full = len(values) >= self.budget or (
            len(values) > 0 and outside <= max(self.eta**2, MIN_RESIDUAL) * top
        )
        if self.policy == PLUS and gap > 0:
            unit = np.sign(step)
            many, loss = float(unit @ unit), float(self.margin - gap)
            left = loss - float(np.sqrt(many * outside / top)) / self.eta
            if left <= 0 or inside <= 0:
                return True
            step, full = unit * min(1, min(loss, 2 * left) / (many * inside)), True
        if full:
            self.A = self.A + np.outer(step, d)
        return full

    def _shrink(self) -> int:
        r = self._oldest()
        sigma = np.abs(self.A[:, r]).max()
        mu = self.A[:, r] / sigma @ self.A @ self.k(self.P, self.P[[r]])[:, 0] / self.radius
        cost = np.array(
            [sigma**2 - 2 * sigma * mu, 2 * sigma, self.forgotten - 15 / 32 * self.updates]
        )
        ends = [phi.real for phi in np.roots(cost) if abs(phi.imag) < 1e-12 and 0 < phi.real < 1]
        phi = max([1.0] if np.polyval(cost, 1.0) <= 0 else ends)
        self.forgotten += np.polyval(cost[:2], phi) * phi
        self.A = self.A * phi
        return r

    def _merge(self) -> int:
        K = self.k(self.P, self.P)
        norms, kin = (
            np.square(self.A).sum(0),
            self.A.argmax(0) if len(self.A) > 1 else np.sign(self.A[0]),
        )
        j, top = int(np.argmin(norms)), K[0, 0]
        found = []
        for l in (l for l in range(len(self.P)) if l != j):
            a, b, log_k = self.A[:, j], self.A[:, l], np.log(K[j, l] / top)
            weights: Any = lambda h, a=a, b=b, log_k=log_k: (
                a * np.exp((1 - h) ** 2 * log_k) + b * np.exp(h * h * log_k)
            )
            high, lose = 1 if log_k > -2 else 0.5, lambda h, w=weights: -np.sum(w(h) ** 2)
            h = minimize_scalar(lose, bounds=(0, high), method="bounded", options={"xatol": 1e-9}).x
            lost = a @ a + b @ b + 2 * a @ b * np.exp(log_k) - np.sum(weights(h) ** 2)
            found.append((kin[l] != kin[j], lost, l, h, log_k))
        _, _, l, h, log_k = min(found)
        u, v = np.exp((1 - h) ** 2 * log_k), np.exp(h * h * log_k)
        for W in (self.A, self.total):
            W[:, l] = u * W[:, j] + v * W[:, l]
        self.P[l] = h * self.P[j] + (1 - h) * self.P[l]
        self.born[l] = self.seen
        return j

    @property
    def mean(self) -> Array:
        return self.total / self.seen
