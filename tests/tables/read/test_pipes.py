"""Pipes, as a shell makes them: read once, held for every pass, and gone afterwards; files that
change between passes are noticed."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from mercer.tables import DataError, open_source
from mercer.tables.read import pipes

N = 4000
TABLE = pa.table(
    {
        "x": [i * 0.5 for i in range(N)],
        "word": [f"w{i % 7}" for i in range(N)],
        "y": [float(i % 11) for i in range(N)],
    }
)
TWO_PASSES = """
import sys
from mercer.tables import open_source
source = open_source(sys.argv[1:])
passes = [[row for batch in source.batches() for row in batch.to_pylist()] for _ in range(2)]
assert passes[0] == passes[1]
print(len(passes[0]), *source.schema.names, float(passes[0][-1]["x"]))
"""


def forms():
    """The same rows in every format, packed or not."""
    parquet, arrow, stream = (pa.BufferOutputStream() for _ in range(3))
    pyarrow.parquet.write_table(TABLE, parquet)
    pyarrow.feather.write_feather(TABLE, arrow)
    with pa.ipc.new_stream(stream, TABLE.schema) as writer:
        writer.write_table(TABLE)
    rows = TABLE.to_pylist()
    plain = {
        "csv": ("x,word,y\n" + "".join(f"{r['x']},{r['word']},{r['y']}\n" for r in rows)).encode(),
        "jsonl": "".join(json.dumps(r) + "\n" for r in rows).encode(),
        "json": json.dumps(rows, indent=1).encode(),
        **{
            name: sink.getvalue().to_pybytes()
            for name, sink in (("parquet", parquet), ("arrow", arrow), ("stream", stream))
        },
    }
    return plain | {f"{name}.gz": gzip.compress(data) for name, data in plain.items()}


FORMS = forms()


@pytest.mark.parametrize("name", FORMS)
def test_every_format_comes_through_a_pipe_whole(name, tmp_path):
    """In this process, by a named pipe without a suffix; twice, as a fit does."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(FORMS[name],))
    writer.start()
    source = open_source(path)
    writer.join()
    for _ in range(2):
        found = [row for batch in source.batches() for row in batch.to_pylist()]
        assert [float(row["x"]) for row in found] == TABLE["x"].to_pylist()
        assert [row["word"] for row in found] == TABLE["word"].to_pylist()


@pytest.mark.parametrize("way", ["-", "/dev/stdin", "/dev/fd/0", "<(...)"])
def test_ways_to_name_a_pipe(way):
    code = [sys.executable, "-c", TWO_PASSES]
    words = ["bash", "-c", '"$0" "$@" <(cat)', *code] if way == "<(...)" else [*code, way]
    found = subprocess.run(words, input=FORMS["csv"], capture_output=True, timeout=60)
    assert found.stdout.decode().split() == [str(N), "x", "word", "y", str((N - 1) * 0.5)], (
        found.stderr.decode()
    )


def test_much_goes_to_disk_and_leaves_nothing(tmp_path, monkeypatch):
    """The file that holds it has no name, or loses it with the source."""
    monkeypatch.setattr(pipes, "MAX_MEMORY_BYTES", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held = pipes.spool(
        (FORMS["csv"][i : i + 999] for i in range(0, len(FORMS["csv"]), 999)), "pipe"
    )
    assert held.read_bytes() == FORMS["csv"]
    assert not os.stat(held).st_nlink or list(tmp_path.iterdir())
    source = open_source(held)
    assert sum(batch.num_rows for batch in source.batches()) == N
    del held, source
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_a_pipe(monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pipes, "MAX_MEMORY_BYTES", 10)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    with pytest.raises(
        DataError,
        match=r"does not fit on the disk that holds .*: No space left on device; free some space",
    ):
        pipes.spool([b"x" * 100], "pipe")


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("change", ["grown", "touched", "same size and time"])
def test_a_file_that_changes_between_passes_is_refused(tmp_path, name, change):
    path = tmp_path / f"t.{name}"
    path.write_bytes(FORMS[name])
    source, before = open_source(path), path.stat()
    list(source.batches())
    if change == "grown":
        with path.open("ab") as file:
            file.write(FORMS[name][-50:])
    elif change == "touched":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1000))
    else:
        path.write_bytes(
            bytes(FORMS[name][:40]) + bytes([FORMS[name][40] ^ 1]) + bytes(FORMS[name][41:])
        )
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(
        DataError, match="has changed since it was opened; give a file that nothing writes to"
    ):
        list(source.batches())


def test_a_file_that_grows_during_a_pass_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(FORMS["csv"])
    batches = open_source(path).batches(100)
    next(batches)
    with path.open("ab") as file:
        file.write(b"1,w,2\n")
    with pytest.raises(DataError, match="has changed"):
        list(batches)


def test_standard_input_that_holds_nothing():
    for ends, text in (
        (subprocess.DEVNULL, "standard input is empty"),
        (None, "standard input is closed"),
    ):
        words = [sys.executable, "-c", TWO_PASSES, "-"]
        words = words if ends else ["bash", "-c", '"$0" "$@" <&-', *words]
        assert (
            text
            in subprocess.run(words, stdin=ends, capture_output=True, text=True, timeout=60).stderr
        )


def test_a_file_named_like_standard_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_bytes(FORMS["csv"])
    assert sum(batch.num_rows for batch in open_source("./-").batches()) == N
