"""Tables, each in a box of its own that scrolls, so that the page never does sideways; of many
classes a shaded picture as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mercer.automl.result import Contender, FitResult
from mercer.report import words
from mercer.report.scores import holdout_places, ranked
from mercer.report.tags import Child, Markup, join, name, tag

TALL = 25  # rows above which a table scrolls in its box
VALUES = 8  # columns of a worst row that are shown
FEW = 10
SHADES = 6


def table(
    head: Sequence[Child],
    rows: Sequence[Sequence[Child]],
    *,
    label: str,
    numbers: Collection[int] = (),
    style: str = "",
) -> Markup:
    """A table that a keyboard can scroll; `numbers` are the columns set to the right."""
    tops = [
        tag("th", cell, scope="col", class_="number" if index in numbers else None)
        for index, cell in enumerate(head)
    ]
    body = [
        tag("tr", [_cell(cell, index in numbers) for index, cell in enumerate(row)]) for row in rows
    ]
    whole = tag("table", tag("thead", tag("tr", tops)), tag("tbody", body), class_=style or None)
    box = "box" + " fit" * ("narrow" in style) + " tall" * (len(rows) > TALL)
    return tag("div", whole, class_=box, tabindex=0, role="region", aria_label=label)


def contenders(result: FitResult) -> Markup:
    """Everything that was tried, best holdout score first."""
    places = holdout_places(result)
    rows = [_contender(contender, places) for contender in ranked(result)]
    head = [
        "model",
        "what it is",
        "cross-validation",
        "holdout",
        "interval",
        "chosen minus it",
        "time",
        "note",
    ]
    return table(head, rows, label="Contenders", numbers=(2, 3, 4, 5, 6), style="tried")


def treatments(result: FitResult) -> Markup:
    """What was done with each column of the file."""
    kinds = Counter(str(column.get("kind", "?")) for column in result.columns)
    summary = [
        (", ", label(kind, 40), f" ({words.count(number)})") for kind, number in kinds.most_common()
    ]
    rows = [_treatment(column) for column in result.columns]
    head = ["column", "taken as", "what was done", "missing", "distinct", "features"]
    said = tag(
        "p", f"{words.many(len(rows), 'column')}, taken as ", summary[0][1:], summary[1:], "."
    )
    return join([said, table(head, rows, label="Columns", numbers=(3, 4, 5), style="treatments")])


def worst(result: FitResult) -> Markup:
    """The holdout rows with the largest errors, with their most important values."""
    shown = _telling(result)
    errors = [row.get("error") for row in result.worst]
    places = words.decimals([error for error in errors if words.finite(error)], [])
    rows = [
        [
            words.count(row.get("row")),
            _value(row.get("actual")),
            _value(row.get("predicted")),
            words.fixed(error, places),
            *_values(row, shown),
        ]
        for row, error in zip(result.worst, errors, strict=True)
    ]
    head = ["row", "actual", "predicted", "error", *(label(column, 40) for column in shown)]
    grid = table(head, rows, label="Worst rows", numbers=(0, 1, 2, 3))
    hidden = len({column for row in result.worst for column in row.get("values") or {}}) - len(
        shown
    )
    note = (
        tag(
            "p",
            f"The {len(shown)} most important of {len(shown) + hidden} columns are shown.",
            class_="quiet",
        )
        if hidden
        else None
    )
    return join([tag("p", _error(result)), grid, note])


def _error(result: FitResult) -> str:
    """How the error of a row is defined."""
    if result.task == "regression":
        return "The error is the distance between the actual and the predicted value."
    return "Rows that were given a wrong class; the error is 1 less the probability that the model gave to the actual class."


def importances(rest: Sequence[tuple[str, float, float]]) -> Markup:
    """The columns that the figure leaves out."""
    rows: list[list[Child]] = [
        [label(column), words.number(loss, 3), words.number(error, 2)]
        for column, loss, error in rest
    ]
    return table(
        ["column", "loss of score", "standard error"],
        rows,
        label="Other columns",
        numbers=(1, 2),
        style="narrow",
    )


def calibration(result: FitResult) -> Markup:
    """The points of the calibration plot."""
    rows: list[list[Child]] = [
        [words.percent(said), words.percent(seen), words.count(size)]
        for said, seen, size in result.calibration
    ]
    return table(
        [name(f"predicted probability {words.of_class(result)}"), "observed share", "predictions"],
        rows,
        label="Calibration",
        numbers=(0, 1, 2),
        style="narrow",
    )


def label(value: object, longest: int = words.LONGEST) -> Markup:
    """A name that may be cut short; the whole shows under the pointer."""
    shown = str(value)
    return name(words.brief(shown, longest), title=shown[:2000] if len(shown) > longest else None)


def _cell(cell: Child, number: bool) -> Markup:
    if isinstance(cell, Markup) and cell.startswith(("<td", "<th")):
        return cell
    return tag("td", cell, class_="number" if number else None)


def _contender(contender: Contender, places: int) -> list[Child]:
    who = [
        label(contender.name),
        tag("small", "chosen", class_="badge") if contender.chosen else None,
    ]
    doubt = (
        f" ± {words.fixed(contender.cv_error, places)}" if words.finite(contender.cv_error) else ""
    )
    return [
        who,
        name(contender.detail) if contender.detail else contender.kind,
        words.fixed(contender.cv, places) + doubt,
        tag("b", words.fixed(contender.holdout, places)),
        words.interval(contender.low, contender.high, places),
        words.difference(contender.difference, places),
        words.duration(contender.seconds),
        name(contender.note) if contender.note else "",
    ]


def _treatment(column: Mapping[str, Any]) -> list[Child]:
    kind, details, outputs = (
        str(column.get("kind", "")),
        column.get("details"),
        column.get("outputs") or (),
    )
    done = [
        name(column.get("action") or words.NOTHING),
        tag("small", name(words.brief(details, 400))) if details else None,
    ]
    wary = [
        tag("small", "warning: ", name(words.brief(warning, 400)), class_="wary")
        for warning in column.get("warnings") or ()
    ]
    return [
        label(column.get("name", "")),
        label(kind, 40),
        [done, wary],
        words.count(column.get("n_missing")),
        words.count(column.get("n_distinct")),
        words.count(len(outputs)),
    ]


def _telling(result: FitResult) -> list[str]:
    """Names of the values to show: by importance, then as they come."""
    there = list(
        dict.fromkeys(column for row in result.worst for column in row.get("values") or {})
    )
    order = {column: rank for rank, (column, *_) in enumerate(result.importance)}
    return sorted(there, key=lambda column: order.get(column, len(order)))[:VALUES]


def _values(row: Mapping[str, Any], shown: Sequence[str]) -> list[Child]:
    return [_value((row.get("values") or {}).get(column)) for column in shown]


def _value(value: object) -> Markup:
    return name(words.brief(words.plainer(value), 60))


Counts = Sequence[Sequence[float]]  # of rows, or their weights


def confusion(result: FitResult) -> Markup:
    """How the classes are taken for each other."""
    counts: Counts = result.confusion_weights or result.confusion
    names = _names(result)
    if not counts or any(len(row) != len(counts) for row in counts):
        return tag("p", "No confusion was measured.", class_="quiet")
    heavy = words.brief(words.weight(result), 60)
    what = f'weight "{heavy}"' if result.confusion_weights else "holdout rows"
    seen = _few(counts, names, what) if len(counts) <= FEW else _many(counts, names, what)
    return join([seen, tag("h3", "Each class"), _classes(counts, names, what)])


def _amount(value: float) -> str:
    """A count, or the weight of rows."""
    return words.count(value) if isinstance(value, int) else words.number(value)


def _names(result: FitResult) -> list[str]:
    known = list(result.classes)[: len(result.confusion)]
    return known + [f"class {index + 1}" for index in range(len(known), len(result.confusion))]


def _few(counts: Counts, names: Sequence[str], what: str) -> Markup:
    head: list[Child] = ["actual ↓ predicted →", *(_class(label) for label in names)]
    rows = [
        [
            tag("th", _class(label), scope="row"),
            *(_count_cell(value, sum(row), i == j) for j, value in enumerate(row)),
        ]
        for i, (label, row) in enumerate(zip(names, counts, strict=True))
    ]
    of = what[0].upper() + what[1:] + " of the holdout rows" * what.startswith("weight")
    caption = f"{of} by actual and predicted class; the share is of the actual class, framed cells are right."
    return tag(
        "figure",
        table(head, rows, label="Confusion", style="narrow confusion"),
        tag("figcaption", name(caption)),
    )


def _class(label: str) -> Markup:
    return name(words.brief(label, 40), title=label[:2000] if len(label) > 40 else None)


def _count_cell(value: float, total: float, right: bool) -> Markup:
    share = value / total if total else 0.0
    inside = [_amount(value), tag("small", words.percent(share))]
    return tag("td", inside, class_="right" if right else None, style=f"--share:{share:.3f}")


def _many(counts: Counts, names: Sequence[str], what: str) -> Markup:
    pairs = sorted(
        (-value, i, j)
        for i, row in enumerate(counts)
        for j, value in enumerate(row)
        if i != j and value > 0
    )
    rows: list[list[Child]] = [
        [_class(names[i]), _class(names[j]), _amount(-value), _share(-value, sum(counts[i]))]
        for value, i, j in pairs[:12]
    ]
    head = ["actual", "predicted as", name(what), "of the actual class"]
    listed = (
        table(head, rows, label="Most often confused", numbers=(2, 3), style="pairs")
        if rows
        else None
    )
    none = tag("p", "No row was given a wrong class.", class_="quiet")
    return tag(
        "div",
        _picture(counts, len(pairs)),
        tag("div", tag("h3", "Most often confused"), listed or none),
        class_="pair",
    )


def _picture(counts: Counts, mistaken: int) -> Markup:
    side = len(counts)
    shades: list[list[str]] = [[] for _ in range(SHADES)]
    for i, row in enumerate(counts):
        for j, value in enumerate(row):
            if value > 0:
                shades[_shade(value / sum(row))].append(f"M{j} {i}h1v1h-1z")
    paths = [
        tag("path", d="".join(cells), class_=f"shade{level}")
        for level, cells in enumerate(shades)
        if cells
    ]
    desc = (
        f"{side} by {side} classes in the order of the list below, actual downwards and predicted across; "
        f"the stronger the colour, the larger the share of the actual class. "
        f"{words.many(mistaken, 'pair')} of classes were confused at least once."
    )
    heads = [
        tag("title", "Confusion", id="confusion-title"),
        tag("desc", desc, id="confusion-desc"),
    ]
    frame = tag("rect", width=side, height=side, class_="frame")
    drawn = tag(
        "svg",
        heads,
        frame,
        paths,
        viewBox=f"0 0 {side} {side}",
        class_="plot heat",
        role="img",
        aria_labelledby="confusion-title",
        aria_describedby="confusion-desc",
    )
    return tag("figure", drawn, tag("figcaption", desc))


def _shade(share: float) -> int:
    return min(
        SHADES - 1, int(SHADES * share**0.5)
    )  # the root lifts the rare confusions out of the ground


def _classes(counts: Counts, names: Sequence[str], what: str) -> Markup:
    told = [sum(column) for column in zip(*counts, strict=True)]
    rows: list[list[Child]] = [
        [_class(label), _amount(sum(row)), _share(row[i], sum(row)), _share(row[i], told[i])]
        for i, (label, row) in enumerate(zip(names, counts, strict=True))
    ]
    head = ["class", name(what), "found (recall)", "right when predicted (precision)"]
    return table(head, rows, label="Each class", numbers=(1, 2, 3), style="narrow")


def _share(part: float, whole: float) -> str:
    return words.percent(part / whole) if whole else words.NOTHING
