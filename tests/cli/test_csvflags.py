"""Flags say how csv files are written."""

import json

from tests.cli.calls import call


def test_flags_say_how_csv_files_are_written(folder, tmp_path):
    odd = tmp_path / "s.csv"
    odd.write_bytes((folder / "d.csv").read_bytes().replace(b",", b"^"))
    flags = ["--delimiter", "^", "--decimal", ".", "--header", "--encoding", "utf-8"]
    found = call(
        "fit",
        odd,
        "-t",
        "progression",
        "--time",
        "0.01",
        "--out",
        tmp_path / "m.mercer",
        "--json",
        *flags,
    )
    assert found.exit_code == 0, found.output
    assert (
        "--delimiter '^' --decimal . --encoding utf-8 --header"
        in json.loads(found.stdout)["command"]
    )
    assert call("predict", tmp_path / "m.mercer", odd, "-o", "-", *flags).stdout.count("\n") == 443
    assert call("predict", tmp_path / "m.mercer", odd, "-o", "-").exit_code == 1
    bare = call(
        "fit", folder / "d.csv", "-t", "progression", "--no-header", "--out", tmp_path / "n.mercer"
    )
    assert "column_1" in bare.stderr
