"""The way over points: the exact posterior by a Cholesky factor or by conjugate gradients, hyper-parameters by the evidence."""
from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import methods
from mercer.estimators.base import all_or_nothing, bytes_of
from mercer.estimators.gp_feature_answers import FeatureAnswers
from mercer.estimators.gp_settings import check_mean, check_noise, found_in
from mercer.inputs import Array, Matrix, Table
from mercer.kernels import Kernel, positioned
from mercer.kernels.defaults import resolve
from mercer.learners.gp_iterative import IterativeProcess
from mercer.learners.gp_process import PointProcess
from mercer.learners.gp_search import Learnt, learn
from mercer.learners.gp_space import Wishes
from mercer.learners.gp_start import starts
from mercer.lifts.base import seed_of
from mercer.plan import Plan, quantity

VIAS = ("auto", "exact", "iterative", "features", "landmarks")
MOST_EXACT = 5000  # rows that "auto" factors: a step of the search is then a second or so
MOST_LEARNT = 3000  # rows that hyper-parameters are learnt from where there are more than can be factored
LEAST = 1e-12  # the noise, in shares of scale k(x, x), below which there is none


class PointWay(FeatureAnswers):
    """y = prior_mean + f(x) + e with f ~ GP(0, scale k), e ~ N(0, noise), from the points themselves."""

    fixed: Any
    tied: Any
    bounds: Any
    priors: Any
    n_restarts: Any
    process_: PointProcess
    _flat: bool
    _units: tuple[Array, Array]  # the mean and the unit of each output

    # the way
    def _route(self, n: int, outputs: int) -> Plan:
        """Which way, by the number of rows and the settings alone."""
        size, limit = 8.0 * n * n, bytes_of(self.memory_limit)
        matrix = f"a {quantity(size, 'B')} matrix"
        method = self._method()  # refuses what is no way
        if self.lift is not None or isinstance(method, methods.Landmarks) or not isinstance(self.via, str) or self.via == "features":
            return Plan("features", "asked for")
        if self.via == "iterative":
            return Plan("iterative", f"{n:,} rows: asked for, {matrix} is never formed", bytes=limit)
        if self.via == "exact" and (size <= limit or self.memory_limit is None):
            return Plan("exact", f"{n:,} rows: asked for, {matrix} is factored", bytes=size, flops=n**3 / 3)
        if self.via == "exact":
            raise ValueError(f"via='exact' needs {matrix}, beyond memory_limit={self.memory_limit!r}; raise it, or use via='iterative'.")
        if n <= MOST_EXACT and size <= limit:
            return Plan("exact", f"{n:,} rows: {matrix} is factored", bytes=size, flops=n**3 / 3)
        why = f"more than {MOST_EXACT:,} rows" if n > MOST_EXACT else f"{matrix} exceeds memory_limit"
        if outputs > 1:
            return Plan("iterative", f"{why}, and {outputs} outputs", bytes=limit, rejected=(("exact", why),))
        return Plan("landmarks", why, rejected=(("exact", why),))

    def _method(self) -> methods.Method:
        if isinstance(self.via, methods.Method):
            return self.via
        if self.via not in VIAS:
            raise ValueError(f"via must be one of {', '.join(VIAS)}, or a value of mercer.methods, got {self.via!r}.")
        return methods.Landmarks() if self.via == "landmarks" or self._large else methods.Auto()

    _large: bool = False  # whether there were too many rows to factor

    def _many(self) -> bool:
        return self.lift is None and isinstance(self.via, str) and self.via in ("auto", "exact", "iterative")

    # fitting
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Choose the way, learn the hyper-parameters, and condition on the rows."""
        self._reset()
        check_noise(self.noise, zero=True)
        check_mean(self.prior_mean)
        rows, Y = self._checked(X, y, reset=True)
        plan = self._route(rows.shape[0], 1 if Y.ndim == 1 else Y.shape[1])
        if plan.way in ("exact", "iterative"):
            return self._fit_points(rows, Y, plan)
        self._large = plan.way == "landmarks"
        if isinstance(self.noise, str) and isinstance(self._method(), methods.Landmarks) and self.lift is None:
            self._learn_first(rows, Y.reshape(len(Y), -1))
        super().fit(X, Y[:, 0] if Y.ndim > 1 and Y.shape[1] == 1 else y)
        if isinstance(self._method(), methods.Landmarks):
            p = self.plan_
            why = f"{plan.why}: {p.settings['n_features']:,} landmarks stand for {p.settings['rows']:,} rows"
            self.plan_ = Plan("landmarks", why, p.settings, p.bytes, p.flops, p.passes, plan.rejected)
        return self

    def _reset(self) -> None:
        for name in ("process_", "lift_", "moments_", "_units"):
            self.__dict__.pop(name, None)
        self._found, self._learnt, self._large = None, None, False

    def _fit_points(self, X: Matrix, Y: Array, plan: Plan) -> Self:
        self._flat, self._dtype = Y.ndim == 1, X.dtype
        X, Y = X.astype(np.float64), Y.reshape(len(Y), -1)
        self._units = mean, unit = self._units_of(Y)
        Z, noise = (Y - mean) / unit, self._given_noise(len(Y))
        found = self._search(X, Z, noise, None if plan.way == "exact" else MOST_LEARNT)
        each = np.full(len(Z), found.noise) if noise is None else noise
        each = np.maximum(each, LEAST * found.scale * float(np.abs(found.kernel.diag(Table(X))).max()))
        if plan.way == "exact":
            self.process_ = PointProcess.of(found.kernel, X, Z, each, found.scale)
        else:
            few = noise is None and len(Z) > MOST_LEARNT and found.steps > 0
            self.process_ = IterativeProcess.solved(
                found.kernel, X, Z, each, found.scale, memory=bytes_of(self.memory_limit), rescale=few
            )
        settings = {"rows": len(Z), "learnt from": min(len(Z), len(Z) if plan.way == "exact" else MOST_LEARNT), "steps": found.steps}
        self.plan_ = Plan(plan.way, plan.why, settings, plan.bytes, plan.flops, rejected=plan.rejected)
        return self

    def _learn_first(self, X: Matrix, Y: Array) -> None:
        """The kernel, from some of the rows; noise and scale come later, from all of them."""
        self._learnt = self._kernel(X)
        if self._wishes().fixed == "all" or len(Y) < 2:
            return
        mean, unit = self._units_of(Y)
        self._learnt = self._search(X.astype(np.float64), (Y - mean) / unit, None, MOST_LEARNT).kernel

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

    def _search(self, X: Matrix, Z: Array, noise: Array | None, most: int | None) -> Learnt:
        """The hyper-parameters, in the units of Z."""
        rows, seed = Table(X), seed_of(self.random_state)
        level = None if noise is None else float(noise.mean())
        unit = float(self._units_of_prior())
        given = starts(
            self._kernel(X), rows, self._wishes(), level, scale=noise is None, unit=unit, restarts=self._restarts(), seed=seed,
            rough=most is None,
        )
        s = given[0].space
        if not np.any(Z):  # nothing to learn from: a process of next to no size
            tiny = float(np.finfo(float).eps)
            return Learnt(s.kernel, tiny, tiny, 0.0, 0) if noise is None else Learnt(s.kernel, level or 0.0, 1.0, 0.0, 0)
        if not s.size:
            return Learnt(s.kernel, level or 0.0, 1.0, 0.0, 0)
        return learn(given, rows, Z, noise, seed=seed, most=most)

    def _units_of_prior(self) -> float:
        return float(self._units[1][0]) if hasattr(self, "_units") else 1.0

    def _restarts(self) -> int:
        if isinstance(self.n_restarts, int | np.integer) and self.n_restarts >= 0:
            return int(self.n_restarts)
        raise ValueError(f"n_restarts must be an integer >= 0, got {self.n_restarts!r}.")

    # changes
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Take in rows: by moments of features, whose map the first batch fixes, or as points of a model that has them.

        An exact model grows its factor in O(n^2) a point (an iterative one solves again), and both keep their hyper-parameters;
        `fit` learns them anew.
        """
        if not hasattr(self, "process_"):
            return self.fit(X, y) if self.via == "exact" and not hasattr(self, "lift_") else super().partial_fit(X, y)
        Z, X = self._rows_like(X, y, "partial_fit")
        noise = self.process_.noise[0] if len(self.process_.noise) else 0.0
        self.process_ = self.process_.with_points(X, Z, np.full(len(Z), noise))
        return self._counted()

    def forget(self, X: Any, y: Any) -> Self:
        """Take out rows that were taken in, each once: from the moments, or from the points in O(n^2) each."""
        if not hasattr(self, "process_"):
            return super().forget(X, y)
        Z, X = self._rows_like(X, y, "forget")
        index = found_in(X, Z, self.process_)
        if len(index) == len(self.process_.Y):
            raise ValueError(f"cannot forget all {len(index)} rows; leave at least one.")
        self.process_ = self.process_.without(index)
        return self._counted()

    def merge(self, other: Any) -> Self:
        """Take in what another model over the same features has seen."""
        if hasattr(self, "process_") or hasattr(other, "process_"):
            raise ValueError("models of points do not merge; give the rows to partial_fit, or fit both with via='features'.")
        return super().merge(other)

    def _rows_like(self, X: Any, y: Any, name: str) -> tuple[Array, Matrix]:
        if np.ndim(self.noise):
            raise ValueError(f"noise has one number a row, which is for fit; give one number, or 'learn', for {name}.")
        X, Y = self._checked(X, y, reset=False)
        mean, unit = self._units
        if Y.reshape(len(Y), -1).shape[1] != len(mean):
            raise ValueError(f"y has {Y.reshape(len(Y), -1).shape[1]} columns, {len(mean)} expected, as in fit.")
        return (Y.reshape(len(Y), -1) - mean) / unit, X.astype(np.float64)

    def _counted(self) -> Self:
        p, n = self.plan_, len(self.process_.Y)
        self.plan_ = Plan(p.way, p.why, {**p.settings, "rows": n}, 8.0 * n * n, p.flops, p.passes, p.rejected)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "process_") or hasattr(self, "lift_")

    def _check_fitted(self) -> None:
        check_is_fitted(self)
