"""The column to predict: numbers or classes, by a stated rule, and what is odd about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Column, Kind, pa, pc
from mercer.tables.dates import form_of
from mercer.tables.errors import DataError, Misnamed
from mercer.tables.scale import tails
from mercer.tables.sketch import ColumnSketch, short
from mercer.tables.values import is_text, missing_marks, null, numbers, text, truth, truths
from mercer.tables.written import LOOKED, PLAIN, about_dots, about_percents, currencies

FEW_CLASSES = 20  # whole numbers with at most so many distinct values are classes
ROWS_A_CLASS = 10  # where there are at least so many rows for each
MAX_CLASSES = 1000  # classes
RARE_SHARE = 0.05  # share of the rarest class below which classes are imbalanced
MAX_SKEW = 2.0
# values and spans of a number to predict
LARGEST = 1e30
SMALLEST = 1e-30
A_NUMBER = "predict a number made from it, such as the days since a fixed day"
MAX_TEXT_SHARE = 0.05  # texts among numbers, up to which they count as missing


@dataclass(frozen=True)
class Target:
    """The target: `read` gives numbers, or positions of classes with -1 for unknown ones; NaN where
    there is none.

    Parameters
    ----------
    name : str
        The column.
    task : {"regression", "classification"}
        What is asked of it.
    reason : str
        The rule that decided, in one sentence.
    classes : tuple of str, default=()
        Of a classification.
    counts : tuple of int, default=()
        How many rows each class has.
    numeric : bool, default=True
        Whether classes are numbers.
    skew : float, default=0.0
        The absolute skewness of a regression target, in the sample.
    positive : bool, default=False
        Whether all values of a regression target are > 0.
    low : float, default=0.0
        The least value of a regression target.
    high : float, default=0.0
        The largest.
    warnings : tuple of str, default=()
        Sentences about imbalance, skew and odd values.
    boolean : bool, default=False
        Whether the column held true and false as such.
    unit : str, default=""
        What stands behind the numbers of a column of text.
    written : str, default=".,"
        Its decimal mark, and what groups thousands.

    Examples
    --------
    >>> Target("paid", "classification", "2 values", ("no", "yes"), (40, 60), numeric=False).kind
    DataType(string)
    """

    name: str
    task: str
    reason: str
    classes: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    numeric: bool = True
    skew: float = 0.0
    positive: bool = False
    low: float = 0.0
    high: float = 0.0
    warnings: tuple[str, ...] = ()
    boolean: bool = False
    unit: str = ""
    written: str = PLAIN

    @property
    def kind(self) -> Kind:
        """The pyarrow type of what is predicted: that of the numbers or truth values that the
        classes stand for, else text."""
        if self.task == "regression":
            return pa.float64()
        if self.boolean:
            return pa.bool_()
        whole = all(c.lstrip("-").isdigit() for c in self.classes)
        return (pa.int64() if whole else pa.float64()) if self.numeric else pa.string()

    @property
    def imbalance(self) -> float:
        """The share of the rarest class; 0 for regression."""
        return min(self.counts) / sum(self.counts) if self.counts else 0.0

    def read(self, column: Column) -> Array:
        """float64; NaN where the target is missing."""
        if self.task == "regression":
            return numbers(column, self.unit, self.written)[0]
        found = (
            self._codes(numbers(column, self.unit, self.written)[0])
            if self.numeric
            else self._positions(short(text(column, label=True)))
        )
        unknown = ~(found >= 0)
        if not unknown.any() or len(self.classes) != 2 or truth(list(self.classes)) is None:
            return found
        other = truths(column)  # yes and no, written in another way than in training
        yes = int(
            truths(pa.array([self.classes[1]]))[0]
        )  # 0 where the second class is the one that means no
        return np.where(unknown & ~np.isnan(other), other if yes else 1 - other, found)

    def _positions(self, cells: Column) -> Array:
        found = (
            pc.index_in(cells, value_set=pa.array(self.classes, pa.string()))
            .cast(pa.float64())
            .to_numpy(zero_copy_only=False)
        )
        return np.where(np.isnan(found) & ~null(cells), -1.0, found)

    def _codes(self, values: Array) -> Array:
        known = np.array([float(c) for c in self.classes])
        at = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(np.isnan(values), np.nan, np.where(known[at] == values, at, -1.0))

    def state(self) -> dict[str, Any]:
        return asdict(self) | {k: list(getattr(self, k)) for k in ("classes", "counts", "warnings")}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Target:
        return cls(**state | {k: tuple(state[k]) for k in ("classes", "counts", "warnings")})


def target_of(name: str, sketch: ColumnSketch, sample: Column, task: str) -> Target:
    """The target of a column that was seen."""
    if not sketch.n_filled:
        raise DataError(f'the target "{name}" has no values; choose another column.')
    _predictable(name, sketch.kind)
    codes = sketch.coded and task != "regression"
    numeric = (
        bool(sketch.numeric) and sketch.n_texts <= MAX_TEXT_SHARE * sketch.n_filled and not codes
    )
    if sketch.n_distinct + (not numeric and len(sketch.texts)) < 2:
        raise DataError(
            f'the target "{name}" has the same value in every row; there is nothing to predict.'
        )
    if task != "classification" and not numeric and not codes:
        _no_dates(name, sample)
    doubts = _doubts(name, sketch, sample) if numeric else ()
    guess, reason = _rule(name, sketch, numeric)
    if task != "auto":
        guess, reason = task, f"{task}, as asked for."
    found = (_numbers if guess == "regression" else _classes)(name, sketch, sample, reason, numeric)
    return replace(found, warnings=(*doubts, *found.warnings))


def _doubts(name: str, sketch: ColumnSketch, sample: Column) -> tuple[str, ...]:
    """Sentences on marks and signs of its numbers; a DataError where they are of several
    currencies."""
    if not is_text(sample.type):
        return ()
    cells = text(sample.slice(0, LOOKED)).drop_null()
    if len(signs := currencies(cells)) > 1:
        what = f"has numbers in {len(signs)} currencies ({', '.join(signs)})"
        raise DataError(f'the target "{name}" {what}; convert them to one currency.')
    told = (about_dots(cells, sketch.written, sketch.points), about_percents(cells))
    return tuple(f'the target "{name}" {one}' for one in told if one)


def _predictable(name: str, kind: Kind) -> None:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        raise DataError(f'the target "{name}" holds dates; {A_NUMBER}.')
    if pa.types.is_nested(kind):
        raise DataError(
            f'the target "{name}" holds {kind}, not single values; choose another column.'
        )


def _no_dates(name: str, sample: Column) -> None:
    """That it is no text of many dates; a few may be classes."""
    n = len(pc.unique(sample.drop_null()))
    if n > FEW_CLASSES and form_of(sample) is not None:
        raise DataError(
            f'the target "{name}" holds dates as text; {A_NUMBER}, or give task="classification" to have each date as a class.'
        )


def _rule(name: str, sketch: ColumnSketch, numeric: bool) -> tuple[str, str]:
    """The guess and its sentence."""
    d = sketch.n_distinct
    if d == 2 and not sketch.n_texts:
        return "classification", f'classification, since "{name}" has two distinct values.'
    if not numeric:
        what = "codes with zeros before" if sketch.coded else "text"
        return "classification", f'classification, since "{name}" holds {what}.'
    if sketch.whole and d <= FEW_CLASSES and sketch.n_filled >= ROWS_A_CLASS * d:
        few = f"whole numbers with only {d} distinct values (up to {FEW_CLASSES} count as classes)"
        return "classification", f'classification, since "{name}" holds {few}.'
    why = (
        f"whole numbers with {d:,} distinct values"
        if sketch.whole
        else "numbers that are not whole"
    )
    return "regression", f'regression, since "{name}" holds {why}.'


def _numbers(name: str, sketch: ColumnSketch, sample: Column, reason: str, numeric: bool) -> Target:
    if not numeric:
        raise Misnamed(
            f'the target "{name}" holds text, which a regression cannot predict; use task="classification".'
        )
    values = numbers(sample, sketch.unit, sketch.written)[0]
    values = values[~np.isnan(values)]
    _measurable(name, sketch.low, sketch.high)
    skew = tails(values)[0]
    said = [
        f'the target "{name}" is skewed (skewness {skew:.1f}): a few rows weigh much in the error.'
    ] * (skew > MAX_SKEW)
    said += _in_units(name, sketch.unit) + _far(
        name, missing_marks(values, sketch.low, sketch.high)
    )
    return Target(
        name,
        "regression",
        reason,
        skew=skew,
        positive=sketch.low > 0,
        low=sketch.low,
        high=sketch.high,
        warnings=tuple(said),
        unit=sketch.unit,
        written=sketch.written,
    )


def _measurable(name: str, low: float, high: float) -> None:
    """That squares of errors neither overflow nor vanish."""
    size, span = max(abs(low), abs(high)), high / 2 - low / 2
    if size > LARGEST or 0 < span < SMALLEST:
        what = f'the target "{name}" runs from {low:.3g} to {high:.3g}'
        raise DataError(f"{what}, beyond what squared errors can tell apart; scale it first.")


def _far(name: str, marks: tuple[float, ...]) -> list[str]:
    which = " and ".join(f"{m:g}" for m in marks)
    about = f'the target "{name}" has {which} far from all its other values; where that stands for missing, leave those rows out or empty.'
    return [about] * bool(marks)


def _classes(name: str, sketch: ColumnSketch, sample: Column, reason: str, numeric: bool) -> Target:
    spelled, each = _levels(sketch, sample, numeric)
    labels, counts = _merged(spelled, each)
    if FEW_CLASSES < len(labels) > sum(counts) / 2:
        own = f'the target "{name}" has {len(labels):,} classes in {sum(counts):,} rows'
        raise DataError(f"{own}, too few rows for each; choose another column.")
    if not 0 < len(labels) <= MAX_CLASSES:
        many = f'the target "{name}" has {sketch.n_distinct:,} distinct values, too many for classes (at most {MAX_CLASSES:,})'
        raise DataError(
            f"{many}; " + ('use task="regression".' if numeric else "choose another column.")
        )
    order = sorted(range(len(labels)), key=lambda i: float(labels[i]) if numeric else labels[i])
    found = Target(
        name,
        "classification",
        reason,
        tuple(labels[i] for i in order),
        tuple(counts[i] for i in order),
        numeric,
        boolean=pa.types.is_boolean(sketch.kind),
        unit=sketch.unit,
        written=sketch.written,
    )
    said = _spelled(found, spelled) + _in_units(name, sketch.unit if numeric else "")
    return replace(found, warnings=(*said, *_about_classes(found)))


def _spelled(found: Target, spelled: list[str]) -> list[str]:
    """That several spellings were taken for two classes."""
    ways, (no, *yes) = ", ".join(f'"{v[:20]}"' for v in sorted(spelled)[:8]), found.classes
    merged = f'the target "{found.name}" spells yes and no in several ways ({ways}), which were taken for "{no}" and "{"".join(yes)}".'
    return [merged] * (len(spelled) > len(found.classes))


def _in_units(name: str, unit: str) -> list[str]:
    return [
        f'the target "{name}" has "{unit}" behind its numbers; predictions are numbers of {unit}.'
    ] * bool(unit)


def _levels(sketch: ColumnSketch, sample: Column, numeric: bool) -> tuple[list[str], list[int]]:
    """Classes and their counts, none where they are too many; from the sample where a column mixes
    numbers and texts."""
    if sketch.numeric and not numeric:
        found = pc.value_counts(short(text(sample, label=True).drop_null()))
        return found.field("values").to_pylist(), found.field("counts").to_pylist()
    if sketch.counts is None or not sketch.counts.exact:
        return [], []
    return [label(v) for v in sketch.counts.values.to_pylist()], sketch.counts.counts.tolist()


def _merged(labels: list[str], counts: list[int]) -> tuple[list[str], list[int]]:
    """Several spellings of yes and no as two classes, each under its most frequent one.

    >>> _merged(["yes", "YES", "No"], [3, 5, 2])
    (['No', 'YES'], [2, 8])
    """
    if len(labels) <= 2 or truth(labels) is None:
        return labels, counts
    side = truths(pa.array(labels))
    sides = [[i for i in range(len(labels)) if side[i] == s] for s in (0.0, 1.0)]
    return [labels[max(mine, key=lambda i: counts[i])] for mine in sides], [
        sum(counts[i] for i in mine) for mine in sides
    ]


def label(value: Any) -> str:
    """A class as text: 7 and 7.0 are "7".

    >>> label(7.0), label(0.5), label("a")
    ('7', '0.5', 'a')
    """
    return (
        str(value)
        if not isinstance(value, float)
        else str(int(value))
        if value.is_integer() and abs(value) < 1e15
        else repr(value)
    )


def _about_classes(found: Target) -> tuple[str, ...]:
    rarest, total = int(np.argmin(found.counts)), sum(found.counts)
    uneven = found.imbalance < RARE_SHARE and len(found.classes) < FEW_CLASSES
    share = f"{found.counts[rarest]:,} of {total:,} rows ({found.imbalance:.1%})"
    said = [f'classes are imbalanced: "{found.classes[rarest]}" has {share}.'] * uneven
    alone = sum(k == 1 for k in found.counts)
    have = "has" if alone == 1 else "have"
    said += [
        f"{alone:,} of the {len(found.counts):,} classes {have} a single row, too few to learn from or to judge."
    ] * bool(alone)
    return tuple(said)
