"""Tables of characters are those of Python's own `re` and `str`, for every code point."""

import re

import numpy as np
import pytest

from mercer.text import unicode

ALL = "".join(map(chr, range(unicode.POINTS)))


@pytest.mark.parametrize(("pattern", "bit"), [(r"\w", unicode.WORD), (r"\s", unicode.SPACE)])
def test_every_code_point_is_what_re_says(pattern, bit):
    found = np.zeros(unicode.POINTS, bool)
    found[[m.start() for m in re.finditer(pattern, ALL)]] = True
    assert (((unicode.table(True) & bit) != 0) == found).all()
    assert (((unicode.table(False) & bit) != 0) == found).all()


def test_every_lower_case_is_that_of_str_or_marked():
    table = unicode.table(True)
    changed = [c for c in ALL if c.lower() != c]
    told = [c for c in changed if not table[ord(c)] & unicode.ODD]
    assert [chr(table[ord(c)] & unicode.POINT) for c in told] == [c.lower() for c in told]
    assert {c for c in changed if table[ord(c)] & unicode.ODD} == {"Σ", "İ"}
    same = np.ones(unicode.POINTS, bool)
    same[[ord(c) for c in changed]] = False
    assert ((table & unicode.POINT)[same] == np.arange(unicode.POINTS)[same]).all()
    assert not (table[same] & unicode.ODD).any()


def test_without_lower_case_characters_stay_and_none_is_odd():
    table = unicode.table(False)
    assert (table & unicode.POINT == np.arange(unicode.POINTS)).all()
    assert not (table & unicode.ODD).any()


@pytest.mark.parametrize("lowercase", [True, False])
def test_ascii_is_the_beginning_of_the_table(lowercase):
    small = unicode.ascii_table(lowercase)
    assert (small == unicode.table(lowercase)[: unicode.ASCII]).all()
    assert not small.flags.writeable


def test_lower_case_needs_at_most_half_as_many_bytes_again():
    changed = [c for c in ALL if c.lower() != c and c not in "Σİ"]
    assert all(2 * len(c.lower().encode()) <= 3 * len(c.encode()) for c in changed)
    assert sum(len(c.lower().encode()) != len(c.encode()) for c in changed) > 20
