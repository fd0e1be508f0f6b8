"""GaussianProcessClassifier: Laplace's approximation, one class against the rest, exactly or over
landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import methods
from mercer.costs.processes import MAX_CLASSIFIER_ROWS as MAX_EXACT_ROWS
from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.kernels import Kernel, positioned
from mercer.kernels.defaults import is_precomputed, kernel_of, resolve
from mercer.lifts.base import seed_of
from mercer.lifts.widths import default_features
from mercer.models.base import KernelEstimator, all_or_nothing, bytes_of
from mercer.models.gp.hyperparameters import HyperparameterSpec
from mercer.models.gp.laplace import laplace_likelihood
from mercer.models.gp.laplace_posterior import LaplaceFeatures, LaplacePosterior, OneVersusRest
from mercer.models.gp.problem import bounded, check_count, held
from mercer.models.gp.search import FittedHyperparameters, learn
from mercer.models.gp.starts import starts
from mercer.models.maps import FittedMap, asked, kernel_lift
from mercer.models.settings import FittedKernel, Gamma, KernelSetting, MemoryLimit, Seed, Via
from mercer.plans import Plan, quantity
from mercer.store import register

MAX_SEARCH_ROWS = 1000  # that hyper-parameters are learnt from
COPIES = 4  # n x n arrays held at once
WAYS = ("auto", "exact", "landmarks")
GIVEN = "a Gram matrix does not tell k(x, x) of new rows, without which there are no probabilities; give a kernel, or use KernelSVC."


@dataclass(frozen=True, eq=False)
class LaplaceSettings:
    """The parameters of `GaussianProcessClassifier` that the way depends on, checked: `way` and
    `method` are what `via` says.
    """

    kernel: KernelSetting
    way: str
    method: methods.Method
    spec: HyperparameterSpec
    n_restarts: int
    memory_limit: MemoryLimit
    random_state: Seed

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        if is_precomputed(m.kernel):
            raise ValueError(GIVEN)
        way, method = methods.resolve(m.via, WAYS)
        kernel = kernel_of(m)
        spec = HyperparameterSpec(
            (held(kernel) or ()) if m.fixed is None else m.fixed,
            m.tied or (),
            bounded(kernel, m.bounds),
            m.priors,
        )
        if "noise" in spec.named():
            raise ValueError(
                "a classifier has no 'noise'; leave it out of fixed, tied, bounds and priors."
            )
        restarts = check_count(m.n_restarts, "n_restarts", least=0)
        return cls(kernel, way, method, spec, restarts, m.memory_limit, m.random_state)


@register("gp.GaussianProcessClassifier")
class GaussianProcessClassifier(ClassifierMixin, KernelEstimator):
    """p(y = 1 | x) = E sigmoid(f(x)), f ~ GP(0, scale k), given the labels by Laplace's method.

    Several classes are each set against the rest, with a kernel of their own, and the
    probabilities divided by their sum. Factors and moments are by BLAS in as many threads as it
    has: another OMP_NUM_THREADS may change the last digits, 1 never does.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        Any kernel expression, one as in `KernelRidge` (of scikit-learn's what is "fixed" stays
        so, the scale too), or None: the best by evidence of
        Matern-3/2, Matern-5/2, rational quadratic and Gaussian, with one bandwidth a column. A
        Gram matrix ("precomputed") has no k(x, x) of new rows, without which there are no
        probabilities; use `KernelSVC`.
    via : str or `mercer.methods.Landmarks`, default="auto"
        "exact", "landmarks" (or `Landmarks(m)`), or "auto": exact up to 3,000 rows where four n
        x n arrays fit in `memory_limit`, landmarks beyond. Over landmarks the variance that
        they leave out is put back.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    fixed : collection of str, "all", True or None, default=None
        Names of parameters that stay as given, by `kernel.get_params()` and "scale"; "all" of
        the kernel's; True: all as given, with a scale of 1; () or None: all are learnt. The
        scale stays 1 too where an amplitude ("factor") is fixed, bounded or has a prior, so
        that it is what was said.
    tied : collection of tuples of str, default=()
        Names that share one value. The hyper-parameters are learnt from 1,000 rows at most, by
        the evidence, and told as in `GaussianProcessRegressor`; there is no "noise".
    bounds : dict of (float, float) by name, default=None
        {name: (low, high)}.
    priors : dict of Prior by name, default=None
        Densities of `mercer.priors`.
    n_restarts : int, default=0
        Starts of the search beside those at the given and at data-scaled values.
    memory_limit : float or str, default=None
        Of n x n arrays, as bytes or "4GB"; 1 GB where None.
    random_state : int, RandomState, Generator or None, default=None
        The seed of starts, samples of rows and landmarks.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : Kernel, or list of Kernel
        With its scale; one a class where there are more than two.
    log_marginal_likelihood_ : float
        The sum of the approximate log p(y) of all classes against the rest.
    posterior_ : OneVersusRest
        The fitted value.
    plan_ : Plan

    References
    ----------
    Rasmussen and Williams, Gaussian processes for machine learning (2006), chapter 3.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> m = GaussianProcessClassifier(random_state=0).fit(X, ["a", "a", "b", "b"])
    >>> m.predict([[0.5], [2.5]]).tolist(), bool(m.predict_proba([[1.5]]).max() < 0.6)
    (['a', 'b'], True)
    """

    posterior_: OneVersusRest

    must = dict(posterior_=Is("OneVersusRest"))

    def _laws(self) -> str | None:
        K, found, reads = len(self.classes_), len(self.posterior_.each), self.posterior_.reads
        if found != (K if K > 2 else 1) or K < 2:
            return f"has {found} posteriors for {K} classes"
        return (
            None
            if reads in (None, self.n_features_in_)
            else f"has a posterior over {reads} columns, which are not those that it takes"
        )

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """From files that had a list of posteriors, and one of maps where they were over
        landmarks.
        """
        if "processes_" not in state:
            return state
        found, lifts, plan = state.pop("processes_"), state.pop("lifts_", None), state.pop("plan_")
        each = (
            found
            if lifts is None
            else [LaplaceFeatures(FittedMap(phi), w) for phi, w in zip(lifts, found, strict=True)]
        )
        return {**state, "posterior_": OneVersusRest(plan, tuple(each))}

    def __init__(
        self,
        kernel: KernelSetting = None,
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        fixed: Any = None,
        tied: Any = (),
        bounds: Any = None,
        priors: Any = None,
        n_restarts: int = 0,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.via = via
        self.fixed = fixed
        self.tied = tied
        self.bounds = bounds
        self.priors = priors
        self.n_restarts = n_restarts
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the hyper-parameters of every class against the rest, of rows X (n, d) with
        labels y (n,).
        """
        s = LaplaceSettings.of(self)
        rows, y = self._rows_and_targets(X, y, reset=True)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only ({classes[:1].tolist()[0]!r}); give rows of at least two."
            )
        plan = choose(len(rows), s)
        targets = range(1, 2) if len(classes) == 2 else range(len(classes))
        labels = [np.where(codes == c, 1.0, -1.0) for c in targets]
        found = [(learnt(rows.astype(np.float64), signs, s), signs) for signs in labels]
        for f, _ in found:
            f.warn_of_bounds(s.spec.bounds, stacklevel=4)
        X = Table(rows.data)
        if plan.way == "exact":
            each: Any = [
                LaplacePosterior.at_mode(f.kernel, X.astype(np.float64), signs, f.scale)
                for f, signs in found
            ]
        else:
            make = partial(
                landmarks_of,
                X,
                s.method if isinstance(s.method, methods.Landmarks) else methods.Landmarks(),
                s.random_state,
            )
            each = [
                LaplaceFeatures.at_mode(make(f.kernel), X, signs, f.scale) for f, signs in found
            ]
        self.classes_, self.posterior_ = classes, OneVersusRest(plan, tuple(each))
        return self

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "posterior_" in vars(self)

    def _posterior(self) -> OneVersusRest:
        check_is_fitted(self)
        return self.posterior_

    @property
    def plan_(self) -> Plan:
        return self._posterior().plan

    @property
    def log_marginal_likelihood_(self) -> float:
        """The sum of the approximate log p(y) of all classes against the rest."""
        return self._posterior().log_marginal_likelihood

    @property
    def kernel_(self) -> FittedKernel | list[FittedKernel]:
        """The kernel of f with its scale: one for two classes, else a list, one a class."""
        return self._posterior().scaled_kernel

    # asking
    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, n_classes): averaged over the posterior of f.

        So less sure the farther from the data.
        """
        logs, dtype = self._logs(X)
        return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), dtype)

    def decision_function(self, X: Any) -> Array:
        """The log-odds of `predict_proba`, (n,) of the second class, or (n, n_classes).

        Also where that is 0 or 1 to rounding.
        """
        logs, dtype = self._logs(X)
        if len(self.classes_) == 2:
            return np.asarray(logs[:, 1] - logs[:, 0], dtype)
        others = [logsumexp(np.delete(logs, c, axis=1), axis=1) for c in range(logs.shape[1])]
        return np.asarray(logs - np.column_stack(others), dtype)

    def predict(self, X: Any) -> Array:
        """The most probable class of every row, (n,)."""
        best = self._logs(X)[0].argmax(1)
        return np.asarray(self.classes_[best])

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """The posterior mean and variance of f at every row, (n,) each.

        Of the second of two classes, or (n, n_classes) each, one f a class against the rest; by
        Laplace's approximation.

        Examples
        --------
        >>> m = GaussianProcessClassifier(random_state=0).fit([[0.0], [1.0]], ["a", "b"])
        >>> mean, variance = m.latent_mean_and_variance([[0.5]])
        >>> bool(abs(mean[0]) < 1e-6), bool(variance[0] > 0)
        (True, True)
        """
        posterior, rows = self._posterior(), Table(self._rows(X, reset=False).data)
        mean, variance = posterior.latent(rows)
        return mean.astype(rows.dtype), variance.astype(rows.dtype)

    def _logs(self, X: Any) -> tuple[Array, np.dtype[Any]]:
        """log p of both classes, or of each of several against the rest, in float64; and the
        precision of the rows.
        """
        posterior = self._posterior()
        rows = Table(self._rows(X, reset=False).data)
        return posterior.logs(rows), rows.dtype


def learnt(rows: Table, y: Array, s: LaplaceSettings) -> FittedHyperparameters:
    """The hyper-parameters of one class, of signs y (n,), against the rest."""
    seed = seed_of(s.random_state)
    kernel = None if s.kernel is None else positioned(resolve(s.kernel, Table(rows.data)), rows)
    given = starts(
        kernel, rows, s.spec, 1.0, scale=True, unit=1.0, restarts=s.n_restarts, seed=seed
    )
    if not given[0].space.size:
        return FittedHyperparameters(given[0].space.kernel, 1.0, 1.0, 0.0, 0)
    return learn(
        given, rows, y[:, None], seed=seed, most=MAX_SEARCH_ROWS, measure=laplace_likelihood
    )


def choose(n: int, s: LaplaceSettings) -> Plan:
    """The way of n rows: "exact" or "landmarks", and why."""
    size, limit = COPIES * 8.0 * n * n, bytes_of(s.memory_limit)
    matrices = f"{COPIES} matrices of {quantity(size / COPIES, 'B')}"
    if s.way == "landmarks":
        return Plan("landmarks", "asked for", {"rows": n})
    if s.way == "exact" and s.memory_limit is not None and size > limit:
        raise ValueError(
            f"via='exact' needs {matrices}, beyond memory_limit={s.memory_limit!r}; raise it, or use via='landmarks'."
        )
    if s.way == "exact" or (n <= MAX_EXACT_ROWS and size <= limit):
        return Plan("exact", f"{n:,} rows: {matrices} fit", {"rows": n}, bytes=size)
    return Plan(
        "landmarks",
        f"{n:,} rows are too many for {matrices}",
        {"rows": n},
        rejected=(("exact", matrices),),
    )


def landmarks_of(X: Table, method: methods.Landmarks, seed: Any, kernel: Kernel) -> FittedMap:
    """The features of a kernel at landmarks of these rows."""
    size = asked(method) or default_features(len(X)) // 2
    return FittedMap.fit(kernel_lift(kernel, size, method, seed, X), X)
