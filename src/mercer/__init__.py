"""Mercer: feature expansions and kernel methods; a kernel is an inner product of features, features are a kernel."""
from mercer import bounds, kernels, lifts, methods, operators
from mercer.estimators import (
    GaussianProcessRegressor,
    KernelLogistic,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    Perceptron,
    VarianceStarvationWarning,
)
from mercer.kernels import Kernel, exp
from mercer.kernels.psd import Counterexample, check_psd
from mercer.kernels.rkhs import RKHSFunction
from mercer.plan import Plan

__version__ = "0.1.0"
__all__ = [
    "Counterexample",
    "GaussianProcessRegressor",
    "Kernel",
    "KernelLogistic",
    "KernelPCA",
    "KernelRidge",
    "KernelSVC",
    "Perceptron",
    "Plan",
    "RKHSFunction",
    "VarianceStarvationWarning",
    "bounds",
    "check_psd",
    "exp",
    "kernels",
    "lifts",
    "methods",
    "operators",
]
