"""The loops of the ordered scan are the reference."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.ops.scan import reference, scan, scan_csr


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_loops_are_the_reference(classes, offset, dtype):
    rng = np.random.default_rng(0)
    F = (rng.integers(-2, 3, size=(150, 7)) * (rng.random((150, 7)) < 0.6)).astype(
        dtype
    )  # small integers: sums are exact
    labels = rng.integers(0, classes, 150)
    labels = 2 * labels - 1 if classes == 2 else labels
    C, found = sp.csr_array(F), []
    for run in (
        lambda *a: reference(F, labels, *a),
        lambda *a: scan(F, labels, *a),
        lambda *a: scan_csr(C.indptr, C.indices, C.data, labels, *a),
    ):
        W, U, wrong = (
            np.zeros((1 if classes == 2 else 3, 8)),
            np.zeros((1 if classes == 2 else 3, 8)),
            np.zeros(150, bool),
        )
        found.append((run(W, U, 5.0, offset, wrong), W, U, wrong))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
