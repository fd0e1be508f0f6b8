"""How deeply JSON is nested, told before a parser goes down as deep: parsers recurse, and the stack has an end."""
from __future__ import annotations

import re

import numpy as np

DEEPEST = 100  # levels that are read
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]], _STEPS[[ord("]"), ord("}")]] = 1, -1
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.S)


def too_deep(block: bytes) -> int | None:
    """The number (from 0) of the first line that is nested deeper than `DEEPEST`, or None.

    Brackets are counted wherever they stand, which is cheap; a line that seems deep is counted again without its texts.

    >>> too_deep(b"[1]" + chr(10).encode() + b"[" * 1000), too_deep(b'{"a": "' + b"[" * 1000 + b'"}')
    (1, None)
    """
    if block.count(b"[") + block.count(b"{") <= DEEPEST:
        return None
    codes = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(codes == ord("\n")) + 1
    starts = np.concatenate([[0], ends[ends < len(codes)]])
    depth = np.cumsum(_STEPS[codes], dtype=np.int32)
    highest = np.maximum.reduceat(depth, starts) - np.where(starts > 0, depth[starts - 1], 0)
    return next((int(i) for i in np.flatnonzero(highest > DEEPEST) if _is_deep(block[starts[i] :].split(b"\n", 1)[0])), None)


def _is_deep(line: bytes) -> bool:
    bare = np.frombuffer(_TEXTS.sub(b"", line), np.uint8)
    return bool(np.cumsum(_STEPS[bare], dtype=np.int32).max(initial=0) > DEEPEST)
