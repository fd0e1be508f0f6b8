"""How csv files are written: every rule of the sniffing, and files in odd forms read back as they
were written."""

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables import CsvOptions, open_source
from mercer.tables.read.sniff import localized, marks, plain, sniff
from mercer.tables.values import numbers


def found(text, given=None):
    return sniff(text, True, "utf-8", given)


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n3,4\n", ","),
        ("a;b\n1,5;2\n3,4;4\n", ";"),
        ("a\tb\nx, y, z\t2\nx\t4\n", "\t"),
        ("a|b\nx,y|2\nz|4\n", "|"),
        ("word\nhello\nworld\n", ","),
        ("a;b;c\n1;2;3\n4;5;6\n\n", ";"),
    ],
    ids=["comma", "semicolon", "tab", "bar", "one column", "blank line"],
)
def test_delimiter(text, delimiter):
    assert found(text).options.delimiter == delimiter


@pytest.mark.parametrize(
    ("text", "quote", "escape"),
    [
        ('a,b\n"x, y",1\n"z",2\n', '"', ""),
        ('a,b\n"x ""y"", z",1\nq,2\n', '"', ""),
        ('a,b\n"x \\" y, z",1\n"q",2\n', '"', "\\"),
        ("'a','b'\n'1','x, y'\n'2','z'\n", "'", ""),
        ('kind\ttext\nham\t"hello\nspam\tsay "no" twice\nham\tx\n', "", ""),
        ("it's,fine\ndon't,x\nwon't,y\n", '"', ""),
    ],
    ids=["commas inside", "doubled", "escaped", "apostrophes", "stray", "apostrophes in words"],
)
def test_quoting(text, quote, escape):
    assert (found(text).options.quote, found(text).options.escape) == (quote, escape)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("a,b\n1,x\n2,y\n", True),
        ("1,2\n3,4\n", False),
        ("Label\tText\nham\thello\nspam\tbye\nham\tx\n", True),
        ("ham\thello\nspam\tbye\nham\tx\n", False),
        ("x,2020-01-31\ny,2020-02-01\n", False),
        ("name,day\nx,2020-01-31\n", True),
        ("a,b\n", True),
        (",a,b\n0,1,2\n1,3,4\n", True),
    ],
    ids=[
        "names over numbers",
        "numbers",
        "names over words",
        "words",
        "dates",
        "names over dates",
        "names only",
        "index column",
    ],
)
def test_header(text, header):
    assert found(text).options.header is header


def test_names_are_made_unique_and_made_up():
    assert found("a,a,\n1,2,3\n").names == ("a", "a_2", "column_3")
    assert found("1,2\n3,4\n").names == ("column_1", "column_2")
    assert found('"x","y"\n"r1",2,3\n"r2",4,5\n').names == (
        "column_1",
        "x",
        "y",
    )  # R leaves out the name of the row names


@pytest.mark.parametrize(
    ("cells", "delimiter", "expected"),
    [
        (["1.5", "2.25"], ",", (".", "")),
        (["1,5", "2,25"], ";", (",", "")),
        (["1.234,50", "2,25"], ";", (",", ".")),
        (["1,234.50", "12,345"], ",", (".", ",")),
        (["1,234", "12,345"], ",", (".", ",")),
        (["1,234", "2,345"], ";", (",", "")),
        (["1.234", "2.345"], ",", (".", "")),
        (["1.234.567", "2,5"], ";", (",", ".")),
        (["1 234,5", "12 345,25"], ";", (",", " ")),
        (["1\u00a0234,5", "2,5"], ";", (",", "\u00a0")),
        (["1'234.5", "12'345.25"], ",", (".", "'")),
        (["$1,234.50", "12%"], ",", (".", ",")),
        (["abc", ""], ",", (".", "")),
        (["31.12.2020", "01.02.2021"], ";", (".", "")),
    ],
    ids=lambda v: v if isinstance(v, str) else "".join(v),
)
def test_marks_of_numbers(cells, delimiter, expected):
    assert marks([[c] for c in cells], delimiter) == expected


def test_words_with_numbers_in_them_say_nothing_about_marks():
    rows = [["1.5", "12 345"], ["2.5", "house 7"], ["3.5", "lane 1,5"], ["4.5", "by the sea"]]
    assert marks(rows, ",") == (".", "")


def test_lines_before_the_table_are_skipped():
    assert found("sep=;\na;b\n1;2\n").options.skip == 1
    assert found("# made by hand\n\na,b\n1,2\n").options.skip == 2
    assert found("#a,b\n1,2\n3,4\n").options.skip == 0  # a name may begin with #


def test_given_options_are_kept():
    options = found("a;b\n1,5;2\n", CsvOptions(decimal=".", header=False, quote="")).options
    assert (options.delimiter, options.decimal, options.header, options.quote) == (
        ";",
        ".",
        False,
        "",
    )


def test_options_in_words():
    words = str(found("a\tb\n1 234,5\t2,5\n7 654,5\t3,5\n").options)
    assert (
        words
        == 'tab between fields, quote ", a header row, utf-8, decimal comma, thousands marked by spaces'
    )


LETTERS = st.characters(blacklist_categories=("Cs", "Cc"), max_codepoint=0x2FF)
CELL = st.text(LETTERS | st.sampled_from(',;|"\n'), max_size=8)
TABLES = st.integers(2, 4).flatmap(
    lambda d: st.lists(st.lists(CELL, min_size=d, max_size=d), min_size=3, max_size=8)
)


@given(
    rows=TABLES,
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_a_quoted_table_reads_back(tmp_path_factory, rows, delimiter, encoding, end):
    names = [f"name{j}" for j in range(len(rows[0]))]
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(names)
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("t") / "a.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    read = open_source(path, options=CsvOptions(decimal=".", thousands="", header=True))
    assert read.sniffed.delimiter == delimiter
    assert [list(row.values()) for batch in read.batches() for row in batch.to_pylist()] == rows


@given(
    values=st.lists(
        st.tuples(st.decimals(-99999, 99999, places=2), st.sampled_from(["x", "y z", "ü"])),
        min_size=3,
        max_size=20,
    ),
    form=st.sampled_from(
        [
            (";", ",", "."),
            (";", ",", ""),
            ("\t", ",", " "),
            (",", ".", ""),
            ("|", ".", "'"),
            (",", ".", ","),
        ]
    ),
    encoding=st.sampled_from(["utf-8", "cp1252"]),
)
def test_numbers_in_local_form_read_back(tmp_path_factory, values, form, encoding):
    delimiter, decimal, thousands = form
    write = lambda x: f"{x:,.2f}".replace(",", "\0").replace(".", decimal).replace("\0", thousands)
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(
        [["number", "word"], *([write(x), w] for x, w in values)]
    )
    path = tmp_path_factory.mktemp("t") / "a.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    read = open_source(path)
    rows = [row for batch in read.batches() for row in batch.to_pylist()]
    assert [float(row["number"]) for row in rows] == [float(x) for x, _ in values]
    assert [row["word"] for row in rows] == [w for _, w in values]


@pytest.mark.parametrize("rows", [3, 50, 310, 1500])
def test_decimal_commas_are_no_delimiters_however_many_rows(rows):
    body = "".join(f"n{k % 7};{3 * k},5;{k}\n" for k in range(rows))
    read = found("name;price;size\n" + body)
    assert (read.options.delimiter, read.options.decimal, read.names) == (
        ";",
        ",",
        ("name", "price", "size"),
    )
    assert found(body).options.delimiter == ";"  # without a header too


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("1,5;2,5;3,5\n" * 30, ";"),
        ("size, m;price, eur\n" + "1,5;3,5\n" * 30, ";"),
        ("id,tags,n\n" + "1,a;b;c;d,5\n" * 30, ","),
        ("1,000|2,000\n" * 30, "|"),
        ("last, first;age;size\n" + "Smith, John;33;40\n" * 30, ";"),
    ],
    ids=["numbers only", "commas in names", "lists in cells", "thousands", "commas in texts"],
)
def test_where_two_delimiters_would_do_the_cells_decide(text, delimiter):
    assert found(text).options.delimiter == delimiter


@pytest.mark.parametrize(
    "cells", [["1082,16 CHF", "5,5 CHF"], ["R$ 1082,16", "R$ 5,5"], ["SEK 1.082,16", "SEK 5,5"]]
)
def test_money_with_a_decimal_comma(cells):
    rows = [[cell, "a"] for cell in cells]
    decimal, thousands = marks(rows, ";")
    assert decimal == ","
    assert localized(rows, decimal, thousands) == (0,)


@pytest.mark.parametrize(
    ("behind", "before"),
    [(" km", ""), ("km", ""), (" Std.", ""), (" %", ""), (" €", ""), ("", "€ ")],
)
@pytest.mark.parametrize("asked", [None, ","])
def test_the_decimal_mark_holds_for_numbers_with_units(behind, before, asked):
    cells = ["5.311", "872", "9.434", "12,5" if asked is None else "31"]
    rows = [[f"{before}{cell}{behind}", "a"] for cell in cells]
    decimal, thousands = marks(rows, ";", asked)
    assert (decimal, thousands) == (",", ".")
    assert localized(rows, decimal, thousands) == (0,)
    column = pa.array([row[0] for row in rows])
    read = numbers(plain(column, decimal, thousands), behind.strip(" .€%").lower())[0]
    assert read.tolist() == [5311, 872, 9434, 12.5 if asked is None else 31]


def test_the_marks_of_other_columns_hold_for_numbers_with_units():
    text = "a;b;c\n5.311 km;5.311;1,25\n872 km;872;3,5\n9.434 km;9.434;7,75\n"
    read = found(text)
    assert (read.options.decimal, read.options.thousands) == (",", ".")
    assert read.local == (0, 1, 2)
    assert found(text.replace("3,5", "3").replace(",", "."), CsvOptions(decimal=",")).local[:2] == (
        0,
        1,
    )


def test_words_behind_numbers_that_are_no_units_stay_as_they_are():
    rows = [["5.311 Main Street", "1,5"], ["872 High Road", "2,5"]]
    assert localized(rows, ",", ".") == (1,)
