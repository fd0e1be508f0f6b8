"""The one error that tables raise: a sentence that says what is wrong with the data and what to do."""
from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class DataError(ValueError):
    """Something is wrong with a file or a column; the message is one sentence for the person who owns the data."""


def nearest(name: str, names: Iterable[str], count: int = 3) -> str:
    """The names most like one that is not there, as the end of a sentence; case does not matter.

    >>> nearest("Prize", ["price", "rooms"])
    '; did you mean "price"?'
    >>> nearest("zzz", ["price", "rooms"])
    '; the names are "price", "rooms".'
    """
    known = list(dict.fromkeys(names))
    lowered = {k.lower(): k for k in reversed(known)}
    close = [lowered[m] for m in get_close_matches(name.lower(), list(lowered), n=count, cutoff=0.6)]
    if close:
        return f"; did you mean {quoted(close, ' or ')}?"
    return f"; the names are {quoted(known)}." if known else "; there are no columns."


def quoted(names: Iterable[str], between: str = ", ", most: int = 8) -> str:
    """Names in quotes, the first few of many.

    >>> quoted(["a", "b"])
    '"a", "b"'
    """
    listed = list(names)
    text = between.join(f'"{n}"' for n in listed[:most])
    return text if len(listed) <= most else f"{text} and {len(listed) - most} more"


def said(error: BaseException, most: int = 160) -> str:
    """What another library said, as a part of one sentence.

    >>> said(OSError("bad data:" + chr(10) + " at 7."))
    'bad data: at 7'
    """
    text = " ".join((getattr(error, "strerror", None) or str(error)).split()).rstrip(".")
    return text if len(text) <= most else f"{text[:most]} ..."
