import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mercer.stats import FrequentDirections, Moments, Newton, Sample, fold, logistic, row_hashes, squared_hinge
from mercer.stats.fold import threads
from mercer.testing import check_statistic

rng = np.random.default_rng(0)
A = rng.normal(size=(300, 4)) + 3
shift = A[:10].mean(0)


def same(a, b):
    np.testing.assert_allclose(a.S, b.S, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(a.s, b.s, rtol=1e-10, atol=1e-9)
    assert a.n == pytest.approx(b.n)
    assert a.count == b.count


def test_moments_keep_the_laws():
    check_statistic(lambda rows: Moments.of(rows, shift=shift), Moments.zero(shift), A, same, subtracts=True)


@given(st.integers(0, 300), st.integers(0, 300))
def test_moments_of_parts_are_those_of_the_whole(i, j):
    i, j = sorted((i, j))
    parts = [Moments.of(P, shift=P.mean(0) if len(P) else shift) for P in (A[:i], A[i:j], A[j:])]
    same(sum(parts[1:], parts[0]).about(shift), Moments.of(A, shift=shift))


def test_moments_with_weights_are_those_of_repeated_rows():
    w = rng.integers(0, 4, size=300)
    a, b = Moments.of(A, w.astype(float), shift=shift), Moments.of(np.repeat(A, w, axis=0), shift=shift)
    np.testing.assert_allclose(a.covariance(), b.covariance())
    np.testing.assert_allclose(a.mean, b.mean)


def test_float32_batches_at_large_means_keep_their_digits():
    rows = (1e4 + rng.normal(size=(50_000, 3))).astype(np.float32)
    m = Moments.of(rows, shift=rows[:100].mean(0, dtype=np.float64))
    exact = np.cov(rows.astype(np.float64).T, bias=True)
    np.testing.assert_allclose(m.covariance(), exact, rtol=1e-5, atol=1e-5)
    raw = rows.T @ rows / len(rows) - np.outer(rows.mean(0), rows.mean(0))
    assert np.abs(raw - exact).max() > 1  # what raw float32 sums would give


def test_a_row_of_1e8_leaves_no_more_than_the_stated_rounding():
    big = np.full((1, 4), 1e8)
    m = Moments.of(A, shift=shift) + Moments.of(big, shift=shift) - Moments.of(big, shift=shift)
    lost = np.abs(m.S - Moments.of(A, shift=shift).S).max()
    assert 0 < lost <= m.rounding
    assert Moments.of(A, shift=shift).rounding < 1e-10


@pytest.mark.parametrize("loss", [logistic, squared_hinge])
def test_newton_rounds_merge_and_are_derivatives(loss):
    y, at = np.sign(rng.normal(size=300)), 0.1 * rng.normal(size=4)
    whole = loss(at, A, y)
    parts = fold([slice(0, 100), slice(100, 250), slice(250, 300)], lambda s: loss(at, A[s], y[s]), Newton.zero(4))
    np.testing.assert_allclose(parts.hessian, whole.hessian)
    h = 1e-6 * np.eye(4)
    numeric = [(loss(at + e, A, y).value - loss(at - e, A, y).value) / 2e-6 for e in h]
    np.testing.assert_allclose(whole.gradient, numeric, rtol=1e-5, atol=1e-4)
    slopes = [(loss(at + e, A, y).gradient - loss(at - e, A, y).gradient) / 2e-6 for e in h]
    np.testing.assert_allclose(whole.hessian, slopes, rtol=1e-3, atol=1e-2)


@given(st.permutations(range(6)))
def test_a_sample_does_not_depend_on_order_or_splits(order):
    whole = Sample.of(A, 20)
    parts = [Sample.of(A[50 * i : 50 * i + 50], 20) for i in order]
    np.testing.assert_array_equal(sum(parts[1:], parts[0]).rows, whole.rows)


def test_a_sample_is_uniform():
    means = [Sample.of(np.arange(200.0)[:, None], 20, seed=s).rows.mean() for s in range(200)]
    assert np.mean(means) == pytest.approx(99.5, abs=4)


def test_hashes_of_sparse_rows():
    X = sp.random_array((50, 30), density=0.2, rng=rng).tocsr()
    assert len(set(row_hashes(X).tolist())) > 45
    np.testing.assert_array_equal(row_hashes(X)[10:20], row_hashes(X[10:20]))
    np.testing.assert_array_equal(row_hashes(np.array([[0.0, 1.0]])), row_hashes(np.array([[-0.0, 1.0]])))
    np.testing.assert_array_equal(row_hashes(X), row_hashes(X.toarray()))
    assert row_hashes(np.array([[1.0, 2.0]]))[0] != row_hashes(np.array([[2.0, 1.0]]))[0]


@pytest.mark.parametrize("size", [4, 8])
def test_frequent_directions_keep_their_bound(size):
    B = rng.normal(size=(2000, 12)) @ np.diag(0.6 ** np.arange(12))
    whole = FrequentDirections.of(B, size)
    merged = FrequentDirections.of(B[:700], size) + FrequentDirections.of(B[700:], size)
    tail = np.cumsum(np.linalg.svd(B, compute_uv=False)[::-1] ** 2)[::-1]
    for f in (whole, merged):
        gap = np.linalg.eigvalsh(B.T @ B - f.B.T @ f.B)
        assert gap[0] >= -1e-8
        assert gap[-1] <= f.loss * (1 + 1e-9)
        assert f.loss <= min(tail[k] / (size - k) for k in range(size)) * (1 + 1e-9)
        assert len(f.B) <= 2 * size


def test_a_fold_does_not_depend_on_its_engine():
    of = lambda s: Moments.of(A[s], shift=shift)
    pieces = [slice(i, i + 7) for i in range(0, 300, 7)]
    np.testing.assert_array_equal(fold(pieces, of, Moments.zero(shift)).S, fold(pieces, of, Moments.zero(shift), threads).S)


def test_sizes_must_agree():
    with pytest.raises(ValueError, match="cannot merge"):
        Sample.of(A, 3) + Sample.of(A, 4)
    with pytest.raises(ValueError, match="cannot merge"):
        FrequentDirections.of(A, 3) + FrequentDirections.of(A, 4)


def test_the_contract_can_fail():
    class Wrong:
        def __init__(self, rows): self.total = len(rows) ** 2
        def __add__(self, o):
            new = Wrong([])
            new.total = self.total + o.total
            return new

    def equal(a, b):
        assert a.total == b.total

    with pytest.raises(AssertionError):
        check_statistic(Wrong, Wrong([]), A, equal)


@pytest.mark.parametrize("seed", [0, 1, 2, 12345, 2**40])
def test_no_seed_of_a_sample_warns(seed):
    found = Sample.of(np.arange(50.0)[:, None], 10, keys=np.arange(50), seed=seed)
    assert len(found.rows) == 10
