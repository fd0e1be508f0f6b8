"""Kernels of inner products: expectations, and the slips of the notes."""

import numpy as np
import pytest

from mercer.kernels import ArcCosine, Linear, Polynomial
from tests.market import rows

X, Z = rows(8), rows(5, seed=1)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_is_an_expectation_of_units(order):
    W = np.random.default_rng(0).normal(size=(400_000, 3))
    x, z = X[:3], Z[:3]
    units = [np.where(V > 0, V, 0) ** order * (V > 0) for V in (W @ x.T, W @ z.T)]
    np.testing.assert_allclose(
        ArcCosine(order)(x, z), 2 * units[0].T @ units[1] / len(W), atol=0.03
    )


# The slips of the notes that concern kernels: the form in the note is wrong, ours is right.
def smallest(K):
    return float(np.linalg.eigvalsh(K)[0])


def test_slip_the_quadratic_kernel_has_both_linear_terms():
    (a, b), (c, d) = (0.3, -0.7), (1.1, 0.4)
    right = 1 + a * a * c * c + b * b * d * d + 2 * a * c + 2 * b * d + 2 * a * b * c * d
    value = Polynomial(degree=2)([[a, b]], [[c, d]])[0, 0]
    assert value == pytest.approx(right)
    assert value != pytest.approx(right - 2 * a * c)


def test_slip_fractional_powers_are_not_kernels():
    points = np.random.default_rng(0).uniform(0, 2, size=(40, 2))
    assert smallest((1 + points @ points.T) ** 0.5) < -1e-3
    with pytest.raises(ValueError, match="must be an integer"):
        Polynomial(degree=0.5)
    with pytest.raises(ValueError, match="must be an integer"):
        (Linear() + 1) ** 0.5


rng = np.random.default_rng(0)


def test_arc_cosine_of_parallel_rows_in_float32():
    X = rng.normal(size=(50, 6)).astype(np.float32)
    Z = np.vstack([X, 2 * X])
    assert (
        np.abs(ArcCosine(0)(Z, Z.copy()) - ArcCosine(0)(Z.astype(float), Z.astype(float))).max()
        < 1e-5
    )
