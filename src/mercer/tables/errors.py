"""The one error that tables raise: a sentence that says what is wrong with the data and what to
do."""

from __future__ import annotations

from collections.abc import Iterable

CSV_FLAGS = "--delimiter, --decimal, --no-header or --encoding"


class DataError(ValueError):
    """Something is wrong with a file or a column; the message is one sentence for the person who
    owns the data.

    Examples
    --------
    >>> from mercer.tables import open_source
    >>> open_source("nowhere.csv")
    Traceback (most recent call last):
        ...
    mercer.tables.errors.Misnamed: nowhere.csv does not exist; check the name and the folder.
    """

    usage = False  # whether another word on the command line is the remedy, not another table


class Misnamed(DataError):
    """A name or a choice of the user's that the data do not have: a file, a column, a metric of
    another task."""

    usage = True


def nearest(name: str, names: Iterable[str], count: int = 3) -> str:
    """The names that a slip of the finger may have turned into one that is not there, as the end of
    a sentence.

    Names that still hold delimiters show that a csv file was misread, and the flags that say how it
    is written are named.

    >>> nearest("Prize", ["price", "rooms"])
    '; did you mean "price"?'
    >>> nearest("zzz", ["price", "rooms"])
    '; the names are "price", "rooms".'
    """
    known = list(dict.fromkeys(names))
    if misread(known):
        return f"; the names are {quoted(known)}: the file may be misread, say how it is written by {CSV_FLAGS}."
    close = sorted(
        (k for k in known if similar(name, k)), key=lambda k: edits(name.lower(), k.lower())
    )[:count]
    if close:
        return f"; did you mean {quoted(close, ' or ')}?"
    return f"; the names are {quoted(known)}." if known else "; there are no columns."


def misread(names: list[str]) -> bool:
    """Whether names hold what mostly stands between them; a space tells so only in a name that is
    alone."""
    return any(sign in name for name in names for sign in ";|\t") or (
        len(names) == 1 and " " in names[0].strip()
    )


def similar(name: str, other: str) -> bool:
    """Whether two names differ in their case only, or by one edit in four letters.

    >>> similar("bmj", "bmi"), similar("y", "x"), similar("rooms", "colour")
    (True, False, False)
    """
    a, b = name.strip().lower(), other.strip().lower()
    return a == b or (min(len(a), len(b)) > 2 and edits(a, b) <= max(1, max(len(a), len(b)) // 4))


def edits(a: str, b: str) -> int:
    """How many letters to add, drop, replace or swap with the next make one word the other (Damerau
    and Levenshtein).

    >>> edits("prize", "price"), edits("bim", "bmi")
    (1, 1)
    """
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, before, row = before, row, [i + 1]
        for j, y in enumerate(b):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (x != y)))
            if i and j and x == b[j - 1] and a[i - 1] == y:
                row[-1] = min(row[-1], last[j - 1] + 1)
    return row[-1]


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


def many(count: float, one: str, more: str | None = None) -> str:
    """A number of things.

    >>> many(1, "row"), many(2000, "row"), many(0, "class", "classes")
    ('1 row', '2,000 rows', '0 classes')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"
