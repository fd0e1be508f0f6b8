"""The tables of docs/guide/choose.md are what the code that decides says.

They stand between marks in the page, and are made here from the plans, the duality table and the
constants of the contest. `python tests/docs/test_choice.py` writes them again.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogistic,
    KernelPCA,
    KernelRidge,
    KernelSVC,
)
from mercer.automl import choice, machines, select, tuning
from mercer.automl.recipes import KINDS, NAMES
from mercer.costs import MAX_CHOLESKY_ROWS
from mercer.costs.systems import MAX_FORMED, MAX_FORMED_WIDE, WIDE_ROWS
from mercer.kernels import (
    AdditiveChi2,
    AllSubsets,
    ArcCosine,
    Chi2,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    exp,
)
from mercer.lifts.duality import EXACT_LIMIT
from mercer.lifts.widths import MOST_FEATURES, default_features
from mercer.methods import Landmarks
from mercer.models.gp import classifier as laplace
from mercer.models.gp import problem as process
from mercer.models.kmeans import ways as clusters
from mercer.models.pca import problem as components
from mercer.models.ridge import problem as ridge
from mercer.models.svm import plan as support
from mercer.models.svm.forecast import Forecast

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "choose.md"
MARK = "<!-- table: {} -->"
MOST_ROWS = 10**7  # that ways are asked for


# `via="auto"` by rows
def ways() -> dict[str, Callable[[int], str]]:
    """The way of n rows, for estimators at their defaults."""
    s, both = ridge.RidgeSettings.of(KernelRidge()), ridge.RidgeSettings.of(KernelRidge(cv=5))
    loo = ridge.RidgeSettings.of(KernelRidge(cv="loo"))
    machine = support.ClassifierSettings.of(KernelSVC())
    gp = process.ProcessSettings.of(GaussianProcessRegressor())
    gpc = laplace.LaplaceSettings.of(GaussianProcessClassifier())
    pca = components.PCASettings.of(KernelPCA())
    means = clusters.KMeansSettings.of(KernelKMeans())
    return {
        "`KernelRidge`": lambda n: ridge.choose(n, s).way,
        '`KernelRidge(cv="loo")`': lambda n: ridge.choose(n, loo).way,
        "`KernelRidge(cv=5)`": lambda n: ridge.choose(n, both).way,
        "`KernelSVC`": lambda n: support.choose(n, machine).way,
        "`GaussianProcessRegressor`": lambda n: process.choose(n, 1, gp).way,
        "`GaussianProcessRegressor`, two outputs": lambda n: process.choose(n, 2, gp).way,
        "`GaussianProcessClassifier`": lambda n: laplace.choose(n, gpc).way,
        "`KernelPCA`": lambda n: components.choose(n, None, pca).way,
        "`KernelKMeans`": lambda n: clusters.choose(n, means).way,
    }


def changes(way: Callable[[int], str]) -> list[tuple[int, str]]:
    """(last row, way) of every run of row counts that go the same way, by bisection between powers
    of two; the last run has no end."""
    counts = [2**i for i in range(3, 24)]
    out = []
    for a, b in pairwise(counts):
        if way(a) == way(b):
            continue
        low, high = a, b
        while high - low > 1:
            mid = (low + high) // 2
            low, high = (mid, high) if way(mid) == way(a) else (low, mid)
        out.append((low, way(a)))
    return [*out, (MOST_ROWS, way(counts[-1]))]


def rows_table() -> list[list[str]]:
    """The estimator, its way, and up to how many rows."""
    out = [["estimator", "rows", "way"]]
    for name, way in ways().items():
        runs, last = changes(way), 0
        for end, taken in runs:
            start = f"more than {last:,}" if last else "any number"
            shown = start if end == MOST_ROWS else f"up to {end:,}"
            out.append([name, shown, f'"{taken}"'])
            name, last = "", end
    return out


# k.lift
KERNELS = {
    "Linear()": Linear(),
    "Polynomial(2)": Polynomial(2),
    "Polynomial(5)": Polynomial(5),
    "AllSubsets()": AllSubsets(),
    "Gaussian(1.0)": Gaussian(1.0),
    "Laplace(1.0), Matern(1.0)": Matern(1.0),
    "Gaussian(1.0) * Gaussian(2.0)": Gaussian(1.0) * Gaussian(2.0),
    "Gaussian(1.0) + 0.1 * Linear()": Gaussian(1.0) + 0.1 * Linear(),
    "Gaussian(1.0) * Polynomial(2)": Gaussian(1.0) * Polynomial(2),
    "ArcCosine(1)": ArcCosine(1),
    "exp(Linear())": exp(Linear()),
    "Chi2()": Chi2(),
    "AdditiveChi2()": AdditiveChi2(),
    "anything, method=Landmarks(100)": None,
}
COLUMNS, SIZE = 10, 100


def lifts_table() -> list[list[str]]:
    """What `k.lift(SIZE)` makes of rows with COLUMNS columns, and what without a size."""
    X = np.random.default_rng(0).uniform(0.1, 1, size=(300, COLUMNS))
    out = [["kernel", f"`k.lift({SIZE})`", "`k.lift()`"]]
    for name, k in KERNELS.items():
        if k is None:
            made = [Laplace(1.0).lift(SIZE, method=Landmarks(SIZE), random_state=0).fit(X)]
        else:
            made = [k.lift(n, random_state=0).fit(X) for n in (SIZE, None)]
        cells = [f"{spelled(m.map_)}, {m.n_features_out_:,}" for m in made]
        out.append([f"`{name}`" if k is not None else name, *cells, *["—"] * (2 - len(cells))])
    return out


def spelled(phi: Any) -> str:
    """The classes of a map, outermost first."""
    inner = getattr(phi, "lifts", None)
    if inner is not None:
        return f"`{type(phi).__name__}` of {', '.join(sorted({spelled(p) for p in inner}))}"
    if hasattr(phi, "by"):
        return spelled(phi.lift)
    return f"`{type(phi).__name__}`"


def sizes_table() -> list[list[str]]:
    """How many features are taken where none are asked for."""
    counts = (50, 100, 200, 400, 1000, 100_000)
    return [
        ["rows", *map("{:,}".format, counts)],
        ["features", *(f"{default_features(n):,}" for n in counts)],
    ]


# mercer fit
WHAT = {
    "constant": "the mean, or the share of each class: what a score is measured from",
    "linear": "the treated columns themselves",
    "sparse": "at most ten terms: columns, squares, products of pairs, jumps, in the table's units",
    "explicit": "columns, squares, products of pairs and splines",
    "fourier": "random Fourier features of the best of some stationary kernels",
    "landmarks": "landmarks of that kernel",
    "machine": "a kernel machine that learns its metric; support vectors where labels count and they are clearly better",
    "ensemble": "a mean of those above, of which boosted trees may be a member",
}


def contest_table() -> list[list[str]]:
    """The kinds that compete, simplest first."""
    return [
        ["", "contender", "what it is", "may replace the best if as good"],
        *([str(i + 1), NAMES[kind], WHAT[kind], _replaces(kind)] for i, kind in enumerate(KINDS)),
    ]


def _replaces(kind: str) -> str:
    if kind == KINDS[-1]:
        return "—"  # nothing is less simple
    return "yes" if kind in choice.READABLE else f"where it is {choice.CHEAPER:g} times as fast"


def limits_table() -> list[list[str]]:
    """The figures by which the contest is run."""
    return [
        ["rule", "figure"],
        [
            "rows up to which all contenders meet in the same folds: numbers",
            f"{select.MAX_MACHINE_ROWS:,}",
        ],
        ["the same: two classes", f"{select.MAX_BINARY_ROWS:,}"],
        ["the same: more classes", f"{select.MAX_MULTICLASS_ROWS:,}"],
        ["classes up to which there is a kernel machine", f"{select.MAX_MACHINE_CLASSES:,}"],
        ["classes up to which support vectors are tried", f"{tuning.HINGE_CLASSES}"],
        [
            "loss of support vectors, of a learnt metric's, below which they are taken",
            f"{tuning.CLEARLY_LESS:g}",
        ],
        ["standard errors of the difference that count as a tie", f"{choice.TIE:g}"],
        [
            "mean of the worst hundredth of losses, of the best's, that a simpler one may have",
            f"{choice.WORSE:g}",
        ],
        [
            "cells that share the memory, where a table is too large for one system",
            f"{machines.PARALLEL_CELLS}",
        ],
    ]


TABLES: dict[str, Callable[[], list[list[str]]]] = {
    "rows": rows_table,
    "lifts": lifts_table,
    "sizes": sizes_table,
    "contest": contest_table,
    "limits": limits_table,
}


def markdown(rows: list[list[str]]) -> str:
    """A table of markdown."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def block(name: str) -> re.Pattern[str]:
    """The table of that name in a page."""
    return re.compile(re.escape(MARK.format(name)) + r"\n\n((?:\|.*\n)*)")


def shown(name: str, text: str) -> str:
    found = block(name).search(text)
    assert found, f"choose.md has no table {name!r}"
    return found.group(1)


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_of_the_guide_are_what_the_code_decides(name):
    assert shown(name, PAGE.read_text(encoding="utf-8")) == markdown(TABLES[name]())


def test_the_tables_can_fail():
    text = PAGE.read_text(encoding="utf-8")
    wrong = text.replace(f"{process.MAX_EXACT_ROWS:,}", f"{process.MAX_EXACT_ROWS + 1:,}")
    assert shown("rows", wrong) != markdown(rows_table())


def test_what_the_guide_says_beside_the_tables():
    """Fits, small ones, go the way that the tables say; many rows of an SVM by a forecast."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y, labels = X[:, 0], X[:, 0] > 0
    assert "cholesky" in str(KernelRidge().fit(X, y).plan_)
    assert KernelRidge(cv=3, random_state=0).fit(X, y).plan_.way == "features"
    assert KernelLogistic(random_state=0).fit(X, labels).n_features_lifted_ == default_features(60)
    assert GaussianProcessRegressor(random_state=0).fit(X, y).plan_.way == "exact"
    s = support.ClassifierSettings.of(KernelSVC())
    cheap, dear = (Forecast(1, 1.0, 2.0), Forecast(1, 2.0, 1.0))
    assert support.choose(10**6, s, cost=cheap).way == "exact"
    assert support.choose(10**6, s, cost=dear).way == "features"
    text = PAGE.read_text(encoding="utf-8")
    assert f"up to {MAX_CHOLESKY_ROWS:,} rows by a Cholesky factor" in text
    assert MAX_FORMED == MAX_CHOLESKY_ROWS
    assert f"({MAX_FORMED_WIDE:,} where they have {WIDE_ROWS} columns)" in text
    assert f"up to {EXACT_LIMIT:,} of them" in text
    assert max(map(default_features, (1, 10**9))) == MOST_FEATURES


def write() -> None:
    """The tables as they are now, into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        old = MARK.format(name) + "\n\n" + shown(name, text)
        text = text.replace(old, MARK.format(name) + "\n\n" + markdown(make()))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("error")
    write()
