"""Subsequence: common words of p letters with any gaps, each the less the longer it spans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mercer.inputs import Array
from mercer.kernels.base import whole
from mercer.kernels.checks import positive
from mercer.kernels.proof import register as prove_by
from mercer.ops import subsequences as loops
from mercer.ops.tiles import cuts
from mercer.plans import Plan
from mercer.store import register
from mercer.strings.alphabet import Alphabet
from mercer.strings.base import StringKernel, least_work
from mercer.strings.layouts import Emitted, Layout, spelled
from mercer.strings.sequences import Sequences

MOST_WORDS = 1 << 14  # whose weights may be kept as dense rows
MOST_LIFTED = 1 << 20  # features that are made
MOST_HELD = 1 << 22  # weights of words that are held at once as they are made
# Nanoseconds, measured: of a weight of a word at a letter, of a product of two weights, and of a step of
# dynamic programming.
HOLD, TIMES, CELL = 1.0, 0.1, 3.0


@dataclass(frozen=True, eq=False)
class SubsequenceSide:
    """Some strings, and the weights of all words in them where these are few."""

    engine: SubsequenceEngine
    one: Sequences
    other: Sequences | None  # their reverse complements, where both strands count

    @cached_property
    def features(self) -> tuple[Array, Array]:
        """The weight of every word, and its slope by the decay: (n, words) each."""
        e = self.engine
        out, slope = np.zeros((2, len(self.one), e.n_words))
        for s in (self.one, self.other):
            if s is not None:
                size = e.letters.size
                loops.word_weights(s.codes, s.offsets, e.p, size, e.decay, out, slope)
        return out, slope

    @cached_property
    def own(self) -> tuple[Array, Array]:
        """k(x, x), and its slope."""
        e, n = self.engine, len(self.one)
        if e.by_words(self, self):
            F, G = self.features
            return np.einsum("ij,ij->i", F, F), 2 * np.einsum("ij,ij->i", F, G)
        pairs = [e.by_pairs(*(_only(self, i),) * 2) for i in range(n)]
        return tuple(np.array([float(p[of][0, 0]) for p in pairs]) for of in (0, 1))  # type: ignore[return-value]


def _only(x: SubsequenceSide, i: int) -> SubsequenceSide:
    at = slice(i, i + 1)
    return SubsequenceSide(x.engine, x.one[at], None if x.other is None else x.other[at])


@dataclass(frozen=True)
class SubsequenceEngine:
    """Weights of all words where these are few, else dynamic programming, pair by pair."""

    letters: Alphabet
    p: int
    decay: float

    @cached_property
    def n_words(self) -> int:
        return max(self.letters.size, 1) ** self.p if self.p < 64 else MOST_WORDS + 1

    def side(self, x: Sequences) -> SubsequenceSide:
        other = x.reversed(self.letters.complement) if self.letters.both else None
        return SubsequenceSide(self, x, other)

    def costs(self, x: SubsequenceSide, z: SubsequenceSide) -> dict[str, float]:
        """The nanoseconds that each way would take, of those that can be gone."""
        nx, nz = len(x.one.codes), len(z.one.codes)
        out = {"pairs": CELL * self.p * nx * nz}
        if self.n_words <= MOST_WORDS:
            made = HOLD * (nx + nz) * self.n_words / max(self.letters.size, 1)
            out["words"] = made + TIMES * len(x.one) * len(z.one) * self.n_words
        return out

    def by_words(self, x: SubsequenceSide, z: SubsequenceSide) -> bool:
        costs = self.costs(x, z)
        return costs.get("words", np.inf) < costs["pairs"]

    def plan(self, x: SubsequenceSide, z: SubsequenceSide) -> Plan:
        """Which way values between two sides are computed, and why."""
        said = {
            "words": f"products of the weights of all {self.n_words:,} words",
            "pairs": f"dynamic programming over {len(x.one.codes) * len(z.one.codes):,} pairs of letters",
        }
        return least_work(self.costs(x, z), said)

    def values(self, x: SubsequenceSide, z: SubsequenceSide) -> Array:
        if self.by_words(x, z):
            return np.asarray(x.features[0] @ z.features[0].T)
        return self.by_pairs(x, z)[0]

    def slopes(self, x: SubsequenceSide, z: SubsequenceSide) -> Array:
        """d k(x_i, z_j) / d decay."""
        if not self.by_words(x, z):
            return self.by_pairs(x, z)[1]
        (F, dF), (G, dG) = x.features, z.features
        return np.asarray(dF @ G.T + F @ dG.T)

    def by_pairs(self, x: SubsequenceSide, z: SubsequenceSide) -> tuple[Array, Array]:
        """Values and slopes by dynamic programming."""
        out, slope = np.zeros((2, len(x.one), len(z.one)))
        a = x.one
        if self.p > min(s.one.lengths.max(initial=0) for s in (x, z)):
            return out, slope
        for b in (z.one, z.other):
            if b is not None:
                loops.all_pairs(
                    a.codes, a.offsets, b.codes, b.offsets, self.p, self.decay, out, slope
                )
        return (out, slope) if z.other is None else (2 * out, 2 * slope)

    def own(self, x: SubsequenceSide) -> Array:
        return x.own[0]

    def layout(self, length: int) -> Layout:
        """The features of strings, whatever their length."""
        if self.n_words > MOST_LIFTED:
            raise ValueError(
                f"Subsequence has {self.n_words:,} features of this alphabet, and at most {MOST_LIFTED:,} are made; "
                "take a smaller p, or landmarks."
            )
        return WeightLayout(self)


@dataclass(frozen=True)
class WeightLayout:
    """The weights of all words of p letters, dense."""

    engine: SubsequenceEngine

    @property
    def width(self) -> int:
        return self.engine.n_words

    def emit(self, x: Sequences) -> Emitted:
        parts = []
        for some in cuts(len(x), max(1, MOST_HELD // self.width)):
            F = SubsequenceSide(self.engine, x[some], None).features[0]
            rows, ids = np.nonzero(F)
            parts.append(Emitted(rows + some.start, ids, F[rows, ids]))
        return Emitted.joined(parts)

    def name(self, feature: int) -> str:
        return "..".join(spelled(feature, self.engine.p, self.engine.letters))


@register("strings.Subsequence")
class Subsequence(StringKernel):
    """sum over common subsequences of p letters of decay^(span in x + span in z)

    A subsequence is p letters in their order with any gaps; its span is last - first + 1. Words
    of one length alone: a sum of kernels takes several.

    Parameters
    ----------
    p : int, default=3
        The letters of a subsequence, >= 1.
    decay : float, default=0.5
        What every letter spanned costs, above 0 and at most 1.
    alphabet : {"dna", "rna", "protein"} or text of letters, default=None
        None: the letters of the rows of `fit`, then fixed in `kernel_`; in a call those of both
        sides.
    case : {"fold", "keep"}, default=None
        Whether lower-case letters are upper-case ones; None folds for named alphabets.
    unknown : {"skip", "letter", "raise"}, default="skip"
        Letters that are not in the alphabet are in no subsequence, but are spanned; or are all
        one letter more; or are refused.
    strands : {"one", "both"}, default="one"
        "both" takes a string of DNA together with its reverse complement.

    References
    ----------
    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins, Text classification using string
    kernels (2002).

    Examples
    --------
    >>> Subsequence(2, decay=0.5)(["cat"], ["car", "cat"])  # "ca" spans 2 and 2
    array([[0.0625  , 0.140625]])
    """

    p: int = 3
    decay: float = 0.5
    most: ClassVar[dict[str, float]] = {"decay": 1.0}

    def check(self) -> None:
        self.p = whole(self.p, "p", least=1)
        self.decay = positive(self.decay, "decay")
        if self.decay > 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {self.decay!r}.")
        super().check()

    def engine(self, letters: Alphabet) -> SubsequenceEngine:
        return SubsequenceEngine(letters, self.p, self.decay)

    def slopes(self, x: Any, z: Any) -> Mapping[str, Array]:
        return {"decay": self.engine(self.letters).slopes(x, z)}

    def own_slopes(self, x: Any) -> Mapping[str, Array]:
        return {"decay": x.own[1]}


prove_by(
    Subsequence, "its features are the sums of decay^span over the places of each word of p letters"
)
