"""Every block of Python that readers see runs: those of a page one after another, in an empty
folder; only the seconds that a search is given are fewer."""

import doctest
import io
import re
import sys
from contextlib import redirect_stdout
from types import ModuleType

import pytest

from tests.docs.markdown import Block, blocks, name, pages

PYTHON = ("python", "py", "pycon")
OTHER = ("", "text", "bash", "sh", "console", "csv", "json", "yaml", "toml", "html")
DIRECTIVE = re.compile(r"\{[a-z-]+\}.*")
CELL = re.compile(r"\{(?:code|code-block|code-cell|sourcecode)\} *(python|py|pycon|ipython3?)?")
SECONDS = re.compile(r"\b(time|time_limit)=\d+(?:\.\d+)?")
FEWER = 1e-3
SLOW = {  # the pages that take most seconds, where loops are compiled first, wait for --all
    "README.md",
    "docs/guide/guarantees.md",
    "docs/guide/ridge.md",
}


def is_python(block: Block) -> bool:
    return block.language in PYTHON or bool(CELL.fullmatch(block.language))


def python_of(page) -> list[Block]:
    return [b for b in blocks(page.read_text(encoding="utf-8")) if is_python(b)]


def run(block: Block, page: str, names: dict) -> None:
    """Run it among the names of the blocks before; prompts are examples with what they print."""
    if re.search(r"^\s*>>> ", block.body, re.M):
        return check(block, page, names)
    body = "\n" * block.line + SECONDS.sub(rf"\1={FEWER}", block.body)
    with redirect_stdout(io.StringIO()):
        exec(compile(body, page, "exec"), names)
    return None


def check(block: Block, page: str, names: dict) -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(block.body, names, page, page, block.line)
    said = io.StringIO()
    failed = doctest.DocTestRunner(optionflags=flags).run(test, out=said.write, clear_globs=False)
    names |= test.globs
    assert not failed.failed, said.getvalue()


PAGES = [page for page in pages() if python_of(page)]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, id=name(p), marks=[pytest.mark.long] if name(p) in SLOW else [])
        for p in PAGES
    ],
)
def test_the_blocks_of_a_page_run_one_after_another(page, tmp_path, monkeypatch):
    """As a module of its own, so that what is defined there can be pickled."""
    module = ModuleType("page_that_runs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in python_of(page):
        run(block, name(page), vars(module))


def test_slow_pages_are_there():
    assert {name(p) for p in PAGES} >= SLOW


@pytest.mark.parametrize("page", pages(), ids=name)
def test_no_block_hides_behind_an_unknown_language(page):
    """A slip such as "pyhton" would leave a block untried."""
    for block in blocks(page.read_text(encoding="utf-8")):
        known = is_python(block) or block.language in OTHER or DIRECTIVE.fullmatch(block.language)
        assert known, f"{name(page)}:{block.line}: {block.language!r}"


def test_a_block_that_fails_is_told_with_its_page_and_line():
    first = Block("python", "x = 1\n", 3)
    names = {}
    run(first, "page.md", names)
    with pytest.raises(ZeroDivisionError) as told:
        run(Block("python", "x\nx / 0\n", 10), "page.md", names)
    assert (str(told.traceback[-1].path), told.traceback[-1].lineno) == ("page.md", 11)
    with pytest.raises(AssertionError, match="Expected"):
        run(Block("pycon", ">>> x + 1\n3\n", 3), "page.md", names)
    run(Block("pycon", ">>> z = x + 1\n>>> z\n2\n", 3), "page.md", names)
    assert names["z"] == 2
