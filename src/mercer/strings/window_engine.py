"""The engine of window kernels: counts of all words where these are few, words at chosen places,
or all pairs of windows, whichever is least work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.inputs import Array
from mercer.ops import windows as loops
from mercer.plans import Plan
from mercer.strings.alphabet import Alphabet
from mercer.strings.base import least_work
from mercer.strings.found import ALL_BITS, FoundWindows
from mercer.strings.layouts import GappedLayout, Layout, NearLayout
from mercer.strings.profile import Profile
from mercer.strings.sequences import Sequences

FEW_WORDS = 1 << 14  # whose counts may be kept as dense rows
MOST_COUNTED = 1 << 23  # numbers of such rows on one side
EXACT_IN_SINGLE = 1 << 24  # whole numbers up to here are float32's
# Nanoseconds, measured: of a multiplication of two counts, of a window that is laid into buckets, of two
# windows that meet there, and of the distance of two windows.
COUNT, LAY, MEET, PAIR = 0.05, 10.0, 2.5, 8.0


@dataclass(frozen=True, eq=False)
class WindowSide:
    """Some strings with their windows, and what tiles ask of these, once.

    `one` are those of the strings; `all` those of their reverse complements as well where both strands
    count, and then k(x, z) is twice the sum over `one` of x and `all` of z.
    """

    engine: WindowEngine
    n: int
    one: FoundWindows
    all: FoundWindows

    @cached_property
    def own(self) -> Array:
        """k(x, x)"""
        e, out, w = self.engine, np.zeros(self.n), self.all
        if not len(w):
            return out
        each = np.bincount(w.rows, minlength=1).astype(np.float64)
        costs = {"words": LAY * e.choices * len(w), "pairs": PAIR / 2 * float(each @ each)}
        if e.counts_fit(self):
            costs["counts"] = LAY * (self.n * e.n_words + len(w))
        way = min(costs, key=lambda name: costs[name])
        if way == "counts":
            return self._own_counts
        if way == "pairs":
            bits, per = w.bits()
            loops.add_own_pairs(bits, w.rows, per, e.weights, out)
            return out
        for j, a in e.profile.agreeing.items():
            part = np.zeros(self.n)
            loops.add_own(w.loop, e.profile.places(j), w.shape(j, e.mask), part)
            out += a * part
        return out

    @cached_property
    def _own_counts(self) -> Array:
        return np.einsum("ij,ij->i", self.counts, self.mixed, dtype=np.float64)

    @cached_property
    def top(self) -> float:
        """The largest k(x, x), or weighted count."""
        mixed = self.mixed.max(initial=0.0)
        return max(float(self._own_counts.max(initial=0.0)), float(mixed))

    @cached_property
    def counts(self) -> Array:
        """How often every word is in every string."""
        e, w = self.engine, self.all
        out = np.zeros((self.n, e.n_words), np.float32)
        loops.count_words(w.words(np.arange(e.profile.g)), w.rows, out)
        return out

    @cached_property
    def mixed(self) -> Array:
        """Counts, each word's times its weight for every other word: counts @ M."""
        return mixed_counts(self.counts, self.engine.profile, self.engine.letters.size)


def mixed_counts(counts: Array, profile: Profile, size: int) -> Array:
    """sum over words v of weights[h(u, v)] counts[v], for every u: one place after another, by how
    many letters differ so far."""
    g, far = profile.g, max((h for h, c in enumerate(profile.weights) if c), default=0)
    if far == 0:
        return counts if profile.weights[0] == 1 else counts * np.float32(profile.weights[0])
    parts = [counts.astype(np.float64), *(np.zeros(counts.shape) for _ in range(far))]
    for p in range(g):
        shape = (len(counts), size**p, size, size ** (g - 1 - p))
        sums = [np.broadcast_to(a.reshape(shape).sum(2, keepdims=True), shape) for a in parts[:-1]]
        for h in range(far, 0, -1):
            parts[h] += (sums[h - 1] - parts[h - 1].reshape(shape)).reshape(counts.shape)
    out = sum(c * a for c, a in zip(profile.weights, parts, strict=False) if c)
    return np.asarray(out)


@dataclass(frozen=True)
class WindowEngine:
    """sum over windows u of x and v of z of weights[h(u, v)]

    Parameters
    ----------
    letters : Alphabet
    profile : Profile
    near : int, default=None
        m, where the weights count words within m of both.
    mask : int, default=2**64 - 1
        What is kept of the hashes of words that do not fit 64 bits.
    """

    letters: Alphabet
    profile: Profile
    near: int | None = None
    mask: int = ALL_BITS

    @cached_property
    def n_words(self) -> int:
        return self.letters.size**self.profile.g if self.profile.g < 64 else FEW_WORDS + 1

    @cached_property
    def choices(self) -> int:
        """How many choices of places there are."""
        return sum(math.comb(self.profile.g, j) for j in self.profile.agreeing)

    @cached_property
    def weights(self) -> Array:
        return np.array(self.profile.weights, np.float64)

    def side(self, x: Sequences) -> WindowSide:
        one = FoundWindows.of(x, self.profile.g)
        if not self.letters.both:
            return WindowSide(self, len(x), one, one)
        both = x.beside(x.reversed(self.letters.complement))
        return WindowSide(self, len(x), one, FoundWindows.of(both, self.profile.g))

    def own(self, x: WindowSide) -> Array:
        return x.own

    def values(self, x: WindowSide, z: WindowSide) -> Array:
        if not (len(x.one) and len(z.one)):  # strings shorter than a window
            return np.zeros((x.n, z.n))
        way = min(self.costs(x, z).items(), key=lambda item: item[1])[0]
        return {"counts": self._counts, "words": self._words, "pairs": self._pairs}[way](x, z)

    def costs(self, x: WindowSide, z: WindowSide) -> dict[str, float]:
        """The nanoseconds that each way would take, of those that can be gone."""
        nx, nz, size = len(x.one), len(z.all), max(self.letters.size, 1)
        words = sum(
            math.comb(self.profile.g, j) * (LAY * (nx + nz) + MEET * nx * nz * float(size) ** -j)
            for j in self.profile.agreeing
        )
        pairs = PAIR * nx * nz * max(1, self.profile.g * max(1, (size - 1).bit_length()) / 64)
        out = {"words": words, "pairs": pairs}
        if self.counts_fit(x) and self.counts_fit(z):
            out["counts"] = COUNT * x.n * z.n * self.n_words
        return out

    def counts_fit(self, x: WindowSide) -> bool:
        """Whether the counts of all words may be kept, and are float32's."""
        few = self.n_words <= FEW_WORDS and x.n * self.n_words <= MOST_COUNTED
        return few and len(x.all) < EXACT_IN_SINGLE

    def plan(self, x: WindowSide, z: WindowSide) -> Plan:
        """Which way values between two sides are computed, and why."""
        said = {
            "counts": f"products of counts of all {self.n_words:,} words",
            "words": f"words at {self.choices:,} choices of places",
            "pairs": f"all {len(x.one) * len(z.all):,} pairs of windows",
        }
        return least_work(self.costs(x, z), said)

    def layout(self, length: int) -> Layout:
        """The features of strings, whatever their length."""
        if self.near is not None:
            return NearLayout(self.letters, self.profile.g, self.near)
        (j,) = self.profile.agreeing
        return GappedLayout(self.letters, self.profile.g, j)

    # the three ways
    def _counts(self, x: WindowSide, z: WindowSide) -> Array:
        A, B = x.counts, z.mixed
        if max(x.top, z.top) < EXACT_IN_SINGLE:
            return (A @ B.astype(np.float32, copy=False).T).astype(np.float64)
        return A.astype(np.float64) @ B.astype(np.float64).T

    def _words(self, x: WindowSide, z: WindowSide) -> Array:
        out = np.zeros((x.n, z.n))
        for j, a in self.profile.agreeing.items():
            part = out if len(self.profile.agreeing) == 1 else np.zeros((x.n, z.n))
            room = max(4096, 4 * len(z.all))
            few = room * float(z.all.size) ** -j >= 1 and room < EXACT_IN_SINGLE
            add = loops.add_common_few if few else loops.add_common_many
            add(x.one.loop, z.all.loop, self.profile.places(j), z.all.shape(j, self.mask), part)
            if part is not out:
                out += a * part
            elif a != 1:
                out *= a
        return 2 * out if self.letters.both else out

    def _pairs(self, x: WindowSide, z: WindowSide) -> Array:
        out = np.zeros((x.n, z.n))
        (a, bits), (b, _) = x.one.bits(), z.all.bits()
        loops.add_pairs(a, x.one.rows, b, z.all.rows, bits, self.weights, out)
        return 2 * out if self.letters.both else out
