"""Ridge regression of a kernel: exactly at the rows, over landmarks, or over features by moments
that stream and merge."""

from mercer.models.ridge.estimator import KernelRidge

__all__ = ["KernelRidge"]
