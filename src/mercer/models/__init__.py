"""Estimators, a family in one room: each validates, plans, lifts or operates, and holds one fitted
value."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "blocks": ("WeightedUnion",),
    "feature_machine": ("FeatureMachineClassifier", "FeatureMachineRegressor", "LearnedMetric"),
    "gp": ("GaussianProcessClassifier", "GaussianProcessRegressor", "VarianceStarvationWarning"),
    "kmeans": ("KernelKMeans",),
    "logistic": ("KernelLogistic",),
    "pca": ("KernelPCA",),
    "perceptron": ("KernelPerceptron", "Perceptron"),
    "ridge": ("KernelRidge",),
    "smoothing": ("FarAwayWarning", "NadarayaWatson", "SoftNeighborsClassifier"),
    "sparse": ("SparseClassifier", "SparseRegressor"),
    "svm": ("KernelSVC", "KernelSVR", "OneClassSVM"),
}


def __getattr__(name: str) -> Any:
    """An estimator, whose room is entered when it is first asked for."""
    room = next((room for room, names in ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(f"module 'mercer.models' has no attribute {name!r}")
    return getattr(import_module(f"mercer.models.{room}"), name)
