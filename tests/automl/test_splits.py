"""Folds, holdouts and samples: nothing is on both sides, and the same seed gives the same rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.automl import splits
from mercer.automl.rows import TableRows, hashes
from mercer.automl.splits import make_folds
from mercer.tables import DataError, open_source


def rows(n, **more):
    return TableRows(np.zeros((n, 1), np.float32), np.zeros(n), np.arange(n), **more)


@given(st.integers(4, 300), st.integers(2, 8), st.integers(0, 5))
def test_random_folds_test_every_row_once_and_are_even(n, k, seed):
    f = make_folds(rows(n), k, seed)
    tests = np.concatenate([f.split(i)[1] for i in range(len(f.plan))])
    assert sorted(tests) == list(range(n))
    assert np.ptp(np.bincount(f.block)) <= 1
    for i in range(len(f.plan)):
        train, test = f.split(i)
        assert not set(train) & set(test)


@given(
    st.lists(st.integers(0, 20), min_size=20, max_size=200).filter(lambda g: len(set(g)) > 1),
    st.integers(2, 6),
)
def test_groups_are_never_on_both_sides(groups, k):
    unit = np.array(groups)
    f = make_folds(rows(len(unit), group=unit), k)
    for i in range(len(f.plan)):
        train, test = f.split(i)
        assert not set(unit[train]) & set(unit[test])
        assert len(train)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=30, max_size=200).filter(lambda t: len(set(t)) > 1),
    st.integers(2, 6),
)
def test_time_folds_look_forward(times, k):
    time = np.array(times)
    f = make_folds(rows(len(time), time=time), k)
    for i in range(len(f.plan)):
        train, test = f.split(i)
        assert time[train].max() < time[test].min()
    assert f.plan


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i},{i % 7},2024-01-{1 + i % 28:02d}" for i in range(200)]
    path.write_text("\n".join(["x,g,when", *lines]) + "\n")
    return open_source(path)


def masks(source, rule):
    return np.concatenate([rule.mask(batch, 0) for batch in source.batches()])


def test_whole_groups_are_held_out(table):
    rule = splits.by_group(table, "g", 0.3, 0)
    mask, g = masks(table, rule), np.arange(200) % 7
    assert len(set(g[mask])) == 2
    assert not set(g[mask]) & set(g[~mask])
    assert "2 of 7 groups" in rule.rule


def test_one_group_cannot_be_split(table):
    path = table.paths[0].with_name("one.csv")
    path.write_text("x,g\n1,a\n2,a\n")
    with pytest.raises(DataError, match="at least two"):
        splits.by_group(open_source(path), "g", 0.2, 0)


def test_the_last_rows_are_held_out_and_equal_times_stay_together(table):
    values = lambda batch: np.arange(200) % 28 * 1.0
    mask = masks(table, splits.by_time(table, "when", 0.2, values))
    day = np.arange(200) % 28
    assert day[~mask].max() < day[mask].min()
    assert 0.1 < mask.mean() < 0.3


def test_a_time_that_stands_still_is_refused(table):
    with pytest.raises(DataError, match="same value"):
        splits.by_time(table, "when", 0.2, lambda batch: np.ones(batch.num_rows))
    with pytest.raises(DataError, match="no dates or numbers"):
        splits.by_time(table, "when", 0.2, lambda batch: np.full(batch.num_rows, np.nan))


def test_a_random_holdout_does_not_depend_on_batches(table):
    rule = splits.at_random(0.2, 5)
    whole = masks(table, rule)
    parts = [
        rule.mask(batch, first)
        for first, batch in zip(range(0, 200, 50), table.batches(50), strict=True)
    ]
    assert np.array_equal(whole, np.concatenate(parts))
    assert 0.1 < whole.mean() < 0.3


@given(st.lists(st.integers(0, 3), min_size=20, max_size=200), st.integers(2, 6), st.integers(0, 3))
def test_folds_have_every_class_alike(labels, k, seed):
    y = np.array(labels)
    block = make_folds(
        TableRows(np.zeros((len(y), 1), np.float32), y, np.arange(len(y))), k, seed
    ).block
    assert np.ptp(np.bincount(block)) <= 1
    for c in np.unique(y):
        assert np.ptp(np.bincount(block[y == c], minlength=k)) <= 1


@given(st.integers(20, 400), st.floats(0.05, 0.6), st.integers(0, 5))
def test_a_counted_share_is_exact(n, share, seed):
    labels = np.array([f"{i}" for i in range(n)])
    found = splits.stratified_share(labels, hashes(np.arange(n), seed), share)
    assert len(found) == int(np.floor(n * share + 0.5))
    assert len(set(found.tolist())) == len(found)


def test_a_small_table_is_counted_out_by_class_and_rows_without_a_target_do_not_count(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "x,y\n"
        + "".join(f"{i},{'NA' if i < 10 else 'rare' if i < 20 else 'usual'}\n" for i in range(110))
    )
    source = open_source(path, columns=["y"])
    mask = masks(source, splits.stratified(source, "y", 0.2, 0))
    assert (mask[:10].sum(), mask[10:20].sum(), mask[20:].sum()) == (0, 2, 18)
    other = masks(source, splits.stratified(source, "y", 0.2, 1))
    assert not np.array_equal(mask, other)


def test_a_large_table_is_left_to_chance(table, monkeypatch):
    monkeypatch.setattr(splits, "MAX_STRATIFIED_ROWS", 100)
    mask = masks(table, splits.stratified(table, "x", 0.2, 5))
    assert np.array_equal(mask, masks(table, splits.at_random(0.2, 5)))


def test_a_class_of_one_row_is_learned_from():
    found = splits.stratified_share(np.array(["a"] * 49 + ["b"]), hashes(np.arange(50)), 0.5)
    assert 49 not in found


@pytest.mark.parametrize("seed", range(5))
def test_whole_groups_spread_classes_evenly(seed):
    """Groups of one class each, of which one is rare: every block gets its share of them."""
    rng = np.random.default_rng(seed)
    unit = rng.permutation(np.repeat(np.arange(60), rng.integers(3, 12, 60)))
    y = np.where(unit < 10, 1, 0)  # the class of a group
    f = make_folds(
        TableRows(np.zeros((len(unit), 1), np.float32), y, np.arange(len(unit)), group=unit),
        5,
        seed,
    )
    shares = [np.mean(y[f.block == b]) for b in range(5)]
    assert min(shares) > 0.3 * np.mean(y)
    assert max(shares) < 2 * np.mean(y)
    assert np.ptp(np.bincount(f.block)) < 0.2 * len(unit)


@pytest.mark.parametrize("counts", [(250, 70), (319, 1), (1, 319), (100, 100)])
def test_two_times_make_two_blocks(counts):
    f = make_folds(rows(sum(counts), time=np.repeat([3.0, 5.0], counts)))
    assert [len(part) for part in f.split(0)] == list(counts)


@pytest.mark.parametrize("what", ["time", "group"])
def test_a_sample_of_one_time_or_group_is_split_at_random(what):
    f = make_folds(rows(40, **{what: np.full(40, 7)}), k=4)
    assert [len(f.split(i)[1]) for i in range(4)] == [10] * 4
