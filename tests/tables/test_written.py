"""Numbers with signs of money, percents, and marks of thousands: one reading a column, kept in files."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from mercer.tables import Columns, CsvOptions, DataError, open_source
from mercer.tables.values import numbers, unit_of
from mercer.tables.written import currencies, doubtful, undressed, written_of

VALUES = np.round(np.random.default_rng(3).lognormal(7, 1.2, 300), 2)


def swapped(x, group="."):
    return f"{x:,.2f}".translate({ord(","): group, ord("."): ","})


FORMS = {
    "$1,422.50": lambda x: f"${x:,.2f}",
    "US$ 1,422.50": lambda x: f"US$ {x:,.2f}",
    "(£1,422.50)": lambda x: f"(£{x:,.2f})",
    "€ 1.422,50": lambda x: f"€ {swapped(x)}",
    "1.422,50 EUR": lambda x: f"{swapped(x)} EUR",
    "1 422,50": lambda x: swapped(x, " "),
    "1 422,50 €": lambda x: swapped(x, "\u202f") + "\u00a0€",
    "1422,50 %": lambda x: f"{swapped(x, '')} %",
    "12.50 %": lambda x: f"{x:.2f} %",
    "CHF 1'422.50": lambda x: f"CHF {x:,.2f}".replace(",", "'"),
    "1’422.50": lambda x: f"{x:,.2f}".replace(",", "’"),
    "−1422.50": lambda x: f"−{x:.2f}",
    "1.422,50 kg": lambda x: f"{swapped(x)} kg",
    "$1,422.50/m²": lambda x: f"${x:,.2f}/m²",
}


def batch(cells, **more):
    return pa.record_batch({"price": cells, "y": np.log(VALUES), **more})


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_prices_are_numbers_at_fit_at_predict_and_from_a_file(form):
    cells = [form(x) for x in VALUES]
    sign = -1 if "(" in cells[0] or "−" in cells[0] else 1
    c = Columns("y").fit([batch(cells)])
    assert c.treatments_[0].kind == "number"
    loaded = Columns.from_state(json.loads(json.dumps(c.state())))
    for one in (c, loaded):
        read, unread = one.encoders_["price"].read(pa.array(cells))
        assert read[:, 0].tolist() == (sign * VALUES).tolist()
        assert unread == 0
        alone = one.encoders_["price"].read(pa.array(cells[:1]))[0]  # no matter what is beside it
        assert alone[0, 0] == sign * VALUES[0]
    new = batch([form(1234.5)] * 300)
    assert np.array_equal(c.transform(new).X, loaded.transform(new).X)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_target_in_money(form):
    cells = [form(x) for x in VALUES]
    sign = -1 if "(" in cells[0] or "−" in cells[0] else 1
    c = Columns("price").fit([batch(cells)])
    assert c.task_ == "regression"
    rows = Columns.from_state(json.loads(json.dumps(c.state()))).transform(batch(cells))
    assert rows.y.tolist() == (sign * VALUES).tolist()


def test_what_could_be_either_is_decided_by_the_column_and_said():
    lone = [f"{1 + i % 9},{100 + i}" for i in range(300)]  # thousands, as nothing shows another
    told = Columns("y").fit([batch(lone)])
    assert told.treatments_[0].action.startswith('Standardised number ("1,100" read as 1100)')
    assert told.encoders_["price"].read(pa.array(["1,234"]))[0].tolist() == [[1234.0]]
    for shown, value in (("2,5", 1.234), ("1,234,567", 1234.0), ("0,250", 1.234), ("7.5", 1234.0)):
        c = Columns("y").fit([batch([*lone[1:], shown])])
        assert c.encoders_["price"].read(pa.array(["1,234"]))[0].tolist() == [[value]]
    points = [c.replace(",", ".") for c in lone]
    for shown, value in (("2.5", 1.234), ("1.234.567", 1234.0), ("1.234,5", 1234.0), ("", 1.234)):
        c = Columns("y").fit([batch([*points[1:], shown])])
        assert c.encoders_["price"].read(pa.array(["1.234"]))[0].tolist() == [[value]]
    assert '("2.101" read as 2.101)' in c.treatments_[0].action
    comma = Columns("y").fit([batch([*points[1:], "1.234,5"])])
    assert '("1.234,5" read as 1234.5)' in comma.treatments_[0].action


def test_a_plain_column_says_nothing_and_is_read_as_before():
    c = Columns("y").fit([batch([f"{x:.2f}" for x in VALUES])])
    assert "read as" not in c.treatments_[0].action
    assert c.encoders_["price"].written == ".,"
    assert numbers(pa.array(["1234,5"]))[1].tolist() == [True]  # no cell by itself


def test_several_currencies_are_no_numbers():
    cells = [f"{'$€'[i % 2]}{10 * (i % 7)}" for i in range(300)]
    t = Columns("y").fit([batch(cells)]).treatments_[0]
    assert t.kind == "category"
    assert "numbers in 2 currencies ($, €)" in t.warnings[0]
    one = ["$5", "7", "$6"] * 100  # some without
    assert Columns("y").fit([batch(one)]).treatments_[0].kind == "number"
    few = [*[f"${x:.2f}" for x in VALUES[:-1]], "€5"]
    assert Columns("y").fit([batch(few)]).treatments_[0].kind == "number"


DOTTED = [1000 + 137 * i for i in range(240)]
DOTS = [f"{x:,}".replace(",", ".") for x in DOTTED]
SMALL = [f"{100 + 13 * i}" for i in range(60)]


def test_dots_before_three_digits_group_thousands_beside_small_whole_numbers():
    cells, values = SMALL + DOTS, [*map(float, SMALL), *DOTTED]
    c = Columns("y").fit([batch(cells)])
    assert c.encoders_["price"].read(pa.array(cells))[0][:, 0].tolist() == values
    assert '("33.332" read as 33332)' in c.treatments_[0].action
    assert "give --decimal . where they are decimal points" in c.treatments_[0].warnings[0]
    target = Columns("price").fit([batch(cells)])
    assert target.transform(batch(cells)).y.tolist() == values
    assert target.warnings_[0].startswith('the target "price" has "33.332" beside "100"')
    for other in ("0.250", "12.5", "1234", "012.500"):  # decimals, or no groups
        c = Columns("y").fit([batch([*cells[:-1], other])])
        assert c.encoders_["price"].read(pa.array(["1.374"]))[0].tolist() == [[1.374]], other
        assert not c.treatments_[0].warnings


def test_few_dots_before_three_digits_stay_decimals_and_are_told_of():
    for dotted, told in ((5, True), (49, True), (4, False)):
        c = Columns("y").fit([batch((SMALL * 5)[: 300 - dotted] + DOTS[:dotted])])
        assert c.encoders_["price"].read(pa.array(["1.374"]))[0].tolist() == [[1.374]]
        said = c.treatments_[0].warnings
        assert any("give --decimal , where they group thousands" in w for w in said) == told
    marks = ["0", "999"] * 30  # for missing: they do not show that dots group
    c = Columns("y").fit([batch(marks + DOTS)])
    assert c.encoders_["price"].read(pa.array(["1.374"]))[0].tolist() == [[1.374]]


def test_the_file_decides_on_dots_where_it_shows_them(tmp_path):
    table = pa.table({"price": SMALL + DOTS, "n": [str(i % 7) for i in range(300)]})
    y = [str(int(x)) for x in 1000 + VALUES]
    cases = (("1", None, 1274.0), ("0.5", None, 1.274), ("1", ".", 1.274), ("1", ",", 1274.0))
    for i, (other, decimal, value) in enumerate(cases):
        path = tmp_path / f"{i}.csv"
        more = table.append_column("b", [[other, "2"] * 150]).append_column("y", [y])
        pa.csv.write_csv(more, path)
        source = open_source(path, options=CsvOptions(decimal=decimal))
        c = Columns("y").fit(source)
        read = c.encoders_["price"].read(next(source.batches()).column("price"))[0][:, 0]
        assert read[len(SMALL) + DOTTED.index(1274)] == value
        told = [w for w in c.treatments_[0].warnings if "--decimal" in w]
        assert bool(told) == (decimal is None)


def test_a_target_in_several_currencies_is_refused():
    cells = [f"{'$€'[i % 2]}{x}" for i, x in enumerate(VALUES)]
    cells[5] = "JPY 182396"  # an oversight
    sentence = r'the target "price" has numbers in 2 currencies \(\$, €\); convert them to one'
    with pytest.raises(DataError, match=sentence):
        Columns("price").fit([batch(cells)])
    few = [*[f"${x:.2f}" for x in VALUES[:-1]], "€5"]
    assert Columns("price").fit([batch(few)]).task_ == "regression"


def test_percent_signs_on_part_of_the_values():
    cells = [f"{x:.1f} %" if i % 3 else f"{x / 100:.4f}" for i, x in enumerate(VALUES)]
    t = Columns("y").fit([batch(cells)]).treatments_[0]
    assert t.action.endswith("; percent signs on part of its values.")
    assert t.warnings[0].startswith('"price" has percent signs on 200 of 300 values')
    told = Columns("price").fit([batch(cells)]).warnings_[0]
    assert told.startswith('the target "price" has percent signs on 200 of 300')
    zeros = ["0", "0.0", *[f"{x:.1f} %" for x in VALUES[2:]]]
    assert not Columns("y").fit([batch(zeros)]).treatments_[0].warnings


@pytest.mark.parametrize(
    "unit", ["m2", "m3", "sq m", "km2", "sq. m", "m3/h", "kg/m2", "m²", "Sq M"]
)
@pytest.mark.parametrize("mark", [".", ","])
def test_units_of_digits_and_of_two_words(unit, mark, tmp_path):
    cells = [f"{x:.2f} {unit}".replace(".", mark, 1) for x in VALUES]
    c = Columns("y").fit([batch(cells)])
    assert c.encoders_["price"].read(pa.array(cells))[0][:, 0].tolist() == VALUES.tolist()
    path = tmp_path / "t.csv"
    pa.csv.write_csv(pa.table({"price": cells, "y": np.log(VALUES)}), path)
    source = open_source(path, options=CsvOptions(delimiter=","))
    c = Columns("y").fit(source)
    read = c.encoders_["price"].read(next(source.batches()).column("price"))[0][:, 0]
    assert read.tolist() == VALUES.tolist()


def test_exponents_are_no_units():
    assert unit_of(pa.array(["1e3", "2e3", "4x2"])) == ""
    codes = [f"{2 + 2 * (i % 3)}x2" for i in range(300)]
    assert Columns("y").fit([batch(codes)]).treatments_[0].kind == "category"


def test_numbers_with_other_text_are_told_of():
    told = "which were not read as numbers."
    cells = [f"{x:.1f} {'abcdef'[i % 6]}-{'ghijklm'[i % 7]}" for i, x in enumerate(VALUES)]
    t = Columns("y").fit([batch(cells, x=VALUES)]).treatments_[0]
    assert t.action.endswith(f'("{cells[0]}"), {told}')
    for other in (["red", "blue"] * 150, [f"a{i % 9}" for i in range(300)]):
        assert told not in Columns("y").fit([batch(other)]).treatments_[0].action
    dates = [f"{1 + i % 28:02d} Jan 2024" for i in range(300)]
    assert told not in Columns("y").fit([batch(dates)]).treatments_[0].action


def test_codes_in_groups_are_no_numbers():
    codes = [f"{110 + i % 5} 0{10 + i % 5}" for i in range(300)]
    assert written_of(pa.array(codes)) == ".,"
    assert Columns("y").fit([batch(codes)]).treatments_[0].kind == "category"
    assert written_of(pa.array([f"{c} €" for c in codes])) == "., "


def test_whole_numbers_with_a_unit_that_act_as_codes():
    level = np.tile(np.arange(1, 7), 50)
    y = np.where(level % 2, 1.0, -1.0) + 0.01 * VALUES / 1000
    for form in ("{} kg", "{} 000", "1 00{}", "{},000"):
        cells = [form.format(v) for v in level]
        cells[0] = cells[0][0] if form == "{} 000" else cells[0]
        data = pa.record_batch({"a": cells, "y": y})
        e = Columns("y").fit([data]).encoders_["a"]
        codes = e.read(pa.array(cells))[0][:, 0]
        assert not np.isnan(codes).any()
        assert len(np.unique(codes)) >= 6


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files(tmp_path, ending):
    cells = [f"${x:,.2f}" for x in VALUES]
    other = [FORMS["1.422,50 EUR"](x) for x in VALUES]
    path = tmp_path / f"t.{ending}"
    table = pa.table({"price": cells, "other": other, "y": np.log(VALUES)})
    if ending == "csv":
        pa.csv.write_csv(table, path)
    else:
        pa.parquet.write_table(table, path)
    c = Columns("y").fit(open_source(path))
    assert [t.kind for t in c.treatments_[:2]] == ["number", "excluded"]  # the same, in two forms


def test_hostile_cells():
    cells = pa.array(
        ["", "$", "1,23,45", "1.2.3", "1 2", ",", "€", "5 $ €", "1,234.5.6", "--", None]
    )
    for written in (".,", ",.", "., '", ",. "):
        values, odd = numbers(cells, written=written)
        assert np.isnan(values).all(), (written, values)
        assert odd[0] == odd[-1] == False  # noqa: E712
        assert len(undressed(cells, written)) == len(cells)
    nothing = pa.array([None, None], pa.string())
    assert written_of(nothing) == ".,"
    assert doubtful(nothing) == ""
    assert currencies(nothing) == []


def test_signs_that_end_with_a_point():
    francs = ["Fr. 5.50", "Fr. 1'000", "Fr.12.-"]
    assert written_of(pa.array(francs)) == ".,'"
    assert numbers(pa.array(francs), written=".,'")[0].tolist() == [5.5, 1000.0, 12.0]
    assert written_of(pa.array(["Rs. 1.234,50", "Rs. 2,5"])) == ",."
    assert currencies(pa.array(["Rs 5", "Rs. 6", "7 Rs."])) == ["Rs"]
