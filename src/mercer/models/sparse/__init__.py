"""L1: models of few features out of many, built or swept."""

from mercer.models.sparse.estimator import SparseClassifier, SparseRegressor

__all__ = ["SparseClassifier", "SparseRegressor"]
