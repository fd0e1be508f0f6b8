"""The gallery in the site: its pages are written beside the others, and `{gallery}` lists them."""

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from mercer.gallery import PAGES, write


class Gallery(Directive):
    """Every page of the gallery: its title, which is a link, and its claim."""

    def run(self) -> list[nodes.Node]:
        first = nodes.reference("", "All pages at a glance", refuri="gallery/index.html")
        pages = nodes.enumerated_list("", *map(_item, PAGES), classes=["gallery"])
        return [nodes.paragraph("", "", first), pages]


def _item(page) -> nodes.list_item:
    link = nodes.reference("", page.title, refuri=f"gallery/{page.slug}.html")
    return nodes.list_item(
        "", nodes.paragraph("", "", nodes.strong("", "", link)), nodes.paragraph("", page.claim)
    )


def written(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.format == "html":
        write(Path(app.outdir) / "gallery")


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("gallery", Gallery)
    app.connect("build-finished", written)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
