"""What Python holds of every character: whether it is part of a word, white space, and its lower
case."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from mercer.inputs import Array

WORD = 1 << 21  # letters, all kinds of numbers, and "_": what \w matches
SPACE = 1 << 22  # what \s matches
ODD = 1 << 23  # lower case that depends on the neighbours, or is several characters
POINT = WORD - 1  # the bits of the lower case
ASCII = 128
POINTS = 0x110000
_BLOCK = 256


@cache
def ascii_table(lowercase: bool) -> Array:
    """The table of the first 128 characters.

    >>> int(ascii_table(True)[ord("A")]) == ord("a") | WORD
    True
    """
    return _table("".join(map(chr, range(ASCII))), lowercase)


@cache
def table(lowercase: bool) -> Array:
    """For every code point its lower case (itself without `lowercase`), with the bits WORD, SPACE
    and ODD; made from Python's own `re` and `str`, so that it is of the same Unicode version.

    >>> [bool(table(True)[ord(c)] & WORD) for c in "a_½①é-é\u0301"]
    [True, True, True, True, True, False, True, False]
    >>> [bool(table(True)[ord(c)] & ODD) for c in "AΣİ"]
    [False, True, True]
    """
    return _table("".join(map(chr, range(POINTS))), lowercase)


def _table(chars: str, lowercase: bool) -> Array:
    out = np.arange(len(chars), dtype=np.int32)
    for start in range(0, len(chars) if lowercase else 0, _BLOCK):
        block = chars[start : start + _BLOCK]
        if block.lower() != block:  # most blocks have no case
            for c in block:
                out[ord(c)] = _lower(c)
    for pattern, bit in ((r"\w+", WORD), (r"\s+", SPACE)):
        for run in re.finditer(pattern, chars):
            out[run.start() : run.end()] |= bit
    out.flags.writeable = False
    return out


def _lower(c: str) -> int:
    """The lower case of a character, or itself and ODD where no table can tell it."""
    low = c.lower()
    plain = len(low) == 1 and low.lower() == low and (f"a{c}").lower() == f"a{low}"
    # Loops have room for half as many bytes again.
    fits = plain and 2 * len(low.encode()) <= 3 * len(c.encode())
    return ord(low) if fits else ord(c) | ODD
