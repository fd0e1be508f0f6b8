"""Docstrings are read as the plain text that they are: |x - z| is a norm and no substitution, coef_
an attribute and no link. What a class inherits from scikit-learn is left to its own reference."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

LISTS = ("Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
CODE = re.compile(r"(``.+?``|`[^`]+`_?)")
numpydoc_entry = SphinxDocString._process_param
FORMULA = re.compile(r"[^>]*\)")  # numpydoc takes such a first line for a signature, and drops it
MARKS = re.compile(r"[|*]|(?<=\w)_(?!\w)")


def plain(lines: list[str]) -> list[str]:
    """The lines with marks of reStructuredText escaped outside of examples, code and entries.

    >>> plain(["The norm |x| of `|a|`, in coef_.", ">>> 2 | 1", "3"])
    ['The norm \\\\|x\\\\| of `|a|`, in coef\\\\_.', '>>> 2 | 1', '3']
    """
    found = [_escaped(line) if prose else _entry(line) for line, prose in _marked(lines)]
    return ["\\ " + found[0], *found[1:]] if found and FORMULA.fullmatch(found[0]) else found


def _marked(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is prose: not an example, a literal block or an entry of a list."""
    section, example, literal = "", False, None
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        indent = len(line) - len(line.lstrip())
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if re.fullmatch("-{3,}", below.strip()) and len(below.strip()) == len(line.strip()):
            section = line.strip()
        if line.strip() and literal is not None and indent <= literal:
            literal = None
        entry = section in LISTS and indent == 0
        yield line, not (example or literal is not None or entry)
        if literal is None and not example and line.rstrip().endswith("::"):
            literal = indent


def _escaped(line: str) -> str:
    parts = CODE.split(line)
    parts[::2] = [MARKS.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def _entry(line: str) -> str:
    """Names of an entry are bold and need nothing; its type is prose."""
    names, colon, kind = line.partition(" : ")
    return names + colon + _escaped(kind)


def described(
    doc: SphinxDocString, name: str, lines: list[str], summary: bool
) -> tuple[str, list[str]]:
    """An attribute as the class describes it; the property's own words only where it does not."""
    _, words = numpydoc_entry(doc, name, lines, summary)
    return f"**{name}**", lines or plain(words)


def process(
    app: Sphinx, what: str, name: str, of: object, options: object, lines: list[str]
) -> None:
    lines[:] = plain(lines)


def signature(
    app: Sphinx, what: str, name: str, of: object, options: object, given: str, returns: str
) -> tuple[str, str]:
    """That of Python: numpydoc would take a formula for one."""
    return given, returns


def skip(app: Sphinx, what: str, name: str, of: Any, skipped: bool, options: object) -> bool | None:
    """Show methods and properties of Mercer; fields and fitted attributes stand in the docstring of
    the class."""
    if isinstance(of, property):
        return True if name.endswith("_") else skipped
    method = inspect.unwrap(getattr(of, "__func__", of))
    if not inspect.isroutine(method):
        return True
    ours = str(getattr(method, "__module__", "")).startswith("mercer")
    return skipped if ours else True


def setup(app: Sphinx) -> ExtensionMetadata:
    SphinxDocString._process_param = described
    app.connect("autodoc-process-docstring", process, priority=400)  # before numpydoc
    app.connect("autodoc-process-signature", signature, priority=400)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
