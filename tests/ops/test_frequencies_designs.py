"""Designs: unit vectors spread evenly, that cannot be changed and do not amplify rounding."""

import numpy as np
import pytest

from mercer.ops import frequencies as designs
from mercer.ops.measures import Normal


@pytest.mark.parametrize(("n", "d"), [(100, 4), (60, 10), (200, 16), (150, 64)])
def test_designs_do_not_amplify_rounding(n, d):
    """Another BLAS adds in another order; the map must stay the same to many digits."""
    U, r = designs._start(n, d), Normal().radius((np.arange(n) + 0.5) / n, d)
    shaken = U + 1e-15 * np.random.default_rng(0).standard_normal(U.shape)
    np.testing.assert_allclose(designs._descend(shaken, r), designs._descend(U, r), atol=1e-10)


@pytest.mark.parametrize(
    ("n", "d"), [(5, 9), (7, 2), (100, 4), (60, 10), (90, 64), (280, 256), (300, 257), (301, 300)]
)
def test_designs_are_unit_vectors_spread_evenly(n, d):
    excess = lambda U: (
        np.sum((U.T @ U - np.eye(d) * n / d) ** 2) - max(0, n - n * n / d)
    )  # over that of tight frames
    U, iid = designs.design(Normal(), d, n), np.random.default_rng(0).standard_normal((n, d))
    np.testing.assert_allclose(np.linalg.norm(U, axis=1), 1)
    assert excess(U) < excess(iid / np.linalg.norm(iid, axis=1, keepdims=True)) / 10


def test_a_design_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        designs.design(Normal(), 2, 5)[0, 0] = 1
