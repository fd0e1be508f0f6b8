"""Files as one table: formats, compression, several files, constant memory, and a sentence for everything that is wrong."""
import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables import CsvOptions, DataError, open_source

TABLE = pa.table({"x": [1.5, None, 3.0], "word": ["a", "b c", None], "k": [1, 2, 3]})
CSV = "x,word,k\n1.5,a,1\n,b c,2\n3.0,,3\n"


def rows(source, **settings):
    return [row for batch in source.batches(**settings) for row in batch.to_pylist()]


def written(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def test_typed_files_read_back(tmp_path):
    pyarrow.parquet.write_table(TABLE, tmp_path / "a.parquet")
    pyarrow.feather.write_feather(TABLE, tmp_path / "a.feather")
    with pa.ipc.new_file(tmp_path / "a.arrow", TABLE.schema) as file:
        file.write_table(TABLE)
    with pa.ipc.new_stream(tmp_path / "a.arrows", TABLE.schema) as stream:
        stream.write_table(TABLE)
    for name in ("a.parquet", "a.feather", "a.arrow", "a.arrows"):
        source = open_source(tmp_path / name)
        assert rows(source) == TABLE.to_pylist()
        assert source.sniffed is None
        assert source.schema.names == ["x", "word", "k"]


def test_a_kind_is_told_by_content_whatever_the_name(tmp_path):
    pyarrow.parquet.write_table(TABLE, tmp_path / "a.csv")
    assert rows(open_source(tmp_path / "a.csv")) == TABLE.to_pylist()
    assert rows(open_source(written(tmp_path / "noname", '{"x": 1}\n'))) == [{"x": 1.0}]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd], ids=["gz", "bz2", "xz", "zst"])
def test_compressed_csv_and_jsonl(tmp_path, pack):
    plain = rows(open_source(written(tmp_path / "a.csv", CSV)))
    assert rows(open_source(written(tmp_path / "b.csv.packed", pack(CSV.encode())))) == plain
    lines = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist())
    assert [r["word"] for r in rows(open_source(written(tmp_path / "c.jsonl.packed", pack(lines.encode()))))] == ["a", "b c", None]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1"])
def test_encodings(tmp_path, encoding):
    text = "name,town\nJosé,Zürich\nAnna,Köln\n" + "x,yy\n" * 20
    read = rows(open_source(written(tmp_path / "a.csv", text.encode(encoding))))
    assert read[0] == {"name": "José", "town": "Zürich"}


def test_an_encoding_may_show_late(tmp_path):
    text = "a,b\n" + "1,2\n" * 100_000 + "café,3\n"
    for encoding in ("utf-8", "cp1252"):
        assert rows(open_source(written(tmp_path / "a.csv", text.encode(encoding))))[-1]["a"] == "café"


def test_a_late_text_does_not_stop_a_column_of_numbers(tmp_path):
    source = open_source(written(tmp_path / "a.csv", "a,b\n" + "1,2\n" * 100_000 + "unknown,3\n"))
    assert rows(source)[-1] == {"a": "unknown", "b": "3"}


def test_a_field_longer_than_a_block(tmp_path):
    read = rows(open_source(written(tmp_path / "a.csv", "a,b\n1,2\n" * 1 + "3," + "x" * 3_000_000 + "\n4,y\n")))
    assert [len(r["b"]) for r in read] == [1, 3_000_000, 1]


def test_jsonl_fields_may_change_and_lack(tmp_path):
    late = '{"a": 1, "b": true}\n' * 20_000 + '{"a": "many", "b": "x"}\n{"a": "2.5"}\n{"a": [1]}\n'
    read = rows(open_source(written(tmp_path / "a.jsonl", late)))
    assert read[-3:] == [{"a": None, "b": None}, {"a": 2.5, "b": None}, {"a": None, "b": None}]
    mixed = rows(open_source(written(tmp_path / "b.jsonl", '{"a": 1}\n{"a": "y", "c": [1, 2]}\n')))
    assert mixed == [{"a": "1", "c": None}, {"a": "y", "c": "[1, 2]"}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_jsonl_in_any_encoding(tmp_path, encoding):
    lines = "".join(json.dumps({"name": "José", "k": i}, ensure_ascii=False) + "\n" for i in range(9))
    assert rows(open_source(written(tmp_path / "a.jsonl", lines.encode(encoding))))[8] == {"name": "José", "k": 8.0}


def test_several_files_are_one_table(tmp_path):
    written(tmp_path / "a1.csv", "x,y\n1,2\n")
    written(tmp_path / "a2.csv", "y;x\n3,5;4\n")
    written(tmp_path / "a3.csv", "5,6\n7,8\n")  # cut from a larger file, without its header
    source = open_source(str(tmp_path / "a*.csv"))
    assert [(r["x"], r["y"]) for r in rows(source)] == [("1", "2"), ("4", "3.5"), ("5", "6"), ("7", "8")]
    assert [p.name for p in source.paths] == ["a1.csv", "a2.csv", "a3.csv"]
    assert source.n_bytes == sum(p.stat().st_size for p in source.paths)


def test_types_are_widened_across_files(tmp_path):
    pyarrow.parquet.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pa.table({"x": [0.5]}), tmp_path / "b.parquet")
    written(tmp_path / "c.csv", "x\n7\nhello\n")
    assert [r["x"] for r in rows(open_source([tmp_path / "a.parquet", tmp_path / "b.parquet"]))] == [1.0, 2.0, 0.5]
    assert [r["x"] for r in rows(open_source([tmp_path / "a.parquet", tmp_path / "c.csv"]))] == ["1", "2", "7", "hello"]


def test_batches_have_one_size_and_passes_repeat(tmp_path):
    text = "a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(100_000))
    source = open_source(written(tmp_path / "a.csv", text))
    sizes = [batch.num_rows for batch in source.batches(rows=30_000)]
    assert sizes == [30_000, 30_000, 30_000, 10_000]
    whole = pa.Table.from_batches(source.batches(rows=10**6))
    assert pa.Table.from_batches(source.batches(rows=777)).combine_chunks() == whole.combine_chunks()
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
    """However long the file, about 32 blocks of 1 MB are under way, Python's and Arrow's memory together."""
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
UNSOUND = ("{path} is not a sound parquet file: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a "
           "parquet file.")  # fmt: skip
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
        ("a.csv", bytes(range(256)), "{path} holds zero bytes and is no text; save it as csv, parquet, arrow or jsonl."),
        ("a.xlsx", b"PK\x03\x04rest", NO_SHEET),
        ("a.xls", b"\xd0\xcf\x11\xe0rest", NO_SHEET),
        ("a.parquet", b"x,y\n", "{path} is not a parquet file, whatever its name says; it may be damaged or cut short."),
        ("a.jsonl", b'{"a": 1}\n3\n', "{path}, line 2: a JSON object is expected, not int; write one object a line."),
        ("a.pq.gz", gzip.compress(b"PAR1xxxx"), UNSOUND),
    ],
    ids=["empty", "packed empty", "blank", "header only", "ragged", "ragged after a line break", "ragged after a comment", "short row",
         "binary", "excel", "old excel", "false parquet", "json number", "packed parquet"],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(tmp_path, name, data, sentence):
    path = written(tmp_path / name, data)
    with pytest.raises(DataError) as error:
        rows(open_source(path))
    assert str(error.value) == sentence.format(path=path)


def test_damaged_files(tmp_path):
    packed = gzip.compress(os.urandom(1000).hex().encode() + b"\n1\n" * 50_000)
    pyarrow.parquet.write_table(TABLE, tmp_path / "whole.parquet")
    with pytest.raises(DataError, match="damaged or cut short"):
        rows(open_source(written(tmp_path / "a.csv.gz", packed[: len(packed) // 2])))
    with pytest.raises(DataError, match="is not a sound parquet file"):
        open_source(written(tmp_path / "a.parquet", (tmp_path / "whole.parquet").read_bytes()[:-20]))
    with pytest.raises(DataError, match=r"line 2: not a JSON object"):
        open_source(written(tmp_path / "a.jsonl", '{"a": 1}\n{"a": \n'))
    with pytest.raises(DataError, match=r"is not utf-8 text at byte \d\d\d,\d\d\d \(0xe9\)"):
        rows(open_source(written(tmp_path / "b.csv", "a,é\n1,ü\n".encode() + b"1,2\n" * 90_000 + b"\xe9,1\n")))


def packed_seeds():
    """A sound file of every kind."""
    sinks = {name: pa.BufferOutputStream() for name in ("a.parquet", "a.arrow", "a.arrows")}
    pyarrow.parquet.write_table(TABLE, sinks["a.parquet"])
    for name, write in (("a.arrow", pa.ipc.new_file), ("a.arrows", pa.ipc.new_stream)):
        with write(sinks[name], TABLE.schema) as writer:
            writer.write_table(TABLE)
    lines = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()).encode()
    plain = {"a.csv": CSV.encode(), "b.csv": CSV.encode("utf-16"), "a.jsonl": lines}
    packed = {"a.csv.gz": gzip.compress(CSV.encode()), "a.csv.xz": lzma.compress(CSV.encode()), "a.csv.zst": zstd(CSV.encode())}
    return {**plain, **packed, **{name: sink.getvalue().to_pybytes() for name, sink in sinks.items()}}


SEEDS = packed_seeds()


@pytest.mark.parametrize("name", SEEDS)
@given(data=st.data())
def test_a_damaged_file_reads_or_is_one_sentence(tmp_path_factory, name, data):
    body = bytearray(SEEDS[name])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(body)))
        body[start : start + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path = written(tmp_path_factory.mktemp("t") / name, bytes(body))
    try:
        rows(open_source(path))
    except DataError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both ways are right


@pytest.mark.parametrize(("name", "old"), [("a.arrow", b"ab c"), ("a.arrows", b"ab c"), ("a.parquet", b"b c")])
@pytest.mark.parametrize("new", [b"\xff\xff", b"\xc0\xaf"])
def test_bytes_that_are_no_text_in_a_typed_file(tmp_path, name, old, new):
    whole = SEEDS[name]
    assert old in whole
    path = written(tmp_path / name, whole.replace(old, old[:-2] + new))
    with pytest.raises(DataError, match="is not a sound"):
        rows(open_source(path))


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
    assert done.stdout.strip() == "reading tables needs pyarrow, which comes with the command line: pip install mercer[cli]"


def test_a_folder_is_told_by_what_is_in_it(tmp_path):
    with pytest.raises(DataError, match="is a directory without tables"):
        open_source(tmp_path)
    for name in ("a.parquet", "b.parquet", "c.csv"):
        written(tmp_path / name, CSV)
    with pytest.raises(DataError, match=r"as in '.*\*\.parquet' for all 2 of that kind"):
        open_source(tmp_path)


def test_a_table_may_be_empty_where_that_is_allowed(tmp_path):
    source = open_source(written(tmp_path / "a.csv", "a,b\n"))
    with pytest.raises(DataError, match="no rows"):
        list(source.batches())
    assert list(replace(source, may_be_empty=True).batches()) == []
