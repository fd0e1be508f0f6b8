"""Kernel matrices that are never formed: K @ v tile by tile, in cache and in threads."""

from mercer.operators.base import Operator, TiledOperator, dense
from mercer.operators.kernel import KernelOperator, operator
from mercer.operators.stored import CentredOperator, GivenOperator, StoredOperator
from mercer.operators.tiled import AboutOperator, TileOperator

__all__ = [
    "AboutOperator",
    "CentredOperator",
    "GivenOperator",
    "KernelOperator",
    "Operator",
    "StoredOperator",
    "TileOperator",
    "TiledOperator",
    "dense",
    "operator",
]
