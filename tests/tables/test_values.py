"""What cells mean: numbers, missing words, dates; and counts in bounded memory."""
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables.dates import CYCLES, form_of, seconds, varying
from mercer.tables.errors import nearest
from mercer.tables.sketch import DistinctCount, HeavyHitters, hashes
from mercer.tables.values import WORDS, numbers, text, truths


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1", 1.0), (" 2.5 ", 2.5), ("+3", 3.0), ("1e3", 1000.0), (".5", 0.5), ("-7.", -7.0), ("$1,234.50", 1234.5),
        ("1,234,567", 1234567.0), ("12 %", 12.0), ("€ 5", 5.0), ("5 €", 5.0), ("-$5", -5.0), ("(1,000)", -1000.0), ("USD 3", 3.0),
    ],
)  # fmt: skip
def test_numbers_in_every_dress(cell, value):
    found, odd = numbers(pa.array([cell, "word"]))
    assert found[0] == value
    assert odd.tolist() == [False, True]


@pytest.mark.parametrize("cell", ["1,2", "12-3", "1.2.3", "0x10", "1_000", "(a)", "$", "%", "12 apples", "1e", "--5"])
def test_what_is_no_number(cell):
    assert numbers(pa.array([cell]))[1].tolist() == [True]


@pytest.mark.parametrize("word", WORDS)
def test_missing_words_in_any_case(word):
    forms = pa.array([word, word.upper(), word.capitalize(), f" {word} ", "7"])
    found, odd = numbers(forms)
    assert np.isnan(found).tolist() == [True] * 4 + [False]
    assert not odd.any()
    assert text(forms).to_pylist() == [None] * 4 + ["7"]


def test_typed_columns_are_numbers_and_infinities_are_missing():
    found, odd = numbers(pa.array([1.0, np.inf, None, -np.inf, np.nan]))
    assert np.isnan(found).tolist() == [False, True, True, True, True]
    assert not odd.any()
    assert numbers(pa.array([True, None]))[0][0] == 1
    assert numbers(pa.array([Decimal("3.25"), None]))[0][0] == 3.25
    assert numbers(pa.array([3, 4]).cast(pa.duration("s")))[0].tolist() == [3, 4]
    for kind in (pa.large_string(), pa.string_view()):
        assert numbers(pa.array(["3", "4"], kind))[0].tolist() == [3, 4]
        assert text(pa.array(["a ", "NA"], kind)).to_pylist() == ["a", None]
    assert numbers(pa.array(["3", "4"]).dictionary_encode())[0].tolist() == [3, 4]
    assert numbers(pa.array([3, 3, 4]).dictionary_encode())[0].tolist() == [3, 3, 4]
    assert numbers(pa.chunked_array([["3"], ["x"]]))[1].tolist() == [False, True]


def test_a_class_reads_the_same_from_text_integers_and_floats():
    for column in (pa.array(["7", "8"]), pa.array([7, 8]), pa.array([7.0, 8.0]), pa.array([7.0, 8.0]).cast(pa.float32())):
        assert text(column).to_pylist() == ["7", "8"]


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none(), min_size=1, max_size=30))
def test_written_numbers_read_back(values):
    cells = pa.array(["" if v is None else repr(v) for v in values])
    assert np.array_equal(numbers(cells)[0], np.array([np.nan if v is None else v for v in values]), equal_nan=True)


DAY = np.datetime64("2021-03-04T15:06:00")


@pytest.mark.parametrize(
    ("cell", "form"),
    [
        ("2021-03-04", "iso"), ("2021-03-04T15:06:00", "iso"), ("2021-03-04 15:06:00.250", "iso"), ("2021-03-04T15:06:00Z", "iso zone"),
        ("2021-03-04 17:06:00+02:00", "iso zone"), ("04.03.2021", "%d.%m.%Y"), ("04.03.2021 15:06", "%d.%m.%Y %H:%M"),
        ("03/04/2021", "%m/%d/%Y"),
        ("2021/03/04", "%Y/%m/%d"), ("4 Mar 2021", "%d %b %Y"), ("04-Mar-2021", "%d-%b-%Y"), ("Mar 4, 2021", "%b %d, %Y"),
        ("03/04/2021 3:06 PM", "%m/%d/%Y %I:%M %p"), ("20210304", "%Y%m%d"), ("04.03.21", "%d.%m.%y"), ("04-03-2021", "%d-%m-%Y"),
    ],
)  # fmt: skip
def test_forms_of_dates(cell, form):
    column = pa.array([cell, "NA"])
    assert form_of(column) == form
    found = seconds(column, form)
    assert abs(found[0] - DAY.astype("datetime64[s]").astype(float)) < 86_400
    assert np.datetime64(int(found[0]), "s").astype("datetime64[D]") == DAY.astype("datetime64[D]")
    assert np.isnan(found[1])


def test_the_day_is_told_from_the_month_by_numbers_above_12():
    assert form_of(pa.array(["03/04/2021", "25/04/2021"])) == "%d/%m/%Y"
    assert form_of(pa.array(["03/04/2021", "04/25/2021"])) == "%m/%d/%Y"
    assert form_of(pa.array(["03/04/2021"] * 40 + ["25/04/2021"] * 2)) == "%d/%m/%Y"


@pytest.mark.parametrize("cells", [["word", "other"], ["1.5", "2.5"], ["2021-13-40"], ["a 1"], [None], ["12:99"]], ids=str)
def test_what_is_no_date(cells):
    assert form_of(pa.array(cells, pa.string())) is None


def test_dates_that_do_not_exist_are_missing():
    found = seconds(pa.array(["2021-02-28", "2021-02-30", "soon", "2021-03-01"]), "iso")
    assert np.isnan(found).tolist() == [False, True, True, False]


def test_typed_dates():
    days = np.array(["2021-03-04", "1969-12-31"], "datetime64[D]")
    zoned = pa.array(days.astype("datetime64[ms]"), pa.timestamp("ms", "UTC"))
    for column in (pa.array(days), pa.array(days.astype("datetime64[ns]")), zoned, zoned.cast(pa.date64())):
        assert seconds(column, None).tolist() == days.astype("datetime64[s]").astype(float).tolist()


def test_cycles_are_shares_of_a_turn():
    at = np.array(["2020-07-01T12:00", "2021-01-04T00:00", "2020-02-29T18:00"], "datetime64[s]").astype(float)
    year, month, week, day = (c.turn(at) for c in CYCLES)
    assert year[0] == pytest.approx(182.5 / 366)
    assert month[2] == pytest.approx(28.75 / 29)
    assert week[1] == 0  # a Monday
    assert day.tolist() == [0.5, 0, 0.75]


def test_only_cycles_that_the_data_run_through_count():
    days = lambda n, step: np.arange(n) * step * 86_400.0
    assert varying(days(800, 1)) == ("year", "month", "week")
    assert varying(days(40, 1)) == ("month", "week")
    assert varying(days(5, 1)) == ()
    assert varying(days(50, 0.3)) == ("week", "day")
    assert varying(np.zeros(0)) == ()


VALUES = st.lists(st.sampled_from("abcdefgh") | st.text(max_size=3), min_size=1, max_size=60)


@given(parts=st.lists(VALUES, min_size=1, max_size=4))
def test_counts_are_exact_below_the_cap(parts):
    counts = HeavyHitters()
    for part in parts:
        counts.add(pa.array(part))
    assert dict(zip(counts.values.to_pylist(), counts.counts.tolist(), strict=True)) == Counter(v for part in parts for v in part)
    assert counts.exact


@given(parts=st.lists(VALUES, min_size=1, max_size=6), cap=st.integers(1, 6))
def test_counts_beyond_the_cap_are_low_by_at_most_the_error(parts, cap):
    counts, true = HeavyHitters(cap), Counter(v for part in parts for v in part)
    for part in parts:
        counts.add(pa.array(part))
    held = dict(zip(counts.values.to_pylist(), counts.counts.tolist(), strict=True))
    assert len(held) <= cap
    assert counts.error <= sum(true.values()) / (cap + 1)
    assert all(held.get(v, 0) <= k <= held.get(v, 0) + counts.error for v, k in true.items())


@given(values=st.lists(st.text(max_size=5), min_size=1, max_size=30), cut=st.integers(0, 30))
def test_equal_texts_have_equal_hashes_wherever_they_lie(values, cut):
    whole = hashes(pa.array(values))
    assert np.array_equal(whole[cut:], hashes(pa.array(values).slice(cut)))
    assert len(np.unique(whole)) == len(set(values))


def test_distinct_values():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        few, many = DistinctCount(), DistinctCount()
        for _ in range(10):
            few.add(pa.array(rng.integers(0, 500, 3000).astype(float)))
            many.add(pa.array(rng.integers(0, 50_000, 20_000).astype(str)))
        assert few.count() == 500
        expected = 50_000 * (1 - np.exp(-4))
        assert abs(many.count() - expected) < 5 * expected / many.k**0.5


def test_yes_and_no_in_any_way_of_writing():
    assert truths(pa.array(["yes", " TRUE", "t", "1", "On", "y"])).tolist() == [1.0] * 6
    assert truths(pa.array(["No", "false", "F", "0", "off", "n"])).tolist() == [0.0] * 6
    assert np.isnan(truths(pa.array(["2", "maybe", None]))).all()
    for typed in (pa.array([True, False]), pa.array([1, 0]), pa.array([1.0, 0.0])):
        assert truths(typed).tolist() == [1.0, 0.0]


def test_only_close_names_are_suggested():
    assert nearest("progresion", ["progression", "age"]) == '; did you mean "progression"?'
    assert nearest("Lenght", ["length", "width"]) == '; did you mean "length"?'
    for name, names in (("y", ["x", "z"]), ("price", ["size", "slice of life"]), ("target", ["garden", "tax"])):
        assert nearest(name, names).startswith("; the names are")


@pytest.mark.parametrize("names", [["a;b"], ["a|b", "c"], ["a\tb"], ["a b c"]], ids=["semicolon", "bar", "tab", "spaces"])
def test_names_that_hold_delimiters_call_for_flags(names):
    assert "--delimiter" in nearest("y", names)
    assert "--delimiter" not in nearest("y", ["net price", "rooms"])


@pytest.mark.parametrize(
    "cell", ["CHF 1082.16", "1082.16 CHF", "SEK1082.16", "JPY 1,082.16", "INR 1082.16", "R$ 1082.16", "₹1082.16", "1082.16 zł"]
)
def test_money_is_a_number(cell):
    values, odd = numbers(pa.array([cell, "-" + cell, "a " + cell]))
    assert values[0] == 1082.16
    assert odd.tolist()[0::2] == [False, True]
