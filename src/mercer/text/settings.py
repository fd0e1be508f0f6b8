"""What users tell NGrams, looked at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer.text.grams import LONGEST, Grams, HashedColumns
from mercer.text.rows import WIDEST
from mercer.text.tokens import CHARS, WITHIN, WORDS
from mercer.text.vocabulary import Pruning, Vocabulary, given
from mercer.text.weights import WEIGHTS, Weighting

MOST_COUNTED = 1 << 26  # hashed columns whose documents are counted: half a gigabyte


@dataclass(frozen=True, eq=False)
class GramSettings:
    """The n-grams, where they go, and how they are weighted."""

    grams: tuple[Grams, ...]
    columns: tuple[HashedColumns | Vocabulary, ...] | None  # None: they are learnt
    selection: Pruning
    weighting: Weighting
    dtype: Any
    keep_names: bool = False


def settings(p: dict[str, Any]) -> GramSettings:
    """The parameters of NGrams; one sentence where one is not what it must be."""
    weighting = _weighting(p)
    grams = tuple(_grams(p))
    selection = _selection(p, weighting)
    dtype = floating(p["dtype"])
    columns = _columns(p, grams, weighting)
    hashed = columns is not None and any(isinstance(c, HashedColumns) for c in columns)
    keep = truth(p, "keep_names") and hashed  # a vocabulary has its names already
    return GramSettings(grams, columns, selection, weighting, dtype, keep)


def floating(given: Any) -> np.dtype[Any]:
    """The type of rows."""
    try:
        dtype = np.dtype(given)
    except TypeError:
        dtype = np.dtype(object)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float64 or float32, got {given!r}.")
    return dtype


def _weighting(p: dict[str, Any]) -> Weighting:
    if p["weight"] not in WEIGHTS:
        raise ValueError(f"weight must be one of {', '.join(WEIGHTS)}, got {p['weight']!r}.")
    if not (p["norm"] is None or p["norm"] == "l2"):
        raise ValueError(f"norm must be 'l2' or None, got {p['norm']!r}.")
    return Weighting(p["weight"], truth(p, "sublinear"), p["norm"])


def truth(p: dict[str, Any], name: str) -> bool:
    """A parameter that is True or False."""
    if not isinstance(p[name], bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {p[name]!r}.")
    return bool(p[name])


def _grams(p: dict[str, Any]) -> Iterable[Grams]:
    lowercase, within = truth(p, "lowercase"), truth(p, "within_words")
    words, chars = p["words"], p["chars"]
    if within and chars is None:
        raise ValueError("within_words=True is about chars, but chars is None; give chars=(3, 5).")
    if words is None and chars is None:
        words = (1, 2)
    if words is not None:
        yield Grams(WORDS, *_range(words, "words"), lowercase)
    if chars is not None:
        yield Grams(WITHIN if within else CHARS, *_range(chars, "chars"), lowercase)


def _range(given: Any, name: str) -> tuple[int, int]:
    pair: tuple[Any, ...] = tuple(given) if isinstance(given, list | tuple | np.ndarray) else ()
    if len(pair) != 2 or not all(_whole(v) for v in pair) or not 1 <= pair[0] <= pair[1] < LONGEST:
        raise ValueError(
            f"{name} must be the least and the most of an n-gram, 1 <= least <= most < {LONGEST}, got {given!r}; give (1, 2)."
        )
    return int(pair[0]), int(pair[1])


def _whole(v: Any) -> bool:
    return isinstance(v, Integral) and not isinstance(v, bool)


def _columns(
    p: dict[str, Any], grams: tuple[Grams, ...], weighting: Weighting
) -> tuple[HashedColumns | Vocabulary, ...] | None:
    vocabulary = p["vocabulary"]
    if isinstance(vocabulary, str) and vocabulary == "learn":
        return None
    if vocabulary is None:
        width = _width(p["n_features"], len(grams), weighting)
        return tuple(HashedColumns(g, width) for g in grams)
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
        raise ValueError(
            f"vocabulary must be None, 'learn', a list of n-grams or a dict of their columns, got {vocabulary!r:.60}."
        )
    if len(grams) > 1:
        raise ValueError(
            "vocabulary is one list of n-grams, but words and chars are both asked for; give one of them."
        )
    return (given(grams[0], vocabulary),)


def _width(n: Any, blocks: int, weighting: Weighting) -> int:
    if not _whole(n) or not 1 <= n * blocks <= WIDEST:
        several = f", and {blocks} times as many" if blocks > 1 else ""
        raise ValueError(
            f"n_features must be a whole number from 1 to 2**31 - 1{several}, got {n!r}; hashes have 32 bits."
        )
    if weighting.learns and n > MOST_COUNTED:
        raise ValueError(
            f"weight={weighting.weight!r} counts documents of n_features={n} columns, more than {MOST_COUNTED}; "
            "lower n_features, or use vocabulary='learn'."
        )
    return int(n)


def _selection(p: dict[str, Any], weighting: Weighting) -> Pruning:
    for name in ("min_df", "max_df"):
        v = p[name]
        if (
            isinstance(v, bool)
            or not isinstance(v, Real)
            or not (float(v) >= 1 if isinstance(v, Integral) else 0 <= float(v) <= 1)
        ):
            raise ValueError(
                f"{name} must be a number of documents from 1 on, or a share of them from 0.0 to 1.0, got {v!r}."
            )
    most = p["max_features"]
    if most is not None and (not _whole(most) or most < 1):
        raise ValueError(f"max_features must be None or a whole number from 1 on, got {most!r}.")
    out = Pruning(p["min_df"], p["max_df"], most, weighting.weight == "tfidf")
    if out.prunes and not (isinstance(p["vocabulary"], str) and p["vocabulary"] == "learn"):
        raise ValueError(
            "min_df, max_df and max_features choose among n-grams that are learnt; give vocabulary='learn'."
        )
    return out
