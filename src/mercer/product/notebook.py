"""A model in a notebook: the verdict, and every contender with its scores, as a little HTML."""
from __future__ import annotations

from html import escape

from mercer.product.evidence import Contender, Evidence
from mercer.product.verdict import TITLES, number
from mercer.tables.errors import many


def card(e: Evidence) -> str:
    """What was predicted and how well; names from the data are escaped, and nothing is fetched."""
    title = f"Predicting <b>{_text(e.target)}</b>: {_text(TITLES.get(e.metric, e.metric))} on {many(e.rows_holdout, 'held-out row')}"
    head = "".join(f"<th>{name}</th>" for name in ("model", "holdout", "95 % interval", "cross-validation"))
    rows = "".join(_row(c, e.metric) for c in e.contenders)
    wary = "".join(f"<li>{_text(text)}</li>" for text in e.warnings)
    notes = f"<details><summary>{many(len(e.warnings), 'warning')}</summary><ul>{wary}</ul></details>" if wary else ""
    return f"<div><p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{_text(e.verdict)}</p>{notes}</div>"


def _row(c: Contender, metric: str) -> str:
    name = f"<b>{_text(c.name)}</b> (chosen)" if c.chosen else _text(c.name)
    ends = "" if c.low is None or c.high is None else f"{number(c.low, metric)} to {number(c.high, metric)}"
    cells = (_shown(c.holdout, metric), ends, _shown(c.cv, metric))
    return f"<tr><td>{name}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _shown(value: float | None, metric: str) -> str:
    return "" if value is None else number(value, metric)


def _text(value: object) -> str:
    return escape("".join(c if c.isprintable() else "\ufffd" for c in str(value)))
