"""The result of a fit as a few lines of text for a terminal or a log."""

from __future__ import annotations

from mercer.automl.metrics import TITLES, number
from mercer.automl.result import Contender, FitResult
from mercer.report import texts, words

SHOWN = 8  # warnings; the report has them all


def summary(e: FitResult) -> str:
    """What was asked, what came out, and what to be wary of."""
    return "\n".join(
        [
            *_asked(e),
            "",
            *_scores(e),
            "",
            e.verdict,
            *([f"    {e.formula}"] if e.formula else []),
            *_interval(e),
            *_importance(e),
            *_learnt(e),
            *texts.spoken(e),
            *_warnings(e),
        ]
    )


def _asked(e: FitResult) -> list[str]:
    dropped = f"; {e.rows_dropped:,} {words.without(e)} left out" if e.rows_dropped else ""
    whole = words.duration(e.seconds)
    return [
        f"target    {e.target}: {e.task_reason}",
        f"rows      {e.rows_train:,} to learn from, {e.rows_holdout:,} held out: {e.holdout_rule}{dropped}",
        f"metric    {_metric(e)}",
        *_decision(e),
        f"seed      {e.seed}; what is tried depends on the time as well: where it runs short, the same seed may give another model",
        f"took      {whole}, reading and judging included, which --time does not count",
    ]


def _decision(e: FitResult) -> list[str]:
    """Of two classes, how a probability becomes a class."""
    said = words.decision(e)
    return [f"decides   {said}; predict --threshold sets another"] if said else []


def _metric(e: FitResult) -> str:
    """Its name and what it means, where that does not begin with the name."""
    title = TITLES.get(e.metric, e.metric)
    return e.metric_note if e.metric_note.startswith(title) else f"{title}: {e.metric_note}"


def _scores(e: FitResult) -> list[str]:
    rows = [
        ("", "holdout", "95 % interval", "cross-validated", "chosen minus it", "seconds"),
        *(_cells(c, e.metric) for c in e.contenders),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    lines = [
        row[0].ljust(widths[0])
        + "".join("  " + cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    return [*lines, *(f"    {c.name}: {c.note}" for c in e.contenders if c.note)]


def _cells(c: Contender, metric: str) -> tuple[str, ...]:
    interval = "-" if c.low is None else f"{_shown(c.low, metric)} to {_shown(c.high, metric)}"
    cv = "-" if c.cv is None else f"{_shown(c.cv, metric)} ± {_shown(c.cv_error, metric)}"
    return (
        f"{'*' if c.chosen else ' '} {c.name}",
        _shown(c.holdout, metric),
        interval,
        cv,
        _difference(c, metric),
        f"{c.seconds:.1f}",
    )


def _difference(c: Contender, metric: str) -> str:
    """On the same rows of the holdout, with its interval."""
    if c.difference is None:
        return "-"
    value, low, high = (_shown(v, metric) for v in c.difference)
    return f"{value} ({low} to {high})"


def _shown(value: float | None, metric: str) -> str:
    return "-" if value is None else number(value, metric)


def _interval(e: FitResult) -> list[str]:
    if not e.interval or e.interval.get("median_width") is None:
        return []
    asked, got, width = (
        e.interval[k] for k in ("coverage_asked", "coverage_measured", "median_width")
    )
    covered = f"Intervals meant to cover {100 * asked:g} % covered {100 * got:.1f} % of the holdout, each half by the width of the other"
    return [f"{covered}; their median width is {number(width, 'rmse')}."]


def _importance(e: FitResult) -> list[str]:
    first = ", ".join(
        f"{name} ({number(loss, e.metric)})" for name, loss, _ in e.importance[:5] if loss > 0
    )
    return (
        [f"Columns that matter most (score lost when shuffled): {first}.{words.above_one(e)}"]
        if first
        else []
    )


def _learnt(e: FitResult) -> list[str]:
    said = words.learnt(e)
    return [said] if said else []


def _warnings(e: FitResult) -> list[str]:
    shown = [f"  - {text}" for text in e.warnings[:SHOWN]]
    more = (
        [f"  - and {len(e.warnings) - SHOWN} more, in the report"]
        if len(e.warnings) > SHOWN
        else []
    )
    return ["", "to be wary of", *shown, *more] if shown else []
