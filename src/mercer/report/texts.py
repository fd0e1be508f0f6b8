"""Columns of texts: how well each kind of n-grams did, and the n-grams that speak loudest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mercer.automl.result import FitResult
from mercer.report import words
from mercer.report.tables import label, table
from mercer.report.tags import Child, Markup, join, name, tag

MEASURES = {"auc": "area under the curve", "r2": "R²"}
LONGEST = 60


def sections(result: FitResult) -> Markup:
    """One part for each column of texts."""
    unread = tag("p", "The chosen model is a constant, which reads none of them.")
    return join([*[unread] * _reads_nothing(result), *(_section(t, result) for t in result.texts)])


def _reads_nothing(result: FitResult) -> bool:
    """Whether a constant was chosen: what words say is then said to nobody."""
    return result.chosen is not None and result.chosen.kind == "constant"


def _section(told: Mapping[str, Any], result: FitResult) -> Markup:
    measure = MEASURES.get(str(told.get("measure")), str(told.get("measure")))
    said = (
        f"Scores of a linear model over {told.get('kind')}: {measure} {words.number(told.get('score'), 4)} "
        f"on training rows that the models which scored them were not fitted to."
    )
    return join(
        [
            tag("h3", label(told.get("column", ""), 80)),
            tag("p", name(said)),
            _ngrams(told, result) if told.get("ngrams") and not _reads_nothing(result) else None,
            _raced(told, measure) if told.get("tried") else None,
        ]
    )


def spoken(result: FitResult, most: int = 6) -> list[str]:
    """For each column of texts a sentence with the n-grams that speak loudest, for a terminal."""
    out = []
    for told in () if _reads_nothing(result) else result.texts:
        sides: dict[str, list[str]] = {}
        for gram, output, gain, _ in _loudest_first(told):
            sides.setdefault(_for(gain, output, result), []).append(f'"{gram}"')
        parts = "; ".join(f"{side} {', '.join(grams[:most])}" for side, grams in sides.items())
        if parts:
            out.append(f"What speaks loudest in {words.brief(told.get('column'), 40)}: {parts}.")
    return out


def _ngrams(told: Mapping[str, Any], result: FitResult) -> Markup:
    """The strongest first; weights are what a document's score gains by one that it has, before its
    length is made 1."""
    rows: list[list[Child]] = [
        [
            label(f"\u201c{gram}\u201d", LONGEST),
            label(_for(gain, output, result), 40),
            words.number(gain, 3),
            words.count(n),
        ]
        for gram, output, gain, n in _loudest_first(told)
    ]
    of = ("n-gram", "documents") if told.get("alphabet") is None else ("word", "sequences")
    head = [of[0], "speaks", "weight", of[1]]
    return table(head, rows, label=f"Strongest {of[0]}s", numbers=(2, 3), style="narrow")


def _loudest_first(told: Mapping[str, Any]) -> list[list[Any]]:
    """By the size of their weights."""
    return sorted(told.get("ngrams") or (), key=lambda row: -abs(row[2]))


def _for(gain: float, output: str, result: FitResult) -> str:
    """What an n-gram speaks for."""
    if output == "target":
        return "for more" if gain > 0 else "for less"
    other = [c for c in result.classes if c != output]
    if gain < 0 and len(other) == 1:
        return f"for {other[0]}"
    return f"{'for' if gain > 0 else 'against'} {output}"


def _raced(told: Mapping[str, Any], measure: str) -> Markup:
    """What was tried, and what was not."""
    rows: list[list[Child]] = [
        [str(kind), words.number(score, 4)]
        for kind, score in sorted(told["tried"], key=lambda pair: -(pair[1] or 0.0))
    ]
    rows += [
        [str(kind), f"not tried, for lack of {why}"] for kind, why in told.get("skipped") or ()
    ]
    what = "n-grams" if told.get("alphabet") is None else "words"
    head = [f"{what} raced on rows left out", measure]
    return table(head, rows, label=f"Kinds of {what}", numbers=(1,), style="narrow")
