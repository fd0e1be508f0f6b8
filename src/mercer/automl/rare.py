"""Classes of which the holdout has few rows or none: whether a metric is defined on it, and what to
be wary of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.automl.metrics import METRICS, TITLES, Metric
from mercer.automl.rows import TableRows
from mercer.inputs import Array
from mercer.tables import DataError
from mercer.tables.errors import many

FEW_ROWS = 10  # of a class, with fewer of which its scores say little
MAX_NAMED = 3


def rows_a_class(held: TableRows, n_classes: int) -> Array:
    """Rows with some weight."""
    return np.bincount(held.y[held.weights() > 0], minlength=n_classes)


def defined_metric(
    metric: Metric, why: str, asked: bool, held: TableRows, classes: Sequence[str]
) -> tuple[Metric, str]:
    """The metric and why it is that, or the log loss where nobody asked and it is not defined on
    the holdout, which ranks rows of one class; an error where it was asked for."""
    k = len(classes)
    if not k or not len(held) or np.isfinite(_of_a_constant(metric, held, k)):
        return metric, why
    title, lacking = TITLES[metric.name], lacking_classes(held, classes)
    if not asked:
        return METRICS["log_loss"], f"{lacking}, without which there is no {title}"
    raise DataError(
        f"metric {metric.name!r} is undefined here: {lacking}; hold out more rows or others (test, seed), or give metric log_loss."
    )


def _of_a_constant(metric: Metric, held: TableRows, k: int) -> float:
    return metric(held.y, np.full((len(held), k), 1 / k), held.weight).value


def lacking_classes(held: TableRows, classes: Sequence[str]) -> str:
    """That there are no rows of some; nothing where there are of all.

    >>> rows = TableRows(np.zeros((2, 1)), np.array([0, 0]), np.arange(2))
    >>> lacking_classes(rows, ["no", "yes"])
    'the holdout has no row of "yes"'
    """
    names = [classes[c] for c in np.flatnonzero(rows_a_class(held, len(classes)) == 0).tolist()]
    shown = ", ".join(f'"{name}"' for name in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED:,} more classes" if len(names) > MAX_NAMED else ""
    return f"the holdout has no row of {shown}{more}" if names else ""


def rare_warnings(held: TableRows, classes: Sequence[str]) -> list[str]:
    """Of classes without rows; and of the rarer of two, where it has few."""
    if not classes:
        return []
    if lacking := lacking_classes(held, classes):
        return [f"{lacking}: no score of it tells how well that would be recognised."]
    counts = rows_a_class(held, len(classes))
    code = int(np.argmin(counts))
    if len(classes) > 2 or counts[code] >= FEW_ROWS:
        return []
    rest = f"what is told of this class rests on {'it' if counts[code] == 1 else 'these few'}"
    return [
        f'the holdout has only {many(int(counts[code]), "row")} of "{classes[code]}": {rest}; one more or less would change scores much.'
    ]
