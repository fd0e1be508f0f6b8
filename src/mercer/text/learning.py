"""How columns and their weights are learnt from documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.threads import parallel_map
from mercer.text.distinct import distinct
from mercer.text.documents import Part, look
from mercer.text.fitted import Block, FittedGrams, each_part, tallies
from mercer.text.grams import Grams, HashedColumns
from mercer.text.names import ColumnNames, Distinct
from mercer.text.rows import Tally
from mercer.text.settings import GramSettings
from mercer.text.trie import Growth, grown
from mercer.text.vocabulary import Learnt, Vocabulary, chosen, count, placed, together


@dataclass(frozen=True, eq=False)
class Targets:
    """The classes of documents as 0 and 1, where they matter."""

    classes: Array | None = None
    codes: Array | None = None

    def of(self, part: Part) -> Array | None:
        return None if self.codes is None else self.codes[part.first : part.first + part.n_rows]

    def numbers(self, n: int) -> Array:
        """Of n documents how many are in each class."""
        if self.codes is None:
            return np.array([n], np.int64)
        if len(self.codes) != n:
            raise ValueError(f"y has {len(self.codes)} classes for {n} documents; give one each.")
        return np.bincount(self.codes, minlength=2).astype(np.int64)


def targets(y: Any, how: GramSettings, classes: Any = None) -> Targets:
    """The classes that naive-Bayes ratios are learnt from; of other weights none."""
    if how.weighting.weight != "ratio":
        return Targets()
    if y is None:
        raise ValueError("weight='ratio' is learnt from classes, but y is None; give y to fit.")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be one class a document, but has shape {labels.shape}.")
    if any(v is None or v != v for v in (labels.tolist() if labels.dtype.kind in "Of" else ())):
        raise ValueError("y has classes that are missing; leave such documents out.")
    known = np.unique(labels if classes is None else np.asarray(classes))
    if len(known) != 2:
        raise ValueError(
            f"weight='ratio' is that of two classes, but y has {len(known)}; use OneVsRestClassifier around it, or 'tfidf'."
        )
    codes = np.searchsorted(known, labels)
    if (known[np.minimum(codes, 1)] != labels).any():
        raise ValueError(
            f"y has classes that are not among {known.tolist()}; give them as classes."
        )
    return Targets(known, codes)


def learn(
    texts: Any, how: GramSettings, y: Targets, before: FittedGrams | None = None, rows: bool = False
) -> tuple[FittedGrams, list[list[Tally]]]:
    """What documents teach, beside those of before; with `rows` also their counts."""
    if before is not None and not _goes_on(before, how):
        raise ValueError(
            "partial_fit goes on with n-grams of other settings than those of before; use fit, or a clone."
        )
    if how.columns is None:
        return _vocabulary(texts, how, y, before, rows)
    blocks = how.columns if before is None else before.blocks
    signed = how.weighting.signed
    if how.weighting.learns or how.keep_names:
        return _documents(texts, blocks, how, y, before, rows)
    look(texts)
    found = [t for batch in tallies(blocks, texts, signed) for t in batch] if rows else []
    return FittedGrams(blocks, how.weighting, np.zeros(1, np.int64)), found


def _goes_on(before: FittedGrams, how: GramSettings) -> bool:
    """Whether what was learnt before is of the same settings."""
    kinds = Vocabulary if how.columns is None else type(how.columns[0])
    return (
        vars(before.weighting) == vars(how.weighting)
        and bool(before.kept) == how.keep_names
        and len(before.blocks) == len(how.grams)
        and all(
            isinstance(b, kinds) and vars(b.grams) == vars(g)
            for b, g in zip(before.blocks, how.grams, strict=True)
        )
        and (how.columns is None or all(map(_same_columns, how.columns, before.blocks)))
    )


def _same_columns(a: Block, b: Block) -> bool:
    """Whether two blocks have the same columns: as many hashed ones, or the same n-grams in order."""
    named = isinstance(a, Vocabulary) and isinstance(b, Vocabulary)
    return a.width == b.width and (not named or a.names() == b.names())


def _documents(
    texts: Any,
    blocks: tuple[Block, ...],
    how: GramSettings,
    y: Targets,
    before: FittedGrams | None,
    rows: bool,
) -> tuple[FittedGrams, list[list[Tally]]]:
    """Count the documents of columns that are fixed, and keep the names of hashed ones."""
    found: list[list[Tally]] = []
    counts = [np.zeros((1 if y.codes is None else 2, b.width), np.int64) for b in blocks]
    kept, n = _names(blocks, before, how), 0
    for batch in each_part(texts, lambda part: _seen(part, blocks, how), learning=True):
        for b, total in enumerate(counts if how.weighting.learns else ()):
            _count(total, [part[0][b] for part in batch], None if y.codes is None else y.codes[n:])
        for names in (part[1] for part in batch):
            kept = tuple(k.add(d) for k, d in zip(kept, names, strict=True))
        found += [[t.nonzero() for t in part[0]] for part in batch] if rows else []
        n += sum(part[0][0].n_rows for part in batch)
    seen = y.numbers(n) if before is None else before.n_documents + y.numbers(n)
    if how.weighting.learns:
        blocks = tuple(b.counted(c) for b, c in zip(blocks, counts, strict=True))
    return FittedGrams(blocks, how.weighting, seen, y.classes, kept), found


def _names(
    blocks: Sequence[Block], before: FittedGrams | None, how: GramSettings
) -> tuple[ColumnNames, ...]:
    if not how.keep_names:
        return ()
    return tuple(ColumnNames(b.width) for b in blocks) if before is None else before.kept


def _seen(
    part: Part, blocks: Sequence[Block], how: GramSettings
) -> tuple[list[Tally], list[Distinct]]:
    """The counts of some documents, with those that cancel each other, and their distinct
    n-grams."""
    signed = how.weighting.signed
    hashed = [b for b in blocks if isinstance(b, HashedColumns)] if how.keep_names else []
    return [b.tally(part, signed, keep=True) for b in blocks], [
        distinct(part, b, signed) for b in hashed
    ]


def _count(total: Array, parts: Sequence[Tally], codes: Array | None) -> None:
    """Add the documents (classes, width) that have each column."""
    width = total.shape[1]
    columns = np.concatenate([np.zeros(0, np.int32), *(t.indices for t in parts)])
    of_all = np.bincount(columns, minlength=width)
    if codes is None:
        total[0] += of_all
        return
    sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(t.indptr) for t in parts)])
    codes = codes[: len(sizes)]
    ones = np.repeat(codes, sizes[: len(codes)]) == 1
    second = np.bincount(columns[: len(ones)][ones], minlength=width)
    total += np.stack([of_all - second, second])


def _vocabulary(
    texts: Any, how: GramSettings, y: Targets, before: FittedGrams | None, rows: bool
) -> tuple[FittedGrams, list[list[Tally]]]:
    """Learn which n-grams there are, and give them columns."""
    totals = _totals(how)
    learnt: list[list[Learnt]] = [[] for _ in how.grams]
    growths: list[list[Growth]] = []
    n = 0

    def grow(part: Part) -> list[tuple[Growth, Learnt]]:
        grow = [grown(g.tokens(part), g.unit, g.orders) for g in how.grams]
        return [(g, count(g, y.of(part), totals)) for g in grow]

    for batch in each_part(texts, grow, learning=True):
        n += sum(len(part[0][0].indptr) - 1 for part in batch)
        for b, known in enumerate(learnt):
            known += [part[b][1] for part in batch]
            if not rows and len(known) > 1:
                learnt[b] = [together(known)[0]]
        growths += [[g for g, _ in part] for part in batch] if rows else []
    seen = y.numbers(n) if before is None else before.n_documents + y.numbers(n)
    old = [] if before is None else [_learnt(b) for b in before.blocks]
    blocks, found = [], []
    for b, g in enumerate(how.grams):
        parts = [*old[b : b + 1], *learnt[b]]
        block, places = settle(g, parts, how, int(seen.sum()))
        blocks.append(block)
        found.append(_placed([p[b] for p in growths], places[len(parts) - len(growths) :], block))
    fitted = FittedGrams(tuple(blocks), how.weighting, seen, y.classes)
    return fitted, [list(part) for part in zip(*found, strict=True)]


def settle(
    grams: Grams, parts: Sequence[Learnt], how: GramSettings, n: int
) -> tuple[Vocabulary, list[Array]]:
    """The vocabulary of all that n documents taught, and where the nodes of each part are in it."""
    if not parts:
        raise ValueError("documents must be some, but there are none; give at least one.")
    whole, places = together(parts)
    return chosen(grams, whole, how.selection, n), places


def _totals(how: GramSettings) -> str:
    if how.selection.max_features is None:
        return "none"
    return "presence" if how.weighting.weight in ("binary", "ratio") else "counts"


def _learnt(block: Block) -> Learnt:
    if not isinstance(block, Vocabulary) or block.documents is None or not block.whole:
        raise ValueError(
            "the vocabulary was cut by fit to what min_df, max_df and max_features left, so it can learn no more; "
            "use partial_fit from the first documents on."
        )
    return Learnt(block.trie, block.documents, block.totals)


def _placed(growths: Sequence[Growth], places: Sequence[Array], v: Vocabulary) -> list[Tally]:
    given = list(zip(growths, places, strict=True))
    return parallel_map(
        lambda pair: placed(pair[0], v.columns[pair[1]], v.width, v.grams.most), given
    )


def merged(a: FittedGrams, b: FittedGrams, how: GramSettings) -> FittedGrams:
    """What both have learnt, as if their documents had come together."""
    mine, theirs = ([] if f.classes is None else f.classes.tolist() for f in (a, b))
    if mine != theirs:
        raise ValueError(
            f"ratios of the classes {mine} cannot be merged with those of {theirs}; give the same classes to both."
        )
    seen = a.n_documents + b.n_documents
    pairs = zip(a.blocks, b.blocks, strict=True)
    if how.columns is not None:
        blocks = tuple(_plus(p, q.by_column()) for p, q in pairs)
    else:
        blocks = tuple(
            settle(p.grams, [_learnt(p), _learnt(q)], how, int(seen.sum()))[0] for p, q in pairs
        )
    kept = tuple(p.merge(q) for p, q in zip(a.kept, b.kept, strict=True))
    return FittedGrams(blocks, a.weighting, seen, a.classes, kept)


def _plus(block: Block, documents: Array | None) -> Block:
    return block if documents is None else block.counted(documents)
