"""Cells: every row is among the rows of its cell, and goes there alone as among others."""

import numpy as np
import pytest

from mercer.models import cells
from mercer.models.cells import CellTree


@pytest.mark.parametrize("overlap", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_every_row_is_among_the_rows_of_its_cell(overlap, seed):
    X = np.random.default_rng(seed).normal(size=(3000, 4)).astype(np.float32)
    tree, rows = CellTree.of(X, 400, overlap)
    cell = tree.cell(X)
    assert max(map(len, rows)) <= 400
    assert np.array_equal(np.unique(np.concatenate(rows)), np.arange(3000))
    assert all(np.isin(np.flatnonzero(cell == c), rows[c]).all() for c in range(len(rows)))
    assert (sum(map(len, rows)) == 3000) == (overlap == 0)


def test_rows_that_do_not_differ_stay_in_one_cell():
    tree, rows = CellTree.of(np.ones((100, 2), np.float32), 10)
    assert [len(r) for r in rows] == [10]
    assert tree.cell(np.zeros((3, 2), np.float32)).tolist() == [0, 0, 0]


def ties(kind, n):
    rng = np.random.default_rng(0)
    return {
        "few values": lambda: rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=(n, 5)),
        "ten levels": lambda: np.eye(10)[rng.integers(0, 10, n)],
        "mostly zero": lambda: np.where(rng.random((n, 1)) < 0.9, 0.0, rng.normal(size=(n, 1))),
        "two values": lambda: np.repeat([0.0, 1.0], [n - n // 10, n // 10])[:, None],
    }[kind]().astype(np.float32)


@pytest.mark.parametrize("kind", ["few values", "ten levels", "mostly zero", "two values"])
def test_rows_that_are_equal_in_much_are_in_cells_that_are_small(kind):
    n, most = 6000, 600
    X = ties(kind, n)
    tree, rows = CellTree.of(X, most)
    cell = tree.cell(X)
    assert max(map(len, rows)) <= most
    assert sum(map(len, rows)) < 1.6 * n
    assert len(rows) > 1
    for c in np.unique(cell):  # a cell has most of the rows that go there, or as many as it holds
        mine = np.flatnonzero(cell == c)
        assert np.isin(mine, rows[c]).sum() >= 0.8 * min(len(mine), most)
    code = np.unique(X, axis=0, return_inverse=True)[1].ravel()  # NumPy 2.0 gives a column
    assert all(
        len(np.unique(cell[code == k])) == 1 for k in range(code.max() + 1)
    )  # equal rows go the same way


@pytest.mark.parametrize("d", [3, 80])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_alone_has_the_cell_that_it_has_among_others(d, seed):
    X = (1000 + np.random.default_rng(seed).integers(0, 3, size=(1200, d)) / 3).astype(np.float32)
    tree, _ = CellTree.of(X, 100)
    cell = tree.cell(X)
    assert [int(tree.cell(x[None])[0]) for x in X] == cell.tolist()
    assert tree.cell(np.asfortranarray(X)).tolist() == cell.tolist()


@pytest.mark.parametrize("d", [10, 300])
def test_long_directions_vary_as_the_longest_do(d):
    X = np.random.default_rng(0).normal(size=(1000, d)) * np.r_[3.0, 2.0, np.ones(d - 2)]
    most = np.var(X @ cells.principal_direction(X))
    assert all(np.var(X @ cells.power_direction(X, start)) > 0.9 * most for start in range(3))
    assert np.array_equal(cells.power_direction(X, 1), cells.power_direction(X, 1))


def test_many_columns_need_no_square_of_them(monkeypatch):
    monkeypatch.setattr(
        cells, "principal_direction", lambda X: pytest.fail("eigenvectors of many columns")
    )
    X = np.random.default_rng(0).normal(size=(400, 300)).astype(np.float32)
    assert len(CellTree.of(X, 130)[1]) == 4
