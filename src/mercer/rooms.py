"""Packages whose names are loaded when they are first asked for (PEP 562): what is not used is not
imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def entered(
    package: str, rooms: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package; `rooms` are its modules (".base"), or others by
    their whole names, and the names that each of them has.

    >>> find, names = entered("mercer.models", {".ridge": ("KernelRidge",)})
    >>> find("KernelRidge").__name__, names()
    ('KernelRidge', ['KernelRidge'])
    """
    homes = {name: room for room, names in rooms.items() for name in names}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name], package), name)
        setattr(sys.modules[package], name, value)  # asked for once
        return value

    return find, lambda: sorted(homes)
