import numpy as np
import pyarrow as pa
import pytest

from mercer.automl.documents import (
    DocumentSample,
    document_columns,
    document_hashes,
    grouped_by_document,
    together,
)
from mercer.automl.frames import as_source
from mercer.automl.rows import TableRows
from mercer.automl.splits import at_random, stratified


def batch(texts, **more):
    return pa.record_batch({"t": texts, **more})


@pytest.mark.parametrize("most", [1e9, 3_000.0, 200.0])
def test_sample_keeps_what_fits_whatever_the_batches(most):
    texts = [f"document number {i} of many" for i in range(300)]
    found = []
    for step in (300, 64, 7):
        sample = DocumentSample(("t",), most)
        for first in range(0, 300, step):
            some = texts[first : first + step]
            sample.add(batch(some), np.arange(len(some)), np.arange(first, first + len(some)))
        found.append(sample)
        assert sample.n_bytes <= most
        assert sample.column("t").to_pylist() == [texts[i] for i in sample.row_id]
        assert len(sample.keys("t")) == len(sample.row_id)
    assert all(np.array_equal(s.row_id, found[0].row_id) for s in found)
    assert len(found[0].row_id) == 300 if most > 1e6 else 0 < len(found[0].row_id) < 150


def test_of_equal_documents_all_or_none_are_in_a_sample():
    texts = np.array([f"document number {i} of many" for i in range(80)])[np.arange(400) % 80]
    sample = DocumentSample(("t",), 5_000.0)
    for first in range(0, 400, 64):
        some = texts[first : first + 64].tolist()
        sample.add(batch(some), np.arange(len(some)), first + np.arange(len(some)))
    times = np.bincount(sample.row_id % 80, minlength=80)
    assert set(times.tolist()) == {0, 5}


def test_sample_of_some_rows_of_a_batch():
    sample = DocumentSample(("t", "u"), 1e6)
    sample.add(batch(["a", None, " c "], u=["x", "y", "z"]), np.array([1, 2]), np.array([7, 8]))
    assert sample.row_id.tolist() == [7, 8]
    assert sample.column("t").to_pylist() == ["", "c"]
    assert sample.column("u").to_pylist() == ["y", "z"]


def test_hashes_are_of_all_columns_and_empty_rows_differ():
    b = batch(["a b", "a b", "a b", "", None], u=["x", "x", "y", None, ""])
    h = document_hashes(b, ("t", "u"), np.arange(5))
    assert h[0] == h[1]
    assert len(set(h.tolist())) == 4
    assert (
        document_hashes(b, ("t",), np.arange(5))[2] == document_hashes(b, ("t",), np.arange(5))[0]
    )


def test_documents_are_long_and_mostly_different():
    rng = np.random.default_rng(0)
    long = [" ".join(rng.choice(["up", "down", "left", "right"], 12)) for _ in range(100)]
    table = pa.table(
        {
            "y": ["a", "b"] * 50,
            "t": long,
            "few": [long[i % 5] for i in range(100)],
            "code": [f"x{i}" for i in range(100)],
            "n": np.arange(100),
        }
    )
    assert document_columns(as_source(table), ("y", None)) == ("t",)
    assert document_columns(as_source(table), ("y", "t")) == ()


def _side(table, apart):
    return np.concatenate([apart.mask(b, first) for b, first in _numbered(table)])


def _numbered(table):
    first = 0
    for b in table.batches(37):
        yield b, first
        first += b.num_rows


@pytest.mark.parametrize("most", [1e9, 64.0])
@pytest.mark.parametrize("small", [False, True])
def test_equal_documents_are_on_one_side_of_the_holdout(most, small):
    rng = np.random.default_rng(3)
    texts = [f"text {i}" for i in rng.integers(0, 300, 600)] + [""] * 60
    table = as_source(pa.table({"t": texts, "y": ["a", "b", "b"] * 220}))
    apart = stratified(table, "y", 0.25, 0) if small else at_random(0.25, 0)
    found = together(apart, table, ("t",), 0.25, 0, most)
    side = _side(table, found)
    for one in set(texts) - {""}:
        assert len(set(side[np.array(texts) == one])) == 1
    assert 0 < side[600:].sum() < 60  # rows without a text are no copies
    assert 0.17 < side.mean() < 0.33
    assert "equal texts" in found.rule


def test_holdout_of_different_documents_stays():
    table = as_source(pa.table({"t": [f"text {i}" for i in range(50)]}))
    apart = at_random(0.2, 0)
    assert together(apart, table, ("t",), 0.2, 0, 1e9) is apart


def test_groups_of_documents_only_where_some_repeat():
    def rows(groups):
        n = len(groups)
        return TableRows(np.zeros((n, 1)), np.zeros(n), np.arange(n), group=np.array(groups))

    assert grouped_by_document(rows([1, 2, 3]), rows([4, 5]))[0].group is None
    assert grouped_by_document(rows([1, 2, 2]), rows([4, 5]))[1].group is not None
    assert grouped_by_document(rows([1, 2, 3]), rows([3, 5]))[0].group is not None
    assert grouped_by_document(rows([2, 2, 2]), rows([4, 5]))[0].group is None
