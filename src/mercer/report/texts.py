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
    return join([_section(told, result) for told in result.texts])


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
            _ngrams(told, result) if told.get("ngrams") else None,
            _raced(told, measure) if told.get("tried") else None,
        ]
    )


def spoken(result: FitResult, most: int = 6) -> list[str]:
    """For each column of texts a sentence with the n-grams that speak loudest, for a terminal."""
    out = []
    for told in result.texts:
        sides: dict[str, list[str]] = {}
        for gram, output, gain, _ in told.get("ngrams") or ():
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
        for gram, output, gain, n in told["ngrams"]
    ]
    head = ["n-gram", "speaks", "weight", "documents"]
    return table(head, rows, label="Strongest n-grams", numbers=(2, 3), style="narrow")


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
    head = ["n-grams raced on rows left out", measure]
    return table(head, rows, label="Kinds of n-grams", numbers=(1,), style="narrow")
