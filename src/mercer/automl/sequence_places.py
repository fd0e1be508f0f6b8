"""The place of sequences of one length about which their letters say most of the target."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.strings.alphabet import Alphabet
from mercer.tables.arrow import Column

AROUND = 5  # places that are looked at together
STANDS_OUT = 5.0  # times the median that a place must say
MIN_SEQUENCES = 100


def telling_place(
    cells: Column, Y: Array, weight: Array | None, alphabet: str, length: int
) -> int | None:
    """The place, from 0 on, with most squared correlation between its letters, and those of its
    neighbours, and the targets Y (n, c); None where it is hardly more than elsewhere.

    Only sequences of that length count.

    >>> from mercer.tables.arrow import pa
    >>> rng = np.random.default_rng(0)
    >>> letters = rng.choice(list("ACGT"), (300, 40))
    >>> cells, Y = pa.array(map("".join, letters)), (letters[:, 17:18] == "G") * 2.0 - 1
    >>> abs(telling_place(cells, Y, None, "dna", 40) - 17) <= 2
    True
    >>> telling_place(cells, Y[rng.permutation(300)], None, "dna", 40) is None
    True
    """
    items = cells.to_pylist()
    some = np.array([i for i, item in enumerate(items) if len(item) == length], np.int64)
    w = np.ones(len(some)) if weight is None else np.asarray(weight, np.float64)[some]
    if len(some) < MIN_SEQUENCES or length < AROUND or not w.any():
        return None
    letters = Alphabet.named(alphabet, None, "skip", "one")
    codes = letters.encode([items[i] for i in some]).codes.reshape(len(some), length)
    told = np.convolve(_told(codes, letters.size, Y[some], w / w.sum()), np.ones(AROUND), "valid")
    best = int(np.argmax(told))
    if not told[best] > STANDS_OUT * np.median(told):
        return None
    return best + AROUND // 2


def _told(codes: Array, size: int, Y: Array, w: Array) -> Array:
    """Of every place the sum of squared correlations of its letters with the targets, (length,)."""
    Y = Y - w @ Y
    spread = np.sqrt(w @ np.square(Y))
    Y = w[:, None] * Y / np.where(spread > 0, spread, 1.0)
    out = np.zeros(codes.shape[1])
    for letter in range(size):
        has = codes == letter
        share = w @ has
        varied = share * (1 - share)
        along = np.square(Y.T @ has).sum(axis=0)
        out += np.divide(along, varied, out=np.zeros_like(out), where=varied > 1e-9)
    return out
