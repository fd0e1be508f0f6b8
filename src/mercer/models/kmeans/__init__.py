"""k-means in the space of a kernel, exactly or over features."""

from mercer.models.kmeans.estimator import KernelKMeans

__all__ = ["KernelKMeans"]
