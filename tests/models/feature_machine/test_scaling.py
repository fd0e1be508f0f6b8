"""Inputs of feature machines."""

import numpy as np
import pytest

from mercer.models.feature_machine.scaling import InputScaling


def rows(seed: int, n: int = 60, d: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.choice([1e-6, 1.0, 1e6], d) + rng.choice([0, 1e6], d)


def test_standardised_columns_have_unit_spread() -> None:
    X = rows(0)
    U = InputScaling.of(X, "standard")(X)
    assert U.dtype == np.float32
    np.testing.assert_allclose(U.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(U.std(0), 1, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_ranks_do_not_see_monotone_maps(seed: int) -> None:
    X = rows(seed)
    Z = np.sign(X) * np.abs(X) ** (1 / 3)
    a, b = (InputScaling.of(R, "rank")(R) for R in (X, Z))
    np.testing.assert_allclose(a, b, atol=1e-5)
    assert np.abs(a).max() < 4


@pytest.mark.parametrize("kind", ["standard", "rank"])
def test_two_values_are_zero_and_one(kind: str) -> None:
    X = np.array([[3.0, 5.0], [7.0, 5.0], [3.0, 5.0]])
    np.testing.assert_array_equal(InputScaling.of(X, kind)(X), [[0, 0], [1, 0], [0, 0]])


@pytest.mark.parametrize("kind", ["standard", "rank"])
def test_what_is_missing_is_filled_and_told(kind: str) -> None:
    X = rows(1)
    X[::7, 2] = np.nan
    s = InputScaling.of(X, kind)
    U = s(X)
    assert s.width == 6
    np.testing.assert_array_equal(U[:, 5], np.isnan(X[:, 2]))
    np.testing.assert_array_equal(s.origins, [0, 1, 2, 3, 4, 2])
    assert np.isfinite(U).all()
    assert len(np.unique(U[::7, 2])) == 1


def test_all_missing_and_constant_columns_are_zeros() -> None:
    X = np.column_stack([np.full(9, np.nan), np.full(9, 4.0), np.arange(9.0)])
    U = InputScaling.of(X, "rank")(X)
    assert (U[:, :2] == 0).all()
    assert np.isfinite(U).all()


def test_huge_and_tiny_numbers_stay_finite() -> None:
    X = np.array([[1e300, 1e-300], [-1e300, -1e-300], [3e299, 2e-301], [1.7e308, 0.0]])
    for kind in ("standard", "rank"):
        assert np.isfinite(InputScaling.of(X, kind)(X)).all()


@pytest.mark.parametrize("kind", ["standard", "rank"])
def test_slopes_are_those_of_the_inputs(kind: str) -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=80), rng.integers(0, 5, 80), rng.normal(size=80) > 0])
    X[:, 0] = np.round(X[:, 0], 1)
    s = InputScaling.of(X, kind)
    Q = rng.uniform(X.min(0) - 1, X.max(0) + 1, size=(40, 3))
    h = 1e-6
    steps = [
        (s(Q + h * e).astype(float) - s(Q - h * e))[:, j] / (2 * h) for j, e in enumerate(np.eye(3))
    ]
    np.testing.assert_allclose(s.slopes(Q), np.column_stack(steps), atol=0.3)
    assert (s.slopes(np.full((1, 3), np.nan)) == 0).all()


def test_a_gap_of_an_indicator_is_filled_by_one_of_its_values() -> None:
    X = np.array([[0.0], [1.0], [np.nan], [1.0], [0.0]])
    np.testing.assert_array_equal(InputScaling.of(X, "rank")(X)[:, 0], [0, 1, 0, 1, 0])
