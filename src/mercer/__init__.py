"""Mercer: feature expansions and kernel methods; a kernel is an inner product of features, features are a kernel."""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

MODULES = ("bounds", "datasets", "estimators", "kernels", "lifts", "methods", "operators", "testing")
HOMES = {  # what is not an estimator
    "Counterexample": "kernels.psd", "Kernel": "kernels", "Plan": "plan", "RKHSFunction": "kernels.rkhs", "check_psd": "kernels.psd",
    "exp": "kernels",
}


def __getattr__(name: str) -> Any:
    """A name of the package, loaded when first asked for: `mercer --help` needs none of them."""
    if name in MODULES:
        return import_module(f"mercer.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    value = getattr(import_module(f"mercer.{HOMES.get(name, 'estimators')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
