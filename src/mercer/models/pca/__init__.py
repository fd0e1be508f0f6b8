"""Kernel PCA: the leading directions of phi(x), from the kernel matrix of the rows, or from moments
of features that stream and merge."""

from mercer.models.pca.estimator import KernelPCA

__all__ = ["KernelPCA"]
