"""Moments: those of parts are those of the whole, rows come and go, and digits are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.lifts import Identity
from mercer.models import KernelRidge
from mercer.stats import FrequentDirections, Moments, Sample
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
    check_statistic(
        lambda rows: Moments.of(rows, shift=shift), Moments.zero(shift), A, same, subtracts=True
    )


@given(st.integers(0, 300), st.integers(0, 300))
def test_moments_of_parts_are_those_of_the_whole(i, j):
    i, j = sorted((i, j))
    parts = [Moments.of(P, shift=P.mean(0) if len(P) else shift) for P in (A[:i], A[i:j], A[j:])]
    same(sum(parts[1:], parts[0]).about(shift), Moments.of(A, shift=shift))


def test_moments_with_weights_are_those_of_repeated_rows():
    w = rng.integers(0, 4, size=300)
    a, b = (
        Moments.of(A, w.astype(float), shift=shift),
        Moments.of(np.repeat(A, w, axis=0), shift=shift),
    )
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


def test_sizes_must_agree():
    with pytest.raises(ValueError, match="cannot merge"):
        Sample.of(A, 3) + Sample.of(A, 4)
    with pytest.raises(ValueError, match="cannot merge"):
        FrequentDirections.of(A, 3) + FrequentDirections.of(A, 4)


def test_a_shift_in_float32_is_what_was_subtracted():
    A = (rng.normal(size=(2000, 1)) + 1e6).astype(np.float32)
    t = A[:, 0].astype(np.float64) - 1e6
    m = KernelRidge(lift=Identity(), alpha=1e-9).fit(A, t)
    assert np.abs(m.predict(A.astype(np.float64)) - t).max() < 1e-4


def test_moments_refuse_other_widths_and_take_integers():
    with pytest.raises(ValueError, match="2 columns, but the moments are of 3"):
        Moments.of(np.ones((3, 2)), shift=np.zeros(3))
    assert Moments.of(np.ones((3, 2), int), shift=np.zeros(2)).S[0, 0] == 3
