"""Loops over squared distances against their plain references."""

import numpy as np
import pytest

from mercer.ops import nearest


@pytest.mark.parametrize("k", [1, 2, 9])
@pytest.mark.parametrize("ties", [False, True])
def test_loops_are_as_plain(monkeypatch, k, ties):
    rng = np.random.default_rng(k)
    D = rng.integers(0, 3, (500, k)).astype(float) if ties else rng.uniform(size=(500, k))
    far, w = rng.uniform(size=(500, 4)), rng.uniform(size=500)
    monkeypatch.setattr(nearest, "SMALL", 0)
    two, plain = nearest.two_nearest(D), nearest.reference_two_nearest(D)
    for a, b in zip(two, plain, strict=True):
        np.testing.assert_array_equal(a, b)
    costs = [f(*two, far, w, k) for f in (nearest.swap_costs, nearest.reference_swap_costs)]
    np.testing.assert_allclose(*costs, rtol=1e-12)
