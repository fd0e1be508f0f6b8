"""The way over points: the exact posterior by a Cholesky factor or by conjugate gradients, hyper-parameters by the evidence."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer import methods
from mercer.estimators.base import all_or_nothing, bytes_of
from mercer.models.gp.gram_way import GramWay, streams
from mercer.models.gp.learning import Candidate
from mercer.models.gp.problem import check_flag, check_mean, check_noise, check_restarts, found_in
from mercer.inputs import Array, Items, Matrix, Table
from mercer.invariants import Each, Floats, Is
from mercer.kernels import Kernel
from mercer.models.gp.iterative import IterativeProcess
from mercer.models.gp.posterior import PointProcess
from mercer.models.gp.products import evidence as by_products
from mercer.models.gp.space import NOISE
from mercer.plan import Plan, quantity

VIAS = ("auto", "exact", "iterative", "features", "landmarks")
MOST_EXACT = 5000  # rows that "auto" factors: a step of the search is then a second or so
LEAST = 1e-12  # the noise, in shares of scale k(x, x), below which there is none


class PointWay(GramWay):
    """y = prior_mean + f(x) + e with f ~ GP(0, scale k), e ~ N(0, noise), from the points themselves."""

    # the way
    must = dict(process_=Is("PointProcess"), _units=Each(Floats("q"), Floats("q")))

    def _laws(self) -> str | None:
        if "process_" not in vars(self):
            return None
        p, q = self.process_, len(self._units[0])
        if not q or p.Y.shape[1] != q:
            return f"has targets of {p.Y.shape[1]} outputs and units of {q}"
        wide = self.n_features_in_ if isinstance(p.kernel, Kernel) and not isinstance(p.X, Items) else None
        return f"has points of {p.X.shape[1]} columns, not of {wide}" if wide not in (None, p.X.shape[1]) else None

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
        check_flag(self.restore_variance, "restore_variance")
        check_restarts(self.n_restarts)
        self._wishes()  # refuses what has not their form
        self._most("exact")  # refuses what is no number of rows
        rows, Y = self._checked(X, y, reset=True)
        if self._pairwise:
            return self._fit_gram(rows, Y)
        plan = self._route(rows.shape[0], 1 if Y.ndim == 1 else Y.shape[1])
        if plan.way in ("exact", "iterative"):
            return self._fit_points(rows, Y, plan)
        self._large, self._flat = plan.way == "landmarks", Y.ndim == 1
        self._fit_best(X, Y[:, 0] if Y.ndim > 1 and Y.shape[1] == 1 else y, self._kernels(rows, Y.reshape(len(Y), -1)))
        if isinstance(self._method(), methods.Landmarks):
            p = self.plan_
            why = f"{plan.why}: {p.settings['n_features']:,} landmarks stand for {p.settings['rows']:,} rows"
            settings = {**p.settings, **self._told_of_learning(len(Y))}
            self.plan_ = Plan("landmarks", why, settings, p.bytes, p.flops, p.passes, plan.rejected)
        return self

    def _kernels(self, X: Matrix, Y: Array) -> Sequence[Candidate | None]:
        """What was learnt for landmarks before the map is made; None where the map is that of the kernel as given."""
        if self.lift is not None or not isinstance(self._method(), methods.Landmarks):
            if self._asks():
                raise ValueError("over features noise and scale alone are learnt; leave out fixed, tied, bounds, priors, or use landmarks.")
            return [None]
        check_noise(self.noise, zero=False)
        if self._learns():
            return self._candidates(X, Y)
        self._units = self._units_of(Y, given := self._kernel(X))
        self._space(cast(Kernel, given), self._given_noise(len(Y)), X)  # refuses names that are none
        return [None]

    def _fit_best(self, X: Any, y: Any, found: Sequence[Candidate | None]) -> None:
        """Over the landmarks of each kernel that was found; that of the largest evidence of all rows stays."""
        best: tuple[float, dict[str, Any]] | None = None
        for self._candidate in found:
            super().fit(X, y)
            if best is None or self.log_marginal_likelihood_ > best[0]:
                best = self.log_marginal_likelihood_ if len(found) > 1 else 0.0, dict(vars(self))
        if best is not None:
            self.__dict__.update(best[1])

    def _reset(self) -> None:
        for name in ("process_", "lift_", "moments_", "_units"):
            self.__dict__.pop(name, None)
        self._found, self._candidate, self._shares, self._large, self._flat = None, None, None, False, True

    def _fit_points(self, X: Matrix, Y: Array, plan: Plan) -> Self:
        self._flat, self._dtype = Y.ndim == 1, X.dtype
        X, Y = X.astype(np.float64), Y.reshape(len(Y), -1)
        self._units = mean, unit = self._units_of(Y, self._kernel(X))
        Z, noise = (Y - mean) / unit, self._given_noise(len(Y))
        found = self._search(X, Z, noise, plan.way)
        refine = plan.way == "iterative" and self._all_rows() and found.steps > 0 and len(Z) > (self._most("iterative") or 0)
        if refine:
            measure = partial(by_products, memory=bytes_of(self.memory_limit))
            found = self._refined(found, X, Z, noise, measure)
        each = np.full(len(Z), found.noise) if noise is None else noise
        each = np.maximum(each, LEAST * found.scale * float(np.abs(found.kernel.diag(Table(X))).max()))
        if plan.way == "exact":
            self.process_ = PointProcess.of(found.kernel, X, Z, each, found.scale)
        else:
            few = len(Z) > (self._most(plan.way) or 0) and found.steps > 0 and not refine
            self.process_ = IterativeProcess.solved(
                found.kernel, X, Z, each, found.scale, memory=bytes_of(self.memory_limit), rescale=few and found.profiled, least=NOISE[0]
            )
        settings = {"rows": len(Z), "learnt from": self._learnt_from(len(Z), plan.way), "steps": found.steps}
        self.plan_ = Plan(plan.way, plan.why, settings, plan.bytes, plan.flops, rejected=plan.rejected)
        self._warn_if_singular()
        return self

    # changes
    @available_if(streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Take in rows: by moments of features, whose map the first batch fixes, or as points of a model that has them.

        The first batch means `fit` with via="exact" or "iterative", and where `fixed`, `tied`, `bounds` or `priors` are given.

        An exact model grows its factor in O(n^2) a point (an iterative one solves again), and both keep their hyper-parameters;
        `fit` learns them anew.
        """
        check_flag(self.restore_variance, "restore_variance")
        points = self.lift is None and isinstance(self.via, str) and self.via in ("exact", "iterative")
        if not self.__sklearn_is_fitted__() and (points or self._asks()):
            return self.fit(X, y)
        if not hasattr(self, "process_"):
            return super().partial_fit(X, y)
        Z, X = self._rows_like(X, y, "partial_fit")
        noise = self.process_.noise[0] if len(self.process_.noise) else 0.0
        self.process_ = self.process_.with_points(X, Z, np.full(len(Z), noise))
        self._warn_if_singular()
        return self._counted()

    @available_if(streams)
    @all_or_nothing
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

    @all_or_nothing
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
        Z = (Y.reshape(len(Y), -1) - mean) / unit
        if not np.abs(Z).max() < 1e150:
            raise ValueError(f"y is up to {np.abs(Y).max():.1g}, whose square is no floating-point number; leave such rows out.")
        return Z, X.astype(np.float64)

    def _counted(self) -> Self:
        p, n = self.plan_, len(self.process_.Y)
        self.plan_ = Plan(p.way, p.why, {**p.settings, "rows": n}, 8.0 * n * n, p.flops, p.passes, p.rejected)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "process_") or hasattr(self, "lift_")

    def _check_fitted(self) -> None:
        check_is_fitted(self)
