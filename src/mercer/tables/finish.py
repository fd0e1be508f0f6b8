"""After the pass: the target settled, a choice for each column, and what columns are to the target
and to each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import f as f_distribution

from mercer.inputs import Array
from mercer.ops.threads import parallel_map
from mercer.tables.categories import category
from mercer.tables.dates import moments, time_form
from mercer.tables.drift import reference, with_odd
from mercer.tables.encoders import DateEncoder, Encoder, NumberEncoder
from mercer.tables.errors import DataError, quoted
from mercer.tables.infer import choose, date, family
from mercer.tables.options import Judge, settle
from mercer.tables.scale import Standardizer
from mercer.tables.sketch import ColumnSketch, RowSample, hashes
from mercer.tables.target import target_of
from mercer.tables.treatment import Choice, ColumnSample, DroppedRows, Treatment
from mercer.tables.values import text

FIRST = 300  # rows of a quick look
LEAST = 20  # rows in which both are known, below which nothing is concluded
GAIN = 0.005  # share of the variance that levels must explain beyond a parabola
SURE = 1e-6
FEW = 8  # levels, up to which a feature for each costs little
_ROLES = {
    "id": ("id", "Passed through to the predictions; no feature."),
    "weight": ("weight", "The weight of each row; no feature."),
    "group": ("group", "Rows of one group stay together in every split; no feature."),
}


def acts_as_codes(x: Array, y: Array, classification: bool) -> bool:
    """Whether whole numbers x stand for unordered levels: the means of y by level fit much better
    than a parabola in x.

    An F test at 1e-6 of the levels against the parabola, and at least half a percent of the
    variance gained, so that neither chance nor a slight bend counts; and with more than 8 levels,
    the means of neighbours must be no more alike than those of any two levels.

    >>> x = np.tile(np.arange(6.0), 50)
    >>> acts_as_codes(x, np.where(x % 2, 1.0, -1.0) + np.sin(np.arange(300)), False), acts_as_codes(x, x + np.sin(np.arange(300)), False)
    (True, False)
    """
    known = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[known], y[known]
    levels, at = np.unique(x, return_inverse=True)
    n, g = len(x), len(levels)
    if g < 4 or n < max(LEAST, 5 * g):
        return False
    Y = _centred(y, classification)
    of_levels, of_parabola = (
        _left(Y, np.eye(g)[at]),
        _left(Y, np.vander(Standardizer.standard(x)(x), 3)),
    )
    gain = (of_parabola - of_levels) / max(float(np.sum(Y**2)), 1e-300)
    ratio = (of_parabola - of_levels) / (g - 3) / max(of_levels / (n - g), 1e-300)
    return bool(
        gain > GAIN
        and f_distribution.sf(ratio, g - 3, n - g) < SURE
        and (g <= FEW or _roughness(Y, at) > 1)
    )


def _roughness(Y: Array, at: Array) -> float:
    """Squared steps between the means of neighbouring levels over their variance (von Neumann): 2
    for no order, 0 for a smooth one."""
    n = np.bincount(at)
    means = np.stack([np.bincount(at, column) / n for column in Y.T], axis=1)  # (g, c)
    w = np.minimum(n[1:], n[:-1])
    step = np.sum(w @ np.diff(means, axis=0) ** 2) / w.sum()
    return float(step / max(np.sum(n @ means**2) / n.sum(), 1e-300))


def _centred(y: Array, classification: bool) -> Array:
    """(n, c): indicators of the more frequent classes, or the ranks, which no outlier can rule."""
    if not classification:
        ranks = np.argsort(np.argsort(y)).astype(float)
        return (ranks - ranks.mean())[:, None]
    classes, counts = np.unique(y, return_counts=True)
    Y = (y[:, None] == classes[np.argsort(-counts)[:10]]).astype(float)
    return Y - Y.mean(0)


def _left(Y: Array, F: Array) -> float:
    """The sum of squares that least squares on F leaves."""
    return float(np.sum((Y - F @ np.linalg.lstsq(F, Y, rcond=None)[0]) ** 2))


def leaks(x: Array, y: Array, classification: bool) -> bool:
    """Whether x gives the target away: an invertible function of it in the sample.

    Classes: the levels of x and the classes, several rows of each, are matched one to one. Numbers:
    x rises or falls with y throughout, with as many distinct values; or at most 20 values of each
    are matched. A longer table of matches is no simple relation: where the rows of a few
    individuals repeat, every number of theirs is matched with every other.

    >>> y = np.arange(30.0)
    >>> leaks(np.exp(y / 10), y, False), leaks(y % 7, y, False), leaks(5 - y % 3, y % 3, True)
    (True, False, True)
    """
    known = ~np.isnan(x) & ~np.isnan(y)
    if known.sum() < max(LEAST, 0.5 * len(y)):
        return False
    x, y = x[known], y[known]
    if not _possible(x[:FIRST], y[:FIRST], classification):
        return False  # as nearly always
    n_x, n_y = len(np.unique(x)), len(np.unique(y))
    matched = 2 <= n_x == n_y <= len(y) / 3 and _matched(x, y)
    if classification:
        return matched
    return n_y >= 10 and ((n_x >= 0.9 * n_y and _along(x, y)) or (matched and n_y <= LEAST))


def _possible(x: Array, y: Array, classification: bool) -> bool:
    return _matched(x, y) or (not classification and _along(x, y))


def distinct_rows(columns: list[Array]) -> Array:
    """The first positions of the rows that differ; all rows where every column has few values,
    since then rows repeat by chance.

    >>> x = np.tile(np.arange(30.0), 4)
    >>> len(distinct_rows([x, x + 1])), len(distinct_rows([x % 2, x % 3]))
    (30, 120)
    """
    n = len(columns[0])
    if all(len(np.unique(c)) <= LEAST for c in columns):
        return np.arange(n)
    rows = np.ascontiguousarray(np.stack(columns, axis=1) + 0.0)  # 0.0 and -0.0 are one
    cells = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
    return np.sort(np.unique(cells, return_index=True)[1])


def _matched(x: Array, y: Array) -> bool:
    """Whether each value of x goes with one of y, and the other way round."""
    pairs = len(np.unique(np.stack([x, y]), axis=1).T)
    return len(np.unique(x)) == len(np.unique(y)) == pairs


def _along(x: Array, y: Array) -> bool:
    """Whether x never falls, or never rises, while y rises."""
    up, down = x[np.lexsort((x, y))], x[np.lexsort((-x, y))]
    return bool(np.all(up[1:] >= up[:-1]) or np.all(down[1:] <= down[:-1]))


def copies(columns: dict[str, Array]) -> dict[str, str]:
    """For every column that equals an earlier one in the sample, the name of that one."""
    first: dict[bytes, str] = {}
    found = {}
    for name, values in columns.items():
        key = values.tobytes()
        if key in first and np.array_equal(columns[first[key]], values, equal_nan=True):
            found[name] = first[key]
        first.setdefault(key, name)
    return found


if TYPE_CHECKING:
    from mercer.tables.columns import Columns


def finish_fit(
    c: Columns,
    sketches: dict[str, ColumnSketch],
    sample: RowSample,
    dropped: DroppedRows,
    judge: Judge | None = None,
    tell_rows: bool = True,
) -> None:
    """Fill in all that `Columns` learns; where there is a judge, options are settled by it."""
    if not sample.n:
        raise DataError(f'no row has a value of the target "{c.target}"; choose another column.')
    c.target_ = target_of(c.target, sketches[c.target], sample.column(c.target), c.task)
    c.n_rows_ = int(sketches[c.target].n_filled) - (
        sketches[c.target].n_texts if c.target_.numeric else 0
    )
    c.n_dropped_ = dropped.n - c.n_rows_
    dropped.settle(c.n_dropped_, c.target_.numeric)
    c.time_form_ = time_form(sample.column(c.time_column), c.time_column) if c.time_column else None
    c.types_ = {name: family(s.kind) for name, s in sketches.items()}
    choices = _choices(c, sketches, sample, judge)
    c.encoders_ = {
        name: choice.encoder for name, choice in choices.items() if choice.encoder is not None
    }
    c.treatments_ = tuple(_treatment(name, choices[name], s, c) for name, s in sketches.items())
    c.references_ = with_odd(
        {
            name: reference(e, e.read(sample.column(name))[0], c.n_rows_)
            for name, e in c.encoders_.items()
        }
    )
    c.warnings_ = _warnings(c, dropped if tell_rows else DroppedRows())


def _choices(
    c: Columns, sketches: dict[str, ColumnSketch], sample: RowSample, judge: Judge | None
) -> dict[str, Choice]:
    roles = _roles(c, sample)
    free = [name for name in sketches if name not in roles]
    y = c.target_.read(sample.column(c.target))
    found = dict(
        zip(free, parallel_map(lambda n: _choice(c, n, sketches[n], sample, y), free), strict=True)
    )
    found = _without_copies(_without_leaks(found, sample, y, c), sample)
    group = hashes(text(sample.column(c.group)).fill_null("")) if c.group else None
    time = moments(sample.column(c.time_column), c.time_form_) if c.time_column else None
    found = settle(found, sample, c.target_, judge, group, time)
    return {name: roles.get(name) or found[name] for name in sketches}


def _roles(c: Columns, sample: RowSample) -> dict[str, Choice]:
    """Columns that are no features, or, for the time, only its cycles."""
    found = {name: Choice("excluded", "Left out, as asked for.") for name in c.exclude}
    for role, (kind, action) in _ROLES.items():
        if (name := getattr(c, role)) is not None:
            found[name] = Choice(kind, action)
    if c.time_column is not None:
        found[c.time_column] = _time(c, c.time_column, sample)
    return found | {c.target: Choice("target", f"Predicted: {c.task_reason_}", _about_target(c))}


def _about_target(c: Columns) -> str:
    t = c.target_
    if t.task == "regression":
        return f"from {t.low:.6g} to {t.high:.6g}{f' {t.unit}' * bool(t.unit)}"
    shown = [f"{name[:30]} {count:,}" for name, count in zip(t.classes, t.counts, strict=True)]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")


def _time(c: Columns, name: str, sample: RowSample) -> Choice:
    """The cycles of a date; a number that orders the rows is no feature."""
    plain = Choice(
        "time",
        "Orders the rows; no feature, since new rows lie beyond it.",
        warnings=_untimed(c, name, sample),
    )
    if c.time_form_ == "number":
        return plain
    seen = ColumnSample(name, ColumnSketch(), sample.column(name))
    seen.sketch.add(seen.sample)
    made = date(seen, c.time_form_).encoder
    if not isinstance(made, DateEncoder) or not made.cycles:
        return plain
    turns = " and the ".join(made.cycles)
    action = f"Orders the rows; its place in the {turns} is used, the time elapsed is not, since new rows lie beyond it."
    return replace(plain, action=action, encoder=replace(made, elapsed=False, indicator=False))


def _untimed(c: Columns, name: str, sample: RowSample) -> tuple[str, ...]:
    gone = np.isnan(moments(sample.column(name), c.time_form_)).mean()
    return (f'"{name}" is missing in {gone:.1%} of the rows, which have no place in time.',) * bool(
        gone
    )


def _choice(c: Columns, name: str, sketch: ColumnSketch, sample: RowSample, y: Array) -> Choice:
    """The rules of `decide`; whole numbers that act as codes become categories."""
    seen = ColumnSample(name, sketch, sample.column(name), c.max_categories)
    found = choose(seen)
    if not _maybe_codes(found.encoder, sketch, c.max_categories):
        return found
    assert found.encoder is not None
    if not acts_as_codes(found.encoder.read(seen.sample)[0][:, 0], y, c.task_ == "classification"):
        return found
    coded = category(seen)
    return (
        replace(coded, action=f"Whole numbers that act as codes. {coded.action}", number=found)
        if coded.encoder
        else found
    )


def _maybe_codes(encoder: Encoder | None, sketch: ColumnSketch, most: int) -> bool:
    return (
        isinstance(encoder, NumberEncoder)
        and sketch.whole
        and not sketch.n_texts
        and 3 < sketch.n_distinct <= 2 * most
    )


def _without_leaks(
    found: dict[str, Choice], sample: RowSample, y: Array, c: Columns
) -> dict[str, Choice]:
    """Without the columns that give the target away, unless nothing would be left."""
    classes = c.task_ == "classification"
    able = [name for name, choice in found.items() if choice.encoder is not None]
    reads = {name: _read(found[name], sample, name) for name in able}
    few = distinct_rows([*reads.values(), y])
    leaking = {name for name in able if leaks(reads[name][few], y[few], classes)}
    kept = len(leaking) == len(able)
    return {
        name: choice if name not in leaking else _leak(name, choice, c.target, kept)
        for name, choice in found.items()
    }


def _leak(name: str, choice: Choice, target: str, kept: bool) -> Choice:
    what = f'"{name}" gives the target "{target}" away (each can be computed from the other in the sample)'
    if kept:
        return replace(
            choice,
            warnings=(*choice.warnings, f"{what}; it was kept, since no other column is left."),
        )
    return Choice(
        "leak",
        f'Equal to the target "{target}", or an invertible function of it, in the sample; left out.',
        warnings=(f"{what} and was left out.",),
    )


def _without_copies(found: dict[str, Choice], sample: RowSample) -> dict[str, Choice]:
    reads = {
        name: _read(choice, sample, name)
        for name, choice in found.items()
        if choice.encoder is not None
    }
    same = copies(reads)
    return {
        name: choice if name not in same else _copy(name, same[name])
        for name, choice in found.items()
    }


def _copy(name: str, first: str) -> Choice:
    said = (f'"{name}" is a copy of "{first}" and was left out.',)
    return Choice("excluded", f'The same as "{first}" in the sample; left out.', warnings=said)


def _read(choice: Choice, sample: RowSample, name: str) -> Array:
    assert choice.encoder is not None
    return choice.encoder.read(sample.column(name))[0][:, 0]


def _treatment(name: str, choice: Choice, sketch: ColumnSketch, c: Columns) -> Treatment:
    outputs = choice.encoder.names(name) if choice.encoder is not None else ()
    missing = sketch.n_missing + choice.n_void + (c.n_dropped_ if name == c.target else 0)
    return Treatment(
        name,
        choice.kind,
        choice.action,
        choice.details,
        missing,
        sketch.n_distinct,
        outputs,
        choice.warnings,
    )


def _warnings(c: Columns, dropped: DroppedRows) -> tuple[str, ...]:
    if not c.encoders_:
        why = " ".join(f'"{t.name}": {t.action}' for t in c.treatments_[:8] if t.name != c.target)
        raise DataError(f'no column can be used to predict "{c.target}". {why}'.strip())
    told = dropped.sentences(c.target, c.weight, c.target_.numeric)
    return (*told, *c.target_.warnings, *(w for t in c.treatments_ for w in t.warnings), *_idle(c))


def _idle(c: Columns) -> tuple[str, ...]:
    """One sentence on the columns that say nothing."""
    same, none = (
        [t.name for t in c.treatments_ if t.kind == kind] for kind in ("constant", "empty")
    )
    parts = [f"{quoted(same)} with one value in every row"] * bool(same) + [
        f"{quoted(none)} without values"
    ] * bool(none)
    return (f"columns left out since they say nothing: {' and '.join(parts)}.",) * bool(parts)
