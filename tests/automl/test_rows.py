"""Rows: hashes, samples by them, spools in memory and on disk."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.automl.rows import (
    GrowingArray,
    TableRows,
    float_from_bits,
    hashes,
    least_hashed,
    nth_smallest,
    sortable_bits,
    uniform,
)
from mercer.tables import sketch


# parts at a time
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=200), st.data()
)
def test_the_nth_of_many_is_that_of_all_sorted(values, data):
    v, n = np.array(values), data.draw(st.integers(0, len(values) - 1))
    assert (
        float_from_bits(
            nth_smallest(lambda: (sortable_bits(part) for part in np.array_split(v, 3)), n)
        )
        == np.sort(v)[n]
    )


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(0, 3), st.data())
def test_samples_by_parts_are_those_of_all_hashes(n, seed, data):
    size, number = data.draw(st.integers(1, n)), np.random.default_rng(seed).permutation(n)
    wanted = np.sort(np.argsort(hashes(number, seed), kind="stable")[:size])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.automl.rows.BLOCK_ROWS", 37)
        assert np.array_equal(least_hashed(number, size, seed), wanted)
    rows = TableRows(np.zeros((n, 1), np.float32), np.zeros(n), number)
    fewer = data.draw(st.integers(0, size))
    thin = [part.row_id for part in rows.sampled_batches(size, seed, 50, fewer)]
    rest = np.setdiff1d(number[wanted], rows.sample(fewer, seed).row_id if fewer else [])
    assert sorted(np.concatenate([*thin, np.zeros(0, int)]).tolist()) == sorted(rest.tolist())


@settings(max_examples=20)
@given(st.lists(st.text(max_size=40), max_size=60))
def test_texts_hash_the_same_in_pieces(texts):
    column = pa.array(texts, pa.string())
    whole = sketch.hashes(column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "BLOCK_BYTES", 5)
        patch.setattr(sketch, "_first_powers", lambda base: sketch._run(base, 6))
        assert np.array_equal(sketch.hashes(column), whole)
    assert len(set(whole.tolist())) == len(set(texts))


def test_spools_of_any_type_are_the_same_in_memory_and_on_disk():
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 9, k) for k in (5, 0, 7)]
    for most in (0, 1e9):
        spool = GrowingArray(1, most, np.int64)
        for part in parts:
            spool.add(part)
        assert (spool.n_bytes == 0) == (most == 0)
        found = spool.vector()
        assert found.dtype == np.int64
        assert np.array_equal(found, np.concatenate(parts))


def rows(n, **more):
    return TableRows(np.zeros((n, 1), np.float32), np.zeros(n), np.arange(n), **more)


def test_a_larger_sample_holds_the_smaller_one():
    r = rows(1000)
    small, large = r.sample(100, seed=3).row_id, r.sample(300, seed=3).row_id
    assert set(small) <= set(large)
    assert len(small) == 100
    assert set(r.sample(100, seed=4).row_id) != set(small)


def test_hashes_are_even_and_depend_on_the_seed():
    u = uniform(np.arange(20_000), seed=1)
    assert abs(np.mean(u < 0.2) - 0.2) < 0.01
    assert abs(np.corrcoef(u, uniform(np.arange(20_000), seed=2))[0, 1]) < 0.03
    assert hashes(["a", "b", "a"])[0] == hashes(["a"])[0]


@pytest.mark.parametrize("most", [0, 1e9])
def test_a_spool_gives_back_what_it_was_given(most):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(n, 3)).astype(np.float32) for n in (5, 0, 100, 1)]
    spool = GrowingArray(3, most)
    for part in parts:
        spool.add(part)
    found = spool.array()
    assert np.array_equal(found, np.concatenate(parts))
    assert isinstance(found, np.memmap) == (most == 0)


def test_an_empty_spool_has_its_width():
    assert GrowingArray(4, 10).array().shape == (0, 4)
