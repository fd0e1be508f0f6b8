"""What columns are taken for."""

import numpy as np
import pyarrow as pa
import pytest

from mercer.tables import Columns, open_source
from mercer.tables.encoders import from_state
from tests.tables.examples import N, fitted, table, treatment


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([f"{i / 7:.3f}" for i in range(N)], "number"),
        (["yes", "No"] * (N // 2), "boolean"),
        ([True, False, None, True] * (N // 4), "boolean"),
        ([0, 1] * (N // 2), "boolean"),
        (["u", "v", "w", ""] * (N // 4), "category"),
        ([f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)], "date"),
        ([20200101 + i % 28 for i in range(N)], "date"),
        (np.datetime64("2020-01-01") + np.arange(N), "date"),
        ([f"a few words that differ in {i} ways" for i in range(N)], "text"),
        ([f"foo{i % 12} bar{i // 12}" for i in range(N)], "text"),
        (["same"] * N, "constant"),
        (["5"] * (N - 1) + ["oops"], "constant"),
        (["12:30", "23:55", "07:00", "00:05"] * (N // 4), "date"),
        ([3.0] * N, "constant"),
        ([None] * N, "empty"),
        (["NA", ""] * (N // 2), "empty"),
        ([np.inf] * N, "empty"),
        (range(5, 5 + N), "id"),
        ([f"key-{i}" for i in range(N)], "id"),
        ([[1, 2]] * N, "excluded"),
        ([f"{i % 40}" for i in range(N - 40)] + ["many"] * 40, "category"),
    ],
    ids=[
        "numbers as text",
        "yes and no",
        "booleans",
        "0 and 1",
        "words",
        "days",
        "day numbers",
        "typed days",
        "sentences",
        "two codes",
        "one word",
        "one number but for a slip",
        "times",
        "one number",
        "nulls",
        "missing words",
        "infinities",
        "running number",
        "keys",
        "lists",
        "numbers and text",
    ],
)
def test_kinds(column, kind):
    found, seen = fitted(pa.array(column))
    assert seen.kind == kind
    assert bool(seen.outputs) == (kind in ("number", "boolean", "category", "date", "text"))
    assert np.isfinite(found.transform(table(x=pa.array(column))).X).all()


def test_identifiers_go_by_order_or_by_name():
    numbers = np.random.default_rng(0).permutation(10 * N)[:N]
    assert fitted(pa.array(numbers))[1].kind == "number"
    for name, kind in {
        "customer_id": "id",
        "customerId": "id",
        "Unnamed: 0": "id",
        "paid": "number",
        "year": "number",
    }.items():
        assert treatment(Columns("y").fit(table(**{name: numbers})), name).kind == kind
    years = treatment(Columns("y").fit(table(year=np.arange(N))), "year")
    assert years.kind == "number"  # a running year is no identifier


def test_late_text_among_numbers():
    seen = fitted(pa.array([f"{i % 9}" for i in range(N - 1)] + ["oops"]))[1]
    assert seen.kind == "number"
    assert seen.warnings == (
        '"x" holds numbers, but one of its values is text ("oops"); it counts as missing.',
    )


def test_what_a_column_is_taken_for_counts_not_its_file(tmp_path):
    path = tmp_path / "t.csv"
    flag, day = np.arange(90) % 2 == 1, [f"2024-01-{i % 28 + 1:02}" for i in range(90)]
    path.write_text(
        "a,flag,day,y\n"
        + "".join(
            f"{i * i % 97}.5,{('no', 'yes')[i % 2]},{day[i]},{i % 13}.25\n" for i in range(90)
        )
    )
    found = Columns("y").fit(open_source(path))
    typed = pa.table(
        {
            "a": [i * i % 97 + 0.5 for i in range(90)],
            "flag": flag,
            "day": np.array(day, "datetime64[D]"),
        }
    )
    assert found.check(typed.schema).coerced == ()
    assert np.array_equal(
        found.transform(typed, target=False).X,
        found.transform(next(open_source(path).batches()), target=False).X,
    )
    dated = typed.set_column(1, "flag", typed.column("day"))
    assert found.check(dated.schema).coerced == (("flag", "boolean", "date"),)


def test_one_text_that_repeats_among_numbers_is_missing():
    cells = [f"{i / 7:.2f}" if i % 12 else "k.A." for i in range(N)]
    found, seen = fitted(pa.array(cells))
    n = cells.count("k.A.")
    assert n > 0.05 * N
    assert seen.kind == "number"
    assert seen.n_missing == n
    assert f'{n} of its values are text ("k.A."); they count as missing' in seen.warnings[0]
    encoder = found.encoders_["x"]
    values, unread = encoder.read(pa.array(["k.A.", "2.5", "oops", None]))
    assert np.isnan(values[:, 0]).tolist() == [True, False, True, True]
    assert unread == 1  # what training had is no surprise later
    assert from_state(encoder.state()) == encoder


@pytest.mark.parametrize(
    "texts",
    [["red", "blue", "green", "black"], ["4+"] * 4, ["long"] * 4],
    ids=["several texts", "a text with digits", "a text among few whole numbers"],
)
def test_other_texts_among_numbers_are_categories(texts):
    whole = texts[0] == "long"
    cells = [
        texts[i // 12 % 4] if i % 12 == 0 else str(i % 9) if whole else f"{i % 90 / 7:.2f}"
        for i in range(N)
    ]
    assert fitted(pa.array(cells))[1].kind == "category"


def test_marks_and_texts_count_as_missing_in_the_table_of_columns():
    cells = [f"{i / 7:.2f}" for i in range(N)]
    cells[3::20] = ["-999"] * len(cells[3::20])
    cells[5] = "oops"
    assert fitted(pa.array(cells))[1].n_missing == len(cells[3::20]) + 1


@pytest.mark.parametrize(
    ("no", "yes"),
    [("Nein", "Ja"), ("NON", "oui"), ("no", "Sí"), ("No", "SI"), ("N", "J"), ("N", "Y")],
)
def test_yes_and_no_in_other_languages_are_named_as_in_the_file(no, yes):
    found, seen = fitted(pa.array([no, yes, yes, None] * (N // 4)))
    assert seen.kind == "boolean"
    assert seen.action.startswith(f'Boolean: "{no}" or "{yes}" as 0 or 1; 100 missing values')
    read = found.encoders_["x"].read(pa.array([no.lower(), yes.upper(), "?"]))[0][:, 0]
    assert np.array_equal(read, [0, 1, np.nan], equal_nan=True)
