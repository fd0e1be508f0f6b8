"""Confusion: a shaded table for a few classes; for many, a shaded picture, the pairs most often confused, and every class in words."""
from __future__ import annotations

from collections.abc import Sequence

from mercer.automl.result import FitResult
from mercer.report import words
from mercer.report.tables import table
from mercer.report.tags import Child, Markup, join, name, tag

FEW = 10
SHADES = 6
Counts = Sequence[Sequence[int]]


def confusion(result: FitResult) -> Markup:
    """How the classes are taken for each other."""
    counts = result.confusion
    names = _names(result)
    if not counts or any(len(row) != len(counts) for row in counts):
        return tag("p", "No confusion was measured.", class_="quiet")
    seen = _few(counts, names) if len(counts) <= FEW else _many(counts, names)
    return join([seen, tag("h3", "Each class"), _classes(counts, names)])


def _names(result: FitResult) -> list[str]:
    known = list(result.classes)[: len(result.confusion)]
    return known + [f"class {index + 1}" for index in range(len(known), len(result.confusion))]


def _few(counts: Counts, names: Sequence[str]) -> Markup:
    head: list[Child] = ["actual ↓ predicted →", *(_class(label) for label in names)]
    rows = [[tag("th", _class(label), scope="row"), *(_cell(value, sum(row), i == j) for j, value in enumerate(row))]
            for i, (label, row) in enumerate(zip(names, counts, strict=True))]
    caption = "Holdout rows by actual and predicted class; the share is of the actual class, framed cells are right."
    return tag("figure", table(head, rows, label="Confusion", style="narrow confusion"), tag("figcaption", caption))


def _class(label: str) -> Markup:
    return name(words.brief(label, 40), title=label[:2000] if len(label) > 40 else None)


def _cell(value: int, total: int, right: bool) -> Markup:
    share = value / total if total else 0.0
    inside = [words.count(value), tag("small", words.percent(share))]
    return tag("td", inside, class_="right" if right else None, style=f"--share:{share:.3f}")


def _many(counts: Counts, names: Sequence[str]) -> Markup:
    pairs = sorted((-value, i, j) for i, row in enumerate(counts) for j, value in enumerate(row) if i != j and value > 0)
    rows: list[list[Child]] = [[_class(names[i]), _class(names[j]), words.count(-value), _share(-value, sum(counts[i]))]
                               for value, i, j in pairs[:12]]
    head = ["actual", "predicted as", "rows", "of the actual class"]
    listed = table(head, rows, label="Most often confused", numbers=(2, 3), style="pairs") if rows else None
    none = tag("p", "No row was given a wrong class.", class_="quiet")
    return tag("div", _picture(counts, len(pairs)), tag("div", tag("h3", "Most often confused"), listed or none), class_="pair")


def _picture(counts: Counts, mistaken: int) -> Markup:
    side = len(counts)
    shades: list[list[str]] = [[] for _ in range(SHADES)]
    for i, row in enumerate(counts):
        for j, value in enumerate(row):
            if value > 0:
                shades[_shade(value / sum(row))].append(f"M{j} {i}h1v1h-1z")
    paths = [tag("path", d="".join(cells), class_=f"shade{level}") for level, cells in enumerate(shades) if cells]
    desc = (f"{side} by {side} classes in the order of the list below, actual downwards and predicted across; "
            f"the stronger the colour, the larger the share of the actual class. "
            f"{words.many(mistaken, 'pair')} of classes were confused at least once.")
    heads = [tag("title", "Confusion", id="confusion-title"), tag("desc", desc, id="confusion-desc")]
    frame = tag("rect", width=side, height=side, class_="frame")
    drawn = tag("svg", heads, frame, paths, viewBox=f"0 0 {side} {side}", class_="plot heat", role="img",
                aria_labelledby="confusion-title", aria_describedby="confusion-desc")
    return tag("figure", drawn, tag("figcaption", desc))


def _shade(share: float) -> int:
    return min(SHADES - 1, int(SHADES * share**0.5))  # the root lifts the rare confusions out of the ground


def _classes(counts: Counts, names: Sequence[str]) -> Markup:
    told = [sum(column) for column in zip(*counts, strict=True)]
    rows: list[list[Child]] = [[_class(label), words.count(sum(row)), _share(row[i], sum(row)), _share(row[i], told[i])]
                               for i, (label, row) in enumerate(zip(names, counts, strict=True))]
    head = ["class", "holdout rows", "found (recall)", "right when predicted (precision)"]
    return table(head, rows, label="Each class", numbers=(1, 2, 3), style="narrow")


def _share(part: int, whole: int) -> str:
    return words.percent(part / whole) if whole else words.NOTHING
