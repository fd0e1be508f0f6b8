"""The page on performance, docs/performance.md, from the figures in docs/performance.json.

python tools/performance.py                                  writes the page anew
python tools/performance.py bench/results/NAME.json ...      takes in what `./do bench NAME` wrote, first

"sections" holds figures with their words; "runs" whole runs of benchmarks as they were written, the
latest of each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
FIGURES, PAGE = DOCS / "performance.json", DOCS / "performance.md"
Values = Mapping[str, Any]
HEAD = """# Performance

Every figure on this page was measured, and names the command that measures it again. `tools/performance.py` makes the
page from `docs/performance.json` and from what `./do bench` writes. Ratios come from one run on two cores that calls ours
and the peer in turn, and only where both are equally good: see [how benchmarks are written](contributing.md#benchmarks)."""
RUN = ("case", "ours", "peer", "ratio", "quality")


def page(figures: Values) -> str:
    """The page as Markdown."""
    parts = [HEAD, *map(section, figures["sections"])]
    runs = figures.get("runs", {})
    if runs:
        parts.append(
            "## Whole runs\n\nAs `./do bench` wrote them; ratios above 1 are in favour of Mercer."
        )
        parts += [run(name, runs[name]) for name in sorted(runs)]
    return "\n\n".join(parts) + "\n"


def section(of: Values) -> str:
    lines = [f"## {of['title']}", of["about"], table(of["columns"], of["rows"]), *of["notes"]]
    return "\n\n".join([*lines, f"```\n./do bench {' '.join(of['bench'])}\n```"])


def run(name: str, of: Values) -> str:
    """One run: the machine, and every row; where a check failed, why, and no ratio."""
    machine = ", ".join(f"{key} {value}" for key, value in of["machine"].items())
    rows = [list(cells(row)) for row in of["rows"]]
    return f"### {name}\n\n`./do bench {name}` on: {machine}.\n\n{table(RUN, rows)}"


def cells(row: Values) -> Iterator[str]:
    yield row["name"]
    if row["failure"]:
        yield from ("", "", "none", row["failure"])
        return
    for value in (row["ours"], row["peer"]):
        yield "" if value is None else f"{value:.4g} {row['unit']}".rstrip()
    yield "" if row["ratio"] is None else f"{row['ratio']:.2f}x"
    yield row["quality"] or ""


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells of a Markdown table: a bar inside one is escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines
    )


def taken(figures: Values, results: Sequence[Values]) -> dict[str, Any]:
    """The figures with these runs in the place of earlier ones of the same benchmarks."""
    new = {r["bench"]: {"machine": r["machine"], "rows": r["rows"]} for r in results}
    return {**figures, "runs": {**figures.get("runs", {}), **new}}


def main(paths: Sequence[str]) -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    if paths:
        results = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
        figures = taken(figures, results)
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        FIGURES.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(figures), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
