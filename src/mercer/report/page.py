"""The page: result to one HTML text, and that text to a file that is whole or not there."""
from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from mercer.automl.result import FitResult
from mercer.report import scores, words
from mercer.report.sections import hero, sections
from mercer.report.tags import Markup, join, tag, text
from mercer.store.commit import beside, naming

# Nothing is fetched and nothing runs, even if a name in the data tried to.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def html(result: FitResult, model_id: str = "") -> str:
    """The report as one self-contained HTML text: no scripts, no network, light and dark, screen and paper.

    `model_id` names the model file that it belongs to, as `mercer check` shows it.
    """
    parts = sections(result)
    links = [tag("a", heading, href=f"#{anchor}") for anchor, heading, _ in parts]
    nav = tag("nav", links, aria_label="Sections")
    body = [tag("section", tag("h2", heading), inside, id=anchor) for anchor, heading, inside in parts]
    of = f" Of the model {model_id}." if model_id else ""
    foot = tag("footer", f"Made by mercer {result.version}. All scores are on rows that no choice has seen.{of}")
    page = tag("html", _head(result), tag("body", hero(result), nav, tag("main", body), foot), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def write(result: FitResult, path: str | os.PathLike[str]) -> None:
    """Write the report; a failure leaves what was there before."""
    goal, page = Path(os.path.realpath(path)), html(result).encode()
    if not goal.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)} cannot be written: the folder {goal.parent} does not exist; make it first.")
    with naming(path):
        _write(goal, page)


def _write(goal: Path, page: bytes) -> None:
    if goal.exists() and not goal.is_file():  # a device or a pipe takes the bytes; a folder refuses them
        goal.write_bytes(page)
        return
    part = beside(goal)
    try:
        _flush(part, page)
        os.replace(part, goal)
    finally:
        part.unlink(missing_ok=True)


def _flush(part: Path, page: bytes) -> None:
    with part.open("xb") as file:
        file.write(page)
        file.flush()
        os.fsync(file.fileno())


def _head(result: FitResult) -> Markup:
    chosen = result.chosen
    score = f" {words.fixed(chosen.holdout, scores.holdout_places(result))}" if chosen else ""
    title = f"{words.brief(result.target, 60)}: {scores.metric(result)}{score}"
    return tag("head", join([
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", text(title)), tag("style", _css()),
    ]))


@cache
def _css() -> Markup:
    return Markup(files("mercer.report").joinpath("page.css").read_text(encoding="utf-8"))
