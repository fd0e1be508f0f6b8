"""`{commands}`: what each command of the command line says of itself with --help."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata
from typer.main import get_command
from typer.testing import CliRunner

from mercer.cli import app as program

WIDTH = 92


class Commands(SphinxDirective):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        return [_section(name) for name in sorted(get_command(program).commands)]


def _section(name: str) -> nodes.section:
    title = f"mercer {name}"
    shown = CliRunner().invoke(program, [name, "--help"], terminal_width=WIDTH).output
    text = nodes.literal_block(shown, shown, language="text")
    return nodes.section("", nodes.title(title, title), text, ids=[title.replace(" ", "-")])


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
