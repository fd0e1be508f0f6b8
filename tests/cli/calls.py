"""The command line, called in this process."""

from typer.testing import CliRunner

from mercer.cli import app


def call(*words, **settings):
    return CliRunner().invoke(app, [str(w) for w in words], **settings)
