"""Products and distances by tiles equal their plain references."""

import numpy as np

from mercer.ops import distances
from tests.market import rows

X, Z = rows(8), rows(5, seed=1)


def test_fast_tiles_equal_their_plain_references():
    b = np.array([0.5, 1.0, 3.0])
    for dtype, rtol in ((np.float64, 1e-12), (np.float32, 2e-5)):
        A, B = X.astype(dtype), Z.astype(dtype)
        np.testing.assert_allclose(
            distances.by_differences(A, B, b), distances.reference_sqdist(A, B, b), rtol=rtol
        )
        np.testing.assert_allclose(
            distances.absdist(A, B, b), distances.reference_absdist(A, B, b), rtol=rtol
        )
        np.testing.assert_allclose(
            distances.prod1p(A, B), distances.reference_prod1p(A, B), rtol=rtol
        )
