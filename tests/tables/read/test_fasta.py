"""FASTA files as tables."""

import bz2
import gzip

import pytest

from mercer.tables.errors import DataError
from mercer.tables.read.source import open_source


def rows(path):
    return [row for batch in open_source(path).batches() for row in batch.to_pylist()]


def test_labels_lines_and_compression(tmp_path):
    text = "".join(f">{i % 2}\nACGT\nac gt\r\n\n" for i in range(6))
    expected = [{"label": str(i % 2), "sequence": "ACGTacgt"} for i in range(6)]
    (tmp_path / "a.fa").write_text(text)
    (tmp_path / "a.fasta.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "a.fna.bz2").write_bytes(bz2.compress(text.encode()))
    (tmp_path / "nothing").write_text(text)  # told by its look
    for path in tmp_path.iterdir():
        assert rows(path) == expected


def test_fields_of_headers_are_columns(tmp_path):
    path = tmp_path / "a.faa"
    path.write_text(
        "\ufeff;a comment\n>s1 label=-1 chr=I of a worm\nAC\nGT\n"
        "> s2, label=1, chr=II\n\n>s3|label=1;note=\nAC*\n>\nMK"
    )
    assert rows(path) == [
        dict(id="s1", label="-1", chr="I", note=None, description="of a worm", sequence="ACGT"),
        dict(id="s2", label="1", chr="II", note=None, description=None, sequence=None),
        dict(id="s3", label="1", chr=None, note=None, description=None, sequence="AC*"),
        dict(id=None, label=None, chr=None, note=None, description=None, sequence="MK"),
    ]


def test_names_that_come_once_are_no_labels(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text("".join(f">seq{i}\nACGT\n" for i in range(10)))
    assert open_source(path).schema.names == ["id", "sequence"]
    path.write_text("".join(f">seq{i % 3} sequence=no\nACGT\n" for i in range(10)))
    assert open_source(path).schema.names == ["label", "sequence"]
    assert rows(path)[0] == {"label": "seq0", "sequence": "ACGT"}


def test_several_files_and_long_sequences(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tables.read.fasta.BATCH_LETTERS", 100)
    long = "ACGT" * 50_000
    for name in "ab":
        (tmp_path / f"{name}.fa").write_text(f">0\n{long}\n>1\nA\n>0\nC\n>1\nG\n")
    found = rows(str(tmp_path / "*.fa"))
    assert [r["sequence"] for r in found] == [long, "A", "C", "G"] * 2
    assert [r["label"] for r in found] == list("0101") * 2


def test_what_is_no_fasta(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text("\nACGT\n>s\nAC")
    with pytest.raises(DataError, match=r"a.fa, line 2: a FASTA file begins with a header"):
        open_source(path)
    path.write_text(";only a comment\n")
    with pytest.raises(DataError, match="has no FASTA header"):
        open_source(path)
    (tmp_path / "cut.fa.gz").write_bytes(gzip.compress(b">1\nACGT\n" * 99)[:-20])
    with pytest.raises(DataError, match="damaged or cut short"):
        open_source(tmp_path / "cut.fa.gz")


def test_a_csv_file_with_such_a_sign_stays_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(">a,b\n1,2\n")
    assert open_source(path).schema.names == [">a", "b"]


def test_a_text_file_that_is_one(tmp_path):
    path = tmp_path / "reads.txt.gz"
    path.write_bytes(gzip.compress(b">s1 label=1\nACGT\nAC\n>s2 label=0\nGG\n"))
    assert [r["sequence"] for r in rows(path)] == ["ACGTAC", "GG"]
    (tmp_path / "words.txt").write_text("a\tb\n>1\tACGT\n")
    assert open_source(tmp_path / "words.txt").schema.names == ["a", "b"]


def test_names_of_data_banks_are_no_labels(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text(
        "".join(f">sp|P{i}|A_{i} Of a mouse OX=10090 label={i % 2}\nMKV\n" for i in range(6))
    )
    found = rows(path)
    assert [r["id"] for r in found[:2]] == ["sp|P0|A_0", "sp|P1|A_1"]
    assert [r["description"] for r in found[:2]] == ["Of a mouse"] * 2
    path.write_text("".join(f">gi|{i}|ref|NM_{i}.1| thing\nACGT\n" for i in range(6)))
    assert [set(r) for r in rows(path)[:1]] == [{"id", "description", "sequence"}]
