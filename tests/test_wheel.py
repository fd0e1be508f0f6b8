"""The wheel, in an environment that has nothing else: the README's Python and command lines run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(
    r"```(python|)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S
)
PYTHON = "\n".join(body for language, body in BLOCKS if language == "python")
COMMANDS = [
    line.partition("#")[0].split()
    for _, body in BLOCKS
    for line in body.splitlines()
    if line.startswith("mercer ")
]


def run(*command, cwd):
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder with the scripts of an empty environment into which the wheel, with the command
    line, was installed."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    assert list(folder.glob("*.tar.gz"))
    run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    scripts = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", f"{wheel}[cli]", cwd=folder)
    return scripts


@pytest.mark.long
def test_the_readme_runs_from_the_wheel(installed, tmp_path):
    assert len(PYTHON) > 1000
    assert len(COMMANDS) > 3
    (tmp_path / "readme.py").write_text(PYTHON.replace("time=20", "time=3"), encoding="utf-8")
    out = run(installed / "python", "-W", "error::DeprecationWarning", "readme.py", cwd=tmp_path)
    assert "features" in out
    for command in COMMANDS:
        given = [
            "5" if before == "--time" else word
            for before, word in zip(["", *command], command, strict=False)
        ]
        run(installed / given[0], *given[1:], cwd=tmp_path)


def test_the_source_archive_has_what_tests_need():
    """The files of tests are in it, those of no use to others are not."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    include = re.search(r"targets\.sdist\]\ninclude = \[(.*?)\]", text).group(1)
    names = re.findall(r'"(.*?)"', include)
    assert {"src", "tests"} <= set(names)
    for name in names:
        assert (ROOT / name).exists(), name
