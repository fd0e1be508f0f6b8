"""KernelPCA: the leading directions of phi(x), from the kernel matrix, or from moments of features that stream and merge."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.estimators.base import all_or_nothing
from mercer.estimators.dual_pca import DUAL, DualPCA, check_finite
from mercer.estimators.feature_pca import FeaturePCA
from mercer.inputs import Array, Matrix
from mercer.lifts import Identity
from mercer.linalg.decompose import Components, SketchedMoments
from mercer.store import register


@register("pca.KernelPCA")
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeaturePCA, DualPCA):
    """z = V'(phi(x) - mean), V the leading eigenvectors of the covariance of phi; the largest entry of each is positive.

    Parameters
    ----------
    n_components : how many, at most as many as there are features (or rows).
    kernel : a kernel, a name, "precomputed" (X is then the Gram matrix with the rows of `fit`), or None.
    via : "exact" (the kernel matrix of the rows, decomposed), "iterative" (the same by products with it, which is never formed
        beyond 1,500 rows: 50,000 rows and more), "features", "landmarks", or a value of `mercer.methods`. "auto": features
        where the kernel has few, else exact up to 5,000 rows, else features. A stream is always of features. From 5,001 rows
        on "auto" so has no `inverse_transform` for kernels such as Gaussian ones; "landmarks", "exact" and "iterative" have.
    lift : a feature map, instead of a kernel; via is then "auto" or "features".
    memory_limit : of D x D statistics, as bytes or "4GB"; beyond it `fit` finds the directions in a few passes over the rows,
        and a stream keeps frequent directions instead (`plan_` says which, and the sketch's `loss_`).

    Factors and moments are by BLAS in as many threads as it has: another OMP_NUM_THREADS may change the last digits, 1 never does.

    Attributes: `explained_variance_` (over n - 1), `explained_variance_ratio_`, `eigenvalues_` (of the centred kernel matrix),
    `plan_`, `kernel_`; over features also `components_` (k, D), `mean_`, `lift_`; in the dual `dual_coef_` (n, k), `X_fit_`.
    `partial_fit` continues a stream over the map that its first batch fixed, `merge` joins two of them.

    Scholkopf, Smola and Muller, Nonlinear component analysis as a kernel eigenvalue problem (1998).

    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [3.0, 1.0, 0.1]
    >>> m = KernelPCA(2, lift=Identity()).fit(X)
    >>> m.explained_variance_ratio_.round(2), list(m.get_feature_names_out())
    (array([0.91, 0.09]), ['kernelpca0', 'kernelpca1'])
    """

    def __init__(
        self, n_components: int = 2, kernel: Any = None, via: Any = "auto", *, lift: Any = None, memory_limit: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.via = via
        self.lift = lift
        self.memory_limit = memory_limit
        self.random_state = random_state

    # fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """The kernel matrix, or the map and then the moments of phi in one pass."""
        self._fitted(X)
        return self

    @all_or_nothing
    def _fitted(self, X: Any) -> Matrix:
        """`fit`; the rows as they were checked."""
        self._check_settings()
        X = self._check_X(X, reset=True)
        with np.errstate(over="ignore", invalid="ignore"):  # values too large are refused by a sentence
            way = self._dual_way(X)
            self._forget()
            if way is None:
                self._fit_features(X)
            else:
                self._fit_dual(X, way)
        return X

    @available_if(lambda self: _streams(self))
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in a batch; the first one fixes the map. A batch that is refused leaves the model as it was.

        A model that via="auto" fitted by the kernel matrix begins with the rows of that fit.
        """
        self._check_settings()
        if self._found is not None and not hasattr(self, "moments_"):
            raise ValueError("partial_fit cannot continue a fit by passes; begin with partial_fit, or raise memory_limit.")
        before = None if self._dual is None else self.X_fit_
        first = not hasattr(self, "moments_") and before is None
        X = self._check_X(X, reset=first)
        with np.errstate(over="ignore", invalid="ignore"):
            if first or before is not None:
                self._forget()
                self._fit_lift(X if first else before)
                self.moments_ = self._taken(X if first else before)
            return self._with(None if first else self._taken(X))

    @all_or_nothing
    def merge(self, other: KernelPCA) -> Self:
        """Take in the rows that another model of the same map has seen."""
        check_is_fitted(self, "plan_")
        self._check_settings()
        if self._dual is not None or getattr(other, "_dual", None) is not None:
            raise ValueError("models of the kernel matrix do not merge; fit both with via='features'.")
        self._check_same_map(other)
        if type(self.moments_) is not type(other.moments_):
            raise ValueError("one model keeps moments and the other a sketch, which do not add; give both the same memory_limit.")
        return self._with(other.moments_)

    def _with(self, more: Any) -> Self:
        """The model of more rows; what it says is computed when asked for."""
        self.moments_ = self.moments_ if more is None else self.moments_ + more
        self._found, self.plan_ = None, self._moments_plan()
        return self

    def _forget(self) -> None:
        for name in ("moments_", "X_fit_", "lift_"):
            self.__dict__.pop(name, None)
        self._found = self._dual = self._back = None

    # asking
    @property
    def _k(self) -> int:
        return super()._k if self._dual is None else len(self._dual.values)

    def _solved(self) -> Components:
        if self._dual is not None:
            raise AttributeError("components in the space of features exist only where there are features; give via='features'.")
        check_is_fitted(self, "lift_")
        if self._found is None:
            self._found = self._from_moments()
        return self._found

    @property
    def components_(self) -> Array: return self._solved().components

    @property
    def explained_variance_(self) -> Array:
        return self._solved().variance if self._dual is None else self._dual.values / max(len(self._dual.vectors) - 1, 1)

    @property
    def explained_variance_ratio_(self) -> Array:
        return self._solved().ratio if self._dual is None else self._dual.values / (self._dual.total or 1.0)

    @property
    def eigenvalues_(self) -> Array:
        """Of the centred kernel matrix of the rows."""
        if self._dual is not None:
            return self._dual.values
        n = self.moments_.n if hasattr(self, "moments_") else self.plan_.settings["rows"]
        return self.explained_variance_ * max(n - 1, 1)

    @property
    def mean_(self) -> Array: return self._solved().mean

    @property
    def loss_(self) -> float:
        """How far an eigenvalue of the sketched moments may be off (0 where they are not sketched)."""
        return self.moments_.rows.loss if isinstance(getattr(self, "moments_", None), SketchedMoments) else 0.0

    @property
    def _n_features_out(self) -> int: return self._k

    def transform(self, X: Any) -> Array:
        """Coordinates along the components, (n, k); float32 stays float32."""
        check_is_fitted(self, "plan_")
        X = self._check_X(X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            out = self._coordinates(self._solved(), X) if self._dual is None else self._expansion(X, self.dual_coef_, -self._dual.offset)
        check_finite(out, "the features")
        return out

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """`fit`, and the coordinates of its rows."""
        rows = self._fitted(X)
        return self.transform(X) if self._dual is None else self._dual.training_scores().astype(rows.dtype, copy=False)

    @available_if(lambda self: _inverse(self) is not None)
    def inverse_transform(self, Z: Any) -> Array:
        """Pre-images of mean + V z: rows whose features are near that.

        Over features by the map's own inverse (landmarks, columns themselves). In the dual sum_i gamma_i x_i for Linear, a
        fixed point for Gaussian kernels, else the ridge regression of rows on their coordinates.
        """
        check_is_fitted(self, "plan_")
        Z = check_array(Z, dtype=[np.float64, np.float32])
        if Z.shape[1] != self._k:
            raise ValueError(f"Z has {Z.shape[1]} columns, but there are {self._k} components; give what transform gave.")
        inverse = _inverse(self)
        assert inverse is not None
        return inverse(Z)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _streams(model: KernelPCA) -> bool:
    if model._pairwise or model.via in DUAL:
        raise AttributeError("a stream needs features; give a kernel and via='features', 'landmarks' or a value of mercer.methods.")
    return True


def _inverse(model: KernelPCA) -> Callable[[Array], Array] | None:
    """The way back from coordinates to rows, where there is one."""
    if model._dual is not None:
        return None if model._pairwise or model._of_items else model._preimages
    phi = getattr(model, "lift_", model.lift)
    phi = getattr(phi, "map_", phi)
    back = (lambda F: F) if isinstance(phi, Identity) and phi.metric is None else getattr(phi, "inverse_transform", None)
    return None if back is None else lambda Z: back(_features_of(model._solved(), Z))


def _features_of(found: Components, Z: Array) -> Array:
    return np.asarray(Z @ found.components.astype(Z.dtype) + found.mean.astype(Z.dtype))
