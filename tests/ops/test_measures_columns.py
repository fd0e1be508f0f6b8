"""Frequencies column by column: harmonics, and periods that differ."""

import numpy as np
import pytest
from scipy import special

from mercer.ops.frequencies import frequencies
from mercer.ops.measures import PeriodicColumns
from mercer.ops.philox import Stream


def estimates(W, D):
    return np.cos(D @ W.T).mean(axis=1)


def assert_centred(sample, mean, sigmas=5):
    """Rows of the sample are seeds; compares at the rate of the central limit theorem."""
    error = abs(sample.mean(axis=0) - mean)
    assert (error <= sigmas * sample.std(axis=0, ddof=1) / np.sqrt(len(sample)) + 1e-7).all()


@pytest.mark.parametrize("b", [0.05, 0.3, 1.0, 20.0])
def test_periodic_harmonics(b):
    u = (np.arange(100_000) + 0.5) / 100_000
    j = np.rint(PeriodicColumns(b, 2.0).rows(u[:, None], 1)[:, 0] / np.pi).astype(int)
    for harmonic in (0, 1, -1, 4):
        np.testing.assert_allclose(
            (j == harmonic).mean(), special.ive(abs(harmonic), b**-2.0), atol=2e-5
        )


def test_periodic_columns_may_differ():
    law = PeriodicColumns((0.5, 1.0), (1.0, 2.0))
    D = np.array([[0.2, 0.3]])
    sample = np.array([estimates(frequencies(law, 2, 64, Stream(s)), D) for s in range(100)])
    assert_centred(
        sample, np.exp(-2 * (np.sin(np.pi * D / [1, 2]) ** 2 / np.array([0.5, 1.0]) ** 2).sum(1))
    )
