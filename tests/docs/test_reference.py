"""The reference in docs/reference names every public object, and each has an example (which the
doctests run)."""

import importlib
import inspect
import pkgutil
import re

import pytest

import mercer
from tests.docs.markdown import ROOT

PUBLIC = {  # what users import from, and the names of those without __all__
    "mercer": None,
    "mercer.automl": None,
    "mercer.bounds": None,
    "mercer.datasets": None,
    "mercer.engines": None,
    "mercer.gallery": None,
    "mercer.gpu.devices": ("missing",),
    "mercer.kernels": None,
    "mercer.lifts": None,
    "mercer.methods": ("Auto", "Exact", "Fourier", "Landmarks", "Sketch"),
    "mercer.models": None,
    "mercer.models.two_sample": ("TestResult", "hsic_test", "mmd_test"),
    "mercer.operators": None,
    "mercer.pairs": ("Tile",),  # what a formula of one's own may ask
    "mercer.plans": ("Plan",),
    "mercer.priors": None,
    "mercer.report": None,
    "mercer.stats": None,
    "mercer.store": None,
    "mercer.strings": None,
    "mercer.tables": None,
    "mercer.testing": None,
    "mercer.testing.pairs": None,
    "mercer.testing.twins": None,
    "mercer.versions": ("show_versions",),
}
INTERNAL = {  # rooms that users never import from
    "cli": "a program; the reference shows its --help",
    "costs": "prices of ways, for plans",
    "demo": "a command",
    "inputs": "checks of what comes in",
    "invariants": "declarations inside classes; CONTRIBUTING.md tells of them",
    "linalg": "solvers behind the learners",
    "listed": "a registry",
    "logs": "a logger",
    "ops": "compiled loops",
    "rooms": "names that are loaded when they are first asked for",
    "tensors": "where rows lie; docs/guide/scaling.md tells of it",
    "text": "its public name is mercer.NGrams",
}
PAGES = sorted((ROOT / "docs" / "reference").glob("*.rst"))
BLOCK = re.compile(r"^\.\. autosummary::\n(?:   :.*\n)*\n((?:   .+\n)+)", re.M)
DIRECTIVES = re.compile(r"^\.\. currentmodule:: (\S+)$|" + BLOCK.pattern, re.M)


def named(text):
    """The full paths that the lists of a page name."""
    module = ""
    for found in DIRECTIVES.finditer(text):
        if found[1]:
            module = found[1]
            continue
        for entry in found[2].split():
            yield f"{module}.{entry}"


def at(path):
    """The object at a path: the longest part that is a module, and attributes of it."""
    parts = path.split(".")
    for i in range(len(parts) - 1, 0, -1):
        try:
            of = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for part in parts[i:]:
            of = getattr(of, part)
        return of
    raise AssertionError(path)


def public():
    """Every public object by its path."""
    for module, names in PUBLIC.items():
        home = importlib.import_module(module)
        for n in names or home.__all__:
            value = getattr(home, n)
            if not inspect.ismodule(value):
                yield f"{module}.{n}", value


PATHS = [path for page in PAGES for path in named(page.read_text(encoding="utf-8"))]


def test_every_public_name_is_in_the_reference_once():
    assert len(PATHS) == len(set(PATHS))
    there = {}
    for path in PATHS:
        there.setdefault(id(at(path)), []).append(path)
    assert [paths for paths in there.values() if len(paths) > 1] == []
    assert [path for path, value in public() if id(value) not in there] == []


def test_the_reference_names_nothing_else():
    known = {id(value) for _, value in public()}
    assert [path for path in PATHS if id(at(path)) not in known] == []


@pytest.mark.parametrize("path", PATHS)
def test_a_name_has_a_docstring_with_an_example(path):
    value = at(path)
    if not (inspect.isclass(value) or callable(value)):
        return  # a value: the page of its module tells of it
    doc = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert re.search(r"^\s*>>> ", doc or "", re.M), path


def test_every_room_is_public_or_internal():
    rooms = {m.name for m in pkgutil.iter_modules(mercer.__path__)} - {"__main__"}
    assert rooms == {m.split(".")[1] for m in PUBLIC if "." in m} | set(INTERNAL)


def test_a_page_for_every_list_and_none_twice_in_the_index():
    index = (ROOT / "docs" / "reference" / "index.rst").read_text(encoding="utf-8")
    toctree = index.partition(".. toctree::")[2].split()[1:]
    assert toctree.count("mercer") == 1
    assert {p.stem for p in PAGES} - {"index"} <= set(toctree)


def test_lists_are_read_as_sphinx_reads_them():
    text = ".. currentmodule:: a.b\n\n.. autosummary::\n   :toctree: generated\n\n   one\n   two.three\n"
    assert list(named(text)) == ["a.b.one", "a.b.two.three"]
