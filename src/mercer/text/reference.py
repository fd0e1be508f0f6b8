"""The n-grams of a document in plain Python: what the compiled loops are held to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from mercer.text.grams import Grams
from mercer.text.murmur import reference as murmur
from mercer.text.tokens import WITHIN, WORDS

_WORD = re.compile(r"\w+")
_GAP = re.compile(r"\s{2,}")


def ngrams(text: str, grams: Grams) -> Iterator[str]:
    """Every n-gram of a document, as often as it comes.

    >>> list(ngrams("Ab  cd", Grams("words", 1, 2)))
    ['ab', 'ab cd', 'cd']
    >>> list(ngrams("A  b", Grams("chars", 2, 2)))
    ['a ', ' b']
    """
    text = text.lower() if grams.lowercase else text
    if grams.unit == WORDS:
        runs = [[word for word in _WORD.findall(text) if len(word) > 1]]
    elif grams.unit == WITHIN:
        runs = [list(f" {word} ") for word in text.split()]
    else:
        runs = [list(_GAP.sub(" ", text))]
    for run in runs:
        if len(run) < grams.least and grams.unit == WITHIN:
            yield "".join(run)  # a word that is too short counts as a whole
        for i in range(len(run)):
            for n in range(grams.least, min(grams.most, len(run) - i) + 1):
                yield grams.between.join(run[i : i + n])


def hashed(text: str, grams: Grams, width: int) -> dict[int, int]:
    """The signed count of every column, without those that are 0."""
    out: Counter[int] = Counter()
    for name in ngrams(text, grams):
        h = murmur(name.encode())
        out[abs(h) % width] += 1 if h >= 0 else -1
    return {column: value for column, value in sorted(out.items()) if value}
