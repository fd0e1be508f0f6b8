"""The column that orders rows in time, as numbers."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import flat, pa
from mercer.tables.dates import form_of, seconds
from mercer.tables.errors import DataError
from mercer.tables.values import numbers


def time_form(column: Any, name: str = "") -> str | None:
    """How a column orders the rows: "number", or a form of dates (None: dates by their type).

    >>> time_form(pa.array([1, 2])), time_form(pa.array(["2024-01-31"]))
    ('number', 'iso')
    """
    found = flat(column)
    if pa.types.is_timestamp(found.type) or pa.types.is_date(found.type):
        return None
    values, odd = numbers(found)
    if not np.isnan(values).all() and odd.mean() < 0.05:
        return "number"
    form = form_of(found)
    if form is None:
        which = f'the time column "{name}"' if name else "the time column"
        raise DataError(f"{which} holds neither numbers nor dates; choose another or write its dates as 2024-01-31.")
    return form


def moments(column: Any, form: str | None) -> Array:
    """Numbers, or seconds since 1970; NaN where missing."""
    return numbers(column)[0] if form == "number" else seconds(column, form)
