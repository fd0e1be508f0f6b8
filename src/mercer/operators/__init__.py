"""Kernel matrices that are never formed: K @ v tile by tile, in cache and in threads."""
from mercer.operators.base import Operator, dense
from mercer.operators.kernel import KernelOperator, operator
from mercer.operators.stored import GivenOperator, StoredOperator

__all__ = ["GivenOperator", "KernelOperator", "Operator", "StoredOperator", "dense", "operator"]
