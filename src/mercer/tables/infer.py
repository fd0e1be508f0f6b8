"""What each column is and how it becomes numbers: the rules, from its sketch and a sample."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Column, pa, pc
from mercer.tables.categories import about_numbers, coded, mixed, words
from mercer.tables.dates import CLOCKS, MONTHS, SEVERAL, form_of, seconds, varying
from mercer.tables.encoders import BooleanEncoder, CategoryEncoder, DateEncoder, NumberEncoder
from mercer.tables.scale import Standardizer
from mercer.tables.sketch import ColumnSketch
from mercer.tables.target import label
from mercer.tables.treatment import Choice, ColumnSample
from mercer.tables.values import (
    MIN_OTHERS,
    MIN_REPEATS,
    is_text,
    missing_marks,
    numbers,
    text,
    truth,
)
from mercer.tables.written import LOOKED, about_dots, about_percents, currencies, doubtful

MAX_TEXT_SHARE = (
    0.05  # texts among numbers up to this share count as missing; beyond, the column is a category
)
MAX_WORD_SHARE = 0.3  # of one text that comes again and again among numbers and counts as missing
FEW_WHOLE = 64  # whole numbers that may be categories
MOST_TRUTHS = 12  # spellings of yes and no in one column
_ID = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid|index|idx|row|rowid|rownum|key|nr)$|^unnamed(: 0)?$|^(row|record|serial)[_ ]?(number|no)$",
    re.I,
)
_CAMEL = re.compile(r"[a-z](Id|ID)$")
_TIME = re.compile(r"year|date|time|month|day|epoch|stamp", re.I)


def choose(seen: ColumnSample) -> Choice:
    """The rules, in order."""
    s = seen.sketch
    if not s.n_filled:
        return seen.left_out("empty", "No values")
    if pa.types.is_nested(s.kind) or pa.types.is_binary(s.kind) or pa.types.is_large_binary(s.kind):
        return seen.left_out(
            "excluded", f"Holds {s.kind}, not single values", f"holds {s.kind}, not single values,"
        )
    texts = _other_texts(s) > MAX_TEXT_SHARE * s.n_filled
    if s.numeric and (s.coded or texts or _in_currencies(seen)):
        return coded(seen) if s.coded else mixed(seen)
    if s.n_distinct == 1:
        return _constant(seen)
    return _numeric(seen) if s.numeric else _other(seen)


def _other_texts(s: ColumnSketch) -> int:
    """How many cells among numbers are texts, without one that says that there is no number."""
    return s.n_texts - (int(s.texts.counts[0]) if _missing_word(s) else 0)


def _missing_word(s: ColumnSketch) -> str:
    """The text without digits, such as "k.A.", that comes again and again among different numbers;
    "" where there is none. Among a few whole numbers it may be one more category."""
    few = s.n_distinct < MIN_OTHERS or (s.whole and s.n_distinct <= FEW_WHOLE)
    if few or not len(s.texts):
        return ""
    word, count = str(s.texts.values[0].as_py()), int(s.texts.counts[0])
    often = MIN_REPEATS <= count <= MAX_WORD_SHARE * s.n_filled
    return word if often and not any(map(str.isdigit, word)) else ""


def _constant(seen: ColumnSample) -> Choice:
    """One value: only whether it is there can tell rows apart."""
    value = label(seen.sketch.counts.values[0].as_py()) if seen.sketch.counts else ""
    if not seen.gone or seen.sketch.n_filled < seen.often:
        return Choice("constant", "The same value in every row; left out.", f"value {value[:40]}")
    encoder = CategoryEncoder((value,), (1.0,), 0, False, True, numeric=bool(seen.sketch.numeric))
    return Choice(
        "boolean",
        f"One value, {value[:40]}, or missing: used as whether it is there.",
        encoder=encoder,
    )


def _numeric(seen: ColumnSample) -> Choice:
    s = seen.sketch
    if s.n_distinct == 2 and (s.low, s.high) == (0.0, 1.0):
        return _boolean(seen, ("0", "1"))
    if _day_numbers(seen):
        return date(seen, "%Y%m%d")
    why = _identifies(seen)
    return (
        seen.left_out("id", why.capitalize(), f"looks like an identifier ({why})")
        if why
        else number(seen)
    )


def number(seen: ColumnSample) -> Choice:
    """A number, whatever else it may look like."""
    unit, written = seen.sketch.unit, seen.sketch.written
    values = _filled(numbers(seen.sample, unit, written)[0])
    marks = missing_marks(values, seen.sketch.low, seen.sketch.high)
    marked = np.isin(values, marks)
    seen, values = (
        replace(
            seen, n_marked=round(float(marked.mean()) * seen.sketch.n_filled) if len(values) else 0
        ),
        values[~marked],
    )
    if not len(values):
        return seen.left_out("empty", "Hardly any values")
    scale, fill = Standardizer.of(values), float(np.median(values))
    bent = f"{f' of {unit}' * bool(unit)}{_read_as(seen)}{' after a signed log, since its tails are heavy' * bool(scale.spread)}"
    action = f"Standardised number{bent}{seen.about_missing(f'the median {fill:.6g}')}"
    doubts = _doubts(seen)
    if any("percent" in doubt for doubt in doubts):
        action = f"{action[:-1]}; percent signs on part of its values."
    said = (*doubts, *_texts(seen), *_marked(seen, marks))
    word = _missing_word(seen.sketch)
    return Choice(
        "number",
        action,
        _range(seen, scale, values if marks else None),
        NumberEncoder(scale, fill, seen.gone, unit, marks, (word,) * bool(word), written),
        said,
        n_void=seen.sketch.n_texts + seen.n_marked,
    )


def _doubts(seen: ColumnSample) -> tuple[str, ...]:
    """Sentences on marks and signs that may mean something else."""
    if not is_text(seen.sample.type):
        return ()
    cells, s = _looked_at(seen), seen.sketch
    told = (about_dots(cells, s.written, s.points), about_percents(cells))
    return tuple(f'"{seen.name}" {one}' for one in told if one)


def _in_currencies(seen: ColumnSample) -> bool:
    """Whether amounts of several currencies stand side by side."""
    return is_text(seen.sample.type) and len(currencies(_looked_at(seen))) > 1


def _read_as(seen: ColumnSample) -> str:
    """What marks were taken for, where that is another than in most files or could be."""
    if not is_text(seen.sample.type):
        return ""
    cells, written = _looked_at(seen), seen.sketch.written
    shown = cells if written[0] == "," else None
    if shown is not None:
        shown = shown.filter(pc.match_substring(shown, ","))
    cell = str(shown[0].as_py()) if shown is not None and len(shown) else doubtful(cells)
    if not cell:
        return ""
    value = numbers(pa.array([cell]), seen.sketch.unit, written)[0][0]
    return f' ("{cell[:20]}" read as {value:.10g})' if np.isfinite(value) else ""


def _marked(seen: ColumnSample, marks: tuple[float, ...]) -> tuple[str, ...]:
    if not marks:
        return ()
    which = " and ".join(f"{m:g}" for m in marks)
    return (
        f'"{seen.name}" has {which} far from all its other values; such cells count as missing, about {seen.n_marked:,} of them.',
    )


def _range(seen: ColumnSample, scale: Standardizer, values: Array | None) -> str:
    bend = f"; log(1 + |x - {scale.centre:.4g}| / {scale.spread:.4g})" if scale.spread else ""
    low, high = (
        (seen.sketch.low, seen.sketch.high) if values is None else (values.min(), values.max())
    )
    return f"from {low:.6g} to {high:.6g}{bend}"


def _texts(seen: ColumnSample) -> tuple[str, ...]:
    s = seen.sketch
    if not s.n_texts or s.texts.values is None:
        return ()
    few = ", ".join(f'"{v[:20]}"' for v in s.texts.values.to_pylist()[:3])
    what = (
        f"{s.n_texts:,} of its values are text ({few}); they count"
        if s.n_texts > 1
        else f"one of its values is text ({few}); it counts"
    )
    return (f'"{seen.name}" holds numbers, but {what} as missing.',)


def _day_numbers(seen: ColumnSample) -> bool:
    """Whole numbers such as 20240131, all of them days."""
    s = seen.sketch
    if not s.whole or s.low < 18000101 or s.high > 22001231 or s.n_distinct < 3:
        return False
    gone = np.isnan(seconds(seen.sample, "%Y%m%d"))
    return not gone.all() and bool(np.array_equal(gone, np.isnan(_numbers(seen))))


def _identifies(seen: ColumnSample) -> str | None:
    """Why a column of whole numbers identifies rows: all distinct, and a running number or named
    like an identifier."""
    s = seen.sketch
    if (
        not s.whole
        or seen.n_gone
        or s.n < 10
        or s.n_distinct < 0.9 * s.n
        or _TIME.search(seen.name)
    ):
        return None
    values = _filled(_numbers(seen))
    if len(np.unique(values)) < len(values):
        return None
    if s.rising and s.high - s.low < 2 * s.n:
        return "a running number of the rows"
    named = _ID.search(seen.name.strip()) or _CAMEL.search(seen.name.strip())
    return "distinct in every row and named like one" if named else None


def _other(seen: ColumnSample) -> Choice:
    """Columns that are not numbers: booleans, dates, texts, identifiers, categories."""
    s = seen.sketch
    if (
        s.counts
        and s.counts.exact
        and 2 <= len(s.counts.values) <= MOST_TRUTHS
        and (pair := truth(s.counts.values.to_pylist()))
    ):
        return _boolean(seen, pair)
    if pa.types.is_timestamp(s.kind) or pa.types.is_date(s.kind):
        return date(seen, None)
    form = form_of(seen.sample) if is_text(s.kind) else None
    if form:
        return date(seen, form)
    found, said = words(seen), about_numbers(seen) if is_text(s.kind) else ""
    return replace(found, action=f"{found.action} {said}") if said else found


def _boolean(seen: ColumnSample, pair: tuple[str, str]) -> Choice:
    values = _filled(BooleanEncoder(pair, 0.0).read(seen.sample)[0][:, 0])
    share = float(np.mean(values)) if len(values) else 0.0
    no, yes = _spelt(seen.sketch, pair)
    several = seen.sketch.counts is not None and len(seen.sketch.counts.values) > 2
    said = (
        f'"{seen.name}" spells yes and no in several ways, which were taken for {yes} and {no}.',
    ) * several
    encoder = BooleanEncoder(pair, float(share > 0.5), seen.gone)
    what = "0 or 1" if pair == ("0", "1") else f'Boolean: "{no}" or "{yes}" as 0 or 1'
    action = f"{what}{seen.about_missing(f'the more frequent {(no, yes)[int(encoder.fill)]}')}"
    return Choice(
        "boolean",
        action,
        f"{yes} in {share:.1%} of the rows",
        encoder,
        (*said, *_texts(seen)),
        n_void=seen.sketch.n_texts,
    )


def _spelt(s: ColumnSketch, pair: tuple[str, str]) -> tuple[str, str]:
    """The pair as most cells of the file spell it."""
    if s.numeric or s.counts is None or s.counts.values is None:
        return pair
    cells = [str(value) for value in s.counts.values.to_pylist()]
    no, yes = (next((cell for cell in cells if cell.lower() == word), word) for word in pair)
    return no, yes


def date(seen: ColumnSample, form: str | None) -> Choice:
    """A date: the time elapsed, and the cycles that the sample runs through; a time of the day: its
    place in the day."""
    days = _filled(seconds(seen.sample, form))
    if form in CLOCKS:
        clock = DateEncoder(
            form, Standardizer(), float(np.median(days)), ("day",), False, seen.gone
        )
        return Choice(
            "date",
            f"Time: its place in the day{seen.about_missing('the median')}",
            f"written as {form}",
            clock,
        )
    forms = (form or "").split(SEVERAL)
    several = f'"{seen.name}" holds dates in several forms ({", ".join(forms)}); each cell was read by the first that fits.'
    said = (several,) * (len(forms) > 1)
    cycles = tuple(c for c in varying(days) if c == "year" or form not in MONTHS)
    encoder = DateEncoder(
        form, Standardizer.of(days), float(np.median(days)), cycles, True, seen.gone
    )
    turns = f" and the place in the {' and the '.join(encoder.cycles)}" if encoder.cycles else ""
    span = f"{_day(days.min())} to {_day(days.max())}" + (f", written as {form}" if form else "")
    return Choice(
        "date",
        f"Date: time elapsed{turns}{seen.about_missing('the median date')}",
        span,
        encoder,
        said,
    )


def _day(moment: float) -> str:
    return str(np.datetime64(int(moment), "s").astype("datetime64[D]"))


def _looked_at(seen: ColumnSample) -> Column:
    return text(seen.sample.slice(0, LOOKED)).drop_null()


def _numbers(seen: ColumnSample) -> Array:
    return numbers(seen.sample, seen.sketch.unit, seen.sketch.written)[0]


def _filled(values: Array) -> Array:
    return values[~np.isnan(values)]


def family(column_type: object) -> str:
    """The family of a pyarrow type, in a word.

    >>> family(pa.int8()), family(pa.large_string()), family(pa.date32())
    ('number', 'text', 'date')
    """
    kinds = {
        "empty": pa.types.is_null,
        "text": is_text,
        "boolean": pa.types.is_boolean,
        "nested": pa.types.is_nested,
    }
    found = next((name for name, test in kinds.items() if test(column_type)), None)
    return found or (
        "date" if pa.types.is_timestamp(column_type) or pa.types.is_date(column_type) else "number"
    )
