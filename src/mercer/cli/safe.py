"""Predictions for spreadsheets: texts that they would run as formulas, made texts."""
from __future__ import annotations

from typing import Any

from mercer.tables.arrow import pa, pc
from mercer.tables.values import is_text

# At the start of a cell, and behind what a spreadsheet in another country may take for the end of one.
_FORMULA = "(^|[;,|\t\r\n])([=+@\t\r\n＝＋－＠-])"


def safe_text(text: str) -> str:
    """A name that no spreadsheet runs.

    >>> safe_text("=1+1"), safe_text("a;-2"), safe_text("plain")
    ("'=1+1", "a;'-2", 'plain')
    """
    return str(safe_column(pa.array([text]))[0].as_py())


def safe_column(column: Any) -> Any:
    """Texts with an apostrophe before every sign that begins a formula; numbers, which run nothing, as they are."""
    return pc.replace_substring_regex(column, _FORMULA, r"\1'\2") if is_text(column.type) else column


def safe_schema(schema: Any) -> Any:
    return pa.schema([(safe_text(field.name), field.type) for field in schema])


def safe_batch(batch: Any) -> Any:
    return pa.RecordBatch.from_arrays([safe_column(c) for c in batch.columns], schema=safe_schema(batch.schema))
