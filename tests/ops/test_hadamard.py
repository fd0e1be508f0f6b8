"""The Walsh-Hadamard transform: SciPy's matrix at every length, in place, any number of rows."""
import numpy as np
import pytest
from scipy.linalg import hadamard as matrix

from mercer.ops.fastfood import hadamard, reference_hadamard

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rows(n, L, dtype):
    return np.random.default_rng(L).normal(size=(n, L)).astype(dtype)


@dtypes
@pytest.mark.parametrize("L", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
def test_is_scipys_matrix(L, dtype):
    X = rows(11, L, dtype)
    expected = X.astype(np.float64) @ matrix(L)
    tolerance = 4 * np.finfo(dtype).eps * L
    np.testing.assert_allclose(hadamard(X.copy()), expected, atol=tolerance)
    np.testing.assert_allclose(reference_hadamard(X), expected, atol=tolerance)


@dtypes
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40])
def test_any_number_of_rows_in_place_inside_a_wider_array(n, dtype):
    X = rows(n, 128, dtype)
    wide = np.full((n, 200), np.nan, dtype)
    wide[:, 30:158] = X
    hadamard(wide[:, 30:158])
    np.testing.assert_allclose(wide[:, 30:158], reference_hadamard(X), atol=1e-3 if dtype == np.float32 else 1e-11)
    assert np.isnan(wide[:, :30]).all()
    assert np.isnan(wide[:, 158:]).all()


def test_twice_is_a_scale():
    X = rows(5, 2048, np.float64)
    np.testing.assert_allclose(hadamard(hadamard(X.copy())), 2048 * X)


@pytest.mark.parametrize("L", [0, 3, 48])
def test_other_lengths_are_refused(L):
    with pytest.raises(ValueError, match="power of two of columns"):
        hadamard(np.zeros((2, L)))
