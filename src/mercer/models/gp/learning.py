"""Which hyper-parameters a Gaussian process learns, from which rows, and by which measure of them."""
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.estimators.base import asked, bytes_of, default_features
from mercer.models.gp.feature_answers import FeatureAnswers
from mercer.models.gp.problem import check_restarts
from mercer.inputs import Array, Matrix, Table
from mercer.kernels import Kernel, positioned
from mercer.kernels.defaults import resolve
from mercer.models.gp.sparse import bound, independent
from mercer.models.gp.search import Learnt, Measure, learn, refined, unlearnt
from mercer.models.gp.space import Space, Wishes, space
from mercer.models.gp.starts import magnitude, starts
from mercer.models.gp.hyperparameters import Said
from mercer.lifts import Nystrom
from mercer.lifts.base import seed_of
from mercer.ops.philox import Stream, permutation
from mercer.store import register

MOST_LEARNT = 3000  # rows that hyper-parameters are learnt from where there are more than can be factored
MOST_POINTS = 512  # landmarks over which all rows are learnt from: a step takes O(n m^2)


@register("gp.Candidate")
@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel for landmarks, and the rows and steps that it was learnt by.

    held : noise and scale in the units of y, where the search has them from what was said, else None
    """

    kernel: Kernel
    rows: int
    steps: int
    held: tuple[float, float] | None = None


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
        self._units = mean, unit = self._units_of(Y, given)
        X, Z, noise = X.astype(np.float64), (Y - mean) / unit, self._given_noise(len(Y))
        s = None if given is None else self._space(given, noise, X)
        if given is not None and s is not None and s.profiled and s.size == 1 and np.any(Z):
            return [Candidate(given, 0, 0)]  # its noise and scale are those of all rows over the landmarks
        found = self._search(X, Z, noise, "landmarks")
        few = self._candidate_of(found, most, Z)
        if not found.steps or len(Y) <= most or isinstance(self.learn_rows, int | np.integer):
            return [few]
        measure = independent if self.restore_variance and noise is None else bound
        more = self._refined(found, X, Z, noise, partial(measure, points=self._points(found.kernel, X)))
        return [few, self._candidate_of(more, len(Y), Z)]

    def _candidate_of(self, found: Learnt, rows: int, Z: Array) -> Candidate:
        free, unit = found.profiled and np.any(Z), float(self._units[1][0])
        return Candidate(found.kernel, rows, found.steps, None if free else (found.noise * unit**2, found.scale * unit**2))

    def _search(self, X: Matrix, Z: Array, noise: Array | None, way: str) -> Learnt:
        """The hyper-parameters, in the units of Z."""
        rows, seed, unit = Table(X), seed_of(self.random_state), float(self._units[1][0])
        given = starts(
            self._kernel(X), rows, self._wishes(), self._level(noise), scale=self._learns(), unit=unit,
            restarts=check_restarts(self.n_restarts), seed=seed, rough=way == "exact",
        )  # fmt: skip
        if not given[0].space.size or not np.any(Z):
            return unlearnt(given[0].space, len(Z))
        return learn(given, rows, Z, noise, seed=seed, most=self._most(way))

    def _refined(self, found: Learnt, X: Matrix, Z: Array, noise: Array | None, measure: Measure) -> Learnt:
        """A few steps more, by a measure of all rows."""
        s = self._space(found.kernel, noise, X)
        return refined(found, s, Table(X), Z, noise, measure=measure) if s.size else found

    def _space(self, kernel: Kernel, noise: Array | None, X: Matrix) -> Space:
        unit, size = float(self._units[1][0]), magnitude(kernel, Table(X))
        return space(kernel, self._wishes(), self._level(noise), scaled=self._learns(), unit=unit, size=size)

    def _level(self, noise: Array | None) -> float | None:
        """The noise that is given, in the units of y."""
        return None if noise is None else float(noise.mean() * self._units[1][0] ** 2)

    # what is given
    def _units_of(self, Y: Array, kernel: Kernel | None) -> tuple[Array, Array]:
        """What y is measured from and by: its deviation where anything is learnt, else 1."""
        seen, learns = Y.mean(0), self._learns()
        prior = "y" if learns and isinstance(self.prior_mean, str) else self._prior()
        mean = seen if isinstance(prior, str) else np.full(Y.shape[1], prior)
        unit = deviation(Y, seen) if learns else np.ones(Y.shape[1])
        if learns and self._shares_unit(kernel):
            unit = np.full(len(unit), np.exp(np.log(np.where(unit > 0, unit, 1)).mean()))
        unit = np.where(unit == 0, 1, unit)
        size = max(unit.max(), np.abs(Y - mean).max())
        if not (size < 1e150 and unit.min() > 1e-150):
            raise ValueError(f"y varies by {size:.1g}, whose square is no floating-point number; scale y first.")
        return mean, unit

    def _shares_unit(self, kernel: Kernel | None) -> bool:
        """Whether something was said in the units of y, so that these must be the same for all outputs."""
        wishes = self._wishes()
        said = not isinstance(self.noise, str) or bool({"noise", "scale"} & wishes.named())
        return said or (kernel is not None and Said(kernel, wishes).absolute)

    def _given_noise(self, n: int) -> Array | None:
        """One number a row in the units of the process, or None where it is to be learnt."""
        if isinstance(self.noise, str):
            return None
        noise = np.asarray(self.noise, np.float64)
        if noise.ndim and noise.shape != (n,):
            raise ValueError(f"noise has shape {noise.shape}, but X has {n} rows; give one number, or one a row.")
        return np.array(np.broadcast_to(noise, (n,))) / self._units[1][0] ** 2

    def _wishes(self) -> Wishes:
        """What was said; a given noise means the kernel as given, unless there is none, or something is said of its parameters."""
        fixed, tied = self.fixed, () if self.tied is None else self.tied
        if fixed is None:
            free = isinstance(self.noise, str) or self.kernel is None or bool(self.bounds or self.priors or tied)
            fixed = () if free else "all"
        return Wishes(fixed, tied, self.bounds, self.priors)

    def _learns(self) -> bool:
        return super()._learns() or not isinstance(self._wishes().fixed, bool | str)

    def _asks(self) -> bool:
        """Whether something is asked of single parameters."""
        w = self._wishes()
        return bool(w.told or w.tied or w.kept or w.fixed is True)

    def _kernel(self, X: Matrix) -> Kernel | None:
        """The kernel given, None where it is to be chosen."""
        return None if self.kernel is None else positioned(resolve(self.kernel, X), self._named(X))


def deviation(Y: Array, mean: Array) -> Array:
    """Of every column from its mean; of a constant one its size."""
    with np.errstate(over="ignore", invalid="ignore"):
        unit = np.sqrt(np.square(Y - mean).mean(0))
    return np.where(unit > 1e-12 * np.abs(mean), unit, np.abs(mean))
