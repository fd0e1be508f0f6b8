"""Frequent directions keep their bound."""

import numpy as np
import pytest

from mercer.stats import FrequentDirections

rng = np.random.default_rng(0)


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
