"""Leading eigenpairs by products with one vector: those of LAPACK, or None."""

from contextlib import suppress

import numpy as np
import pytest

from mercer.linalg.lanczos import Orthonormal, TooSlow, lanczos

N = 240
NONE = np.zeros((0, N))


def with_values(values, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    A = (Q * values) @ Q.T
    return (A + A.T) / 2


def by(A, k, without=NONE, **options):
    """What was found, None where it is told that nothing is."""
    with suppress(TooSlow):
        return lanczos(
            lambda v, out: np.dot(A, v, out=out), without.astype(A.dtype), k, len(A), **options
        )


SPECTRA = {
    "fast": 0.5 ** np.arange(N),
    "slow": np.exp(-np.arange(N) / 20),
    "one far above": np.r_[1e5, np.exp(-np.arange(N - 1) / 20)],
    "low rank": np.r_[3.0, 2.0, 1.0, np.zeros(N - 3)],
    "tails": 1 / np.arange(1.0, N + 1) ** 2,
}


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("name", SPECTRA)
def test_pairs_of_known_spectra(name, k):
    values = SPECTRA[name]
    A = with_values(values)
    s, residual, products = by(A, k, total=float(values.sum()))
    np.testing.assert_allclose(s.values, values[:k], rtol=1e-9, atol=2e-12 * values[0])
    np.testing.assert_allclose(s.vectors.T @ s.vectors, np.eye(k), atol=1e-11)
    left = np.linalg.norm(A @ s.vectors - s.vectors * s.values, axis=0)
    assert (left <= np.maximum(2e-8 * s.values, 5e-12 * values[0])).all()
    assert residual <= 1e-8
    assert products < N


def test_float32_stays_float32_and_as_near_as_that_lets_it():
    values = 0.8 ** np.arange(N)
    s, residual, _ = by(with_values(values).astype(np.float32), 5)
    assert s.vectors.dtype == np.float32
    np.testing.assert_allclose(s.values, values[:5], rtol=3e-6)
    assert residual <= 1e-6


def test_rows_that_are_left_out():
    A = with_values(SPECTRA["tails"])
    top = np.linalg.eigh(A)[1][:, -2:].T
    s, _, _ = by(A, 3, top)
    np.testing.assert_allclose(s.values, SPECTRA["tails"][2:5], rtol=1e-9)
    np.testing.assert_allclose(top @ s.vectors, 0, atol=1e-12)


@pytest.mark.parametrize("times", [2, 3, 20])
@pytest.mark.parametrize("above", [0, 1, 4])
def test_values_that_are_equal_are_found_or_told(times, above):
    values = np.r_[
        9.0 - np.arange(above), np.full(times, 4.0), np.linspace(3, 0, N - times - above)
    ]
    A, k = with_values(values), above + times
    for seed in range(5):
        found = by(A, k + 1, seed=seed)
        assert found is None or abs(found[0].values - values[: k + 1]).max() < 1e-9
    A += 1e-12 * np.diag(np.random.default_rng(0).normal(size=N))  # and values that nearly are
    found = by(A, k + 1)
    assert found is None or abs(found[0].values - values[: k + 1]).max() < 1e-9


BEHIND = {
    "dense": lambda rng: np.sort(rng.uniform(0.5, 1, N))[::-1] * np.linspace(1, 0, N) ** 2,
    "rough": lambda rng: np.sort(rng.exponential(size=N))[::-1],
    "slow": lambda rng: np.exp(-np.arange(N) / rng.uniform(2, 40)),
    "tails": lambda rng: np.arange(1.0, N + 1) ** -rng.uniform(0.5, 3),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", BEHIND)
def test_nothing_is_missed_without_a_word(name, dtype):
    told = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        values, k, times = BEHIND[name](rng), int(rng.integers(1, 9)), int(rng.integers(2, 4))
        first, apart = int(rng.integers(0, k)), (0.0, 10.0 ** rng.uniform(-15, -3))[seed % 2]
        values[first : first + times] = values[first] * (1 - apart * np.arange(times))
        values = np.sort(values)[::-1] / values.max()
        for total in (np.inf, float(values.sum())):
            found = by(np.diag(values).astype(dtype), k, total=total, seed=seed)
            if found is None:
                told += 1
            else:
                far = abs(found[0].values - values[:k]).max()
                assert far < (5e-7 if dtype == np.float64 else 3e-6), (seed, k, times, first, apart)
    assert 0 < told < 150


@pytest.mark.parametrize("name", BEHIND)
def test_values_that_differ_are_always_found(name):
    for seed in range(20):
        values = BEHIND[name](np.random.default_rng(seed))
        A = np.diag(values / values[0])
        s, _, products = by(A, 4, seed=seed)
        np.testing.assert_allclose(s.values, np.diag(A)[:4], rtol=1e-9)
        assert products < N


def test_a_value_that_is_double_at_the_end_is_no_reason_to_give_up():
    for seed in range(20):
        values = np.r_[1.0, 0.8, 0.6, 0.6, np.linspace(0.55, 0, N - 4)]
        found = by(np.diag(values), 3, seed=seed)
        assert found is not None
        np.testing.assert_allclose(found[0].values, values[:3], rtol=1e-9)


def test_the_unit_matrix_and_zero():
    for A in (np.eye(N), np.zeros((N, N))):
        s, _, _ = by(A, 4)
        np.testing.assert_allclose(s.values, A[0, 0], atol=1e-14)
        np.testing.assert_allclose(s.vectors.T @ s.vectors, np.eye(4), atol=1e-12)


def test_too_many_vectors_too_small_values_and_none_that_are_numbers():
    A = with_values(SPECTRA["slow"])
    with pytest.raises(TooSlow):
        lanczos(lambda v, out: np.dot(A, v, out=out), NONE, 3, 12)
    assert by(A, 3, least=2.0) is None
    B = with_values(SPECTRA["fast"])
    assert by(B, 8, total=2.0, least=1e-2) is None
    assert by(B, 8, total=2.0, least=1e-3) is not None
    assert by(np.full((N, N), np.nan), 3) is None


def test_the_seed_and_nothing_else_decides():
    A = with_values(SPECTRA["tails"])
    one, same, other = (by(A, 3, seed=seed)[0].vectors for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(np.abs(np.sum(one * other, axis=0)), 1)


def test_a_basis_stays_orthonormal_where_little_is_new():
    rng = np.random.default_rng(0)
    basis = Orthonormal(np.zeros((40, N)), 0)
    basis.add(rng.normal(size=N), 1.0)
    basis.rows[0] /= np.linalg.norm(basis.rows[0])
    for size in 10.0 ** -np.arange(12.0):
        w = basis.rows[: basis.size].sum(0) + size * rng.normal(size=N) / N
        basis.add(w, basis.take(w)[1])
    Q = basis.rows[: basis.size]
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=1e-12)
    w = Q.sum(0)
    assert basis.take(w)[1] == 0.0  # nothing of it is new
