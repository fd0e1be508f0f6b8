"""A folder that `mercer fit` has been in."""

import pytest

from mercer.datasets import diabetes
from tests.cli.calls import call


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A csv file, and what `mercer fit` makes of it in little time."""
    place = tmp_path_factory.mktemp("cli")
    diabetes().write_csv(place / "d.csv")
    found = call(
        "fit",
        place / "d.csv",
        "-t",
        "progression",
        "--time",
        "0.01",
        "--out",
        place / "d.mercer",
        "--report",
        place / "d.html",
    )
    assert found.exit_code == 0, found.output
    (place / "stdout").write_text(found.stdout)
    return place
