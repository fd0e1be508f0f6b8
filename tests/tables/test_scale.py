"""Scaling: finite and monotone, whatever the unit, with heavy tails bent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables.scale import FAR, Standardizer, tails


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=40))
def test_scaling_is_finite_and_monotone(values):
    x = np.sort(np.array(values))
    z = Standardizer.of(x)(x)
    assert np.isfinite(z).all()
    assert np.all(np.diff(z) >= 0)
    assert np.abs(z).max() <= FAR


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_normal_numbers_are_standardised_whatever_the_unit(unit, shift):
    for seed in range(3):
        x = (np.random.default_rng(seed).normal(size=2000) + shift) * unit
        scale = Standardizer.of(x)
        assert scale.spread == 0
        assert (np.mean(scale(x)), np.std(scale(x))) == (
            pytest.approx(0, abs=1e-9),
            pytest.approx(1),
        )


def test_heavy_tails_are_bent():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mostly_zero = (rng.random(3000) < 0.05) * rng.lognormal(8, 1, 3000)
        for x in (
            rng.lognormal(0, 2, 3000),
            -rng.lognormal(0, 2, 3000),
            rng.standard_cauchy(3000),
            mostly_zero,
        ):
            scale = Standardizer.of(x)
            assert scale.spread > 0
            assert max(tails(scale.bent(x))) < max(tails(x)) / 2
