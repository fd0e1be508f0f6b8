"""Rows as text and as JSON. Where the check failed there is a reason and no ratio."""

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.harness import Row

HEADER = ("case", "ours", "peer", "ratio", "target", "met?")
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def line(row: Row) -> str:
    """One row as it finishes."""
    if row.failure:
        return f"{row.name}: no ratio: {row.failure}"
    name, ours, peer, ratio, target, met = _cells(row)
    parts = [f"ours {ours}", f"peer {peer}", f"ratio {ratio}", f"target {target}", f"met: {met}"]
    return f"{name}: " + ", ".join(parts + ([row.quality] if row.quality else []))


def table(rows: Iterable[Row]) -> str:
    """All rows, in columns."""
    cells = [HEADER, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


def _cells(row: Row) -> tuple[str, ...]:
    if row.failure:
        return (row.name, "-", "-", "refused", _times(row.target), "no")
    values = [_value(value, row.unit) for value in (row.ours, row.peer)]
    met = {None: "-", True: "yes", False: "no"}[row.met]
    return (row.name, *values, _times(row.ratio), _times(row.target), met)


def _value(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.4g} {unit}".rstrip()


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def save(name: str, rows: Iterable[Row], folder: Path) -> Path:
    """Write folder/name.json, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path, draft = folder / f"{name}.json", folder / f"{name}.json.part"
    records = [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in rows]
    draft.write_text(
        json.dumps({"bench": name, "machine": _machine(), "rows": records}, indent=2) + "\n"
    )
    draft.replace(path)
    return path


def _machine() -> dict[str, Any]:
    packages = {package: version(package) for package in PACKAGES}
    return {
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        **packages,
    }
