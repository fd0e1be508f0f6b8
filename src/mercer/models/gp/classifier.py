"""GaussianProcessClassifier: Laplace's approximation, one class against the rest, exactly or over landmarks."""
from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import methods
from mercer.estimators.base import OverFeatures, all_or_nothing, asked, bytes_of, default_features
from mercer.models.gp.problem import check_restarts
from mercer.inputs import Array, Items, Matrix, Table
from mercer.invariants import Each, Is, Labels, Whole
from mercer.kernels import positioned
from mercer.kernels.defaults import resolve
from mercer.models.gp.laplace import LaplaceProcess, LaplaceWeights, evidence
from mercer.models.gp.search import Learnt, learn
from mercer.models.gp.space import Wishes, times
from mercer.models.gp.starts import starts
from mercer.lifts import KernelLift
from mercer.lifts.base import seed_of
from mercer.models.maps import landmarks_of_items
from mercer.ops.tiles import cuts
from mercer.plan import Plan, quantity
from mercer.store import register

MOST_EXACT = 3000  # rows that "auto" factors, a few times a step
MOST_LEARNT = 1000  # rows that hyper-parameters are learnt from
COPIES = 4  # n x n arrays held at once
PIECE = 2048  # rows that features are made of at a time


@register("gp.GaussianProcessClassifier")
class GaussianProcessClassifier(ClassifierMixin, OverFeatures):
    """p(y = 1 | x) = E sigmoid(f(x)) with f ~ GP(0, scale k), conditioned on the labels by Laplace's approximation.

    Several classes are each set against the rest, with a kernel of their own, and the probabilities divided by their sum.

    Parameters
    ----------
    kernel : any kernel expression, a name as in `KernelRidge`, or None: the best by evidence of Matern-3/2, Matern-5/2,
        rational quadratic and Gaussian, with one bandwidth a column. A Gram matrix ("precomputed") has no k(x, x) of new rows,
        without which there are no probabilities; use `KernelSVC`.
    via : "exact", "landmarks" (or `mercer.methods.Landmarks(m)`), or "auto": exact up to 3,000 rows where four n x n arrays fit
        in `memory_limit`, landmarks beyond. Over landmarks the variance that they leave out is put back.
    fixed : names of parameters that stay as given, by `kernel.get_params()` and "scale"; "all" of the kernel's; True: all as
        given, with a scale of 1; () or None: all are learnt. The scale stays 1 too where an amplitude ("by") is fixed, bounded or
        has a prior, so that it is what was said.
    tied, bounds, priors, n_restarts : of the hyper-parameters, as in `GaussianProcessRegressor`; there is no "noise". They are
        learnt from 1,000 rows at most, by the evidence.

    Factors and moments are by BLAS in as many threads as it has: another OMP_NUM_THREADS may change the last digits, 1 never does.

    Attributes: `classes_`, `kernel_` (one, or one a class; scale included), `log_marginal_likelihood_`, `processes_`, `plan_`.

    Rasmussen and Williams, Gaussian processes for machine learning (2006), chapter 3.

    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> m = GaussianProcessClassifier(random_state=0).fit(X, ["a", "a", "b", "b"])
    >>> m.predict([[0.5], [2.5]]).tolist(), bool(m.predict_proba([[1.5]]).max() < 0.6)
    (['a', 'b'], True)
    """

    lift: Any = None  # what users give is a kernel

    must = dict(
        n_features_in_=Whole(1), feature_names_in_=Labels("n_features_in_"), classes_=Labels("K"),
        processes_=Each(Is("LaplaceProcess", "LaplaceWeights")), lifts_=Each(Is("Lift", n_features_in_="n_features_in_")),
    )  # fmt: skip

    def _laws(self) -> str | None:
        K, found = len(self.classes_), len(self.processes_)
        return None if found == (K if K > 2 else 1) and K > 1 else f"has {found} processes for {K} classes"

    def __init__(
        self, kernel: Any = None, via: Any = "auto", *, fixed: Any = None, tied: Any = (), bounds: Any = None, priors: Any = None,
        n_restarts: int = 0, memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.via = via
        self.fixed = fixed
        self.tied = tied
        self.bounds = bounds
        self.priors = priors
        self.n_restarts = n_restarts
        self.memory_limit = memory_limit
        self.random_state = random_state

    processes_: list[Any]

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the hyper-parameters of every class against the rest, then the posterior."""
        X, y = self._check_Xy(X, y, reset=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only ({self.classes_[:1].tolist()[0]!r}); give rows of at least two.")
        self.__dict__.pop("lifts_", None)
        self.plan_ = self._route(X.shape[0])
        rows, targets = X.astype(np.float64), range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        labels = [np.where(codes == c, 1.0, -1.0) for c in targets]
        found = [self._learnt(rows, s, self._wishes()) for s in labels]
        if self.plan_.way == "exact":
            self.processes_ = [LaplaceProcess.at_mode(f.kernel, rows, s, f.scale) for f, s in zip(found, labels, strict=True)]
        else:
            self._fit_landmarks(X, labels, found)
        return self

    def _route(self, n: int) -> Plan:
        size, limit = COPIES * 8.0 * n * n, bytes_of(self.memory_limit)
        matrices = f"{COPIES} matrices of {quantity(size / COPIES, 'B')}"
        if isinstance(self.via, methods.Landmarks) or self.via == "landmarks":
            return Plan("landmarks", "asked for", {"rows": n})
        if not isinstance(self.via, str) or self.via not in ("auto", "exact"):
            raise ValueError(f"via must be auto, exact, landmarks or a value Landmarks(m) of mercer.methods, got {self.via!r}.")
        if self.via == "exact" and self.memory_limit is not None and size > limit:
            raise ValueError(f"via='exact' needs {matrices}, beyond memory_limit={self.memory_limit!r}; raise it, or use via='landmarks'.")
        if self.via == "exact" or (n <= MOST_EXACT and size <= limit):
            return Plan("exact", f"{n:,} rows: {matrices} fit", {"rows": n}, bytes=size)
        return Plan("landmarks", f"{n:,} rows are too many for {matrices}", {"rows": n}, rejected=(("exact", matrices),))

    def _wishes(self) -> Wishes:
        wishes = Wishes(() if self.fixed is None else self.fixed, self.tied or (), self.bounds, self.priors)
        if "noise" in wishes.named():
            raise ValueError("a classifier has no 'noise'; leave it out of fixed, tied, bounds and priors.")
        return wishes

    def _learnt(self, X: Matrix, y: Array, wishes: Wishes) -> Learnt:
        rows, seed, restarts = Table(X), seed_of(self.random_state), check_restarts(self.n_restarts)
        kernel = None if self.kernel is None else positioned(resolve(self.kernel, X), self._named(X))
        given = starts(kernel, rows, wishes, 1.0, scale=True, unit=1.0, restarts=restarts, seed=seed)
        if not given[0].space.size:
            return Learnt(given[0].space.kernel, 1.0, 1.0, 0.0, 0)
        return learn(given, rows, y[:, None], seed=seed, most=MOST_LEARNT, measure=evidence)

    def _fit_landmarks(self, X: Matrix, labels: list[Array], found: list[Learnt]) -> None:
        method = self.via if isinstance(self.via, methods.Landmarks) else methods.Landmarks()
        size = asked(method) or default_features(X.shape[0]) // 2
        listed = partial(landmarks_of_items, method=method, seed=self.random_state)
        make: Any = listed if isinstance(X, Items) else partial(KernelLift, method=method, random_state=self.random_state)
        self.lifts_ = [make(f.kernel, size).fit(Table(X)) for f in found]
        self.processes_ = [
            LaplaceWeights.at_mode(np.asarray(phi.transform(Table(X)), np.float64), s, f.scale)
            for phi, s, f in zip(self.lifts_, labels, found, strict=True)
        ]

    @property
    def log_marginal_likelihood_(self) -> float:
        """The sum of the approximate log p(y) of all classes against the rest."""
        check_is_fitted(self)
        return float(sum(p.log_evidence for p in self.processes_))

    @property
    def kernel_(self) -> Any:
        """The kernel of f with its scale: one for two classes, else a list, one a class."""
        check_is_fitted(self)
        found = [p.kernel for p in self.processes_] if not hasattr(self, "lifts_") else [phi.kernel_ for phi in self.lifts_]
        all_ = [times(p.scale, k) for p, k in zip(self.processes_, found, strict=True)]
        return all_[0] if len(all_) == 1 else all_

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, classes): averaged over the posterior of f, so less sure the farther from the data."""
        logs, X = self._logs(X)
        return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), X.dtype)

    def decision_function(self, X: Any) -> Array:
        """The log-odds of `predict_proba`, also where that is 0 or 1 to rounding: of the second class, or of every class."""
        logs, X = self._logs(X)
        if len(self.processes_) == 1:
            return np.asarray(logs[:, 1] - logs[:, 0], X.dtype)
        others = [logsumexp(np.delete(logs, c, axis=1), axis=1) for c in range(logs.shape[1])]
        return np.asarray(logs - np.column_stack(others), X.dtype)

    def predict(self, X: Any) -> Array:
        """The most probable class."""
        best = self._logs(X)[0].argmax(1)
        return np.asarray(self.classes_[best])

    def _logs(self, X: Any) -> tuple[Array, Matrix]:
        """log p of both classes, or of each of several against the rest, in float64; and the rows, checked."""
        check_is_fitted(self)
        X = self._check_X(X, reset=False)
        each = [self._against_rest(i, X) for i in range(len(self.processes_))]
        return each[0] if len(each) == 1 else np.column_stack([logs[:, 1] for logs in each]), X

    def _against_rest(self, i: int, X: Matrix) -> Array:
        """log p of not being, and of being, of a class, (n, 2)."""
        p = self.processes_[i]
        if not hasattr(self, "lifts_"):
            return np.asarray(p.logs(X.astype(np.float64)))
        return np.concatenate([self._over_features(self.lifts_[i], p, X[at]) for at in cuts(X.shape[0], PIECE)])

    def _over_features(self, phi: Any, p: LaplaceWeights, X: Matrix) -> Array:
        F = np.asarray(phi.transform(Table(X)), np.float64)
        whole = phi.kernel_.diag(Table(X)).astype(np.float64)
        return p.logs(F, np.maximum(whole - np.square(F).sum(1), 0))
