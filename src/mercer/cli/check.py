"""`mercer check`: what a model file holds, and whether a report belongs to it, without asking the
model anything."""

from __future__ import annotations

import json
from pathlib import Path

from mercer.cli.guard import UsageError
from mercer.cli.output import check_model
from mercer.cli.terminal import printable
from mercer.store import Audit, audit

SHOWN = 8  # of the largest arrays


def run(model: Path, report: Path | None = None, *, as_json: bool = False) -> Audit:
    """Print what is found; ValueError where the file is damaged, or the report is of another
    model."""
    check_model(model)
    if report is not None and not report.is_file():
        raise UsageError(
            f"{report} is no file; give the report that mercer fit wrote beside the model."
        )
    found = audit(model)
    if report is not None and found.id not in report.read_text(encoding="utf-8", errors="replace"):
        raise ValueError(
            f"{report} is not the report of {model}, whose id {found.id} it does not name; fit again, or find its own."
        )
    if as_json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
    else:
        print("\n".join(lines(found, report)))
    return found


def lines(a: Audit, report: Path | None = None) -> list[str]:
    """The audit for people."""
    held = sum(x["bytes"] for x in a.arrays)
    largest = sorted(a.arrays, key=lambda x: -x["bytes"])
    out = [
        f"model     {a.path}: {a.kind}, sound",
        f"id        {a.id}",
        f"sha256    {a.sha256}",
        f"written   by mercer {a.written_by}, format {a.format}; read by mercer {a.read_by}",
        f"size      {a.bytes:,} bytes, {held:,} of them in {len(a.arrays):,} arrays",
        f"classes   {', '.join(f'{name} ({n})' if n > 1 else name for name, n in a.classes.items())}",
    ]
    out += [f"functions {', '.join(a.functions)}"] if a.functions else []
    out += [f"{'arrays' if not i else '':<9} {_array(x)}" for i, x in enumerate(largest[:SHOWN])]
    out += [f"{'':<9} and {len(largest) - SHOWN:,} smaller ones"] if len(largest) > SHOWN else []
    out += [f"report    {report}: of this model"] if report is not None else []
    return [printable(line) for line in out]


def _array(x: dict[str, object]) -> str:
    shape = " x ".join(f"{n:,}" for n in x["shape"]) or "1"  # type: ignore[attr-defined]
    return f"{x['class']}.{x['field']}: {shape} of {x['dtype']}"
