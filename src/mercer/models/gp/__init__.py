"""Gaussian processes: regression exactly, by conjugate gradients, over landmarks or features;
classification by Laplace's approximation."""

from mercer.models.gp.classifier import GaussianProcessClassifier
from mercer.models.gp.posterior import VarianceStarvationWarning
from mercer.models.gp.regressor import GaussianProcessRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor", "VarianceStarvationWarning"]
