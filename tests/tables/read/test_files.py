"""Several files and folders as one table."""

import os

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from mercer.tables import DataError, open_source

CSV = "x,word,k\n1.5,a,1\n,b c,2\n3.0,,3\n"


def rows(source, **settings):
    return [row for batch in source.batches(**settings) for row in batch.to_pylist()]


def written(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_several_files_are_one_table(tmp_path):
    written(tmp_path / "a1.csv", "x,y\n1,2\n")
    written(tmp_path / "a2.csv", "y;x\n3,5;4\n")
    written(tmp_path / "a3.csv", "5,6\n7,8\n")  # cut from a larger file, without its header
    source = open_source(str(tmp_path / "a*.csv"))
    assert [(r["x"], r["y"]) for r in rows(source)] == [
        ("1", "2"),
        ("4", "3.5"),
        ("5", "6"),
        ("7", "8"),
    ]
    assert [p.name for p in source.paths] == ["a1.csv", "a2.csv", "a3.csv"]
    assert source.n_bytes == sum(p.stat().st_size for p in source.paths)


def test_types_are_widened_across_files(tmp_path):
    pyarrow.parquet.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pa.table({"x": [0.5]}), tmp_path / "b.parquet")
    written(tmp_path / "c.csv", "x\n7\nhello\n")
    assert [
        r["x"] for r in rows(open_source([tmp_path / "a.parquet", tmp_path / "b.parquet"]))
    ] == [1.0, 2.0, 0.5]
    assert [r["x"] for r in rows(open_source([tmp_path / "a.parquet", tmp_path / "c.csv"]))] == [
        "1",
        "2",
        "7",
        "hello",
    ]


def test_files_that_are_not_there(tmp_path):
    written(tmp_path / "train.csv", CSV)
    with pytest.raises(DataError, match=r'does not exist; did you mean "train\.csv"\?'):
        open_source(tmp_path / "tran.csv")
    with pytest.raises(DataError, match="does not exist; check the name and the folder"):
        open_source(tmp_path / "other" / "a.csv")
    with pytest.raises(DataError, match=r"is a directory; name its files, as in .*\*\.csv"):
        open_source(tmp_path)
    with pytest.raises(DataError, match=r"no file matches .*\*\.tsv"):
        open_source(tmp_path / "*.tsv")
    with pytest.raises(DataError, match="no files were given"):
        open_source([])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_unreadable(tmp_path):
    path = written(tmp_path / "a.csv", CSV)
    path.chmod(0)
    with pytest.raises(DataError, match="permission denied"):
        open_source(path)


def test_files_that_do_not_go_together(tmp_path):
    a, b = written(tmp_path / "a.csv", "x,y\n1,2\n"), written(tmp_path / "b.csv", "x,z\n1,2\n")
    with pytest.raises(DataError, match='lacks "y" and also has "z", unlike'):
        open_source([a, b])
    pyarrow.parquet.write_table(pa.table([[1], [2]], names=["x", "x"]), tmp_path / "c.parquet")
    with pytest.raises(DataError, match='has several columns named "x"; rename them'):
        open_source(tmp_path / "c.parquet")


def test_a_folder_is_told_by_what_is_in_it(tmp_path):
    with pytest.raises(DataError, match="is a directory without tables"):
        open_source(tmp_path)
    for name in ("a.parquet", "b.parquet", "c.csv"):
        written(tmp_path / name, CSV)
    with pytest.raises(DataError, match=r"as in '.*\*\.parquet' for all 2 of that kind"):
        open_source(tmp_path)
