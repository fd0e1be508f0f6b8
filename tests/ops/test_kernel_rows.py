"""Rows of kernel matrices: added, picked and repacked as plainly."""

import numpy as np
import pytest

from mercer.ops import kernel_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 3, 4, 9])
def test_rows_are_added_in_float64(dtype, m):
    rng = np.random.default_rng(m)
    K, index, delta, out = (
        rng.normal(size=(12, 37)).astype(dtype),
        rng.permutation(12)[:m],
        rng.normal(size=m),
        rng.normal(size=37),
    )
    expected = out + delta @ K[index].astype(np.float64)
    kernel_rows.add_rows(K, index, delta, out)
    np.testing.assert_allclose(out, expected, atol=1e-14)


def test_entries_are_picked_and_repacked():
    rng = np.random.default_rng(0)
    K, rows, cols = rng.normal(size=(9, 12)), rng.permutation(9)[:4], rng.permutation(12)[:5]
    out = np.full((4, 5), np.nan)
    kernel_rows.pick(K, rows, cols, out)
    np.testing.assert_array_equal(out, K[np.ix_(rows, cols)])
    out[:] = np.nan
    kernel_rows.repack(K.reshape(9, 3, 4).transpose(1, 0, 2).copy(), rows, *np.divmod(cols, 4), out)
    np.testing.assert_array_equal(out, K[np.ix_(rows, cols)])
