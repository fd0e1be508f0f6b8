"""Ways to turn sequences into columns, which are raced: words anywhere, with gaps, at their places,
and in regions about the place that tells most."""

from __future__ import annotations

from collections.abc import Callable

from mercer.automl.text_kinds import MAX_COEFFICIENTS, TextKind
from mercer.tables.arrow import Column
from mercer.tables.sequences import SequenceWords, alphabet_of, common_length

# letters of words, of words with gaps and of these how many are any, and of words at their places
WORDS = {"dna": (3, 4, 5, 6), "rna": (3, 4, 5, 6), "protein": (1, 2, 3)}
GAPPED = {"dna": (7, 2), "rna": (7, 2), "protein": (5, 2)}
PLACED = {"dna": (1, 3, 5), "rna": (1, 3, 5), "protein": (1, 2)}
# of words in regions, so many places long, about a place; within so many of it words have places
REGIONAL = {"dna": (4, 6), "rna": (4, 6), "protein": (2,)}
REGION, NEAR = 33, 50
SHORTEST_REGIONAL = 3 * NEAR  # letters; of shorter sequences all places are near
BYTES_A_WORD = 16.0  # that a word takes, with the rows of a fold once more
LONGEST_PLACED = 2_000  # letters of sequences whose places may count

# the place about which sequences of an alphabet and a length tell most, if one stands out
TellingPlace = Callable[[str, int], int | None]


def sequence_kinds(
    cells: Column, n_scores: int, telling: TellingPlace | None = None
) -> list[TextKind]:
    """Those that suit a column of sequences, the cheapest first; none of a column of texts.

    Places count where nearly all sequences are of one length; both strands are raced for DNA.
    """
    alphabet = alphabet_of(cells)
    if alphabet is None:
        return []
    places, words, (g, m) = common_length(cells), WORDS[alphabet], GAPPED[alphabet]
    spectrum = SequenceWords(alphabet, words)
    shown = f"words of {words[0]} to {words[-1]} letters"
    kinds = [_kind(shown, spectrum)]
    if 0 < places <= LONGEST_PLACED:
        placed = SequenceWords(alphabet, PLACED[alphabet], places=places)
        named = " and ".join([", ".join(map(str, placed.lengths[:-1])), str(placed.lengths[-1])])
        kinds.append(_kind(f"words of {named} letters at their places", placed))
        site = telling(alphabet, places) if telling and places >= SHORTEST_REGIONAL else None
        kinds += [] if site is None else [_about(site, alphabet, places, named)]
        beside = f"words of {named} letters at their places beside {shown}"
        kinds.append(_kind(beside, placed, spectrum))
    if alphabet == "dna":
        kinds.append(_kind(f"{shown} of both strands", SequenceWords(alphabet, words, both=True)))
    kinds.append(_kind(f"words of {g} letters, {m} of them any", SequenceWords(alphabet, (g,), m)))
    return [
        k for k in kinds if sum(_width(b) for b in k.blocks) * n_scores <= MAX_COEFFICIENTS
    ] or kinds[:1]


def _about(site: int, alphabet: str, length: int, named: str) -> TextKind:
    """Words at their places near a place, beside words in regions that begin or end there."""
    first, begin = max(0, site - NEAR), site % REGION
    near = min(length, site + NEAR) - first
    words = REGIONAL[alphabet]
    placed = SequenceWords(alphabet, PLACED[alphabet], places=near, first=first)
    regions = SequenceWords(alphabet, words, places=length - begin, first=begin, wide=REGION)
    name = (
        f"words of {named} letters at places within {NEAR} of {site + 1} beside words of "
        f"{' and '.join(map(str, words))} letters in regions of {REGION}"
    )
    counted = len(placed.patterns) * near / length + len(regions.patterns)  # words for a letter
    return TextKind(name, (placed, regions), bytes_a_byte=BYTES_A_WORD * counted)


def _width(block: object) -> int:
    assert isinstance(block, SequenceWords)
    return block.n_features_out_


def _kind(name: str, *blocks: SequenceWords) -> TextKind:
    words = sum(len(b.patterns) * (1 + b.both) for b in blocks)
    return TextKind(name, blocks, bytes_a_byte=BYTES_A_WORD * words)
