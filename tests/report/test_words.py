"""Numbers and durations in words have the digits that mean something."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.report import words


@given(st.floats(allow_nan=True, allow_infinity=True) | st.none() | st.integers())
def test_numbers_read_back(value):
    said = words.number(value)
    if not words.finite(value):
        assert said == words.NOTHING
    elif abs(value) < 1.79e308:  # the very last ones round up to infinity
        assert float(said.replace(",", "").replace("−", "-")) == pytest.approx(value, rel=6e-4)


@given(st.floats(0, 1e6))
def test_durations_read_back(seconds):
    units = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
    parts = re.findall(r"([\d.,e-]+) (ms|s|min|h)\b", words.duration(seconds))
    assert sum(
        float(number.replace(",", "")) * units[unit] for number, unit in parts
    ) == pytest.approx(seconds, rel=0.06, abs=1e-4)
