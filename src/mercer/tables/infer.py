"""What each column is and how it becomes numbers: the rules, from its sketch and a sample."""
from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Column, pa, pc
from mercer.tables.dates import CLOCKS, MONTHS, SEVERAL, form_of, seconds, varying
from mercer.tables.encoders import BooleanEncoder, CategoryEncoder, DateEncoder, NumberEncoder, TextEncoder, lengths
from mercer.tables.scale import Standardizer
from mercer.tables.sketch import short
from mercer.tables.target import label
from mercer.tables.treatment import MAX_CATEGORIES, Choice, ColumnSample
from mercer.tables.values import is_text, missing_marks, numbers, text, truth, units

RARELY = 0.01  # of the cells: a unit that fewer have is none
NEARLY_ALL = 0.9  # so many with one make a column of units
# characters and words, on average, that make a text
LONG = 40
WORDY = 4
MAX_TEXT_SHARE = 0.05  # texts among numbers up to this share count as missing; beyond, the column is a category
MOST_TRUTHS = 12  # spellings of yes and no in one column
_ID = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid|index|idx|row|rowid|rownum|key|nr)$|^unnamed(: 0)?$|^(row|record|serial)[_ ]?(number|no)$", re.I
)
_CAMEL = re.compile(r"[a-z](Id|ID)$")
_TIME = re.compile(r"year|date|time|month|day|epoch|stamp", re.I)


def words(seen: ColumnSample) -> Choice:
    """A text where cells are long and mostly different, an identifier where all differ, else a category."""
    s = seen.sketch
    cells = text(seen.sample).drop_null()
    if s.n_distinct > max(0.1 * s.n_filled, MAX_CATEGORIES) and _long(cells):
        return _text(seen, cells)
    if s.n_filled >= 10 and s.n_distinct > 0.9 * s.n_filled and len(cells) == len(pc.unique(cells)):
        return seen.left_out("id", "A different text in every row", "looks like an identifier (a different text in every row)")
    return category(seen)


def _long(cells: Column) -> bool:
    spaces = pc.mean(pc.count_substring(cells, " ")).as_py() or 0
    return bool((pc.mean(pc.utf8_length(cells)).as_py() or 0) > LONG or spaces + 1 > WORDY)


def _text(seen: ColumnSample, cells: Column) -> Choice:
    size, count = (Standardizer.of(np.log1p(v)) for v in lengths(text(seen.sample)))
    encoder = TextEncoder(_repeated(seen), size, count)
    said = (f'"{seen.name}" is text; for now only its repeated values, its length and its number of words are used.',)
    action = "Text: for now treated as a category, together with its length and its number of words."
    return Choice("text", action, f"{pc.mean(pc.utf8_length(cells)).as_py():.0f} characters on average", encoder, said)


def _repeated(seen: ColumnSample) -> CategoryEncoder | None:
    """The frequent values of a text; the others are not kept, so that a saved model does not carry the texts."""
    found = category(seen).encoder
    if not isinstance(found, CategoryEncoder) or not found.n_features:
        return None
    k = found.n_features
    return replace(found, levels=found.levels[:k], shares=found.shares[:k], other=True, frequency=None)


def category(seen: ColumnSample) -> Choice:
    """A feature for each frequent level."""
    counts = seen.sketch.counts
    assert counts is not None  # only numbers with very many values have none
    values = [label(v) for v in counts.values.to_pylist()] if counts.values is not None else []
    total = len(values) if counts.exact else max(len(values), seen.sketch.n_distinct)
    return _levels(seen, values, counts.counts + counts.error, total, bool(seen.sketch.numeric))


def coded(seen: ColumnSample) -> Choice:
    """Digits that begin with 0: codes, which numbers would cut short; an identifier where all differ."""
    cells = text(seen.sample).drop_null()
    example = cells.filter(pc.match_substring_regex(cells, "^0[0-9]+$"))
    what = f'holds codes with zeros before, such as "{example[0].as_py() if len(example) else "007"}"'
    if len(cells) >= 10 and len(pc.unique(cells)) > 0.9 * len(cells):
        return seen.left_out("id", "Codes, nearly all of them different", f"{what}, nearly all different,")
    found = pc.value_counts(short(cells))
    values, counts = found.field("values").to_pylist(), found.field("counts").to_numpy(zero_copy_only=False)
    said = (f'"{seen.name}" {what}, and is treated as a category, not as numbers.',)
    return _levels(seen, values, counts * max(seen.sketch.n / max(len(seen.sample), 1), 1.0), len(values), False, said)


def mixed(seen: ColumnSample) -> Choice:
    """Numbers and texts side by side: a category, its levels counted in the sample."""
    found = pc.value_counts(short(text(seen.sample).drop_null()))
    values, counts = found.field("values").to_pylist(), found.field("counts").to_numpy(zero_copy_only=False)
    said = (f'"{seen.name}" {_mixture(seen)}',)
    return _levels(seen, values, counts * max(seen.sketch.n / max(len(seen.sample), 1), 1.0), len(values), False, said)


def _mixture(seen: ColumnSample) -> str:
    """What is mixed: units, where nearly all cells are numbers with one, else numbers and text."""
    cells = text(seen.sample).drop_null()
    found = [(unit, count) for unit, count in units(cells) if count > RARELY * len(cells)]
    if seen.sketch.unit and len(found) > 1 and sum(count for _, count in found) > NEARLY_ALL * len(cells):
        how_many = "two" if len(found) == 2 else f"{len(found)}"
        which = ", ".join(unit for unit, _ in found)
        return f"has numbers in {how_many} units ({which}) and is treated as a category; convert them to one unit to have numbers."
    return f"mixes numbers and text ({seen.sketch.n_texts / seen.sketch.n_filled:.0%} text) and is treated as a category."


def _levels(seen: ColumnSample, values: list[str], counts: Array, total: int, numeric: bool, said: tuple[str, ...] = ()) -> Choice:
    """Frequent levels first, equal counts by name, so that the order of the rows does not matter."""
    order = sorted(range(len(values)), key=lambda i: (-counts[i], values[i]))
    values, counts = [values[i] for i in order], np.asarray(counts, np.float64)[order]
    keep = min(int((counts >= seen.often).sum()), seen.max_categories)
    shares = counts / max(seen.sketch.n, 1)
    frequency = _frequency(shares) if total > 2 * keep and total == len(values) else None
    if not keep and frequency is None:
        return seen.left_out("category", "Every value is rare", f"has {total:,} values, all of them rare,")
    gone = seen.sketch.n_missing >= seen.often
    encoder = CategoryEncoder(tuple(values), tuple(shares.tolist()), keep, total > keep, gone, frequency, numeric)
    top = "most frequent: " + ", ".join(v[:30] for v in values[:3])
    return Choice("category", _action(seen, encoder, total), top, encoder, said)


def _frequency(shares: Array) -> Standardizer | None:
    """The log of the share of a row's level, to mean 0 and deviation 1 over the rows; None where all are about as frequent."""
    logs, weight = np.log(shares), shares / shares.sum()
    mean = float(weight @ logs)
    std = float(np.sqrt(weight @ (logs - mean) ** 2))
    return Standardizer(mean, std) if std > 0.1 else None


def _action(seen: ColumnSample, encoder: CategoryEncoder, total: int) -> str:
    k, rest = encoder.n_features, total - encoder.n_features
    parts = [f"Category: {k or 'no'} frequent {'value has' if k == 1 else 'values have'} a feature each"]
    parts += [f"{rest:,} others are pooled" if rest > 1 else "one other counts as other"] * (rest > 0)
    parts += ["how frequent a value is counts too"] * (encoder.frequency is not None)
    if encoder.gone:
        parts.append("missing is a category of its own")
    elif seen.sketch.n_missing:
        parts.append("missing values take the most frequent")
    return "; ".join(parts) + "."


def choose(seen: ColumnSample) -> Choice:
    """The rules, in order."""
    s = seen.sketch
    if not s.n_filled:
        return seen.left_out("empty", "No values")
    if pa.types.is_nested(s.kind) or pa.types.is_binary(s.kind) or pa.types.is_large_binary(s.kind):
        return seen.left_out("excluded", f"Holds {s.kind}, not single values", f"holds {s.kind}, not single values,")
    if s.numeric and (s.coded or s.n_texts > MAX_TEXT_SHARE * s.n_filled):
        return coded(seen) if s.coded else mixed(seen)
    if s.n_distinct == 1:
        return _constant(seen)
    return _numeric(seen) if s.numeric else _other(seen)


def _constant(seen: ColumnSample) -> Choice:
    """One value: only whether it is there can tell rows apart."""
    value = label(seen.sketch.counts.values[0].as_py()) if seen.sketch.counts else ""
    if not seen.gone or seen.sketch.n_filled < seen.often:
        return Choice("constant", "The same value in every row; left out.", f"value {value[:40]}")
    encoder = CategoryEncoder((value,), (1.0,), 0, False, True, numeric=bool(seen.sketch.numeric))
    return Choice("boolean", f"One value, {value[:40]}, or missing: used as whether it is there.", encoder=encoder)


def _numeric(seen: ColumnSample) -> Choice:
    s = seen.sketch
    if s.n_distinct == 2 and (s.low, s.high) == (0.0, 1.0):
        return _boolean(seen, ("0", "1"))
    if _day_numbers(seen):
        return date(seen, "%Y%m%d")
    why = _identifies(seen)
    return seen.left_out("id", why.capitalize(), f"looks like an identifier ({why})") if why else number(seen)


def number(seen: ColumnSample) -> Choice:
    """A number, whatever else it may look like."""
    unit = seen.sketch.unit
    values = _filled(numbers(seen.sample, unit)[0])
    marks = missing_marks(values, seen.sketch.low, seen.sketch.high)
    marked = np.isin(values, marks)
    seen, values = replace(seen, n_marked=round(float(marked.mean()) * seen.sketch.n_filled) if len(values) else 0), values[~marked]
    if not len(values):
        return seen.left_out("empty", "Hardly any values")
    scale, fill = Standardizer.of(values), float(np.median(values))
    bent = f"{f' of {unit}' * bool(unit)}{' after a signed log, since its tails are heavy' * bool(scale.spread)}"
    action = f"Standardised number{bent}{seen.about_missing(f'the median {fill:.6g}')}"
    said = (*_texts(seen), *_marked(seen, marks))
    return Choice(
        "number", action, _range(seen, scale, values if marks else None), NumberEncoder(scale, fill, seen.gone, unit, marks), said
    )


def _marked(seen: ColumnSample, marks: tuple[float, ...]) -> tuple[str, ...]:
    if not marks:
        return ()
    which = " and ".join(f"{m:g}" for m in marks)
    return (f'"{seen.name}" has {which} far from all its other values; such cells count as missing, about {seen.n_marked:,} of them.',)


def _range(seen: ColumnSample, scale: Standardizer, values: Array | None) -> str:
    bend = f"; log(1 + |x - {scale.centre:.4g}| / {scale.spread:.4g})" if scale.spread else ""
    low, high = (seen.sketch.low, seen.sketch.high) if values is None else (values.min(), values.max())
    return f"from {low:.6g} to {high:.6g}{bend}"


def _texts(seen: ColumnSample) -> tuple[str, ...]:
    s = seen.sketch
    if not s.n_texts or s.texts.values is None:
        return ()
    few = ", ".join(f'"{v[:20]}"' for v in s.texts.values.to_pylist()[:3])
    what = f"{s.n_texts:,} of its values are text ({few}); they count" if s.n_texts > 1 else f"one of its values is text ({few}); it counts"
    return (f'"{seen.name}" holds numbers, but {what} as missing.',)


def _day_numbers(seen: ColumnSample) -> bool:
    """Whole numbers such as 20240131, all of them days."""
    s = seen.sketch
    if not s.whole or s.low < 18000101 or s.high > 22001231 or s.n_distinct < 3:
        return False
    gone = np.isnan(seconds(seen.sample, "%Y%m%d"))
    return not gone.all() and bool(np.array_equal(gone, np.isnan(numbers(seen.sample)[0])))


def _identifies(seen: ColumnSample) -> str | None:
    """Why a column of whole numbers identifies rows: all distinct, and a running number or named like an identifier."""
    s = seen.sketch
    if not s.whole or seen.n_gone or s.n < 10 or s.n_distinct < 0.9 * s.n or _TIME.search(seen.name):
        return None
    values = _filled(numbers(seen.sample)[0])
    if len(np.unique(values)) < len(values):
        return None
    if s.rising and s.high - s.low < 2 * s.n:
        return "a running number of the rows"
    named = _ID.search(seen.name.strip()) or _CAMEL.search(seen.name.strip())
    return "distinct in every row and named like one" if named else None


def _other(seen: ColumnSample) -> Choice:
    """Columns that are not numbers: booleans, dates, texts, identifiers, categories."""
    s = seen.sketch
    if s.counts and s.counts.exact and 2 <= len(s.counts.values) <= MOST_TRUTHS and (pair := truth(s.counts.values.to_pylist())):
        return _boolean(seen, pair)
    if pa.types.is_timestamp(s.kind) or pa.types.is_date(s.kind):
        return date(seen, None)
    form = form_of(seen.sample) if is_text(s.kind) else None
    return date(seen, form) if form else words(seen)


def _boolean(seen: ColumnSample, pair: tuple[str, str]) -> Choice:
    values = _filled(BooleanEncoder(pair, 0.0).read(seen.sample)[0][:, 0])
    share = float(np.mean(values)) if len(values) else 0.0
    several = seen.sketch.counts is not None and len(seen.sketch.counts.values) > 2
    said = (f'"{seen.name}" spells yes and no in several ways, which were taken for {pair[1]} and {pair[0]}.',) * several
    encoder = BooleanEncoder(pair, float(share > 0.5), seen.gone)
    what = "0 or 1" if pair == ("0", "1") else f"{pair[0]} or {pair[1]}, as 0 or 1"
    action = f"{what.capitalize()}{seen.about_missing(f'the more frequent {pair[int(encoder.fill)]}')}"
    return Choice("boolean", action, f"{pair[1]} in {share:.1%} of the rows", encoder, (*said, *_texts(seen)))


def date(seen: ColumnSample, form: str | None) -> Choice:
    """A date: the time elapsed, and the cycles that the sample runs through; a time of the day: its place in the day."""
    days = _filled(seconds(seen.sample, form))
    if form in CLOCKS:
        clock = DateEncoder(form, Standardizer(), float(np.median(days)), ("day",), False, seen.gone)
        return Choice("date", f"Time: its place in the day{seen.about_missing('the median')}", f"written as {form}", clock)
    forms = (form or "").split(SEVERAL)
    several = f'"{seen.name}" holds dates in several forms ({", ".join(forms)}); each cell was read by the first that fits.'
    said = (several,) * (len(forms) > 1)
    cycles = tuple(c for c in varying(days) if c == "year" or form not in MONTHS)
    encoder = DateEncoder(form, Standardizer.of(days), float(np.median(days)), cycles, True, seen.gone)
    turns = f" and the place in the {' and the '.join(encoder.cycles)}" if encoder.cycles else ""
    span = f"{_day(days.min())} to {_day(days.max())}" + (f", written as {form}" if form else "")
    return Choice("date", f"Date: time elapsed{turns}{seen.about_missing('the median date')}", span, encoder, said)


def _day(moment: float) -> str:
    return str(np.datetime64(int(moment), "s").astype("datetime64[D]"))


def _filled(values: Array) -> Array:
    return values[~np.isnan(values)]


def family(column_type: object) -> str:
    """The family of a pyarrow type, in a word.

    >>> family(pa.int8()), family(pa.large_string()), family(pa.date32())
    ('number', 'text', 'date')
    """
    kinds = {"empty": pa.types.is_null, "text": is_text, "boolean": pa.types.is_boolean, "nested": pa.types.is_nested}
    found = next((name for name, test in kinds.items() if test(column_type)), None)
    return found or ("date" if pa.types.is_timestamp(column_type) or pa.types.is_date(column_type) else "number")
