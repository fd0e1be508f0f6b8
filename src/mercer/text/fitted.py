"""What NGrams knows once it is fitted: blocks of columns, and how counts become values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, TypeVar

import scipy.sparse as sp

from mercer.inputs import Array
from mercer.invariants import Counts, Each, Is, Labels, check
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import settle_allocator
from mercer.store import register
from mercer.text.documents import Part, batches
from mercer.text.grams import HashedColumns
from mercer.text.names import ColumnNames
from mercer.text.rows import Tally
from mercer.text.vocabulary import Pruning, Vocabulary
from mercer.text.weights import Weighting, matrix

Block = HashedColumns | Vocabulary
PART_BYTES = 1 << 18  # of text for one task
LEARN_BYTES = 1 << 21  # of text for one task, where n-grams are learnt
R = TypeVar("R")


@register("text.FittedGrams")
@dataclass(frozen=True, eq=False)
class FittedGrams:
    """Blocks of columns side by side, how counts become values, the number of documents that were
    seen, of every class where classes matter, and the n-grams of hashed columns where they are
    kept."""

    blocks: tuple[Block, ...]
    weighting: Weighting
    n_documents: Array  # int64 (classes,)
    classes: Array | None = None
    kept: tuple[ColumnNames, ...] = ()

    must = dict(
        blocks=Each(Is("HashedColumns", "Vocabulary"), least=1),
        weighting=Is("Weighting"),
        n_documents=Counts("c"),
        classes=Labels("c") | None,
        kept=Each(Is("ColumnNames")),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        if self.kept and [k.n_features for k in self.kept] != self.widths:
            return "has names of other columns than its own"
        if not self.weighting.learns:
            return None
        kinds = 2 if self.weighting.weight == "ratio" else 1
        if len(self.n_documents) != kinds or (self.classes is None) != (kinds == 1):
            return f"has {len(self.n_documents)} classes, where {kinds} are needed"
        if any(b.documents is None or len(b.documents) != kinds for b in self.blocks):
            return "lacks the documents that its n-grams came in"
        return None

    @property
    def widths(self) -> list[int]:
        return [b.width for b in self.blocks]

    @cached_property
    def scales(self) -> list[Array]:
        """Of every block what its columns are multiplied with."""
        return [self.weighting.scale(b.by_column(), self.n_documents) for b in self.blocks]

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in vars(self).items() if name != "scales"}

    def cut(self, selection: Pruning) -> FittedGrams:
        """Without the n-grams that were not selected: what can be learnt no more; some must be."""
        for b in self.blocks:
            if isinstance(b, Vocabulary):
                b.must_have_columns()
        if not selection.prunes:
            return self
        blocks = tuple(b.pruned() if isinstance(b, Vocabulary) else b for b in self.blocks)
        return replace(self, blocks=blocks)

    def names(self) -> list[str]:
        """A name for every column."""
        if len(self.blocks) == 1 or isinstance(self.blocks[0], HashedColumns):
            return [name for b in self.blocks for name in b.names()]
        return [f"{b.grams.unit}__{name}" for b in self.blocks for name in b.names()]

    def block_of(self, column: Any) -> tuple[int, int]:
        """The block of a column, and its place there."""
        if not isinstance(column, Integral) or not 0 <= int(column) < sum(self.widths):
            raise ValueError(
                f"column must be a whole number from 0 to {sum(self.widths) - 1}, got {column!r}."
            )
        b, at = 0, int(column)
        while at >= self.widths[b]:
            b, at = b + 1, at - self.widths[b]
        return b, at

    def transform(self, texts: Any, dtype: Any) -> sp.csr_matrix:
        """The rows of documents."""
        found = tallies(self.blocks, texts, self.weighting.signed)
        return self.rows([part for batch in found for part in batch], dtype)

    def rows(self, found: Sequence[Sequence[Tally]], dtype: Any) -> sp.csr_matrix:
        """Counts of parts of the documents, one of every block, as weighted rows."""
        return matrix(found, self.scales, self.widths, self.weighting, dtype)


def tallies(
    blocks: Sequence[Block], texts: Any, signed: bool, keep: bool = False
) -> Iterator[list[list[Tally]]]:
    """The counts of every block, part by part, in lists of those in memory together; `keep` those
    that cancel each other."""
    for block in blocks:
        block.ready()
    return each_part(texts, lambda part: [block.tally(part, signed, keep) for block in blocks])


def each_part(texts: Any, f: Callable[[Part], R], *, learning: bool = False) -> Iterator[list[R]]:
    """f of every part of the documents, in threads; of several errors that of the first document
    is raised. Parts are larger where n-grams are learnt."""
    settle_allocator()

    def safely(part: Part) -> R | ValueError:
        try:
            return f(part)
        except ValueError as e:
            return e

    for batch in batches(texts, LEARN_BYTES if learning else PART_BYTES):
        results = parallel_map(safely, batch)
        for r in results:
            if isinstance(r, ValueError):
                raise r
        yield results  # type: ignore[misc]
