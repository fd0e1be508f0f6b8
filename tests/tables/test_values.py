"""What cells mean: numbers, missing words, yes and no."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables.values import WORDS, numbers, text, truths


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1", 1.0),
        (" 2.5 ", 2.5),
        ("+3", 3.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-7.", -7.0),
        ("$1,234.50", 1234.5),
        ("1,234,567", 1234567.0),
        ("12 %", 12.0),
        ("€ 5", 5.0),
        ("5 €", 5.0),
        ("-$5", -5.0),
        ("(1,000)", -1000.0),
        ("USD 3", 3.0),
    ],
)
def test_numbers_in_every_dress(cell, value):
    found, odd = numbers(pa.array([cell, "word"]))
    assert found[0] == value
    assert odd.tolist() == [False, True]


@pytest.mark.parametrize(
    "cell", ["1,2", "12-3", "1.2.3", "0x10", "1_000", "(a)", "$", "%", "12 apples", "1e", "--5"]
)
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
    for column in (
        pa.array(["7", "8"]),
        pa.array([7, 8]),
        pa.array([7.0, 8.0]),
        pa.array([7.0, 8.0]).cast(pa.float32()),
    ):
        assert text(column).to_pylist() == ["7", "8"]


@given(
    values=st.lists(
        st.floats(allow_nan=False, allow_infinity=False) | st.none(), min_size=1, max_size=30
    )
)
def test_written_numbers_read_back(values):
    cells = pa.array(["" if v is None else repr(v) for v in values])
    assert np.array_equal(
        numbers(cells)[0], np.array([np.nan if v is None else v for v in values]), equal_nan=True
    )


def test_yes_and_no_in_any_way_of_writing():
    assert truths(pa.array(["yes", " TRUE", "t", "1", "On", "y"])).tolist() == [1.0] * 6
    assert truths(pa.array(["No", "false", "F", "0", "off", "n"])).tolist() == [0.0] * 6
    assert np.isnan(truths(pa.array(["2", "maybe", None]))).all()
    for typed in (pa.array([True, False]), pa.array([1, 0]), pa.array([1.0, 0.0])):
        assert truths(typed).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "cell",
    [
        "CHF 1082.16",
        "1082.16 CHF",
        "SEK1082.16",
        "JPY 1,082.16",
        "INR 1082.16",
        "R$ 1082.16",
        "₹1082.16",
        "1082.16 zł",
    ],
)
def test_money_is_a_number(cell):
    values, odd = numbers(pa.array([cell, "-" + cell, "a " + cell]))
    assert values[0] == 1082.16
    assert odd.tolist()[0::2] == [False, True]
