"""Kernels as expressions: leaves, their algebra, and proofs that they are kernels."""

from mercer.kernels.algebra import (
    Exp,
    Normalized,
    OnColumns,
    Power,
    Product,
    Scale,
    Series,
    Sum,
    Warped,
    Weighted,
    exp,
)
from mercer.kernels.bags import OverSets
from mercer.kernels.base import Kernel
from mercer.kernels.dot import (
    AllSubsets,
    Anova,
    ArcCosine,
    Callable,
    Constant,
    Cosine,
    Linear,
    Polynomial,
)
from mercer.kernels.histograms import AdditiveChi2, Chi2
from mercer.kernels.maps import Mapped, measured, positioned
from mercer.kernels.stationary import (
    Cauchy,
    Gaussian,
    Laplace,
    Matern,
    Periodic,
    RationalQuadratic,
    Sinc,
    Stationary,
)

__all__ = [
    "AdditiveChi2",
    "AllSubsets",
    "Anova",
    "ArcCosine",
    "Callable",
    "Cauchy",
    "Chi2",
    "Constant",
    "Cosine",
    "Exp",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Mapped",
    "Matern",
    "Normalized",
    "OnColumns",
    "OverSets",
    "Periodic",
    "Polynomial",
    "Power",
    "Product",
    "RationalQuadratic",
    "Scale",
    "Series",
    "Sinc",
    "Stationary",
    "Sum",
    "Warped",
    "Weighted",
    "exp",
    "measured",
    "positioned",
]
