"""Public classes are documented in numpydoc: parameters in order with their types, attributes, an
example that runs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

PACKAGES = [
    "mercer",
    "mercer.models",
    "mercer.lifts",
    "mercer.kernels",
    "mercer.operators",
    "mercer.priors",
    "mercer.strings",
    "mercer.testing",
    "mercer.testing.twins",
    "mercer.testing.pairs",
]
MODULES = [
    "mercer.methods",
    "mercer.plans",
    "mercer.models.two_sample",
]  # without __all__: what they define
FUNCTIONS = [
    "fit_table",
    "load",
    "check_psd",
    "mmd_test",
    "hsic_test",
    "check_kernel",
    "check_lift",
    "check_statistic",
    "check_text_transformer",
    "check_twin",
    "twins",
]
WIDTH = 96


def public() -> dict[str, Any]:
    """All public objects by name: those that `__all__` lists, and what modules without one
    define."""
    found: dict[str, Any] = {}
    for name in PACKAGES:
        package = importlib.import_module(name)
        found |= {n: getattr(package, n) for n in package.__all__}
    for name in MODULES:
        found |= {
            n: v
            for n, v in vars(importlib.import_module(name)).items()
            if n[0] != "_" and getattr(v, "__module__", "") == name
        }
    return found


CLASSES = {name: o for name, o in public().items() if inspect.isclass(o)}
DOCUMENTED = CLASSES | {name: public()[name] for name in FUNCTIONS}


def sections(doc: str) -> dict[str, list[str]]:
    """The lines of each section by its title; those before the first are under ""."""
    found: dict[str, list[str]] = {"": []}
    title, lines = "", doc.splitlines()
    for line, rule in zip(lines, [*lines[1:], ""], strict=True):
        if line and re.fullmatch("-+", rule) and len(rule) == len(line):
            title = line
            found[title] = []
        elif not (found[title] == [] and re.fullmatch("-+", line)):
            found[title].append(line)
    return found


def entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Name and type of each entry of a section; "a, b : type" are two."""
    for line in lines:
        if line and not line[0].isspace():
            names, _, kind = line.partition(" : ")
            yield from ((name, kind) for name in names.split(", "))


def parameters(of: Any) -> list[str]:
    """What the constructor, or the function, takes; exceptions and protocols take nothing of
    ours."""
    if inspect.isclass(of) and (
        issubclass(of, BaseException) or getattr(of, "_is_protocol", False)
    ):
        return []
    return list(inspect.signature(of).parameters)


def cleaned(of: Any) -> str:
    return (
        inspect.cleandoc(vars(of).get("__doc__") or "")
        if inspect.isclass(of)
        else inspect.getdoc(of) or ""
    )


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_parameters_are_named_in_order_with_their_types(name):
    of = DOCUMENTED[name]
    told = list(entries(sections(cleaned(of)).get("Parameters", [])))
    assert [n for n, _ in told] == parameters(of)
    assert all(kind.strip() for _, kind in told)


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_there_is_an_example(name):
    assert any(
        line.startswith(">>>") for line in sections(cleaned(DOCUMENTED[name])).get("Examples", [])
    )


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_attributes_are_fitted_ones_with_types_that_the_class_has(name):
    of = CLASSES[name]
    for attribute, kind in entries(sections(cleaned(of)).get("Attributes", [])):
        assert attribute.endswith("_")
        assert kind.strip(), attribute
        assert attribute in written(of), attribute


def written(of: type) -> set[str]:
    """The names of a class's attributes: properties, annotations, and what its methods set."""
    found: set[str] = set()
    for base in of.__mro__:
        if base.__module__.startswith("mercer."):
            found |= {*vars(base), *vars(base).get("__annotations__", {})}
            found |= set(re.findall(r"self\.(\w+_)\b", inspect.getsource(base)))
    return found


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_it_begins_with_one_line_and_is_narrow(name):
    of = DOCUMENTED[name]
    first, *rest = cleaned(of).splitlines()
    assert first
    assert not rest or rest[0] == ""
    assert [
        line for line in (f'    """{first}', *(f"    {line}" for line in rest)) if len(line) > WIDTH
    ] == []


@pytest.mark.parametrize("name", sorted(n for n, o in CLASSES.items() if hasattr(o, "fit")))
def test_methods_of_estimators_and_maps_have_a_sentence(name):
    methods = {
        n: v
        for base in CLASSES[name].__mro__
        if base.__module__.startswith("mercer.")
        for n, v in vars(base).items()
    }
    silent = [
        n
        for n, v in methods.items()
        if inspect.isfunction(v)
        and n[0] != "_"
        and not v.__doc__
        and not inherited(CLASSES[name], n)
    ]
    assert silent == []


def inherited(of: type, name: str) -> bool:
    """Whether a class above has the sentence."""
    return bool(inspect.getdoc(getattr(of, name)))
