"""Which hyper-parameters a Gaussian process learns, from which rows, and by which measure of them."""
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.estimators.base import asked, bytes_of, default_features
from mercer.estimators.gp_feature_answers import FeatureAnswers
from mercer.inputs import Array, Matrix, Table
from mercer.kernels import Kernel, positioned
from mercer.kernels.defaults import resolve
from mercer.learners.gp_bound import bound, independent
from mercer.learners.gp_search import Learnt, Measure, learn, refined
from mercer.learners.gp_space import Wishes, space
from mercer.learners.gp_start import starts
from mercer.lifts import Nystrom
from mercer.lifts.base import seed_of
from mercer.ops.philox import Stream, permutation

MOST_LEARNT = 3000  # rows that hyper-parameters are learnt from where there are more than can be factored
MOST_POINTS = 512  # landmarks over which all rows are learnt from: a step takes O(n m^2)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel for landmarks, and the rows and steps that it was learnt by."""

    kernel: Kernel
    rows: int
    steps: int


class Learning(FeatureAnswers):
    """Kernel, noise and scale by the evidence: of some rows, then of all."""

    fixed: Any
    tied: Any
    bounds: Any
    priors: Any
    n_restarts: Any
    learn_rows: Any
    _units: tuple[Array, Array]  # the mean and the unit of each output

    # rows
    def _most(self, way: str) -> int | None:
        """The rows whose exact evidence is climbed; None is all of them."""
        if self.learn_rows is None or self._all_rows():
            return None if way == "exact" else MOST_LEARNT
        if isinstance(self.learn_rows, int | np.integer) and not isinstance(self.learn_rows, bool) and self.learn_rows >= 1:
            return int(self.learn_rows)
        raise ValueError(f"learn_rows must be an integer >= 1, 'all' or None, got {self.learn_rows!r}.")

    def _all_rows(self) -> bool:
        return isinstance(self.learn_rows, str) and self.learn_rows == "all"

    def _learnt_from(self, n: int, way: str) -> int:
        return n if self._all_rows() else min(n, self._most(way) or n)

    def _told_of_learning(self, n: int) -> dict[str, Any]:
        """What the plan says of it, over landmarks."""
        c = self._candidate
        rows = {"kernel learnt from": min(n, c.rows), "steps": c.steps} if c is not None and c.steps else {}
        return rows | ({"noise of a row": "with what landmarks leave out of it"} if self._shares is not None else {})

    def _points(self, kernel: Kernel, X: Matrix) -> Table:
        """The landmarks over which all rows are learnt from, chosen from as many rows as memory lets."""
        m = min(asked(self._method()) or default_features(X.shape[0]), MOST_POINTS)
        most = max(m, int(bytes_of(self.memory_limit) // (16 * m)))
        some = permutation(Stream(seed_of(self.random_state)), X.shape[0])[:most]
        rows = Table(X) if most >= X.shape[0] else Table(X)[np.sort(some)]
        return Table(Nystrom(kernel, m, random_state=self.random_state).fit(rows).landmarks_)

    # the search
    def _candidates(self, X: Matrix, Y: Array) -> list[Candidate]:
        """The kernel from some of the rows, and from there by all of them; noise and scale come later."""
        given, most = self._kernel(X), self._most("landmarks") or len(Y)
        if given is not None and (self._wishes().fixed == "all" or len(Y) < 2):
            return [Candidate(given, 0, 0)]
        mean, unit = self._units_of(Y)
        X, Z = X.astype(np.float64), (Y - mean) / unit
        found = self._search(X, Z, None, "landmarks")
        few = Candidate(found.kernel, most, found.steps)
        if not found.steps or len(Y) <= most or isinstance(self.learn_rows, int | np.integer):
            return [few]
        measure = independent if self.restore_variance else bound
        more = self._refined(found, X, Z, None, partial(measure, points=self._points(found.kernel, X)))
        return [few, Candidate(more.kernel, len(Y), more.steps)]

    def _search(self, X: Matrix, Z: Array, noise: Array | None, way: str) -> Learnt:
        """The hyper-parameters, in the units of Z."""
        rows, seed = Table(X), seed_of(self.random_state)
        level = None if noise is None else float(noise.mean())
        unit = self._unit_of_prior()
        given = starts(
            self._kernel(X), rows, self._wishes(), level, scale=noise is None, unit=unit, restarts=self._restarts(), seed=seed,
            rough=way == "exact",
        )  # fmt: skip
        s = given[0].space
        if not np.any(Z):  # nothing to learn from: a process of next to no size
            tiny = float(np.finfo(float).eps)
            return Learnt(s.kernel, tiny, tiny, 0.0, 0) if noise is None else Learnt(s.kernel, level or 0.0, 1.0, 0.0, 0)
        if not s.size:
            return Learnt(s.kernel, level or 0.0, 1.0, 0.0, 0)
        return learn(given, rows, Z, noise, seed=seed, most=self._most(way))

    def _refined(self, found: Learnt, X: Matrix, Z: Array, noise: Array | None, measure: Measure) -> Learnt:
        """A few steps more, by a measure of all rows."""
        level = None if noise is None else float(noise.mean())
        s = space(found.kernel, self._wishes(), level, scaled=noise is None, unit=self._unit_of_prior())
        return refined(found, s, Table(X), Z, noise, measure=measure) if s.size else found

    def _unit_of_prior(self) -> float:
        return float(self._units[1][0]) if hasattr(self, "_units") else 1.0

    def _restarts(self) -> int:
        if isinstance(self.n_restarts, int | np.integer) and self.n_restarts >= 0:
            return int(self.n_restarts)
        raise ValueError(f"n_restarts must be an integer >= 0, got {self.n_restarts!r}.")

    # what is given
    def _units_of(self, Y: Array) -> tuple[Array, Array]:
        """What y is measured from and by: its deviation where noise is learnt, else 1."""
        seen, learns = Y.mean(0), isinstance(self.noise, str)
        prior = "y" if learns and isinstance(self.prior_mean, str) else self._prior()
        mean = seen if isinstance(prior, str) else np.full(Y.shape[1], prior)
        if not learns:
            return mean, np.ones(Y.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            unit = np.sqrt(np.square(Y - seen).mean(0))
            unit = np.where(unit > 1e-12 * np.abs(seen), unit, np.abs(seen))
        if {"noise", "scale"} & self._wishes().named():  # said in the units of y, so these must be the same for all
            unit = np.full(len(unit), np.exp(np.log(np.where(unit > 0, unit, 1)).mean()))
        unit = np.where(unit == 0, 1, unit)
        if not ((unit > 1e-150) & (unit < 1e150)).all():
            raise ValueError(f"y varies by {unit.max():.1g}, whose square is no floating-point number; scale y first.")
        return mean, unit

    def _given_noise(self, n: int) -> Array | None:
        """One number a row, or None where it is to be learnt."""
        if isinstance(self.noise, str):
            return None
        noise = np.asarray(self.noise, np.float64)
        if noise.ndim and noise.shape != (n,):
            raise ValueError(f"noise has shape {noise.shape}, but X has {n} rows; give one number, or one a row.")
        return np.array(np.broadcast_to(noise, (n,)))

    def _wishes(self) -> Wishes:
        fixed = self.fixed
        if fixed is None:
            fixed = () if isinstance(self.noise, str) else "all"
        return Wishes(fixed, self.tied or (), self.bounds, self.priors)

    def _kernel(self, X: Matrix) -> Kernel | None:
        """The kernel given, None where it is to be chosen."""
        return None if self.kernel is None else positioned(resolve(self.kernel, X), self._named(X))
