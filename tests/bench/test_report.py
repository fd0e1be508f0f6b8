"""Tables of benchmarks."""

from bench.harness import Row
from bench.report import table


def test_table_has_a_column_for_each_heading():
    text = table([Row("a", "s", 1.0, 3.0, 2.0), Row("b", "MB", 4.0, 2.0, 2.0)])
    assert [text.split("\n")[i].split()[-1] for i in (1, 2)] == ["yes", "no"]
    assert "3.00x" in text
