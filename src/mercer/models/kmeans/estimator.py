"""KernelKMeans: clusters about means in the space of a kernel, exactly or over features."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Is
from mercer.models.base import (
    KernelEstimator,
    all_or_nothing,
    bytes_of,
    check_finite,
    checked,
    part,
    parted,
)
from mercer.models.expansion import Expansion
from mercer.models.kmeans.clusters import FeatureMeans, KernelMeans, Run, partial
from mercer.models.kmeans.ways import Found, KMeansSettings, fit
from mercer.models.maps import FittedMap
from mercer.models.settings import (
    FittedKernel,
    FittedLift,
    Gamma,
    KernelSetting,
    LiftSetting,
    MemoryLimit,
    Seed,
    Via,
)
from mercer.plans import Plan
from mercer.store import register


@register("kmeans.KernelKMeans")
class KernelKMeans(ClusterMixin, KernelEstimator):
    """argmin sum_i w_i min_c |phi(x_i) - m_c|^2: k-means in the space of a kernel.

    Where clusters are left empty the row farthest from its mean becomes one; a
    ConvergenceWarning tells of those that stay empty, as where fewer rows differ than there are
    clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        How many.
    kernel : Kernel or str, default=None
        A kernel, a name, "precomputed" (X is then the Gram matrix with the rows of `fit`), or
        None: a Gaussian scaled to the data.
    via : str or a value of `mercer.methods`, default="auto"
        "exact" (tiles of the kernel matrix, one sweep a step), "features", "landmarks" or a
        value; "auto" is exact up to 20,000 rows (200,000 on a GPU), else features. Dense rows
        are the features of `Linear()` themselves: "auto" gives cluster_centers_ among them, and
        "exact" the same clusters with dual_coef_.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    lift : Lift or transformer, default=None
        A feature map, instead of a kernel.
    n_init : int, default=3
        Runs from other seeds, of which the best counts. Among more than 1,000 rows, or some
        320 + 50 k, they begin on a sample, and the best goes on; of 256 columns and more half
        as many do.
    max_iter : int, default=300
        Steps of each.
    tol : float, default=1e-4
        Steps end where means move by so little that the sum of their squared ways is at most
        tol times the mean variance of the columns, as in scikit-learn, or where no row changes
        its cluster; 0 asks for the latter. Where rows are compared with each other, and where
        features do not fit half the memory, steps always go on until no row changes.
    memory_limit : float or str, default=None
        Up to which features are kept between the steps, as bytes or "1GB".
    random_state : int, RandomState, Generator or None, default=None
        The seed of runs, features and landmarks.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.
    device : str, default="cpu"
        "cuda" (or "cuda:1") compares rows with each other on that GPU, to about 1e-6; "auto"
        takes one where there is one. Features stay on the CPU; `plan_` says where it was.

    Attributes
    ----------
    clusters_ : KernelMeans or FeatureMeans
        The fitted value.
    labels_ : ndarray of shape (n,)
        The cluster of every row of `fit`.
    inertia_ : float
        The least sum that was found.
    n_iter_ : int
    kernel_ : Kernel
    plan_ : Plan
    dual_coef_ : ndarray of shape (n, k)
        Exactly.
    cluster_centers_ : ndarray of shape (k, D)
        Over features.

    References
    ----------
    Dhillon, Guan and Kulis, Kernel k-means (2004); Lattanzi and Sohler, A better k-means++
    algorithm via local search (2019).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> t, r = rng.uniform(0, 2 * np.pi, 200), np.repeat([1.0, 4.0], 100)
    >>> rings = np.column_stack([r * np.cos(t), r * np.sin(t)])
    >>> from mercer.kernels import Linear
    >>> of_radius = Linear().warped(lambda X: np.square(X).sum(1))
    >>> labels = KernelKMeans(2, of_radius, random_state=0).fit(rings).labels_
    >>> len(set(labels[:100])), labels[0] != labels[100]
    (1, np.True_)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        kernel: KernelSetting = None,
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        lift: LiftSetting = None,
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-4,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
        verbose: bool | int = False,
        device: str = "cpu",
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.via = via
        self.lift = lift
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    clusters_: KernelMeans | FeatureMeans

    must = dict(clusters_=Is("KernelMeans", "FeatureMeans"))

    def _laws(self) -> str | None:
        reads = self.clusters_.reads
        return (
            None
            if reads in (None, self.n_features_in_)
            else f"has means over {reads} columns, which are not those that it takes"
        )

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Seeds by k-means++ and swaps of them, then steps until no row changes its cluster, or
        means move by next to nothing.

        Weights of rows are (n,), or none; y is not read.
        """
        s, rows = KMeansSettings.of(self), self._rows(X, reset=True)
        if len(rows) < s.n_clusters:
            raise ValueError(
                f"n_samples={len(rows)} should be >= n_clusters={s.n_clusters}; give fewer clusters, or more rows."
            )
        weight = self._weights(sample_weight, rows)
        if weight is not None and not weight.any():
            raise ValueError(
                "sample_weight is zero for every row; give some row a positive weight."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            clusters, found, distinct = fit(s, rows, weight)
        _warn(found, s.n_clusters, distinct)
        self.clusters_ = clusters
        return self

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "clusters_" in vars(self)

    def _clusters(self) -> KernelMeans | FeatureMeans:
        check_is_fitted(self)
        return self.clusters_

    @property
    def plan_(self) -> Plan:
        return self._clusters().plan

    @property
    def kernel_(self) -> FittedKernel:
        return self._clusters().kernel

    @property
    def labels_(self) -> Array:
        """The cluster of every row of `fit`."""
        return self._clusters().run.labels

    @property
    def inertia_(self) -> float:
        return self._clusters().run.inertia

    @property
    def n_iter_(self) -> int:
        return self._clusters().run.steps

    @property
    def center_squares_(self) -> Array:
        """|m_c|^2, about the origin of distances."""
        return self._clusters().run.squares

    @property
    def dual_coef_(self) -> Array:
        """(n, k); AttributeError over features."""
        return part(
            self._clusters(),
            "coef",
            "dual_coef_ is there for means over rows (via='exact'); this model has cluster_centers_.",
        )

    @property
    def X_fit_(self) -> Matrix | None:
        """The rows that dual_coef_ are of; None for a given kernel matrix."""
        return part(
            self._clusters(),
            "over",
            "X_fit_ is there for means over rows (via='exact'); this model has cluster_centers_.",
        ).rows

    @property
    def cluster_centers_(self) -> Array:
        """(k, D); AttributeError for means over rows."""
        return part(
            self._clusters(),
            "centers",
            "cluster_centers_ are there for models over features; this one has dual_coef_.",
        )

    @property
    def lift_(self) -> FittedLift:
        return part(
            self._clusters(),
            "phi",
            "lift_ is there for models over features; this one has dual_coef_.",
        ).lift

    @property
    def n_features_lifted_(self) -> int:
        """D"""
        return part(
            self._clusters(),
            "phi",
            "n_features_lifted_ is there for models over features; this one has dual_coef_.",
        ).width

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Of a file in which the parts of the clusters were attributes."""
        run = ("labels_", "inertia_", "n_iter_", "center_squares_")
        names = (
            "dual_coef_",
            "X_fit_",
            "kernel_",
            "plan_",
            "lift_",
            "n_features_lifted_",
            "cluster_centers_",
            "_origin",
        )
        rest, old = parted(state, *run, *names)
        if old["plan_"] is None:
            return rest
        plan, found = old["plan_"], checked(Run(*(old[name] for name in run)))
        if old["dual_coef_"] is not None:
            over, origin = (
                Expansion.of_file(old["kernel_"], old["X_fit_"], rest.get("feature_names_in_")),
                old["_origin"],
            )
            return {
                **rest,
                "clusters_": checked(
                    KernelMeans(
                        plan, found, over, old["dual_coef_"], 0.0 if origin is None else origin
                    )
                ),
            }
        phi = FittedMap.of_file(old["lift_"], bytes_of(rest["memory_limit"]))
        return {
            **rest,
            "clusters_": checked(
                FeatureMeans(plan, found, phi, old["cluster_centers_"], old["_origin"])
            ),
        }

    # asking
    @available_if(lambda self: not self._precomputed)
    def distances(self, X: Any) -> Array:
        """To the means, in the space of the kernel, (n, k).

        A Gram matrix does not tell k(x, x), and so no distances.
        """
        means, rows = self._clusters(), self._rows(X, reset=False)
        part = partial(means, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            square = part + means.norms(rows)[:, None]
        check_finite(square)
        return np.sqrt(np.maximum(square, 0)).astype(rows.dtype, copy=False)

    def predict(self, X: Any) -> Array:
        """The nearest mean of each row, (n,)."""
        means = self._clusters()
        return means.nearest(self._rows(X, reset=False))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Array:
        """`fit`, and the clusters of its rows, (n,)."""
        return self.fit(X, sample_weight=sample_weight).labels_

    @available_if(lambda self: not self._precomputed)
    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """- sum_i w_i min_c |phi(x_i) - m_c|^2."""
        nearest = np.square(self.distances(X).astype(np.float64)).min(axis=1)
        w = self._weights(sample_weight, Table(nearest[:, None]))
        return -float(nearest.sum() if w is None else w @ nearest)


def _warn(found: Found, k: int, distinct: int) -> None:
    if not found.settled:
        warnings.warn(
            f"rows still change their clusters after {found.steps} steps; raise max_iter.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if (there := min(len(np.unique(found.labels)), distinct)) < k:
        why = f"only {there} of {k} clusters have rows of their own, as too few rows differ; give fewer clusters."
        warnings.warn(why, ConvergenceWarning, stacklevel=4)
