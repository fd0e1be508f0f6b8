"""Exponentials of squared distances."""
import numpy as np

from mercer.ops.distances import half_exp, reference_half_exp


def test_the_exponential_in_place():
    D = np.concatenate([[0.0, -1e-7, 1e-6], np.linspace(0, 170, 5000), [1e4, 1e30]]).astype(np.float32)[None]
    expected, K = reference_half_exp(D), D.copy()
    half_exp(K)
    assert (np.abs(K - expected) <= 2e-7 * (1 + np.abs(D)) * expected + 2e-38).all()  # rounding of D itself is relative to D
    assert K[0, 0] == 1
