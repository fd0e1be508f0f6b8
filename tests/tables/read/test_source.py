"""Files as one table: batches, chosen columns, constant memory, and a sentence for everything that
is wrong."""

import gzip
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from mercer.tables import CsvOptions, DataError, open_source

CSV = "x,word,k\n1.5,a,1\n,b c,2\n3.0,,3\n"


def rows(source, **settings):
    return [row for batch in source.batches(**settings) for row in batch.to_pylist()]


def written(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_batches_have_one_size_and_passes_repeat(tmp_path):
    text = "a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(100_000))
    source = open_source(written(tmp_path / "a.csv", text))
    sizes = [batch.num_rows for batch in source.batches(rows=30_000)]
    assert sizes == [30_000, 30_000, 30_000, 10_000]
    whole = pa.Table.from_batches(source.batches(rows=10**6))
    assert (
        pa.Table.from_batches(source.batches(rows=777)).combine_chunks() == whole.combine_chunks()
    )
    assert whole.column("a").to_pylist() == [str(i) for i in range(100_000)]


def test_chosen_columns(tmp_path):
    path = written(tmp_path / "a.csv", CSV)
    source = open_source(path, columns=["k", "x"])
    assert source.schema.names == ["k", "x"]
    assert rows(source)[0] == {"k": "1", "x": "1.5"}
    with pytest.raises(DataError, match=r'there is no column "words"; did you mean "word"\?'):
        open_source(path, columns=["words"])


def test_wide_tables_come_in_shorter_batches(tmp_path):
    wide = pa.table({f"c{j}": np.zeros(600) for j in range(20_000)})
    with pa.ipc.new_file(tmp_path / "a.arrow", wide.schema) as file:
        file.write_table(wide)
    sizes = [batch.num_rows for batch in open_source(tmp_path / "a.arrow").batches()]
    assert sizes == [419, 181]


def test_memory_stays_constant(tmp_path):
    """However long the file, about 32 blocks of 1 MB are under way, Python's and Arrow's memory
    together."""
    block = "".join(f"{i},{i * 0.37:.4f},{'some words ' * 20},{i % 5}\n" for i in range(5000))
    with (tmp_path / "a.csv").open("w") as file:
        file.write("a,b,c,d\n")
        for _ in range(100):
            file.write(block)
    source = open_source(tmp_path / "a.csv")
    assert source.n_bytes > 110_000_000
    tracemalloc.start()
    before, most, count = pa.total_allocated_bytes(), 0, 0
    for batch in source.batches(rows=8192):
        count += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 500_000
    assert most + peak < 60_000_000


NO_SHEET = "{path} is a zip or Excel file that cannot be read as a sheet; unpack it or save the sheet as csv."
UNSOUND = (
    "{path} is not a sound parquet file: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a "
    "parquet file."
)
RAGGED = "{path}, line 4: 3 fields where 2 are expected; mend that row, or quote fields that hold the delimiter."


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.csv", b"", "{path} is empty; it holds no bytes."),
        ("a.csv.gz", gzip.compress(b""), "{path} is empty; it holds no bytes."),
        ("a.csv", b"\n \n", "{path} is blank; it holds no rows."),
        ("a.csv", b"a,b\n", "{path} has columns but no rows; check that it is the right file."),
        ("a.csv", b"a,b\n1,2\n\n3,4,5\n", RAGGED),
        ("a.csv", b'a,b\n1,"x\ny"\n3,4,5\n', RAGGED),
        ("a.csv", b"# note\na,b\n1,2\n3,4,5\n", RAGGED),
        ("a.csv", b"a,b\n1,2\n3\n", RAGGED.replace("4: 3 fields", "3: 1 field")),
        (
            "a.csv",
            bytes(range(256)),
            "{path} holds zero bytes and is no text; save it as csv, parquet, arrow or jsonl.",
        ),
        ("a.xlsx", b"PK\x03\x04rest", NO_SHEET),
        ("a.xls", b"\xd0\xcf\x11\xe0rest", NO_SHEET),
        (
            "a.parquet",
            b"x,y\n",
            "{path} is not a parquet file, whatever its name says; it may be damaged or cut short.",
        ),
        (
            "a.jsonl",
            b'{"a": 1}\n3\n',
            "{path}, line 2: a JSON object is expected, not int; write one object a line.",
        ),
        ("a.pq.gz", gzip.compress(b"PAR1xxxx"), UNSOUND),
    ],
    ids=[
        "empty",
        "packed empty",
        "blank",
        "header only",
        "ragged",
        "ragged after a line break",
        "ragged after a comment",
        "short row",
        "binary",
        "excel",
        "old excel",
        "false parquet",
        "json number",
        "packed parquet",
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, name, data, sentence):
    path = written(tmp_path / name, data)
    with pytest.raises(DataError) as error:
        rows(open_source(path))
    assert str(error.value) == sentence.format(path=path)


def test_wrong_settings(tmp_path):
    path = written(tmp_path / "a.csv", CSV)
    with pytest.raises(DataError, match="encoding 'utf-9' is not known"):
        open_source(path, options=CsvOptions(encoding="utf-9"))
    with pytest.raises(ValueError, match="delimiter must be one character; it is '::'"):
        CsvOptions(delimiter="::")
    with pytest.raises(ValueError, match="rows must be at least 1; it is 0"):
        next(open_source(path).batches(rows=0))
    with pytest.raises(DataError, match="is not utf-8 text at byte 7"):
        open_source(written(path, b"a,b\n1,2\xff\n"), options=CsvOptions(encoding="utf-8"))


def test_without_pyarrow_one_sentence_names_the_extra():
    code = "import sys; sys.modules['pyarrow'] = None\ntry:\n    import mercer.tables\nexcept ImportError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout.strip()
        == "reading tables needs pyarrow, which comes with the command line: pip install mercer[cli]"
    )


def test_a_table_may_be_empty_where_that_is_allowed(tmp_path):
    source = open_source(written(tmp_path / "a.csv", "a,b\n"))
    with pytest.raises(DataError, match="no rows"):
        list(source.batches())
    assert list(replace(source, may_be_empty=True).batches()) == []


def cells(source):
    return [row["x"] for batch in source.batches() for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("text", "likely", "read", "told"),
    [
        ("x;y\n1,234;a\n5,678;b\n", ".", ["1234", "5678"], False),
        ("x;y\n1,234;a\n5,678;b\n", ",", ["1.234", "5.678"], False),
        ("x\ty\n1.234\ta\n5.678\tb\n", ",", ["1234", "5678"], False),
        ("x\ty\n1.234\ta\n5.678\tb\n", ".", ["1.234", "5.678"], False),
        ("x;y\n1,5;a\n2,25;b\n", ".", ["1.5", "2.25"], True),
        ("x\ty\n1.5\ta\n2.25\tb\n", ",", ["1.5", "2.25"], True),
        ("x\ty\n15\ta\n225\tb\n", ",", ["15", "225"], False),
    ],
)
def test_a_mark_that_does_not_show_is_the_likely_one(tmp_path, text, likely, read, told):
    path = tmp_path / "a.csv"
    path.write_text(text)
    source = open_source(path, options=CsvOptions(likely=likely))
    assert cells(source) == read
    assert [("writes decimals with a" in said) for said in source.said] == [True] * told
    given = open_source(
        path, options=CsvOptions(likely=likely, decimal="," if likely == "." else ".")
    )
    assert not given.said


def test_further_files_follow_the_first(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1,5;a\n2,25;b\n")
    (tmp_path / "b.csv").write_text("x;y\n1.234;a\n5.678;b\n")
    found = open_source([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert cells(found) == ["1.5", "2.25", "1234", "5678"]
    assert found.decimal == ","
    assert cells(open_source(tmp_path / "b.csv")) == ["1.234", "5.678"]


@pytest.mark.parametrize(
    ("text", "mark"),
    [("x;y\n1,5;a\n", ","), ("x;y\n1.5;a\n", "."), ("x;y\n15;a\n", ""), ("x;y\nb;a\n", "")],
)
def test_marks_are_known_where_they_show(tmp_path, text, mark):
    (tmp_path / "a.csv").write_text(text)
    assert open_source(tmp_path / "a.csv").decimal == mark
    given = open_source(tmp_path / "a.csv", options=CsvOptions(decimal=","))
    assert given.decimal == ","
