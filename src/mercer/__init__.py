"""Mercer: feature expansions and kernel methods; a kernel is an inner product of features, features
are a kernel."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer import bounds, kernels, lifts, methods, operators, priors, strings
    from mercer.automl import TableModel, fit_table
    from mercer.kernels import Kernel, exp
    from mercer.kernels.psd import Counterexample, check_psd
    from mercer.kernels.rkhs import RKHSFunction
    from mercer.lifts import NGrams
    from mercer.models import (
        FarAwayWarning,
        FeatureMachineClassifier,
        FeatureMachineRegressor,
        GaussianProcessClassifier,
        GaussianProcessRegressor,
        KernelKMeans,
        KernelLogistic,
        KernelPCA,
        KernelPerceptron,
        KernelRidge,
        KernelSVC,
        KernelSVR,
        LearnedMetric,
        NadarayaWatson,
        OneClassSVM,
        Perceptron,
        SoftNeighborsClassifier,
        SparseClassifier,
        SparseRegressor,
        VarianceStarvationWarning,
        WeightedUnion,
    )
    from mercer.models.two_sample import hsic_test, mmd_test
    from mercer.plans import Plan
    from mercer.store import load
    from mercer.versions import show_versions

__version__ = "0.1.0"
__all__ = [
    "Counterexample",
    "FarAwayWarning",
    "FeatureMachineClassifier",
    "FeatureMachineRegressor",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "Kernel",
    "KernelKMeans",
    "KernelLogistic",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "LearnedMetric",
    "NGrams",
    "NadarayaWatson",
    "OneClassSVM",
    "Perceptron",
    "Plan",
    "RKHSFunction",
    "SoftNeighborsClassifier",
    "SparseClassifier",
    "SparseRegressor",
    "TableModel",
    "VarianceStarvationWarning",
    "WeightedUnion",
    "bounds",
    "check_psd",
    "exp",
    "fit_table",
    "hsic_test",
    "kernels",
    "lifts",
    "load",
    "methods",
    "mmd_test",
    "operators",
    "priors",
    "show_versions",
    "strings",
]

MODULES = (
    "bounds",
    "datasets",
    "kernels",
    "lifts",
    "methods",
    "models",
    "operators",
    "priors",
    "automl",
    "report",
    "store",
    "strings",
    "tables",
    "testing",
)
HOMES = {  # what is not an estimator
    "Counterexample": "kernels.psd",
    "Kernel": "kernels",
    "NGrams": "text.ngrams",
    "Plan": "plans",
    "RKHSFunction": "kernels.rkhs",
    "TableModel": "automl",
    "check_psd": "kernels.psd",
    "exp": "kernels",
    "fit_table": "automl",
    "hsic_test": "models.two_sample",
    "load": "store",
    "mmd_test": "models.two_sample",
    "show_versions": "versions",
}


def __getattr__(name: str) -> Any:
    """A name of the package, loaded when first asked for: `mercer --help` needs none of them."""
    if name in MODULES:
        return import_module(f"mercer.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    value = getattr(import_module(f"mercer.{HOMES.get(name, 'models')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names only: not what this module imports."""
    return sorted({*__all__, "__version__", "datasets", "tables", "testing"})
