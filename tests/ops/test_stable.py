"""The positive stable law: its Laplace transform, and the norms of normal vectors that it scales."""

import numpy as np
import pytest
from scipy import stats

from mercer.ops.measures import MAX, Stable, StableColumns, Student
from mercer.ops.philox import Stream, uniforms
from mercer.ops.stable import log_stable

U = (np.arange(2000) + 0.5) / 2000


@pytest.mark.parametrize("alpha", [0.05, 0.35, 0.5, 0.7, 0.95, 0.995])
def test_the_laplace_transform_is_that_of_a_power(alpha):
    A = np.exp(np.minimum(log_stable(alpha, uniforms(Stream(1), 0, 40_000, 2)), 600))
    for s in (0.1, 1.0, 3.0):
        e = np.exp(-s * A)
        assert abs(e.mean() - np.exp(-(s**alpha))) < 5 * e.std() / 200 + 1e-12


@pytest.mark.parametrize("d", [1, 2, 7, 300])
def test_norms_at_exponent_one_are_those_of_the_cauchy_law(d):
    np.testing.assert_allclose(Stable(1.0).radius(U, d), Student(1.0).radius(U, d), rtol=1e-8)
    tails = np.array([1e-9, 1e-6, 1 - 1e-6, 1 - 1e-9])
    np.testing.assert_allclose(
        Stable(1.0).radius(tails, d), Student(1.0).radius(tails, d), rtol=1e-6
    )


@pytest.mark.parametrize("q", [0.1, 0.7, 1.3, 1.9, 1.99])
@pytest.mark.parametrize("d", [1, 40])
def test_the_radius_is_the_quantile_of_the_norm(q, d):
    law = Stable(q)
    norms = np.linalg.norm(law.rows(uniforms(Stream(2), 0, 4000, law.width(d)), d), axis=1)
    quantiles = law.radius(U, d)
    assert (np.diff(quantiles) >= 0).all()
    assert stats.ks_2samp(np.minimum(norms, MAX), quantiles).pvalue > 1e-3


def test_extreme_exponents_and_uniforms_stay_finite():
    corners = np.array([0.0, 1e-300, 0.5, 1 - 2.0**-53])
    grid = np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2)
    for q in (1e-3, 0.05, 0.999):
        W = StableColumns(q).rows(np.concatenate([grid, np.full((16, 3), 0.3)], axis=1), 3)
        assert np.isfinite(W).all()
        assert np.isfinite(W.astype(np.float32)).all()
        V = Stable(2 * q).rows(np.concatenate([np.full((16, 3), 0.3), grid], axis=1), 3)
        assert np.isfinite(V).all()
        assert np.isfinite(Stable(2 * q).radius(np.array([1e-300, 0.5, 1 - 2.0**-53]), 3)).all()


def test_columns_share_one_scale():
    """Independent stable columns would give exp(-sum |x_j|^q), another kernel."""
    law = StableColumns(0.5)
    W = law.rows(uniforms(Stream(3), 0, 40_000, law.width(4)), 4)
    c = np.cos(W.sum(1))  # at (1, 1, 1, 1)
    error = 5 * c.std() / 200
    assert abs(c.mean() - np.exp(-2)) < error
    assert abs(c.mean() - np.exp(-4)) > error
