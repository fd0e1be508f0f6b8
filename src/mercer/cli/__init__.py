"""The command line: `mercer fit`, `mercer predict`, `mercer demo`. Nothing heavy is imported before
a command needs it."""

from mercer.cli.early import sentence_for_ctrl_c

with sentence_for_ctrl_c():
    from mercer.cli.app import app, main

__all__ = ["app", "main"]
