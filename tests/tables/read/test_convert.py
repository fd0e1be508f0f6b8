"""Workbooks, JSON arrays and packed files, written out as what can be read in pieces."""

import gzip
import json
import sys
import zipfile
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables import Columns, DataError, open_source
from mercer.tables.read import convert

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACK = "http://schemas.openxmlformats.org/package/2006"


def xlsx(path, **sheets):
    """A small workbook; a cell is text, a number, a truth value, None, or ("date", its day
    number)."""
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    names = list(sheets)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACK}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-'
        f'package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACK}/relationships"><Relationship Id="r" Type="{REL}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{REL}"><sheets>'
        + "".join(f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(names, 1))
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACK}/relationships">'
        + "".join(
            f'<Relationship Id="r{i}" Type="{REL}/worksheet" Target="worksheets/s{i}.xml"/>'
            for i in range(1, len(names) + 1)
        )
        + f'<Relationship Id="st" Type="{REL}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
    }
    for i, name in enumerate(names, 1):
        rows = "".join(
            f'<row r="{r}">{"".join(_cell(r, c, v) for c, v in enumerate(row))}</row>'
            for r, row in enumerate(sheets[name], 1)
        )
        parts[f"xl/worksheets/s{i}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        )
    with zipfile.ZipFile(path, "w") as file:
        for part, text in parts.items():
            file.writestr(part, text)
    return path


def _cell(row, column, value):
    at = f'r="{chr(65 + column)}{row}"'
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c {at} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    if isinstance(value, tuple):
        return f'<c {at} s="1"><v>{value[1]}</v></c>'
    return (
        f'<c {at} t="b"><v>{int(value)}</v></c>'
        if isinstance(value, bool)
        else f"<c {at}><v>{value!r}</v></c>"
    )


def rows(source):
    return [row for batch in source.batches() for row in batch.to_pylist()]


def test_a_sheet_reads_like_a_csv_file(tmp_path):
    cells = [
        ["code", "size", "when", "ok", "note"],
        ["007", 1.5, ("date", 45352), True, 'a, "b"'],
        ["010", 2, ("date", 45353), False, None],
        [None] * 5,
        ["011", None, None, None, "two\nlines"],
    ]
    source = open_source(xlsx(tmp_path / "t.xlsx", Empty=[], Data=cells, Other=[["x"]]))
    assert [list(r.values()) for r in rows(source)] == [
        ["007", "1.5", "2024-03-01", "true", 'a, "b"'],
        ["010", "2", "2024-03-02", "false", ""],
        ["011", "", "", "", "two\nlines"],
    ]
    assert source.schema.names == cells[0]
    assert source.said == (
        f'{tmp_path / "t.xlsx"} has 2 sheets with cells; the first, "Data", was read, not "Other".',
    )
    assert rows(open_source(xlsx(tmp_path / "u.xlsx", A=[[1, 2], [3, 4]])))[0] == {
        "column_1": "1",
        "column_2": "2",
    }


def test_a_sheet_is_treated_as_its_values_are(tmp_path):
    body = [[i % 17 + 0.5, ("date", 45000 + 3 * i), i % 3 == 0, i * 7 % 29 / 4] for i in range(60)]
    found = Columns("y").fit(
        open_source(xlsx(tmp_path / "t.xlsx", T=[["a", "when", "b", "y"], *body]))
    )
    assert [t.kind for t in found.treatments_] == ["number", "date", "boolean", "target"]


def test_without_the_reader_of_sheets(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(
        ImportError, match=r"needs python-calamine to be read: pip install mercer\[cli\]"
    ):
        open_source(xlsx(tmp_path / "t.xlsx", A=[["a"], [1]]))


def test_a_workbook_without_cells(tmp_path):
    with pytest.raises(DataError, match="no sheet with cells"):
        open_source(xlsx(tmp_path / "t.xlsx", A=[]))


VALUES = st.one_of(
    st.none(), st.integers(-9, 9), st.text(max_size=6), st.lists(st.text(max_size=3), max_size=2)
)


@given(
    st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), min_size=1),
    st.sampled_from([None, 1]),
    st.integers(1, 40),
)
def test_elements_are_those_of_the_array(tmp_path_factory, objects, indent, step):
    """However blocks cut it; lines hold one object each."""
    path = tmp_path_factory.mktemp("array") / "a.json"
    path.write_text(
        json.dumps(objects, indent=indent, ensure_ascii=False),
        encoding="utf-8",
        errors="surrogatepass",
    )
    before, convert.BLOCK_BYTES = convert.BLOCK_BYTES, step
    try:
        lines = convert.lines_of_array(path).read_bytes().split(b"\n")
    finally:
        convert.BLOCK_BYTES = before
    assert [json.loads(line) for line in lines[:-1]] == objects


BROKEN = {
    "cut": ('[{"a": 1}, {"a": 2', "element 2"),
    "cut after an element": ('[{"a": 1}', "cut short"),
    "numbers": ("[1, 2]", "an object is expected"),
    "a comma too many": ('[{"a": 1},]', "an object is expected"),
    "no comma": ('[{"a": 1} {"a": 2}]', "] is expected, not '{'"),
    "more behind": ('[{"a": 1}] 5', "'5' follows"),
    "unsound": ('[{"a": 1}, {"a": tru}, ' + '{"a": 1},' * 100, "element 2"),
    "deep": ('[{"a": ' + "[" * 100_000 + "]" * 100_000 + "}]", "nested too deeply"),
    "rather deep": ('[{"a": ' + "[" * 300 + "]" * 300 + "}]", "nested more than 100 levels deep"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_arrays_are_one_sentence(tmp_path, case):
    text, words = BROKEN[case]
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError) as error:
        open_source(tmp_path / "a.json")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_arrays_are_told_by_look_and_read_in_any_encoding(tmp_path):
    text = '[{"a": 1.5}]'
    for name, data in (
        ("noname", b" " + text.encode()),
        ("b.json.gz", gzip.compress(text.encode())),
        ("c.json", text.encode("utf-16")),
    ):
        (tmp_path / name).write_bytes(data)
        assert rows(open_source(tmp_path / name)) == [{"a": 1.5}]
    (tmp_path / "d").write_text("[x],b\n1,2\n")
    assert rows(open_source(tmp_path / "d")) == [{"[x]": "1", "b": "2"}]


def test_lines_nested_deep_are_refused_before_they_are_parsed(tmp_path):
    """30,000 levels took the process down."""
    deep = "[" * 30_000 + "]" * 30_000
    for where, text in (
        (51, '{"a": 1}\n' * 50 + f'{{"a": {deep}}}\n'),
        (40_001, '{"a": 1}\n' * 40_000 + f'{{"b": {deep}, "a": 2}}\n'),
    ):
        (tmp_path / "a.jsonl").write_text(text)
        with pytest.raises(DataError, match=f"line {where:,}: nested more than 100 levels deep"):
            rows(open_source(tmp_path / "a.jsonl"))
    (tmp_path / "b.jsonl").write_text(
        '{"a": "' + "[{" * 5000 + '", "b": "\\"' + "[" * 5000 + '"}\n'
    )
    assert len(rows(open_source(tmp_path / "b.jsonl"))[0]["a"]) == 10_000


def test_packed_parquet_is_unpacked(tmp_path):
    table = pa.table({"a": [1.5, 2.5]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    assert rows(open_source(tmp_path / "b.parquet.gz")) == table.to_pylist()
