"""Counts and distinct values in bounded memory."""

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables.sketch import DistinctCount, HeavyHitters, hashes

VALUES = st.lists(st.sampled_from("abcdefgh") | st.text(max_size=3), min_size=1, max_size=60)


@given(parts=st.lists(VALUES, min_size=1, max_size=4))
def test_counts_are_exact_below_the_cap(parts):
    counts = HeavyHitters()
    for part in parts:
        counts.add(pa.array(part))
    assert dict(zip(counts.values.to_pylist(), counts.counts.tolist(), strict=True)) == Counter(
        v for part in parts for v in part
    )
    assert counts.exact


@given(parts=st.lists(VALUES, min_size=1, max_size=6), cap=st.integers(1, 6))
def test_counts_beyond_the_cap_are_low_by_at_most_the_error(parts, cap):
    counts, true = HeavyHitters(cap), Counter(v for part in parts for v in part)
    for part in parts:
        counts.add(pa.array(part))
    held = dict(zip(counts.values.to_pylist(), counts.counts.tolist(), strict=True))
    assert len(held) <= cap
    assert counts.error <= sum(true.values()) / (cap + 1)
    assert all(held.get(v, 0) <= k <= held.get(v, 0) + counts.error for v, k in true.items())


@given(values=st.lists(st.text(max_size=5), min_size=1, max_size=30), cut=st.integers(0, 30))
def test_equal_texts_have_equal_hashes_wherever_they_lie(values, cut):
    whole = hashes(pa.array(values))
    assert np.array_equal(whole[cut:], hashes(pa.array(values).slice(cut)))
    assert len(np.unique(whole)) == len(set(values))


def test_distinct_values():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        few, many = DistinctCount(), DistinctCount()
        for _ in range(10):
            few.add(pa.array(rng.integers(0, 500, 3000).astype(float)))
            many.add(pa.array(rng.integers(0, 50_000, 20_000).astype(str)))
        assert few.count() == 500
        expected = 50_000 * (1 - np.exp(-4))
        assert abs(many.count() - expected) < 5 * expected / many.k**0.5
