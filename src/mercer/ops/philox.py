"""Counter-based randomness: infinite random tables of which any rows can be drawn alone, the same
bits everywhere.

A table is named by a `Stream` (a seed and a path) and read by rows: row r of a table of width w is
Philox at counters from r ceil(w/4) on. Every value takes one 64-bit word through an inverse
distribution function, never a rejection sampler, so that the words a row needs are known without
drawing those before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, ndtri

from mercer.inputs import Array
from mercer.invariants import Each, Whole
from mercer.store import register


@register("ops.Stream")
@dataclass(frozen=True)
class Stream:
    """A name for independent randomness: a seed, and the path of choices below it.

    >>> Stream(7).child(1, 2) == Stream(7).child(1).child(2) == Stream(7, (1, 2))
    True
    """

    seed: int
    path: tuple[int, ...] = ()

    must = dict(seed=Whole(0, 1 << 256), path=Each(Whole(0, 1 << 64), fixed=True))

    def child(self, *path: int) -> Stream:
        """The stream further along the path, independent of this one and of its other children."""
        return Stream(self.seed, self.path + path)

    def key(self) -> Array:
        """The 128-bit Philox key, a hash of seed and path."""
        return np.random.SeedSequence(self.seed, spawn_key=self.path).generate_state(2, np.uint64)


def bits(stream: Stream, start: int, stop: int, width: int) -> Array:
    """Rows start to stop of a table of random 64-bit words.

    >>> whole = bits(Stream(7), 0, 100, 3)
    >>> np.array_equal(bits(Stream(7), 40, 42, 3), whole[40:42])
    True
    """
    step = -(-width // 4)  # a counter gives four words; a row starts at a fresh one
    words = np.random.Philox(key=stream.key(), counter=start * step).random_raw(
        (stop - start) * step * 4
    )
    return words.reshape(stop - start, step * 4)[:, :width]


def uniforms(stream: Stream, start: int, stop: int, width: int) -> Array:
    """Rows of a table uniform on (0, 1), never 0 or 1: odd multiples of 2^-53.

    >>> float(abs(uniforms(Stream(7), 0, 10_000, 4).mean() - 0.5)) < 0.01
    True
    """
    return ((bits(stream, start, stop, width) >> np.uint64(12)) + 0.5) * 2.0**-52


def normals(stream: Stream, start: int, stop: int, width: int) -> Array:
    """Rows of a table of standard normal values.

    >>> G = normals(Stream(7), 0, 10_000, 4)
    >>> bool(abs(G.mean()) < 0.03), bool(abs(G.var() - 1) < 0.05)
    (True, True)
    """
    return ndtri(uniforms(stream, start, stop, width))


def gammas(stream: Stream, start: int, stop: int, width: int, shape: float) -> Array:
    """Rows of a table of Gamma(shape) values of scale 1; twice Gamma(k/2) is chi-squared with k
    degrees of freedom.

    >>> float(abs(gammas(Stream(7), 0, 10_000, 1, 3.0).mean() - 3)) < 0.1
    True
    """
    return gammaincinv(shape, uniforms(stream, start, stop, width))


def integers(stream: Stream, start: int, stop: int, width: int, high: int) -> Array:
    """Rows of a table uniform on 0, ..., high - 1 (off by at most a share of high / 2^52).

    >>> sorted(set(integers(Stream(7), 0, 20, 4, 3).ravel().tolist()))
    [0, 1, 2]
    """
    return (uniforms(stream, start, stop, width) * high).astype(np.int64)


def signs(stream: Stream, start: int, stop: int, width: int) -> Array:
    """Rows of a table of fair signs, 1.0 or -1.0.

    >>> sorted(set(signs(Stream(7), 0, 20, 4).ravel().tolist()))
    [-1.0, 1.0]
    """
    return 1.0 - 2.0 * (bits(stream, start, stop, width) >> np.uint64(63))


def permutation(stream: Stream, n: int) -> Array:
    """A random order of 0, ..., n - 1; the one thing here that must be drawn whole.

    >>> sorted(permutation(Stream(7), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return np.argsort(bits(stream, 0, n, 1)[:, 0], kind="stable")
