"""Dates in their forms, cycles, and what is no date."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from mercer.tables import Columns, open_source
from mercer.tables.dates import CYCLES, SEVERAL, form_of, seconds, varying
from mercer.tables.encoders import from_state

DAY = np.datetime64("2021-03-04T15:06:00")


@pytest.mark.parametrize(
    ("cell", "form"),
    [
        ("2021-03-04", "iso"),
        ("2021-03-04T15:06:00", "iso"),
        ("2021-03-04 15:06:00.250", "iso"),
        ("2021-03-04T15:06:00Z", "iso zone"),
        ("2021-03-04 17:06:00+02:00", "iso zone"),
        ("04.03.2021", "%d.%m.%Y"),
        ("04.03.2021 15:06", "%d.%m.%Y %H:%M"),
        ("03/04/2021", "%m/%d/%Y"),
        ("2021/03/04", "%Y/%m/%d"),
        ("4 Mar 2021", "%d %b %Y"),
        ("04-Mar-2021", "%d-%b-%Y"),
        ("Mar 4, 2021", "%b %d, %Y"),
        ("03/04/2021 3:06 PM", "%m/%d/%Y %I:%M %p"),
        ("20210304", "%Y%m%d"),
        ("04.03.21", "%d.%m.%y"),
        ("04-03-2021", "%d-%m-%Y"),
    ],
)
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


@pytest.mark.parametrize(
    "cells",
    [["word", "other"], ["1.5", "2.5"], ["2021-13-40"], ["a 1"], [None], ["12:99"]],
    ids=str,
)
def test_what_is_no_date(cells):
    assert form_of(pa.array(cells, pa.string())) is None


def test_dates_that_do_not_exist_are_missing():
    found = seconds(pa.array(["2021-02-28", "2021-02-30", "soon", "2021-03-01"]), "iso")
    assert np.isnan(found).tolist() == [False, True, True, False]


def test_typed_dates():
    days = np.array(["2021-03-04", "1969-12-31"], "datetime64[D]")
    zoned = pa.array(days.astype("datetime64[ms]"), pa.timestamp("ms", "UTC"))
    for column in (
        pa.array(days),
        pa.array(days.astype("datetime64[ns]")),
        zoned,
        zoned.cast(pa.date64()),
    ):
        assert seconds(column, None).tolist() == days.astype("datetime64[s]").astype(float).tolist()


def test_cycles_are_shares_of_a_turn():
    at = np.array(
        ["2020-07-01T12:00", "2021-01-04T00:00", "2020-02-29T18:00"], "datetime64[s]"
    ).astype(float)
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


N = 240
RNG = np.random.default_rng(0)
Y = RNG.normal(size=N)


def fitted(cells, y=Y):
    """The treatment of one column beside a plain one, and its encoder, as a saved model would have
    it."""
    batch = pa.record_batch({"x": cells, "plain": RNG.normal(size=len(y)), "y": y})
    found = Columns("y").fit([batch])
    assert Columns.from_state(found.state()).state() == found.state()
    encoder = found.encoders_.get("x")
    return found.treatments_[0], from_state(encoder.state()) if encoder else None


def told(treatment, words):
    assert any(words in text for text in treatment.warnings), treatment.warnings


MONTHS = {"2024-03": "%Y-%m", "03/2024": "%m/%Y", "2024/03": "%Y/%m", "Mar 2024": "%b %Y"}


@pytest.mark.parametrize("example", MONTHS)
def test_months_are_dates(example):
    form = MONTHS[example]
    days = np.datetime64("2015-01") + RNG.integers(0, 110, N)
    cells = [d.item().strftime(form) for d in days]
    assert form_of(pa.array(cells)) == form
    assert np.array_equal(
        seconds(pa.array(cells), form), days.astype("datetime64[s]").astype(float)
    )
    treatment, encoder = fitted(cells)
    assert treatment.kind == "date"
    assert encoder.cycles == ("year",)


def test_dates_in_several_forms_are_read_and_told():
    days = np.datetime64("2020-01-01") + RNG.integers(0, 900, N)
    forms = ["%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y"]
    cells = [d.item().strftime(forms[i % 3]) for i, d in enumerate(days)]
    treatment, encoder = fitted(cells)
    assert treatment.kind == "date"
    told(treatment, "holds dates in several forms")
    assert np.array_equal(
        encoder.read(pa.array(cells))[0][:, 0], days.astype("datetime64[s]").astype(float)
    )


def test_one_column_never_has_the_day_both_first_and_second():
    """What is neither a day nor a month beyond 12 would be read by whichever form comes first."""
    cells = pa.array(["13/04/2024", "04/25/2024", "01/02/2024", "2024-05-01"] * 20)
    form = form_of(cells)
    assert form is None or not {"%d/%m/%Y", "%m/%d/%Y"} <= set(form.split(SEVERAL))


def test_what_only_looks_like_dates_is_none():
    for cells in (
        ["AB-12", "CD-34", "EF-2020"] * 9,
        ["12-34", "56-78"] * 9,
        ["1.2.3", "4.5.6.7"] * 9,
    ):
        assert form_of(pa.array(cells)) is None


FAR = [2**62 - 5, -(2**62), 2**63 - 1, -(2**63) + 1]
STAMPS = [
    pa.timestamp("us"),
    pa.timestamp("ms"),
    pa.timestamp("s"),
    pa.timestamp("us", "UTC"),
    pa.date64(),
]


@pytest.mark.parametrize("kind", STAMPS, ids=str)
def test_dates_beyond_the_calendar_count_as_missing(tmp_path, kind):
    """No calendar can write the year 148,107, nor any library here."""
    near = [86_400 * (19_675 + i) for i in range(N - len(FAR))]
    unit = {"us": 10**6, "ms": 1000, "s": 1}[getattr(kind, "unit", "ms")]
    far = [v - v % 86_400_000 + 86_400_000 * (v < 0) for v in FAR] if kind == pa.date64() else FAR
    stamps = pa.array([*(v * unit for v in near), *far], pa.int64()).cast(kind)
    pyarrow.feather.write_feather(
        pa.table({"t": stamps, "x": Y, "y": Y[::-1]}), tmp_path / "t.arrow"
    )
    found = Columns("y").fit(open_source(tmp_path / "t.arrow"))
    assert (found.treatments_[0].kind, found.treatments_[0].n_missing) == ("date", len(FAR))
