"""Blocks of csv: late texts and long fields."""

from mercer.tables import open_source


def rows(source, **settings):
    return [row for batch in source.batches(**settings) for row in batch.to_pylist()]


def written(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_a_late_text_does_not_stop_a_column_of_numbers(tmp_path):
    source = open_source(written(tmp_path / "a.csv", "a,b\n" + "1,2\n" * 100_000 + "unknown,3\n"))
    assert rows(source)[-1] == {"a": "unknown", "b": "3"}


def test_a_field_longer_than_a_block(tmp_path):
    read = rows(
        open_source(
            written(tmp_path / "a.csv", "a,b\n1,2\n" * 1 + "3," + "x" * 3_000_000 + "\n4,y\n")
        )
    )
    assert [len(r["b"]) for r in read] == [1, 3_000_000, 1]
