"""Help, at once, of the commands that work."""

import subprocess
import sys

from tests.cli.calls import call


def test_help_imports_nothing_heavy():
    code = "import sys; from mercer.cli import app; print(sorted({'numpy', 'sklearn', 'numba', 'pyarrow', 'scipy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_lists_the_commands_that_work():
    text = call("--help").stdout
    assert all(word in text for word in ("fit", "predict", "demo", "gallery", "Exit status"))
    assert call("--version").stdout.startswith("mercer ")
