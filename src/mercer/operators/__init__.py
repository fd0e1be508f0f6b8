"""Kernel matrices that are never formed: K @ v tile by tile, in cache and in threads."""
from mercer.operators.kernel import KernelOperator, operator

__all__ = ["KernelOperator", "operator"]
