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


def test_thousands_that_come_late_beside_decimal_commas(tmp_path):
    lines = "a;b\n" + "1,5 km;2,5\n" * 3000 + "5.311 km;5.311\n1.25 km;1.234.567,5\n"
    source = open_source(written(tmp_path / "a.csv", lines))
    read = rows(source)
    assert source.sniffed.thousands == ""
    assert read[0] == {"a": "1.5 km", "b": "2.5"}
    assert read[-2:] == [{"a": "5311 km", "b": "5311"}, {"a": "1.25 km", "b": "1234567.5"}]
