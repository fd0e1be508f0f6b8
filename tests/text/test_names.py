"""Names behind columns: exact counts by any batches, bounds beyond the memory limit, files."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.store import decode, encode
from mercer.testing import check_statistic
from mercer.text.murmur import columns_of, murmur3, packed, signs_of
from mercer.text.names import ColumnNames, Distinct
from mercer.text.runs import join, joined, reference

ODD = ["", "\0", "a\0", "a", "a=b", "é", "𝄞", "a & b", "b" * 300]


def batch(names, counts=None, n_features=16):
    counts = np.ones(len(names), np.int64) if counts is None else np.asarray(counts, np.int64)
    return Distinct.hashed(*packed(names), counts, n_features)


def of_stream(names, n_features=16, size=None, **settings):
    """Names as they came, counted in batches of a size."""
    seen = ColumnNames(n_features, **settings)
    for start in range(0, len(names), size or max(1, len(names))):
        counts = Counter(names[start : start + (size or len(names))])
        seen = seen.add(batch(list(counts), list(counts.values()), n_features))
    return seen


def held(seen):
    kept = seen.kept
    return {kept.name(i): int(kept.counts[i]) for i in range(len(kept))}


def same(a, b):
    for part in ("columns", "signs", "counts", "buffer", "offsets"):
        np.testing.assert_array_equal(getattr(a.kept, part), getattr(b.kept, part))
    assert (a.occurrences, a.error_bound) == (b.occurrences, b.error_bound)


@given(st.lists(st.sampled_from([*ODD, *"xyz"])), st.integers(1, 9), st.sampled_from([1, 2, 1000]))
def test_counts_are_those_of_a_counter_by_any_batches(names, size, n_features):
    seen = of_stream(names, n_features, size)
    assert held(seen) == dict(Counter(names))
    assert (seen.occurrences, seen.error_bound) == (len(names), 0)
    same(seen, of_stream(names, n_features))


def test_names_of_a_column_by_count_with_their_signs():
    names = [f"w{i % 50}" for i in range(400)] + ["w3"] * 5
    seen, hashes = of_stream(names, 7, 13), murmur3(*packed([f"w{i}" for i in range(50)]))
    columns, signs, counts = columns_of(hashes, 7), signs_of(hashes), Counter(names)
    for column in range(7):
        expected = [
            (f"w{i}", counts[f"w{i}"], int(signs[i])) for i in np.flatnonzero(columns == column)
        ]
        assert seen.names(column) == sorted(expected, key=lambda t: (-t[1], t[0]))


@pytest.mark.parametrize("n_features", [1, 2, 1_000_003, 2**31 - 1])
def test_collisions_are_shares(n_features):
    names = [f"n{i}" for i in range(40)]
    counts = np.arange(1, 41)
    found = ColumnNames(n_features).add(batch(names, counts, n_features)).collisions
    columns = Counter(columns_of(murmur3(*packed(names)), n_features).tolist())
    shared = [columns[c] > 1 for c in columns_of(murmur3(*packed(names)), n_features).tolist()]
    assert found.names == pytest.approx(np.mean(shared))
    assert found.occurrences == pytest.approx(counts[shared].sum() / counts.sum())
    assert n_features > 2 or found == (1.0, 1.0)


def test_no_names_collide_where_there_are_none():
    empty = ColumnNames(4)
    assert (empty.collisions, empty.names(3), len(empty.kept)) == ((0.0, 0.0), [], 0)
    assert ColumnNames(4).add(batch([], [], 4)).runs == ()


def test_merging_obeys_the_laws():
    rows = np.array([f"w{i % 37}" for i in range(200)])
    check_statistic(lambda r: of_stream(list(r), size=29), ColumnNames(16), rows, same)


def test_names_of_equal_keys_are_told_apart(monkeypatch):
    """Fingerprints of 32 bits may agree: bytes decide."""
    names = [b"b", b"a", b"ab", b"a", b"", b"b", b"a", *(b"x%d" % (i % 40) for i in range(100))]
    offsets = np.cumsum([0, *map(len, names)])
    buffer = np.frombuffer(bytearray(b"".join(names)), np.uint8)
    order, total = np.arange(len(names)), np.empty(len(names), np.int64)
    counts = np.arange(1, len(names) + 1)
    k = join(np.zeros(len(names), np.uint64), order, counts, buffer, offsets, total)
    expected = reference(np.zeros(len(names), int), counts, names)
    assert [names[i] for i in order[:k]] == sorted(set(names))
    assert {
        (0, names[i]): t for i, t in zip(order[:k], total[:k].tolist(), strict=True)
    } == expected


def test_joined_is_the_reference():
    rng = np.random.default_rng(0)
    names = [
        rng.integers(0, 3, size=rng.integers(0, 5)).astype(np.uint8).tobytes() for _ in range(3000)
    ]
    columns, counts = rng.integers(0, 4, 3000).astype(np.int32), rng.integers(0, 9, 3000)
    offsets = np.cumsum([0, *map(len, names)])
    buffer = np.frombuffer(bytearray(b"".join(names)), np.uint8)
    picks, total = joined(columns, counts, buffer, offsets)
    found = {(int(columns[i]), names[i]): int(t) for i, t in zip(picks, total, strict=True)}
    assert len(found) == len(picks)
    assert found == reference(columns, counts, names)
    assert (np.diff(columns[picks]) >= 0).all()


def zipf(rng, n):
    return [f"word {k}" for k in rng.zipf(1.3, n)]


def ever_new(rng, n):
    """A third is one name, the rest come once: counters are always pushed out."""
    return [f"new {i}" if i % 3 else "often" for i in range(n)]


def waves(rng, n):
    """Names that come in runs, each just below the share that is promised."""
    return [f"wave {i // 40}" for i in range(n)]


@pytest.mark.parametrize("size", [1, 97, 5000])
@pytest.mark.parametrize("limit", [0, 400, 20_000])
@pytest.mark.parametrize("stream", [zipf, ever_new, waves])
def test_heavy_hitters_keep_their_bound(stream, limit, size):
    names = stream(np.random.default_rng(1), 3000 if size > 1 else 120)
    seen, true = of_stream(names, 64, size, memory_limit=limit), Counter(names)
    found = held(seen)
    assert seen.occurrences == len(names)
    assert sum(run.nbytes for run in seen.runs) <= 2 * limit + 8 * len(seen.runs)
    assert all(0 < count <= true[name] for name, count in found.items())
    assert all(count - found.get(name, 0) <= seen.error_bound for name, count in true.items())
    always = limit // (24 + max(len(name) for name in true))
    assert seen.error_bound <= len(names) / (always + 1)
    if 24 * len(true) + sum(map(len, true)) <= limit:
        assert seen.error_bound == 0


def test_frequent_names_outlive_a_small_memory():
    names = ever_new(None, 30_000)
    seen = of_stream(names, 64, 1500, memory_limit=4000)
    assert seen.error_bound < 10_000 / 20
    column = int(columns_of(murmur3(*packed(["often"])), 64)[0])
    name, count, _ = seen.names(column)[0]
    assert name == "often"
    assert 10_000 - seen.error_bound <= count <= 10_000


def test_bounds_grow_with_occurrences_alone():
    """One name of middling count a batch, beside rare ones: counts that did not fall would let
    each such batch add to the bound."""
    size, k = 24 + 4, 10
    seen = ColumnNames(64, k * size).add(batch([f"a{i:03}" for i in range(k)], [100] * k, 64))
    for b in range(30):
        names = [f"b{b:02}{c}" for c in "0123456789x"]
        seen = seen.add(batch(names, [50] + [1] * 10, 64))
    assert seen.occurrences == 2800
    assert 0 < seen.error_bound <= 2800 / (k + 1)


@pytest.mark.parametrize("stream", [zipf, ever_new, waves])
def test_bounds_add_when_parts_merge(stream):
    names = stream(np.random.default_rng(2), 6000)
    parts = [
        of_stream(names[i * 1500 : (i + 1) * 1500], 64, 90, memory_limit=600 * (1 + i % 2))
        for i in range(4)
    ]
    one = parts[0].merge(parts[1]).merge(parts[2] + parts[3])
    true, found = Counter(names), held(one)
    assert one.memory_limit == 600
    assert one.occurrences == 6000
    assert one.error_bound >= sum(p.error_bound for p in parts) > 0
    assert all(count <= true[name] for name, count in found.items())
    assert all(count - found.get(name, 0) <= one.error_bound for name, count in true.items())
    other = (parts[3] + parts[2]).merge(parts[1].merge(parts[0]))
    assert all(count - held(other).get(n, 0) <= other.error_bound for n, count in true.items())


@pytest.mark.parametrize("limit", [100, 1 << 26])
def test_files_keep_names(limit):
    seen = of_stream([*ODD, *"abcab"], 5, 3, memory_limit=limit)
    again = decode(*encode(seen))
    same(seen, again)
    same(seen.add(batch(["new"], [2], 5)), again.add(batch(["new"], [2], 5)))
    assert [again.names(c) for c in range(5)] == [seen.names(c) for c in range(5)]


def test_a_value_never_changes():
    seen = of_stream(["a", "b"], 8)
    before = held(seen)
    seen.add(batch(["a", "c"], n_features=8)).merge(seen)
    assert held(seen) == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (dict(columns=np.array([0, -1], np.int32)), "columns holds -1"),
        (dict(columns=np.array([0, 2**31 - 1])), "columns holds 2147483647"),
        (dict(signs=np.array([1, 2])), "signs holds 2"),
        (dict(counts=np.array([1, -1])), "counts holds -1"),
        (dict(counts=np.array([1])), "counts has shape"),
        (dict(offsets=np.array([0, 9, 2])), "descend"),
        (dict(offsets=np.array([0, 1, 3])), "from 0 to their 2 bytes"),
        (dict(buffer=np.zeros(2)), "buffer should be an array of bytes"),
        (dict(buffer=np.zeros(2, np.uint16)), "buffer should be an array of bytes"),
    ],
)
def test_what_is_no_batch_is_refused(change, sentence):
    given = dict(
        columns=np.array([0, 1], np.int32),
        signs=np.array([1, -1], np.int8),
        counts=np.array([1, 1]),
        buffer=np.zeros(2, np.uint8),
        offsets=np.array([0, 1, 2]),
    )
    assert Distinct(**given).signs.dtype == np.int32
    with pytest.raises(ValueError, match=sentence):
        Distinct(**given | change)


def test_names_must_fit_their_columns():
    with pytest.raises(ValueError, match="but has 2"):
        ColumnNames(2).add(batch([f"n{i}" for i in range(20)], n_features=9))
    with pytest.raises(ValueError, match="cannot be merged"):
        ColumnNames(2).merge(ColumnNames(3))
    with pytest.raises(ValueError, match="column must be from 0 to 1, got 2"):
        ColumnNames(2).names(2)
    unordered = batch(["a", "b", "c", "d", "e"], n_features=1000)
    assert (np.diff(unordered.columns) < 0).any()
    with pytest.raises(ValueError, match="not in the order"):
        ColumnNames(1000, runs=(unordered,))
