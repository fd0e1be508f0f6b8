"""KernelPCA: the leading directions of phi(x), from the kernel matrix, or from moments of features
that stream and merge."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mercer import methods
from mercer.engines.lazy import take_dask
from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Is
from mercer.linalg.decompose import SketchedMoments
from mercer.models.base import (
    KernelEstimator,
    all_or_nothing,
    check_finite,
    note_columns,
    part,
)
from mercer.models.pca import partitions
from mercer.models.pca.before import with_projection
from mercer.models.pca.problem import DUAL, PCASettings, choose
from mercer.models.pca.projections import (
    DualProjection,
    FeatureProjection,
    begin,
    fit_dual,
    fit_features,
    mergeable,
    way_back,
)
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
from mercer.stats import Moments
from mercer.store import register

NO_WAY_BACK = "items, and features of this kernel, have no way back to rows; fit rows of numbers with via='exact' or 'landmarks'."
Projection = DualProjection | FeatureProjection


def _streams(self: KernelPCA) -> bool:
    """Whether a model of these settings can be one over features, whose statistics add."""
    if self._precomputed or methods.way(self.via) in DUAL:
        raise AttributeError(
            "a stream needs features; give a kernel and via='features', 'landmarks' or a value of mercer.methods."
        )
    return True


def _merges(self: KernelPCA) -> bool:
    """Whether there may be statistics that add: a kernel matrix has none."""
    if self._precomputed:
        raise AttributeError(
            "models of the kernel matrix do not merge; give a kernel, and fit both with via='features'."
        )
    return True


def _inverts(self: KernelPCA) -> bool:
    """Whether models of these settings can have a way back; where that depends on the rows of
    `fit`, `inverse_transform` says it.
    """
    if self.lift is not None:
        return way_back(self.lift) is not None
    return not self._precomputed and not isinstance(self.via, methods.Fourier | methods.Sketch)


@register("pca.KernelPCA")
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """z = V'(phi(x) - mean), V the leading eigenvectors of the covariance of phi.

    The largest entry of each is positive. `partial_fit` continues a stream over the map that
    its first batch fixed, `merge` joins two of them. Factors and moments are by BLAS in as many
    threads as it has: another OMP_NUM_THREADS may change the last digits, 1 never does.

    Parameters
    ----------
    n_components : int or None, default=2
        How many, at most as many as there are features (or rows); None is all of variance
        above 1e-12 of the largest, for which the matrix is decomposed whole.
    kernel : Kernel or str, default=None
        A kernel, a name, "precomputed" (X is then the Gram matrix with the rows of `fit`), or
        None: a Gaussian scaled to the data.
    via : str or a value of `mercer.methods`, default="auto"
        "exact" (the kernel matrix of the rows, decomposed), "iterative" (the same by products
        with it, not kept beyond half the memory limit: 50,000 rows and more), "features",
        "landmarks", or a value. "auto": features where the kernel has few, else exact up to
        5,000 rows, else features. A stream is always of features. From 5,001 rows on "auto" so
        refuses `inverse_transform` for kernels such as Gaussian ones; "landmarks", "exact" and
        "iterative" have it.
    gamma, degree, coef0 : float, default=None
        Of a kernel given by name, as in `KernelRidge`.
    lift : Lift or transformer, default=None
        A feature map, instead of a kernel; via is then "auto" or "features".
    remove_zero_eig : bool, default=False
        Whether components of no variance (at most 1e-12 of the largest), whose coordinates are
        all zero, are left out.
    memory_limit : float or str, default=None
        Of D x D statistics, as bytes or "4GB"; beyond it `fit` finds the directions in a few
        passes over the rows, and a stream keeps frequent directions instead (`plan_` says
        which, and the sketch's `loss_`).
    random_state : int, RandomState, Generator or None, default=None
        The seed of features, landmarks and starts.

    Attributes
    ----------
    projection_ : DualProjection or FeatureProjection
        The fitted value.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Over n - 1, and as a share of all.
    eigenvalues_ : ndarray of shape (k,)
        Of the centred kernel matrix.
    plan_ : Plan
    kernel_ : Kernel
    components_ : ndarray of shape (k, D)
        Over features, as `mean_` and `lift_`.
    mean_ : ndarray of shape (D,)
    lift_ : Lift
    dual_coef_ : ndarray of shape (n, k)
        In the dual, as `X_fit_`.
    X_fit_ : ndarray of shape (n, d), list of items, or None

    References
    ----------
    Scholkopf, Smola and Muller, Nonlinear component analysis as a kernel eigenvalue problem
    (1998).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [3.0, 1.0, 0.1]
    >>> from mercer.lifts import Identity
    >>> m = KernelPCA(2, lift=Identity()).fit(X)
    >>> m.explained_variance_ratio_.round(2), list(m.get_feature_names_out())
    (array([0.91, 0.09]), ['kernelpca0', 'kernelpca1'])
    """

    def __init__(
        self,
        n_components: int | None = 2,
        kernel: KernelSetting = None,
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        degree: int | None = None,
        coef0: float | None = None,
        lift: LiftSetting = None,
        remove_zero_eig: bool = False,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.via = via
        self.lift = lift
        self.remove_zero_eig = remove_zero_eig
        self.memory_limit = memory_limit
        self.random_state = random_state

    projection_: Projection

    must = dict(projection_=Is("DualProjection", "FeatureProjection"))

    def _laws(self) -> str | None:
        reads = self.projection_.reads
        return (
            None
            if reads in (None, self.n_features_in_)
            else f"has components over {reads} columns, which are not those that it takes"
        )

    # fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Decompose the kernel matrix of rows X (n, d), or the moments of phi of one pass."""
        self._fitted(X)
        return self

    @all_or_nothing
    def _fit_dask(self, X: Any, y: Any = None) -> Self:
        """The same of dask collections, over features by moments of their partitions."""
        self.projection_ = partitions.fit(PCASettings.of(self), X)
        note_columns(self, X)
        return self

    @all_or_nothing
    def _fitted(self, X: Any) -> Table:
        """`fit`; the rows as they were checked."""
        s, rows = PCASettings.of(self), self._rows(X, reset=True)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # values too large are refused by a sentence
            way = choose(len(rows), s.own_width(rows), s, items=rows.items).way
            self.projection_ = (
                fit_features(s, rows) if way == "features" else fit_dual(s, rows, way)
            )
        return rows

    @available_if(_streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in a batch (n, d); the first one fixes the map.

        A batch that is refused leaves the model as it was.

        A model that via="auto" fitted by the kernel matrix begins with the rows of that fit.
        """
        s, before = PCASettings.of(self), self.projection_ if self.__sklearn_is_fitted__() else None
        if before is not None and before.over is None and before.moments is None:
            raise ValueError(
                "partial_fit cannot continue a fit by passes; begin with partial_fit, or raise memory_limit."
            )
        rows = self._rows(X, reset=before is None)
        with np.errstate(over="ignore", invalid="ignore"):
            if before is None:
                self.projection_ = begin(s, rows)
                return self
            stream = before if isinstance(before, FeatureProjection) else begin(s, before.points)
            self.projection_ = stream.taking(stream.gathered(rows), s)
        return self

    @available_if(_merges)
    @all_or_nothing
    def merge(self, other: KernelPCA) -> Self:
        """Take in the rows that another model of the same map has seen."""
        check_is_fitted(self)
        s = PCASettings.of(self)
        fitted = vars(other).get("projection_") if isinstance(other, KernelPCA) else None
        mine, theirs = mergeable(self.projection_, fitted, type(other).__name__)
        self.projection_ = mine.merged(theirs, s)
        return self

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "projection_" in vars(self)

    def _projection(self) -> Projection:
        check_is_fitted(self)
        return self.projection_

    @property
    def plan_(self) -> Plan:
        return self._projection().plan

    @property
    def kernel_(self) -> FittedKernel:
        return self._projection().kernel

    @property
    def components_(self) -> Array:
        """(k, D); AttributeError in the dual."""
        return self._projection().components.components

    @property
    def mean_(self) -> Array:
        return self._projection().components.mean

    @property
    def explained_variance_(self) -> Array:
        return self._projection().variance

    @property
    def explained_variance_ratio_(self) -> Array:
        return self._projection().ratio

    @property
    def eigenvalues_(self) -> Array:
        """Of the centred kernel matrix of the rows."""
        return self._projection().eigenvalues

    @property
    def loss_(self) -> float:
        """How far an eigenvalue of sketched moments may be off; 0 where they are not sketched."""
        return self._projection().loss

    @property
    def moments_(self) -> Moments | SketchedMoments:
        """What batches add to."""
        return part(
            self._projection(),
            "moments",
            "moments_ is there for models over features, unless they were fitted by passes.",
        )

    @property
    def lift_(self) -> FittedLift:
        return part(
            self._projection(),
            "phi",
            "lift_ is there for models over features; this one has dual_coef_.",
        ).lift

    @property
    def n_features_lifted_(self) -> int:
        """D"""
        return part(
            self._projection(),
            "phi",
            "n_features_lifted_ is there for models over features; this one has dual_coef_.",
        ).width

    @property
    def dual_coef_(self) -> Array:
        """(n, k); AttributeError over features."""
        return part(
            self._projection(),
            "dual",
            "dual_coef_ is there for components of the kernel matrix (via='exact' or 'iterative').",
        )

    @property
    def X_fit_(self) -> Matrix | None:
        """The rows that dual_coef_ are of; None for a given kernel matrix."""
        return part(
            self._projection(),
            "over",
            "X_fit_ is there for components of the kernel matrix (via='exact' or 'iterative').",
        ).rows

    @property
    def _n_features_out(self) -> int:
        return self._projection().count

    # asking
    def transform(self, X: Any) -> Array:
        """Coordinates along the components, (n, k); float32 stays float32."""
        projection = self._projection()
        rows = self._rows(X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            out = projection.transform(rows)
        check_finite(out, "the features")
        return out

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """`fit`, and the coordinates of its rows, (n, k)."""
        rows, projection = self._fitted(X), self.projection_
        if isinstance(projection, FeatureProjection):
            return self.transform(X)
        return projection.found.training_scores().astype(rows.dtype, copy=False)

    @available_if(_inverts)
    def inverse_transform(self, Z: Any) -> Array:
        """Pre-images of mean + V z for Z (n, k): rows (n, d) whose features are near that.

        Over features by the map's own inverse (landmarks, columns themselves). In the dual
        sum_i gamma_i x_i for Linear, a fixed point for Gaussian kernels, else the ridge
        regression of rows on their coordinates.
        """
        projection = self._projection()
        if not projection.inverts:
            raise ValueError(NO_WAY_BACK)
        Z = check_array(Z, dtype=[np.float64, np.float32])
        if Z.shape[1] != projection.count:
            raise ValueError(
                f"Z has {Z.shape[1]} columns, but there are {projection.count} components; give what transform gave."
            )
        return projection.inverse(Z)

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Of a file in which the parts of the projection were attributes."""
        return with_projection(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


take_dask(KernelPCA)  # outside of what scikit-learn puts around `transform`
