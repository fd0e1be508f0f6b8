"""Distances in the 1-norm are those of their plain reference, also of columns of two values."""

import numpy as np
import pytest

from mercer.ops import absolute
from mercer.ops.absolute import absdist, reference_absdist

RTOL = {np.float32: 2e-5, np.float64: 1e-12}


def table(n, d, bits, rng, dtype):
    """Rows whose first columns have two values, of shares that differ, and some of them one."""
    X = rng.normal(size=(n, d))
    share = rng.choice([0.02, 0.1, 0.9, 1.0], size=bits)
    X[:, :bits] = np.where(rng.random((n, bits)) < share, 2.5, -1.0)
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(12))
def test_any_shape_and_share_of_bits(seed, dtype):
    rng = np.random.default_rng(seed)
    n, m, d = (int(rng.integers(1, top)) for top in (150, 150, 60))
    bits = int(rng.integers(0, d + 1))
    X, Z = table(n, d, bits, rng, dtype), table(m, d, bits, rng, dtype)
    b = rng.uniform(0.3, 3, size=d)
    want = reference_absdist(X.astype(float), Z.astype(float), b)
    np.testing.assert_allclose(
        absdist(X, Z, b), want, rtol=RTOL[dtype], atol=RTOL[dtype] / 10 * want.max()
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("equal", [True, False])
def test_bits_alone_are_whole_numbers(dtype, equal, monkeypatch):
    """Equal rows are at distance 0, and equal weights give counts, to the last bit."""
    rng = np.random.default_rng(0)
    used = []
    plain = absolute._by_bits
    monkeypatch.setattr(absolute, "_by_bits", lambda *a: used.append(1) or plain(*a))
    X = (rng.random((80, 40)) < 0.1).astype(dtype)
    X[40:] = X[:40]
    b = np.ones(40) if equal else rng.uniform(0.5, 2, 40)
    D = absdist(X, X, b)
    assert used
    same = (X[:, None] == X).all(-1)
    assert (D[same] == 0).all()
    assert (D[~same] > 0).all()
    np.testing.assert_array_equal(D, D.T)
    if equal:
        np.testing.assert_array_equal(D, reference_absdist(X, X, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_that_are_nothing_beside_others_keep_their_digits(dtype):
    rng = np.random.default_rng(1)
    X = (rng.random((70, 20)) < 0.1).astype(dtype)
    X[1], X[2] = X[0], X[0]
    X[1, 3], X[2, 5] = 1 - X[1, 3], 1 - X[2, 5]
    b = np.ones(20)
    b[3], b[5] = 1e7, 1e3
    D = absdist(X, X, b)
    np.testing.assert_allclose([D[0, 1], D[0, 2]], [1e-7, 1e-3], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_offsets_and_near_copies_cost_no_digits(dtype):
    rng = np.random.default_rng(2)
    X = (rng.integers(0, 64, size=(90, 18)) / 64).astype(dtype)
    far = X + dtype(2.0**17)
    np.testing.assert_array_equal(absdist(far, far, np.ones(18)), absdist(X, X, np.ones(18)))
    near = X.astype(dtype) + np.finfo(dtype).eps * np.arange(18, dtype=dtype)
    want = reference_absdist(X.astype(float), near.astype(float), np.ones(18))
    np.testing.assert_allclose(absdist(X, near, np.ones(18)), want, rtol=RTOL[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_at_the_ends_of_floating_point(dtype):
    top = np.finfo(dtype).max
    X = np.where(np.random.default_rng(3).random((80, 20)) < 0.1, top, -top).astype(dtype)
    with np.errstate(over="ignore"):
        D = absdist(X, X, np.ones(20))
    assert (D[(X[:, None] == X).all(-1)] == 0).all()
    assert not np.isnan(D).any()
    assert absdist(X, X, np.full(20, 1e-320)).max() > 1e10
    assert absdist(X[:0], X, np.ones(20)).shape == (0, 80)


def test_sums_do_not_depend_on_what_was_in_memory(monkeypatch):
    rng = np.random.default_rng(4)
    X = table(70, 40, 25, rng, np.float64)
    want = absdist(X, X, np.ones(40))
    monkeypatch.setattr(absolute.np, "empty", lambda shape, dtype=float: np.full(shape, 7, dtype))
    np.testing.assert_array_equal(absdist(X, X, np.ones(40)), want)
