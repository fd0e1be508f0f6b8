"""Perceptrons: ordered scans that learn from mistakes, over features, or over points within a
budget."""

from mercer.models.perceptron.estimator import Perceptron
from mercer.models.perceptron.kernel_estimator import KernelPerceptron

__all__ = ["KernelPerceptron", "Perceptron"]
