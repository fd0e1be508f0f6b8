"""Columns of words: texts, categories with a feature for each frequent level, codes, and numbers
mixed with texts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Column, pc
from mercer.tables.encoders import CategoryEncoder, TextEncoder, lengths
from mercer.tables.scale import Standardizer
from mercer.tables.sequences import alphabet_of
from mercer.tables.sketch import short
from mercer.tables.target import label
from mercer.tables.treatment import MAX_CATEGORIES, Choice, ColumnSample
from mercer.tables.values import text, units
from mercer.tables.written import RARELY, currencies

NEARLY_ALL = 0.9  # so many with one make a column of units
_WITH_TEXT = r"^[(+-]*[^\p{L}\p{N}]{0,3}[0-9][0-9.,]*[\s\p{Z}]*\p{L}[^0-9]*[0-9]?$"
# characters and words, on average, that make a text
LONG = 40
WORDY = 4
# of short ones: words on average that some other cells have, in so many of them at least, and in no
# more than a share
SHARED_WORDS = 1.0
SHARED_CELLS = 3
COMMON = 0.5
NO_LETTERS, NO_CODES = r"[^\p{L}\p{M}]+", r"[^\p{L}\p{M}\p{N}_]+"  # what divides words, and codes
SHARED = 0.5  # of all words, which must be such


def words(seen: ColumnSample) -> Choice:
    """A text where cells are mostly different, and long or made of words that they share; an
    identifier where all differ, else a category."""
    s = seen.sketch
    cells = text(seen.sample).drop_null()
    if s.n_distinct > max(0.1 * s.n_filled, MAX_CATEGORIES) and (
        is_long(cells) or _share_words(cells) or alphabet_of(cells)
    ):
        return _text(seen, cells)
    if s.n_filled >= 10 and s.n_distinct > 0.9 * s.n_filled and len(cells) == len(pc.unique(cells)):
        return seen.left_out(
            "id",
            "A different text in every row",
            "looks like an identifier (a different text in every row)",
        )
    return category(seen)


def is_long(cells: Column) -> bool:
    """Whether they are documents, of which equal ones are copies, and no short values, which come
    again."""
    spaces = pc.mean(pc.count_substring(cells, " ")).as_py() or 0
    return bool((pc.mean(pc.utf8_length(cells)).as_py() or 0) > LONG or spaces + 1 > WORDY)


def _share_words(cells: Column) -> bool:
    """Whether different cells have words in common, of two letters at least, or codes of letters and
    digits: names and titles do, and pairs of codes; codes alone do not.

    >>> from mercer.tables.arrow import pa
    >>> colours, things = ("red", "blue", "green"), ("house", "garden", "street", "bridge")
    >>> titles = [f"{c} {t} {i}" for i, (c, t) in enumerate((c, t) for c in colours for t in things * 3)]
    >>> _share_words(pa.array(titles)), _share_words(pa.array([f"user no {i}" for i in range(99)]))
    (True, False)
    >>> _share_words(pa.array([f"foo{i % 12} bar{i // 12}" for i in range(99)]))
    True
    """
    distinct = pc.unique(cells)
    lower = pc.utf8_lower(distinct)
    return any(_telling(lower, between) for between in (NO_LETTERS, NO_CODES))


def _telling(cells: Column, between: str) -> bool:
    """Whether what such characters divide comes in some of the cells, and not in most."""
    tokens = pc.split_pattern_regex(cells, between).flatten()
    tokens = tokens.filter(pc.greater(pc.utf8_length(tokens), 1))
    tokens = tokens.filter(pc.match_substring_regex(tokens, r"\p{L}"))
    counts = pc.value_counts(tokens).field("counts").to_numpy(zero_copy_only=False)
    telling = counts[(counts >= SHARED_CELLS) & (counts <= COMMON * len(cells))].sum()
    usual = counts[counts > COMMON * len(cells)].sum()
    return bool(telling > SHARED_WORDS * len(cells) and telling > SHARED * (counts.sum() - usual))


def _text(seen: ColumnSample, cells: Column) -> Choice:
    size, count = (Standardizer.of(np.log1p(v)) for v in lengths(text(seen.sample)))
    encoder = TextEncoder(_repeated(seen), size, count)
    action = "Text: its frequent values, its length and its number of words are used."
    return Choice(
        "text",
        action,
        f"{pc.mean(pc.utf8_length(cells)).as_py():.0f} characters on average",
        encoder,
    )


def _repeated(seen: ColumnSample) -> CategoryEncoder | None:
    """The frequent values of a text; the others are not kept, so that a saved model does not carry
    the texts."""
    found = category(seen).encoder
    if not isinstance(found, CategoryEncoder) or not found.n_features:
        return None
    k = found.n_features
    return replace(
        found, levels=found.levels[:k], shares=found.shares[:k], other=True, frequency=None
    )


def about_numbers(seen: ColumnSample) -> str:
    """A sentence where nearly all texts are a number and text behind it, which were not read as
    numbers."""
    cells = text(seen.sample).drop_null()
    found = cells.filter(pc.match_substring_regex(cells, _WITH_TEXT)) if len(cells) else cells
    if len(found) <= NEARLY_ALL * len(cells):
        return ""
    return f'Nearly all its values are a number and text ("{found[0].as_py()[:20]}"), which were not read as numbers.'


def category(seen: ColumnSample) -> Choice:
    """A feature for each frequent level."""
    counts = seen.sketch.counts
    assert counts is not None  # only numbers with very many values have none
    values = [label(v) for v in counts.values.to_pylist()] if counts.values is not None else []
    total = len(values) if counts.exact else max(len(values), seen.sketch.n_distinct)
    return _levels(seen, values, counts.counts + counts.error, total, bool(seen.sketch.numeric))


def coded(seen: ColumnSample) -> Choice:
    """Digits that begin with 0: codes, which numbers would cut short; an identifier where all
    differ."""
    cells = text(seen.sample).drop_null()
    example = cells.filter(pc.match_substring_regex(cells, "^0[0-9]+$"))
    what = (
        f'holds codes with zeros before, such as "{example[0].as_py() if len(example) else "007"}"'
    )
    if len(cells) >= 10 and len(pc.unique(cells)) > 0.9 * len(cells):
        return seen.left_out(
            "id", "Codes, nearly all of them different", f"{what}, nearly all different,"
        )
    found = pc.value_counts(short(cells))
    values, counts = (
        found.field("values").to_pylist(),
        found.field("counts").to_numpy(zero_copy_only=False),
    )
    said = (f'"{seen.name}" {what}, and is treated as a category, not as numbers.',)
    return _levels(
        seen,
        values,
        counts * max(seen.sketch.n / max(len(seen.sample), 1), 1.0),
        len(values),
        False,
        said,
    )


def mixed(seen: ColumnSample) -> Choice:
    """Numbers and texts side by side: a category, its levels counted in the sample."""
    found = pc.value_counts(short(text(seen.sample).drop_null()))
    values, counts = (
        found.field("values").to_pylist(),
        found.field("counts").to_numpy(zero_copy_only=False),
    )
    said = (f'"{seen.name}" {_mixture(seen)}',)
    return _levels(
        seen,
        values,
        counts * max(seen.sketch.n / max(len(seen.sample), 1), 1.0),
        len(values),
        False,
        said,
    )


def _mixture(seen: ColumnSample) -> str:
    """What is mixed: units, where nearly all cells are numbers with one, else numbers and text."""
    cells = text(seen.sample).drop_null()
    most = len(seen.sketch.unit.split())  # "or so" is no unit beside kg
    found = [
        (unit, count)
        for unit, count in units(cells)
        if count > RARELY * len(cells) and len(unit.split()) <= most
    ]
    if (
        seen.sketch.unit
        and len(found) > 1
        and sum(count for _, count in found) > NEARLY_ALL * len(cells)
    ):
        how_many = "two" if len(found) == 2 else f"{len(found)}"
        which = ", ".join(unit for unit, _ in found)
        return f"has numbers in {how_many} units ({which}) and is treated as a category; convert them to one unit to have numbers."
    if len(signs := currencies(cells)) > 1:
        what = f"has numbers in {len(signs)} currencies ({', '.join(signs)})"
        return f"{what} and is treated as a category; convert them to one to have numbers."
    return f"mixes numbers and text ({seen.sketch.n_texts / seen.sketch.n_filled:.0%} text) and is treated as a category."


def _levels(
    seen: ColumnSample,
    values: list[str],
    counts: Array,
    total: int,
    numeric: bool,
    said: tuple[str, ...] = (),
) -> Choice:
    """Frequent levels first, equal counts by name, so that the order of the rows does not
    matter."""
    order = sorted(range(len(values)), key=lambda i: (-counts[i], values[i]))
    values, counts = [values[i] for i in order], np.asarray(counts, np.float64)[order]
    keep = min(int((counts >= seen.often).sum()), seen.max_categories)
    shares = counts / max(seen.sketch.n, 1)
    frequency = _frequency(shares) if total > 2 * keep and total == len(values) else None
    if not keep and frequency is None:
        none = seen.left_out(
            "category", "Every value is rare", f"has {total:,} values, all of them rare,"
        )
        return replace(none, warnings=(*said, *none.warnings))
    gone = seen.sketch.n_missing >= seen.often
    encoder = CategoryEncoder(
        tuple(values), tuple(shares.tolist()), keep, total > keep, gone, frequency, numeric
    )
    if numeric:
        encoder = replace(encoder, unit=seen.sketch.unit, written=seen.sketch.written)
    top = "most frequent: " + ", ".join(v[:30] for v in values[:3])
    return Choice("category", _action(seen, encoder, total), top, encoder, said)


def _frequency(shares: Array) -> Standardizer | None:
    """The log of the share of a row's level, to mean 0 and deviation 1 over the rows; None where
    all are about as frequent."""
    logs, weight = np.log(shares), shares / shares.sum()
    mean = float(weight @ logs)
    std = float(np.sqrt(weight @ (logs - mean) ** 2))
    return Standardizer(mean, std) if std > 0.1 else None


def _action(seen: ColumnSample, encoder: CategoryEncoder, total: int) -> str:
    k, rest = encoder.n_features, total - encoder.n_features
    parts = [
        f"Category: {k or 'no'} frequent {'value has' if k == 1 else 'values have'} a feature each"
    ]
    parts += [f"{rest:,} others are pooled" if rest > 1 else "one other counts as other"] * (
        rest > 0
    )
    parts += ["how frequent a value is counts too"] * (encoder.frequency is not None)
    if encoder.gone:
        parts.append("missing is a category of its own")
    elif seen.sketch.n_missing:
        parts.append("missing values take the most frequent")
    return "; ".join(parts) + "."
