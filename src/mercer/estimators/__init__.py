"""Estimators: thin; they validate, plan, lift or operate, fold or solve."""
from mercer.models.gp import GaussianProcessClassifier, GaussianProcessRegressor, VarianceStarvationWarning
from mercer.models.kmeans import KernelKMeans
from mercer.models.logistic import KernelLogistic
from mercer.models.pca import KernelPCA
from mercer.models.perceptron import KernelPerceptron, Perceptron
from mercer.models.ridge import KernelRidge
from mercer.models.smoothing import FarAwayWarning, NadarayaWatson, SoftNeighborsClassifier
from mercer.models.svm import KernelSVC, KernelSVR, OneClassSVM

__all__ = [
    "FarAwayWarning", "GaussianProcessClassifier", "GaussianProcessRegressor", "KernelKMeans", "KernelLogistic", "KernelPCA",
    "KernelPerceptron", "KernelRidge", "KernelSVC", "KernelSVR", "NadarayaWatson", "OneClassSVM", "Perceptron",
    "SoftNeighborsClassifier", "VarianceStarvationWarning",
]
