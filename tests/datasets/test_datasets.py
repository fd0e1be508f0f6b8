"""The tables that ship: whole, with a source, and readable as csv."""

import csv

import pytest

from mercer import datasets


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [("digits", 1797, 65), ("diabetes", 442, 11), ("breast_cancer", 569, 31)],
)
def test_tables_are_whole_and_say_where_they_come_from(name, rows, columns, tmp_path):
    table = getattr(datasets, name)()
    assert (len(table.rows), len(table.columns), table.columns[-1]) == (rows, columns, table.target)
    assert "scikit-learn" in table.source
    with table.write_csv(tmp_path / "t.csv").open(newline="") as stream:
        found = list(csv.reader(stream))
    assert found[0] == list(table.columns)
    assert [float(v) if v[0].isdigit() else v for v in found[1]] == list(table.rows[0])
