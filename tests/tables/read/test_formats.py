"""Formats, told by their content: typed files, lines of JSON, packed and damaged ones."""

import bz2
import gzip
import json
import lzma
import os

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables import DataError, open_source

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


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, zstd], ids=["gz", "bz2", "xz", "zst"]
)
def test_compressed_csv_and_jsonl(tmp_path, pack):
    plain = rows(open_source(written(tmp_path / "a.csv", CSV)))
    assert rows(open_source(written(tmp_path / "b.csv.packed", pack(CSV.encode())))) == plain
    lines = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist())
    assert [
        r["word"]
        for r in rows(open_source(written(tmp_path / "c.jsonl.packed", pack(lines.encode()))))
    ] == ["a", "b c", None]


def test_jsonl_fields_may_change_and_lack(tmp_path):
    late = '{"a": 1, "b": true}\n' * 20_000 + '{"a": "many", "b": "x"}\n{"a": "2.5"}\n{"a": [1]}\n'
    read = rows(open_source(written(tmp_path / "a.jsonl", late)))
    assert read[-3:] == [{"a": None, "b": None}, {"a": 2.5, "b": None}, {"a": None, "b": None}]
    mixed = rows(open_source(written(tmp_path / "b.jsonl", '{"a": 1}\n{"a": "y", "c": [1, 2]}\n')))
    assert mixed == [{"a": "1", "c": None}, {"a": "y", "c": "[1, 2]"}]


def test_damaged_files(tmp_path):
    packed = gzip.compress(os.urandom(1000).hex().encode() + b"\n1\n" * 50_000)
    pyarrow.parquet.write_table(TABLE, tmp_path / "whole.parquet")
    with pytest.raises(DataError, match="damaged or cut short"):
        rows(open_source(written(tmp_path / "a.csv.gz", packed[: len(packed) // 2])))
    with pytest.raises(DataError, match="is not a sound parquet file"):
        open_source(
            written(tmp_path / "a.parquet", (tmp_path / "whole.parquet").read_bytes()[:-20])
        )
    with pytest.raises(DataError, match=r"line 2: not a JSON object"):
        open_source(written(tmp_path / "a.jsonl", '{"a": 1}\n{"a": \n'))
    with pytest.raises(DataError, match=r"is not utf-8 text at byte \d\d\d,\d\d\d \(0xe9\)"):
        rows(
            open_source(
                written(tmp_path / "b.csv", "a,é\n1,ü\n".encode() + b"1,2\n" * 90_000 + b"\xe9,1\n")
            )
        )


def packed_seeds():
    """A sound file of every kind."""
    sinks = {name: pa.BufferOutputStream() for name in ("a.parquet", "a.arrow", "a.arrows")}
    pyarrow.parquet.write_table(TABLE, sinks["a.parquet"])
    for name, write in (("a.arrow", pa.ipc.new_file), ("a.arrows", pa.ipc.new_stream)):
        with write(sinks[name], TABLE.schema) as writer:
            writer.write_table(TABLE)
    lines = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()).encode()
    plain = {"a.csv": CSV.encode(), "b.csv": CSV.encode("utf-16"), "a.jsonl": lines}
    packed = {
        "a.csv.gz": gzip.compress(CSV.encode()),
        "a.csv.xz": lzma.compress(CSV.encode()),
        "a.csv.zst": zstd(CSV.encode()),
    }
    return {
        **plain,
        **packed,
        **{name: sink.getvalue().to_pybytes() for name, sink in sinks.items()},
    }


SEEDS = packed_seeds()


@pytest.mark.parametrize(
    ("name", "old"), [("a.arrow", b"ab c"), ("a.arrows", b"ab c"), ("a.parquet", b"b c")]
)
@pytest.mark.parametrize("new", [b"\xff\xff", b"\xc0\xaf"])
def test_bytes_that_are_no_text_in_a_typed_file(tmp_path, name, old, new):
    whole = SEEDS[name]
    assert old in whole
    path = written(tmp_path / name, whole.replace(old, old[:-2] + new))
    with pytest.raises(DataError, match="is not a sound"):
        rows(open_source(path))


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
