"""The oldest versions that are claimed are those that the tests are run with."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"([A-Za-z0-9-]+)(?:>=([0-9.]+))?$")


def claimed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["cli"], *extras["dev"]]
    return dict(NAME.match(line).groups() for line in lines)


def pinned():
    lines = (ROOT / "tools/oldest.txt").read_text().partition("# ---")[0].splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def parts(version):
    numbers = [int(part) for part in version.split(".")]
    return numbers + [0] * (3 - len(numbers))


def test_claims_are_pinned():
    claims = {name: oldest for name, oldest in claimed().items() if oldest}
    assert {n: parts(v) for n, v in claims.items()} == {n: parts(v) for n, v in pinned().items()}


def test_all_that_users_need_has_a_claim():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    assert all(NAME.match(line).group(2) for line in lines)
