"""mercer predict: every format the same, ids as they are, and what cannot be predicted."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import mercer
from mercer.datasets import diabetes
from tests.cli.calls import call

READERS = {
    "csv": pyarrow.csv.read_csv,
    "tsv": lambda p: pyarrow.csv.read_csv(
        p, parse_options=pyarrow.csv.ParseOptions(delimiter="\t")
    ),
    "parquet": pyarrow.parquet.read_table,
    "arrow": pyarrow.feather.read_table,
    "feather": pyarrow.feather.read_table,
    "jsonl": lambda p: pyarrow.Table.from_pylist(
        [json.loads(line) for line in p.read_text().splitlines()]
    ),
}


@pytest.mark.parametrize("form", READERS)
def test_predictions_in_every_format_are_the_same(folder, tmp_path, form):
    found = call("predict", folder / "d.mercer", folder / "d.csv", "-o", tmp_path / f"p.{form}")
    assert found.exit_code == 0, found.output
    values = READERS[form](tmp_path / f"p.{form}")
    assert values.column_names == ["prediction", "lower", "upper", "unusual"]
    assert values.num_rows == 442
    assert (
        np.corrcoef(np.array(values["prediction"]), [row[-1] for row in diabetes().rows])[0, 1]
        > 0.6
    )


def test_predictions_to_standard_output_are_csv(folder):
    lines = call("predict", folder / "d.mercer", folder / "d.csv", "-o", "-").stdout.splitlines()
    assert len(lines) == 443
    assert lines[0].replace('"', "") == "prediction,lower,upper,unusual"


def test_a_header_without_rows_has_no_predictions(folder, tmp_path):
    (tmp_path / "h.csv").write_text((folder / "d.csv").read_text().splitlines()[0] + "\n")
    found = call("predict", folder / "d.mercer", tmp_path / "h.csv", "-o", "-")
    assert found.exit_code == 0, found.output
    assert found.stdout.replace('"', "").splitlines() == ["prediction,lower,upper,unusual"]
    found = call("predict", folder / "d.mercer", tmp_path / "h.csv", "-o", tmp_path / "p.parquet")
    assert "0 predictions" in found.stdout
    assert pyarrow.parquet.read_table(tmp_path / "p.parquet").num_rows == 0


def test_a_column_that_cannot_be_read_stops_predict(folder, tmp_path):
    lines = (folder / "d.csv").read_text().splitlines()
    at = lines[0].replace('"', "").split(",").index("bmi")
    rows = [line.split(",") for line in lines[1:]]
    (tmp_path / "t.csv").write_text(
        "\n".join(
            [lines[0], *(",".join([*r[:at], f"w{i}", *r[at + 1 :]]) for i, r in enumerate(rows))]
        )
    )
    for out in ("-", tmp_path / "p.csv"):
        found = call("predict", folder / "d.mercer", tmp_path / "t.csv", "-o", out)
        assert found.exit_code == 1
        assert 'no value of "bmi" reads as a number, which it was in training: "w0"' in found.stderr
        assert not found.stdout
    assert not (tmp_path / "p.csv").exists()


def test_classes_and_line_ends_in_names(tmp_path):
    """Whole numbers come back as such; a name of two lines breaks none."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    rows = "".join(f"{a:.4f},{b:.4f},{7 if a > 0 else 3}\n" for a, b in x)
    (tmp_path / "t.csv").write_text('"two\nlines",b,y\n' + rows)
    found = call(
        "fit", tmp_path / "t.csv", "-t", "y", "--time", "0.01", "--out", tmp_path / "m.mercer"
    )
    assert found.exit_code == 0, found.output
    assert "two lines (" in found.stdout
    assert (
        call(
            "predict", tmp_path / "m.mercer", tmp_path / "t.csv", "-o", tmp_path / "p.parquet"
        ).exit_code
        == 0
    )
    said = pyarrow.parquet.read_table(tmp_path / "p.parquet")["prediction"]
    assert said.type == pyarrow.int64()
    assert np.mean(np.array(said) == np.where(x[:, 0] > 0, 7, 3)) > 0.9


def test_a_reader_that_has_seen_enough_is_no_failure(folder, tmp_path):
    head, *rows = (folder / "d.csv").read_text().splitlines()
    (tmp_path / "big.csv").write_text("\n".join([head, *rows * 60]))
    words = [
        sys.executable,
        "-m",
        "mercer",
        "predict",
        str(folder / "d.mercer"),
        str(tmp_path / "big.csv"),
        "-o",
        "-",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert err == b""


ODD = [
    "007",
    " x ",
    "",
    "NA",
    "=1+1",
    "+2",
    "-3",
    "@SUM(A1)",
    "\tq",
    "1.234,5",
    'a "b", c',
    "a;=2",
    "12345678901234567890",
    "é",
]


@pytest.fixture(scope="module")
def identified(tmp_path_factory):
    """A model with an id, and the rows it is asked for."""
    place = tmp_path_factory.mktemp("ids")
    rng = np.random.default_rng(0)
    rows = [
        [f"r{i}", *map(float, x.round(4)), float((x[0] + x[1]).round(4))]
        for i, x in enumerate(rng.normal(size=(60, 2)))
    ]
    pyarrow.csv.write_csv(
        pyarrow.table(dict(zip(["=id", "a", "b", "y"], zip(*rows, strict=True), strict=True))),
        place / "t.csv",
    )
    found = call(
        "fit",
        place / "t.csv",
        "-t",
        "y",
        "--id",
        "=id",
        "--time",
        "0.01",
        "--out",
        place / "m.mercer",
    )
    assert found.exit_code == 0, found.output
    table = pyarrow.table(
        {"=id": ODD, "a": rng.normal(size=len(ODD)), "b": rng.normal(size=len(ODD))}
    )
    pyarrow.csv.write_csv(table, place / "n.csv")
    return place


def read_back(path):
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_ids_pass_through_as_they_are(identified, tmp_path):
    call("predict", identified / "m.mercer", identified / "n.csv", "-o", tmp_path / "p.csv")
    assert [row[0] for row in read_back(tmp_path / "p.csv")] == ["=id", *ODD]
    local = "=id;a;b\n" + "".join(f"{i}.{i:03d},5;{i},5;0,{i}\n" for i in range(1, 9))
    (tmp_path / "local.csv").write_text(local)
    call("predict", identified / "m.mercer", tmp_path / "local.csv", "-o", tmp_path / "q.csv")
    assert [row[0] for row in read_back(tmp_path / "q.csv")][1:] == [
        f"{i}.{i:03d},5" for i in range(1, 9)
    ]


def test_large_whole_ids_of_json_keep_their_digits(identified, tmp_path):
    ids = [2**62 + 1, 5, 2**53 + 1, -7]
    (tmp_path / "n.jsonl").write_text(
        "".join(json.dumps({"=id": i, "a": 1, "b": 2}) + "\n" for i in ids)
    )
    call("predict", identified / "m.mercer", tmp_path / "n.jsonl", "-o", tmp_path / "p.jsonl")
    assert [
        json.loads(line)["=id"] for line in (tmp_path / "p.jsonl").read_text().splitlines()
    ] == ids
    (tmp_path / "n.jsonl").write_text(
        '{"=id": 5, "a": 1, "b": 2}\n' * 30_000 + '{"=id": "x", "a": 1, "b": 2}\n'
    )
    found = call(
        "predict", identified / "m.mercer", tmp_path / "n.jsonl", "-o", tmp_path / "q.jsonl"
    )
    assert found.exit_code == 1
    assert 'turns from whole numbers into "x"' in found.stderr


def test_spreadsheets_run_nothing_of_the_predictions(identified, tmp_path):
    found = call(
        "predict",
        identified / "m.mercer",
        identified / "n.csv",
        "-o",
        tmp_path / "p.csv",
        "--spreadsheet-safe",
    )
    assert found.exit_code == 0, found.output
    names, *rows = read_back(tmp_path / "p.csv")
    assert names[0] == "'=id"
    assert not [row[0] for row in rows if row[0].startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [row[0].replace("'", "") for row in rows] == ODD
    assert [row[0] for row in rows if row[0].startswith("'")] == [
        "'=1+1",
        "'+2",
        "'-3",
        "'@SUM(A1)",
        "'\tq",
    ]
    plain = call("predict", identified / "m.mercer", identified / "n.csv", "-o", tmp_path / "q.csv")
    assert plain.exit_code == 0
    assert [row[1:] for row in read_back(tmp_path / "q.csv")] == [
        names[1:],
        *(row[1:] for row in rows),
    ]  # numbers as they are


def test_predict_reads_decimals_as_fit_did(tmp_path):
    """Thousandths that a file of few rows writes as 1,234 are no thousands where training had
    decimal commas; a file that writes points is read so, and that is said."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 9, 150).round(3)
    rows = [f"{v:.{1 + i % 3}f};{2 * v:.2f}".replace(".", ",") for i, v in enumerate(x)]
    (tmp_path / "a.csv").write_text("\n".join(["x;y", *rows]) + "\n")
    fitted = call(
        "fit", tmp_path / "a.csv", "--target", "y", "--time", "1", "--out", tmp_path / "m.mercer"
    )
    assert fitted.exit_code == 0, fitted.output
    model = mercer.load(tmp_path / "m.mercer")
    assert model.result.decimal == ","
    (tmp_path / "b.csv").write_text("x\tz\n1,234\t1\n8,765\t2\n")
    (tmp_path / "c.csv").write_text("x\tz\n1.2\t1\n8.77\t2\n")

    def predicted(name):
        found = call(
            "predict",
            tmp_path / "m.mercer",
            tmp_path / name,
            "-o",
            tmp_path / "p.csv",
            "--overwrite",
        )
        assert found.exit_code == 0, found.output
        return np.array(READERS["csv"](tmp_path / "p.csv")["prediction"]), found.output

    (values, said), (others, told) = predicted("b.csv"), predicted("c.csv")
    np.testing.assert_allclose(values, [2.468, 17.53], atol=0.5)
    np.testing.assert_allclose(others, [2.4, 17.54], atol=0.5)
    assert "writes decimals with" not in said
    assert "writes decimals with a point" in told
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = model.predict(str(tmp_path / "b.csv"))
    np.testing.assert_allclose(np.array(same["prediction"]), values)
