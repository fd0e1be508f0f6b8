"""Estimators: thin; they validate, plan, lift or operate, fold or solve."""
from mercer.estimators.ridge import KernelRidge

__all__ = ["KernelRidge"]
