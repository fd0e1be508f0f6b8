"""The slips of the notes, each with the numbers that show it."""

from __future__ import annotations

from functools import cache

from mercer.gallery.page import Shown, Slip

SLIPS: dict[str, Slip] = {}


@cache
def shown(key: str) -> Shown:
    """The numbers of a slip, computed once."""
    return SLIPS[key].shown()
