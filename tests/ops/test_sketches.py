"""Count sketches: convolved they are those of the tensor."""

import numpy as np
import pytest

from mercer.ops.philox import Stream
from mercer.ops.sketches import CountSketch, convolve, reference, spectrum


# sketches
@pytest.mark.parametrize("D", [7, 8])
@pytest.mark.parametrize("p", [3, 400])  # by matrix product, by transform
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_convolution_is_the_sketch_of_the_tensor(D, p, dtype):
    parts = [
        np.random.default_rng(i).normal(size=(5, q)).astype(dtype) for i, q in enumerate((p, 2))
    ]
    sketches = [CountSketch.draw(Stream(3, (i,)), q.shape[1], D) for i, q in enumerate(parts)]
    out = np.full((5, D), np.nan, dtype)
    convolve(parts, [spectrum(S, np.dtype(dtype)) for S in sketches], out)
    np.testing.assert_allclose(
        out, reference(parts, sketches), atol=1e-9 if dtype == np.float64 else 1e-3
    )


def test_count_sketch_in_fourier_space():
    S = CountSketch.draw(Stream(1), 9, 12)
    np.testing.assert_allclose(S.fourier(), np.fft.rfft(S.matrix().toarray()), atol=1e-12)
