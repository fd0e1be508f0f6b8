"""What reaches a terminal: no control characters, whatever is in the data; and no rows in a report
that shall have none."""

import io
import json
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.cli.summary import summary
from mercer.cli.terminal import Screen, in_json, printable
from mercer.report import html
from tests.cli.calls import call
from tests.report.examples import regression

EVIL = "a\x1b[31m\x9b2J\x07\x08"


def controls(text):
    return [c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"]


@given(st.text())
def test_printable_text_has_no_controls_and_keeps_the_rest(text):
    shown = printable(text)
    assert len(shown) == len(text)
    assert not controls(shown)
    assert all(a == b for a, b in zip(text, shown, strict=True) if a.isprintable() or a in "\n\t")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_means_the_same(text):
    told = in_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(told) == text
    assert not controls(told)


@given(st.lists(st.binary()))
def test_a_screen_takes_any_bytes_in_any_pieces(parts):
    whole, pieces = io.BytesIO(), io.BytesIO()
    Screen(whole).write(b"".join(parts))
    screen = Screen(pieces)
    for part in parts:
        screen.write(part)
    assert pieces.getvalue() == whole.getvalue()
    assert not controls(whole.getvalue().decode())


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    place = tmp_path_factory.mktemp("evil")
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    names = {
        EVIL: x,
        "town": np.where(x > 0, EVIL, "b"),
        "secret": [f"row {i} of its own kind, held" for i in range(120)],
    }
    pq.write_table(
        pa.table(
            {**names, f"y{EVIL}": np.where(x + rng.normal(size=120) > 0, f"up{EVIL}", "down")}
        ),
        place / "d.parquet",
    )
    flags = ["--time", "0.001", "--out", place / "m.mercer"]
    return place, call("fit", place / "d.parquet", "-t", f"y{EVIL}", "--exclude", "secret", *flags)


def test_no_control_of_the_data_reaches_the_terminal(evil, tmp_path):
    place, done = evil
    assert done.exit_code == 0, done.output
    found = [
        done,
        call("predict", place / "m.mercer", place / "d.parquet", "-o", tmp_path / "p.csv"),
    ]
    found.append(call("fit", place / "d.parquet", "-t", f"nothing{EVIL}", "--out", tmp_path / "x"))
    found.append(call("fit", place / f"none{EVIL}.csv", "-t", "y", "--out", tmp_path / "x"))
    assert [f.exit_code for f in found] == [0, 0, 2, 2]
    assert not any(controls(f.output) for f in found)
    assert "y" + printable(EVIL)[:1] in done.stdout


def test_no_rows_leaves_rows_out_of_the_report(evil, tmp_path):
    place, _ = evil
    data = pq.read_table(place / "d.parquet")
    data = data.append_column("mark", pa.array([f"unmistakable {i % 40}" for i in range(120)]))
    pq.write_table(data.drop_columns(["secret"]), tmp_path / "d.parquet")
    texts = []
    for more in ([], ["--no-rows"]):
        flags = ["--time", "0.001", "--out", tmp_path / "m.mercer", "--overwrite", "--json", *more]
        done = call("fit", tmp_path / "d.parquet", "-t", f"y{EVIL}", *flags)
        assert done.exit_code == 0, done.output
        texts.append((json.loads(done.stdout), (tmp_path / "m.html").read_text(encoding="utf-8")))
    assert texts[0][0]["worst"]
    assert "Worst rows" in texts[0][1]
    assert texts[1][0]["worst"] == texts[1][0]["points"] == []
    assert "Worst rows" not in texts[1][1]
    assert "--no-rows" in texts[1][0]["command"]


def test_losses_above_one_and_errors_are_explained():
    from dataclasses import replace

    e = replace(regression(), metric="r2", importance=(("size", 1.4, 0.1), ("age", 0.2, 0.1)))
    why = "A loss above 1 means that without the column predictions are worse than the mean"
    assert why in summary(e)
    assert why in html(e)
    assert why not in summary(replace(e, importance=(("size", 0.4, 0.1),)))
    assert "The error is the distance between the actual and the predicted value." in html(e)
