"""Exact kernel machines: ridge, smoothing, PCA and perceptrons, against scikit-learn and published
figures."""

from bench import exact_smoothing, exact_solvers


def cases():
    yield from exact_solvers.cases()
    yield from exact_smoothing.cases()
