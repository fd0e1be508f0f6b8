"""WeightedDegree: words that two strings of one length have at the same place, or shifted by a
few."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.inputs import Array
from mercer.kernels.base import Kernel, whole
from mercer.kernels.proof import Proof
from mercer.kernels.proof import register as prove_by
from mercer.ops import matches as loops
from mercer.store import register
from mercer.strings.alphabet import Alphabet
from mercer.strings.base import StringKernel
from mercer.strings.layouts import PlacedLayout
from mercer.strings.sequences import Sequences


@dataclass(frozen=True, eq=False)
class PlaneSide:
    """Strings of one length as planes of bits, at every shift; those of their reverse complements
    after them where both strands count."""

    length: int
    planes: dict[tuple[int, int], Array]  # by strand and shift

    @property
    def n(self) -> int:
        return len(self.planes[0, 0])


@dataclass(frozen=True)
class DegreeEngine:
    """Runs of letters that agree, 64 places at a time."""

    letters: Alphabet
    d: int
    shift: int

    @cached_property
    def weights(self) -> Array:
        """2 (d - l + 1) / (d (d + 1)) of l = 1, ..., d."""
        return 2 * np.arange(self.d, 0, -1) / (self.d * (self.d + 1.0))

    def shifts(self) -> dict[int, float]:
        """The weight of every shift: 1/(2(s + 1)) each way, twice for none."""
        each = {s: 0.5 / (s + 1) for s in range(1, self.shift + 1)}
        return {**{-s: w for s, w in each.items()}, 0: 1.0, **each}

    def side(self, x: Sequences) -> PlaneSide:
        lengths = x.lengths
        length = int(lengths[0]) if len(x) else 0
        if (lengths != length).any():
            row = int(np.argmax(lengths != length))
            raise ValueError(
                f"WeightedDegree compares strings of one length, but one of X has {length} letters and another {lengths[row]}; "
                "cut or pad them to one length, or use Gapped."
            )
        planes = {(0, s): self._planes(x, length, s) for s in self.shifts()}
        if self.letters.both:
            other = x.reversed(self.letters.complement)
            planes |= {(1, s): self._planes(other, length, s) for s in self.shifts()}
        return PlaneSide(length, planes)

    def _planes(self, x: Sequences, length: int, shift: int) -> Array:
        bits = max(1, (self.letters.size - 1).bit_length())
        out = np.empty((len(x), bits + 1, max(1, -(-length // 64))), np.uint64)
        loops.bit_planes(x.codes.reshape(len(x), length), shift, out)
        return out

    def values(self, x: PlaneSide, z: PlaneSide) -> Array:
        if x.length != z.length:
            raise ValueError(
                f"WeightedDegree compares strings of one length, got {x.length} and {z.length} letters; "
                "cut or pad them to one length, or use Gapped."
            )
        out = np.zeros((x.n, z.n))
        for planes, factor in self._terms(z):
            loops.add_runs(x.planes[0, 0], planes, self.weights, factor, out)
        return out

    def _terms(self, z: PlaneSide) -> list[tuple[Array, float]]:
        twice = 2.0 if self.letters.both else 1.0
        weights = self.shifts()
        return [(planes, twice * weights[s]) for (_, s), planes in z.planes.items()]

    def layout(self, length: int) -> PlacedLayout:
        """The features of strings of a length."""
        apart = self.shifts()
        shifts = tuple(apart[s] for s in range(self.shift + 1))
        return PlacedLayout(self.letters, tuple(self.weights.tolist()), shifts, length)

    def own(self, x: PlaneSide) -> Array:
        out = np.zeros(x.n)
        for planes, factor in self._terms(x):
            loops.add_own_runs(x.planes[0, 0], planes, self.weights, factor, out)
        return out


@register("strings.WeightedDegree")
class WeightedDegree(StringKernel):
    """sum over l = 1, ..., d of 2 (d - l + 1) / (d (d + 1)) (places from which l letters agree)

    With a shift S, places i of x and i + s of z count by 1/(2(|s| + 1)) for s = -S, ..., S, and
    by 1 for s = 0. All strings have one length.

    Parameters
    ----------
    d : int, default=3
        The letters of the longest words, >= 1.
    shift : int, default=0
        How many places words may be apart.
    alphabet : {"dna", "rna", "protein"} or text of letters, default=None
        None: the letters of the rows of `fit`, then fixed in `kernel_`; in a call those of both
        sides.
    case : {"fold", "keep"}, default=None
        Whether lower-case letters are upper-case ones; None folds for named alphabets.
    unknown : {"skip", "letter", "raise"}, default="skip"
        Letters that are not in the alphabet agree with nothing; or are all one letter more; or
        are refused.
    strands : {"one", "both"}, default="one"
        "both" takes a string of DNA together with its reverse complement.

    References
    ----------
    Raetsch and Sonnenburg, Accurate splice site detection for Caenorhabditis elegans (2004);
    Raetsch, Sonnenburg and Schoelkopf, RASE: recognition of alternatively spliced exons in
    C. elegans (2005).

    Examples
    --------
    >>> WeightedDegree(1)(["banana"], ["bandan", "ananas"])
    array([[3., 0.]])
    >>> WeightedDegree(1, shift=1)(["banana"], ["ananas"])
    array([[2.]])
    """

    d: int = 3
    shift: int = 0

    def check(self) -> None:
        self.d, self.shift = whole(self.d, "d", least=1), whole(self.shift, "shift")
        super().check()

    def engine(self, letters: Alphabet) -> DegreeEngine:
        return DegreeEngine(letters, self.d, self.shift)


def _why(k: Kernel, d: int | None) -> Proof:
    assert isinstance(k, WeightedDegree)
    if k.shift == 0:
        return Proof(repr(k), "its features are the words at every place, of weights > 0")
    return Proof(
        repr(k),
        "its features are words at places, and a Toeplitz matrix of the weights 1/(2(s + 1)) between places is positive "
        "semidefinite, as 1/2 + sum of cos(s t)/(s + 1) >= 0 (Rogosinski and Szegoe); weights of shifts in general are not",
    )


prove_by(WeightedDegree, _why)
