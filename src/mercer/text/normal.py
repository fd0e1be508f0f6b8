"""The compiled loops that read text: is it UTF-8, and its words or characters in lower case, side by
side in one buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.text import unicode

PLAIN, WIDE, ODD, BROKEN = range(4)  # kinds of documents
_SPACE, _ODD, _POINT = (np.int32(v) for v in (unicode.SPACE, unicode.ODD, unicode.POINT))
_BLANK, _1 = np.uint8(32), np.uint64(1)
FOLD = 3
_FOLD = np.uint64(FOLD)


@njit
def kinds(text: Array, offsets: Array, table: Array, out: Array) -> None:
    """For every document: PLAIN where it is ASCII, WIDE other UTF-8, ODD where it has a character
    whose lower case no table tells, BROKEN where it is not UTF-8."""
    for i in range(len(out)):
        bits = np.uint8(0)
        for j in range(offsets[i], offsets[i + 1]):
            bits |= text[j]
        out[i] = PLAIN if bits < 128 else _wide(text, offsets[i], offsets[i + 1], table)


@njit
def _wide(text: Array, at: Any, stop: Any, table: Array) -> Any:
    kind = WIDE
    while at < stop:
        c = _point(text, at, stop)
        if c == 0:
            return BROKEN
        if table[c >> 3] & _ODD:
            kind = ODD
        at += c & 7
    return kind


@njit
def _point(text: Array, at: Any, stop: Any) -> Any:
    """Eight times the code point of the character at a place, plus its bytes; 0 where it is not
    UTF-8."""
    point = np.int64(text[at])
    if point < 0x80:
        return point << 3 | 1
    size = 2 if point < 0xE0 else 3 if point < 0xF0 else 4
    if point < 0xC2 or point > 0xF4 or at + size > stop:
        return 0
    point &= 0x7F >> size
    for j in range(at + 1, at + size):
        if text[j] & 0xC0 != 0x80:
            return 0
        point = point << 6 | (text[j] & 0x3F)
    low = 0x80 if size == 2 else 0x800 if size == 3 else 0x10000
    if point < low or point > 0x10FFFF or (point >= 0xD800 and point < 0xE000):
        return 0
    return point << 3 | size


@njit
def _put(point: Any, out: Array, to: Any) -> Any:
    """Write a character as UTF-8; the place behind it."""
    if point < 0x80:
        out[to] = point
        return to + 1
    size = 2 if point < 0x800 else 3 if point < 0x10000 else 4
    for j in range(to + size - 1, to, -1):
        out[j] = 0x80 | (point & 0x3F)
        point >>= 6
    out[to] = (0xF00 >> size) & 0xFF | point
    return to + size


@njit
def runs(
    text: Array,
    offsets: Array,
    kind: Array,
    table: Array,
    how: Array,
    out: Array,
    starts: Array,
    docs: Array,
) -> None:
    """The runs of characters that belong together, each with a blank behind it.

    A character belongs where its entry of the table, masked with how[0], is how[1]: WORD, or not
    SPACE. Runs of fewer than how[2] characters are left out. From how[FOLD] on is the lower case of
    ASCII, -1 for what does not belong. `starts[j]` is where run j begins, `docs[i]` the first run
    of document i; both have one entry more, for the end.
    """
    n, starts[0], docs[0] = np.uint64(0), 1, 0
    out[0] = _BLANK  # also before the first
    for i in range(len(kind)):
        if kind[i] == PLAIN:
            n = _plain(text, offsets[i], offsets[i + 1], how, out, starts, n)
        else:
            n = _runs(text, offsets[i], offsets[i + 1], table, how, out, starts, n)
        docs[i + 1] = n


@njit
def plain_runs(
    text: Array, offsets: Array, how: Array, out: Array, starts: Array, docs: Array
) -> None:
    """`runs` of documents that are ASCII, all of them: a loop of its own, since compiling the other
    takes twice as long."""
    n, starts[0], docs[0] = np.uint64(0), 1, 0
    out[0] = _BLANK
    for i in range(len(docs) - 1):
        n = _plain(text, offsets[i], offsets[i + 1], how, out, starts, n)
        docs[i + 1] = n


@njit
def _plain(text: Array, at: Any, stop: Any, how: Array, out: Array, starts: Array, n: Any) -> Any:
    to = begin = np.uint64(starts[n])
    enough = np.uint64(how[2])
    for j in range(np.uint64(at), np.uint64(stop)):
        c = how[_FOLD + np.uint64(text[j])]
        if c >= 0:
            out[to] = c
            to += _1
        else:
            out[to] = _BLANK
            kept = to - begin >= enough
            begin = to = to + _1 if kept else begin
            n += np.uint64(kept)
            starts[n] = to
    out[to] = _BLANK
    kept = to - begin >= enough
    n += np.uint64(kept)
    starts[n] = to + _1 if kept else begin
    return n


@njit
def _runs(
    text: Array, at: Any, stop: Any, table: Array, how: Array, out: Array, starts: Array, n: Any
) -> Any:
    to = begin = np.int64(starts[n])
    length = 0
    while at <= stop:
        found = _point(text, at, stop) if at < stop else 1
        c = table[found >> 3]
        if at < stop and c & how[0] == how[1]:
            to = _put(c & _POINT, out, to)
            length += 1
        else:
            out[to] = _BLANK
            kept = length >= how[2]
            begin = to = to + 1 if kept else begin
            n += np.uint64(kept)
            starts[n] = to
            length = 0
        at += found & 7
    return n


@njit
def squeezed(text: Array, offsets: Array, table: Array, out: Array, starts: Array) -> None:
    """Every document in lower case, with one blank for two white spaces or more; `starts[i]` is
    where document i begins."""
    to: Any = np.int64(1)
    out[0], starts[0] = _BLANK, 1
    for i in range(len(starts) - 1):
        at, stop = offsets[i], offsets[i + 1]
        gap: Any = np.int64(-1)  # where white space began
        while at < stop:
            found = _point(text, at, stop)
            at += found & 7
            c = table[found >> 3]
            if not c & _SPACE:
                gap = -1
            elif gap >= 0:
                out[gap] = _BLANK
                to = gap + 1
                continue
            else:
                gap = to
            to = _put(c & _POINT, out, to)
        starts[i + 1] = to
