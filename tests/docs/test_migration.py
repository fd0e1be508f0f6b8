"""The tables of docs/migration.md are complete for the scikit-learn that is installed, and name what
exists."""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn import decomposition, kernel_ridge, svm
from sklearn.metrics import pairwise

import mercer
from mercer import kernels, lifts
from mercer.testing.pairs import twins

PAGE = Path(__file__).parents[2] / "docs" / "migration.md"
HEADING = re.compile(r"^## (sklearn\S+) → (mercer\S+)$", re.MULTILINE)
ROW = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.MULTILINE)
NONE = "—"


def sections(text):
    """(theirs, ours, cells by name) of every section."""
    parts = HEADING.split(text)[1:]
    bodies = [part.split("\n## ")[0] for part in parts[2::3]]
    return [
        (theirs, ours, dict(ROW.findall(body)), body)
        for theirs, ours, body in zip(parts[::3], parts[1::3], bodies, strict=True)
    ]


SECTIONS = sections(PAGE.read_text(encoding="utf-8"))
every = pytest.mark.parametrize(
    "section", SECTIONS, ids=lambda s: s[0].rpartition(".")[2] if isinstance(s, tuple) else str(s)
)


def found(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def settings(cls):
    return set(inspect.signature(cls).parameters)


def public_methods(cls):
    """What a user calls: not what scikit-learn makes, nor settings."""
    return {
        f"{name}()"
        for name in dir(cls)
        if not name.startswith(("_", "set_", "get_")) and callable(getattr(cls, name))
    }


def missing(theirs, cells):
    return sorted((settings(found(theirs)) | public_methods(found(theirs))) - set(cells))


def unknown(ours, cells):
    """Code in the Mercer column that is no setting, attribute or method of ours, nor a name of the
    package."""
    cls = found(ours)
    doc = inspect.getdoc(cls) or ""
    out = []
    for code in re.findall("`([^`]+)`", " ".join(cells.values())):
        name = re.match(r"\w+", code).group()
        fitted = name.endswith("_") and re.search(rf"\b{name}\b", doc)
        if not (name in settings(cls) or hasattr(cls, name) or fitted or _public(name)):
            out.append(code)
    return out


def _public(name):
    return any(hasattr(module, name) for module in (mercer, kernels, lifts))


def denied(ours, cells):
    """What is said to have no counterpart, though ours has a setting or method of that name."""
    cls = found(ours)
    return [
        name
        for name, cell in cells.items()
        if cell.startswith(NONE)
        and (name in settings(cls) or hasattr(cls, name.removesuffix("()")))
    ]


@every
def test_every_parameter_and_method_stands_in_the_table(section):
    theirs, _, cells, _ = section
    assert not missing(theirs, cells)


@every
def test_what_the_table_names_exists(section):
    _, ours, cells, _ = section
    assert not unknown(ours, cells)


@every
def test_nothing_that_is_there_is_denied(section):
    _, ours, cells, _ = section
    assert not denied(ours, cells)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 7.0])
def test_the_formulas_of_the_page(gamma):
    X, Z = np.random.default_rng(0).normal(size=(2, 9, 3))
    pairs = [
        (pairwise.rbf_kernel(X, Z, gamma), kernels.Gaussian(1 / np.sqrt(2 * gamma))(X, Z)),
        (pairwise.laplacian_kernel(X, Z, gamma), kernels.Laplace(1 / gamma, norm=1)(X, Z)),
        (
            pairwise.polynomial_kernel(X, Z, 3, gamma, 0.5),
            kernels.Polynomial(3, bias=0.5)(np.sqrt(gamma) * X, np.sqrt(gamma) * Z),
        ),
    ]
    for theirs, ours in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_the_defaults_of_the_page(name):
    """What has to be written for what they leave out."""
    X, Z = np.random.default_rng(1).normal(size=(2, 40, 3))
    y, labels, tight = X[:, 0] * X[:, 1], X[:, 0] > 0, {"tol": 1e-7}
    there = {"gamma": "scale", "coef0": 0.0, **tight}
    pairs = [
        (svm.SVC(kernel=name, **tight), mercer.KernelSVC(name, **there), labels),
        (svm.SVR(kernel=name, **tight), mercer.KernelSVR(name, **there), y),
        (
            kernel_ridge.KernelRidge(kernel=name),
            mercer.KernelRidge(name, gamma="auto", fit_intercept=False, via="exact"),
            y,
        ),
    ]
    for theirs, ours, target in pairs:
        ask = "decision_function" if hasattr(theirs, "decision_function") else "predict"
        said, found = (getattr(m.fit(X, target), ask)(Z) for m in (theirs, ours))
        np.testing.assert_allclose(found, said, atol=1e-4 * np.abs(said).max())
    theirs = decomposition.KernelPCA(2, kernel=name).fit(X).transform(Z)
    ours = mercer.KernelPCA(2, name, gamma="auto", via="exact").fit(X).transform(Z)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)


def test_every_twin_has_a_section():
    there = {theirs.rpartition(".")[2]: ours.rpartition(".")[2] for theirs, ours, _, _ in SECTIONS}
    twice = {name: type(t.ours).__name__ for name, t in twins().items()}
    assert twice.items() <= there.items()


ANSWERS = (
    "predict",
    "predict_proba",
    "decision_function",
    "predict_interval",
    "score",
    "transform",
    "inverse_transform",
    "partial_fit",
    "merge",
)
OWN = re.compile(r"^\| `(mercer\S*)` \| .+ \| (.+) \|$", re.MULTILINE)


def public_estimators():
    """By the shortest path."""
    found = {f"{m.__name__}.{n}": getattr(m, n) for m in (lifts, mercer) for n in m.__all__}
    found = {p: c for p, c in found.items() if inspect.isclass(c) and hasattr(c, "fit")}
    shortest = {c: p for p, c in found.items() if c is not lifts.Lift}  # an abstract one
    return {p: c for c, p in shortest.items()}


def test_every_estimator_stands_in_the_table_with_all_that_it_answers():
    told = dict(OWN.findall(PAGE.read_text(encoding="utf-8")))
    there = {
        path: ", ".join(f"`{name}()`" for name in ANSWERS if hasattr(cls, name))
        for path, cls in public_estimators().items()
    }
    assert told == there


def test_the_tables_can_fail():
    theirs, ours, cells, _ = next(s for s in SECTIONS if s[0].endswith(".SVC"))
    without = {name: cell for name, cell in cells.items() if name not in ("C", "predict()")}
    assert missing(theirs, without) == ["C", "predict()"]
    assert unknown(ours, {"C": "`cost`, `C`"}) == ["cost"]
    assert denied(ours, {"C": NONE, "predict()": f"{NONE} none", "nu": NONE}) == ["C", "predict()"]
