"""Smoothing: every training point votes, with the weight that the kernel gives it."""

from mercer.models.smoothing.estimator import (
    FarAwayWarning,
    NadarayaWatson,
    SoftNeighborsClassifier,
)

__all__ = ["FarAwayWarning", "NadarayaWatson", "SoftNeighborsClassifier"]
