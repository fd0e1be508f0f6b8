"""Ctrl-C before the command line is there."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mercer.cli import early
from mercer.cli.early import sentence_for_ctrl_c
from mercer.cli.guard import guarded


def test_ctrl_c_while_the_command_line_is_imported(tmp_path):
    """A module that typer needs is made to send the signal in the middle of its import, and to
    swallow what comes of it."""
    code = "import os, signal, time\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(5)\nexcept BaseException:\n    pass\n"
    (tmp_path / "typer.py").write_text(code + "raise ImportError('cut short')")
    words = [sys.executable, "-c", "from mercer.cli import main; main()"]
    found = subprocess.run(
        words,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        timeout=60,
    )
    assert (found.returncode, found.stderr) == (
        1,
        "mercer: interrupted; nothing was left half-written.\n",
    )


def test_an_import_leaves_signals_as_they_were():
    before = signal.getsignal(signal.SIGINT)
    with sentence_for_ctrl_c():
        during = signal.getsignal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert (during is early.stop) == (before is signal.default_int_handler)


def test_a_signal_in_an_import_is_an_interruption(capsys):
    """An import that is cut short may raise anything."""

    def cut_short():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise ImportError("cut short") from None

    with pytest.raises(SystemExit) as stopped, guarded():
        cut_short()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "mercer: interrupted; nothing was left half-written.\n"


def test_ctrl_c_before_a_command_begins(monkeypatch, capsys):
    def cut_short(**options):
        raise KeyboardInterrupt

    entry = sys.modules["mercer.cli.app"]  # the module; mercer.cli.app is the application in it
    monkeypatch.setattr(entry, "app", cut_short)
    monkeypatch.setattr(entry, "finish", sys.exit)
    with pytest.raises(SystemExit) as stopped:
        entry.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "mercer: interrupted; nothing was left half-written.\n"


def test_ctrl_c_while_the_flags_are_read():
    """typer would end with 130 and say nothing."""
    meddled = "typer.core.TyperGroup.invoke = lambda self, ctx: (os.kill(os.getpid(), signal.SIGINT), time.sleep(5))"
    code = f"import os, signal, sys, time, typer.core\n{meddled}\nsys.argv = ['mercer', 'demo']\nfrom mercer.cli import main\nmain()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (
        1,
        "mercer: interrupted; nothing was left half-written.\n",
    )
