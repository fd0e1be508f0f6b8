"""The tables of docs/guide/migration-libraries.md name what exists here; what they say of other
libraries, which are not installed, is not tested."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import mercer
from mercer import kernels, lifts, methods
from mercer.models.intervals import Interval

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "migration-libraries.md"
ROW = re.compile(r"^\| (.+) \| (.+) \|$", re.MULTILINE)
ESTIMATORS = (
    mercer.GaussianProcessRegressor,
    mercer.GaussianProcessClassifier,
    mercer.KernelRidge,
    mercer.KernelLogistic,
    mercer.FeatureMachineRegressor,
    mercer.FeatureMachineClassifier,
    mercer.LearnedMetric,
)
VALUES = (
    Interval,
    kernels.Matern,
    kernels.RationalQuadratic,
    kernels.Periodic,
    kernels.Polynomial,
    methods.Landmarks,
)
MODULES = (mercer, kernels, lifts, methods)
OWNERS = (*MODULES, *ESTIMATORS, mercer.Kernel)
SYMBOLS = {"mercer", "k", "k1", "k2", "X", "Z", "v", "y", "n", "M", "m", "d", "penalty"}


def cells(text):
    """The right columns of the tables, without heads."""
    return [right for _, right in ROW.findall(text) if right not in ("Mercer", "---")]


def is_known(name):
    """Whether it is public, or a setting, method or attribute of what the page speaks of."""
    if name in SYMBOLS or any(hasattr(owner, name) for owner in OWNERS):
        return True
    documented = (cls.__doc__ or "" for cls in ESTIMATORS)
    return name in settings() or any(re.search(rf"^\s*{name} : ", d, re.M) for d in documented)


def settings():
    """All that their constructors, and the methods of the page, take."""
    asked = [getattr(c, m) for c in ESTIMATORS for m in ("predict", "sample_y") if hasattr(c, m)]
    return {s for f in (*ESTIMATORS, *VALUES, *asked) for s in inspect.signature(f).parameters}


def names(code):
    """The names in a piece of code; of `name=` and of what is no expression, the first."""
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        return re.findall(r"^\w+", code)
    found = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
    found += [n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    return found + [n.arg for n in ast.walk(tree) if isinstance(n, ast.keyword)]


def wrong_settings(code):
    """Keywords that the class which is called does not have."""
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        return []
    out = []
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        name = getattr(call.func, "id", "")
        made = next((getattr(m, name) for m in MODULES if hasattr(m, name)), None)
        if inspect.isclass(made):
            there = inspect.signature(made).parameters
            out += [k.arg for k in call.keywords if k.arg not in there]
    return out


def unknown(text):
    codes = [code for cell in cells(text) for code in re.findall("`([^`]+)`", cell)]
    codes = [c for c in codes if not c.startswith("mercer fit")]
    return [c for c in codes if wrong_settings(c) or not all(map(is_known, names(c)))]


TEXT = PAGE.read_text(encoding="utf-8")


def test_what_the_tables_name_exists():
    assert len(cells(TEXT)) > 40
    assert not unknown(TEXT)


@pytest.mark.parametrize(
    "code", ["KernelRidge(kernel, lambda_=1.0)", "lengthscale", "k.mmv(X)", "Landmarks(M, how=1)"]
)
def test_the_tables_can_fail(code):
    assert unknown(f"| `theirs` | `{code}` |\n")
