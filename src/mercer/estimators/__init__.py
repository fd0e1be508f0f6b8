"""Estimators: thin; they validate, plan, lift or operate, fold or solve."""
from mercer.estimators.kernel_perceptron import KernelPerceptron
from mercer.estimators.kmeans import KernelKMeans
from mercer.estimators.logistic import KernelLogistic
from mercer.estimators.pca import KernelPCA
from mercer.estimators.perceptron import Perceptron
from mercer.estimators.smoothing import FarAwayWarning, NadarayaWatson, SoftNeighborsClassifier
from mercer.models.gp import GaussianProcessClassifier, GaussianProcessRegressor, VarianceStarvationWarning
from mercer.models.ridge import KernelRidge
from mercer.models.svm import KernelSVC, KernelSVR, OneClassSVM

__all__ = [
    "FarAwayWarning", "GaussianProcessClassifier", "GaussianProcessRegressor", "KernelKMeans", "KernelLogistic", "KernelPCA",
    "KernelPerceptron", "KernelRidge", "KernelSVC", "KernelSVR", "NadarayaWatson", "OneClassSVM", "Perceptron",
    "SoftNeighborsClassifier", "VarianceStarvationWarning",
]
