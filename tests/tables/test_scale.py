"""Scaling: finite and monotone, whatever the unit, with heavy tails bent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables.scale import FAR, RankNormalizer, Standardizer, tails


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=40))
def test_scaling_is_finite_and_monotone(values):
    x = np.sort(np.array(values))
    z = Standardizer.of(x)(x)
    assert np.isfinite(z).all()
    assert np.all(np.diff(z) >= 0)
    assert np.abs(z).max() <= FAR


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=40),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=40),
)
def test_ranks_are_finite_and_monotone_also_beyond_the_sample(values, others):
    scale, x = RankNormalizer.of(np.array(values)), np.sort(np.array([*values, *others]))
    z = scale(x)
    assert np.isfinite(z).all()
    assert np.all(np.diff(z) >= -1e-12)
    assert np.abs(z).max() <= FAR


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
def test_ranks_make_any_law_normal_whatever_the_unit(unit):
    x = np.exp(np.random.default_rng(0).normal(size=4000) * 2)
    z = RankNormalizer.of(x * unit)(x * unit)
    assert (z.mean(), z.std()) == (pytest.approx(0, abs=1e-9), pytest.approx(1))
    assert max(tails(z)) < 0.2 < 5 < tails(x)[0]
    assert np.allclose(z, RankNormalizer.of(x)(x), atol=1e-6)


def test_a_value_beyond_training_is_told_from_the_largest():
    scale = RankNormalizer.of(np.arange(100.0))
    z = scale(np.array([99.0, 150.0, 1e6]))
    assert z[0] < z[1] < z[2] <= FAR
    assert scale(np.array([-50.0]))[0] < scale(np.array([0.0]))[0]


@pytest.mark.parametrize(
    "bad",
    [((1.0,),), ((2.0, 1.0),), ((0.0, np.nan),), ((0.0, 1.0), 0.0), ((0.0, 1.0), 1.0, 0.0, -1.0)],
)
def test_ranks_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match="RankNormalizer needs"):
        RankNormalizer(*bad)


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
