"""`{pages}`: a table of contents whose patterns may match nothing, so that an order can be given to
pages that come and go."""

from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.directives.other import TocTree
from sphinx.util.typing import ExtensionMetadata

KINDS = (".md", ".rst", ".ipynb")


class Pages(TocTree):
    """As `{toctree}` with `:glob:`."""

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        there = [e for e in self.content if any(any(folder.glob(f"{e}{k}")) for k in KINDS)]
        self.content = StringList(there, source=self.env.docname)
        self.options["glob"] = None
        return super().run() if there else []


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("pages", Pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
