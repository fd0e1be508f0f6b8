"""Support vector machines: the exact dual over rows, or hinge losses over features."""

from mercer.models.svm.classifier import KernelSVC
from mercer.models.svm.one_class import OneClassSVM
from mercer.models.svm.regressor import KernelSVR

__all__ = ["KernelSVC", "KernelSVR", "OneClassSVM"]
