"""Encodings of text, also those that show late."""

import json

import pytest

from mercer.tables import open_source


def rows(source, **settings):
    return [row for batch in source.batches(**settings) for row in batch.to_pylist()]


def written(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1"]
)
def test_encodings(tmp_path, encoding):
    text = "name,town\nJosé,Zürich\nAnna,Köln\n" + "x,yy\n" * 20
    read = rows(open_source(written(tmp_path / "a.csv", text.encode(encoding))))
    assert read[0] == {"name": "José", "town": "Zürich"}


def test_an_encoding_may_show_late(tmp_path):
    text = "a,b\n" + "1,2\n" * 100_000 + "café,3\n"
    for encoding in ("utf-8", "cp1252"):
        assert (
            rows(open_source(written(tmp_path / "a.csv", text.encode(encoding))))[-1]["a"] == "café"
        )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_jsonl_in_any_encoding(tmp_path, encoding):
    lines = "".join(
        json.dumps({"name": "José", "k": i}, ensure_ascii=False) + "\n" for i in range(9)
    )
    assert rows(open_source(written(tmp_path / "a.jsonl", lines.encode(encoding))))[8] == {
        "name": "José",
        "k": 8.0,
    }
