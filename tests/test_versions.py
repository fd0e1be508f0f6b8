"""What a report of a problem shows, and what it keeps to itself."""

import os
import platform

import mercer
from mercer.versions import NEEDED


def test_versions_are_those_that_are_installed(capsys):
    mercer.show_versions()
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert f"python: {platform.python_version()}" in lines
    assert f"mercer: {mercer.__version__}" in lines
    for name in NEEDED:
        assert any(line.startswith(f"{name}: ") and "none" not in line for line in lines), name


def test_nothing_names_a_folder_a_user_or_a_machine(capsys):
    mercer.show_versions()
    out = capsys.readouterr().out
    assert os.sep not in out
    assert platform.node() not in out
    assert os.path.expanduser("~") not in out
