"""Kernel machines that learn their features: a metric from gradients, and the search over such
machines."""

from mercer.models.feature_machine.estimator import (
    FeatureMachineClassifier,
    FeatureMachineRegressor,
)
from mercer.models.feature_machine.learned_metric import LearnedMetric

__all__ = ["FeatureMachineClassifier", "FeatureMachineRegressor", "LearnedMetric"]
