"""Estimators, a family in one room: each validates, plans, lifts or operates, and holds one fitted
value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mercer.rooms import entered

if TYPE_CHECKING:
    from mercer.models.blocks import WeightedUnion
    from mercer.models.feature_machine import (
        FeatureMachineClassifier,
        FeatureMachineRegressor,
        LearnedMetric,
    )
    from mercer.models.gp import (
        GaussianProcessClassifier,
        GaussianProcessRegressor,
        VarianceStarvationWarning,
    )
    from mercer.models.kmeans import KernelKMeans
    from mercer.models.logistic import KernelLogistic
    from mercer.models.pca import KernelPCA
    from mercer.models.perceptron import KernelPerceptron, Perceptron
    from mercer.models.ridge import KernelRidge
    from mercer.models.smoothing import FarAwayWarning, NadarayaWatson, SoftNeighborsClassifier
    from mercer.models.sparse import SparseClassifier, SparseRegressor
    from mercer.models.svm import KernelSVC, KernelSVR, OneClassSVM

__all__ = [
    "FarAwayWarning",
    "FeatureMachineClassifier",
    "FeatureMachineRegressor",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelKMeans",
    "KernelLogistic",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "LearnedMetric",
    "NadarayaWatson",
    "OneClassSVM",
    "Perceptron",
    "SoftNeighborsClassifier",
    "SparseClassifier",
    "SparseRegressor",
    "VarianceStarvationWarning",
    "WeightedUnion",
]
ROOMS = {
    ".blocks": ("WeightedUnion",),
    ".feature_machine": ("FeatureMachineClassifier", "FeatureMachineRegressor", "LearnedMetric"),
    ".gp": ("GaussianProcessClassifier", "GaussianProcessRegressor", "VarianceStarvationWarning"),
    ".kmeans": ("KernelKMeans",),
    ".logistic": ("KernelLogistic",),
    ".pca": ("KernelPCA",),
    ".perceptron": ("KernelPerceptron", "Perceptron"),
    ".ridge": ("KernelRidge",),
    ".smoothing": ("FarAwayWarning", "NadarayaWatson", "SoftNeighborsClassifier"),
    ".sparse": ("SparseClassifier", "SparseRegressor"),
    ".svm": ("KernelSVC", "KernelSVR", "OneClassSVM"),
}
__getattr__, __dir__ = entered(__name__, ROOMS)
