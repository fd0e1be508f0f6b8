"""Treated columns back in the units of the table."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.automl.units import LONGEST, ColumnUnits, Unit, units_of
from mercer.tables import Columns
from mercer.tables.encoders import BooleanEncoder, CategoryEncoder, NumberEncoder, TextEncoder
from mercer.tables.levels import CodedNumberEncoder, LevelMeansEncoder
from mercer.tables.scale import RankNormalizer, Standardizer


def test_every_kind_of_column_comes_back():
    rng = np.random.default_rng(0)
    n = 300
    days = rng.integers(0, 3000, n)
    size = rng.normal(1e6, 3.0, n)
    batch = pa.record_batch(
        {
            "size": [None if i % 5 == 0 else float(v) for i, v in enumerate(size)],
            "wild": rng.lognormal(0, 3, n),
            "city": rng.choice(["Oslo", "Rome", "Bern"], n).tolist(),
            "new": (rng.random(n) < 0.5).tolist(),
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
            "y": rng.normal(size=n),
        }
    )
    columns = Columns("y").fit([batch])
    units = ColumnUnits.of(columns)
    assert len(units.names) == len(columns.feature_names_)
    X = dict(zip(units.names, units(columns.transform(batch).X).T, strict=True))
    there = np.arange(n) % 5 != 0
    # far from zero: from a round number near the mean
    np.testing.assert_allclose(X["(size - 1000000)"][there] + 1e6, size[there], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(X["1{size missing}"], ~there)
    np.testing.assert_array_equal(X["1{city = Oslo}"], np.array(batch["city"]) == "Oslo")
    np.testing.assert_array_equal(
        X[next(name for name in X if name.startswith("1{new"))], np.array(batch["new"])
    )
    np.testing.assert_allclose(X["(year(day) - 1974)"] + 1974, 1970 + days / 365.2425, atol=1e-5)
    wild = next(name for name in X if name.startswith("slog(wild/"))
    spread = float(wild.removeprefix("slog(wild/").removesuffix(")"))
    np.testing.assert_allclose(X[wild], np.log1p(np.array(batch["wild"]) / spread), rtol=1e-4)


def test_names_that_read_as_arithmetic_are_quoted():
    rng = np.random.default_rng(1)
    new = rng.random(40) < 0.5
    batch = pa.record_batch({"a*b": rng.normal(size=40), "2nd": new, "y": rng.normal(size=40)})
    number, flag = ColumnUnits.of(Columns("y").fit([batch])).names
    assert number == '"a*b"'
    assert flag.startswith('1{"2nd" = ')


LEVELS = CategoryEncoder(("a", "b"), (0.6, 0.4), 1, True, True, Standardizer(-1.0, 0.5))
NUMBER = NumberEncoder(Standardizer(1.0, 2.0), 0.0, True)
CODES = CategoryEncoder(("1", "2"), (0.6, 0.4), 2, False, False, None, True)


@pytest.mark.parametrize(
    "encoder",
    [
        LEVELS,
        NUMBER,
        CODES,
        CodedNumberEncoder(NUMBER, CODES),
        LevelMeansEncoder(LEVELS, ("y",)),
        TextEncoder(LEVELS, Standardizer(), Standardizer()),
        TextEncoder(None, Standardizer(), Standardizer()),
        BooleanEncoder(("no", "yes"), 0.0, True),
        NumberEncoder(RankNormalizer.of(np.arange(50.0)), 0.0),
        NumberEncoder(Standardizer(1.0, 2.0, 3.0, 4.0), 0.0),
        NumberEncoder(Standardizer(1e300, 1e299), 0.0),
        NumberEncoder(Standardizer(0.0, 1e-300), 0.0),
    ],
)
def test_there_is_a_finite_unit_for_every_feature(encoder):
    found = list(units_of(encoder, "x"))
    assert len(found) == len(encoder.names("x"))
    assert len({u.name for u in found}) == len(found)
    numbers = np.array([[u.per, u.shift, u.centre, u.spread] for u in found])
    assert np.isfinite(numbers).all()
    assert (np.abs(numbers[:, 0]) > 0).all()


def test_long_names_are_cut():
    batch = pa.record_batch({"x" * 500: [1.0, 2.0, 3.5, 4.0], "y": [1.0, 2.0, 2.5, 4.0]})
    (name,) = ColumnUnits.of(Columns("y").fit([batch])).names
    assert len(name) == LONGEST


def test_a_unit_of_nothing_is_refused():
    with pytest.raises(ValueError, match="unit of nothing"):
        ColumnUnits.listed([Unit("a", 0.0)])


@pytest.mark.parametrize(
    "unit",
    [
        Unit("x"),
        Unit("(x - 3)", 1.0, 0.0, "x", 3.0),
        Unit("slog((x + 2)/5)", 1.0, 0.0, "x", -2.0, 5.0),
    ],
)
def test_values_of_the_column_itself_and_back(unit):
    units = ColumnUnits.listed([unit])
    for value in (-1e3, -2.0, 0.0, 0.7, 3.0, 1e5):
        assert units.told(0, units.bent(0, value)) == pytest.approx(value, abs=1e-9)
    if unit.spread:
        assert units.bent(0, 8.0) == pytest.approx(np.log(1 + 10 / 5))


@pytest.mark.parametrize(
    ("mean", "std", "near"),
    [
        (1013.26, 5.9, "1013"),
        (-2005.3, 8.0, "2005"),
        (1e6 + 0.3, 250.0, "1000000"),
        (0.12346, 1e-4, "0.1235"),
        (0.12345, 1e-3, "0.123"),
    ],
)
def test_columns_far_from_zero_are_told_from_a_round_number(mean, std, near):
    (unit,) = units_of(NumberEncoder(Standardizer(mean, std), 0.0), "x")
    assert unit.name == f"(x {'-' if mean > 0 else '+'} {near})"
    assert unit.own == "x"
    assert abs(unit.shift) <= std  # what is left of the mean
    (plain,) = units_of(NumberEncoder(Standardizer(3.0, 1.0), 0.0), "x")
    assert plain.name == "x"
