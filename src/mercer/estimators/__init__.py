"""Estimators: thin; they validate, plan, lift or operate, fold or solve."""
from mercer.estimators.gp import GaussianProcessRegressor, VarianceStarvationWarning
from mercer.estimators.logistic import KernelLogistic
from mercer.estimators.pca import KernelPCA
from mercer.estimators.perceptron import Perceptron
from mercer.estimators.ridge import KernelRidge
from mercer.estimators.svc import KernelSVC

__all__ = [
    "GaussianProcessRegressor", "KernelLogistic", "KernelPCA", "KernelRidge", "KernelSVC", "Perceptron", "VarianceStarvationWarning",
]
