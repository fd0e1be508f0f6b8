"""What is open of a kernel of items, such as the alphabet of strings, is learnt from rows and then
fixed: the same tree, settled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from mercer.inputs import Table
from mercer.kernels.algebra import OnColumns, Warped
from mercer.kernels.base import Kernel
from mercer.kernels.maps import Mapped
from mercer.listed import bare


def settled(k: Any, *rows: Table) -> Any:
    """The tree with its leaves settled by rows; itself where nothing is open.

    A leaf with something open has a method `settle(*rows)`.

    >>> from mercer.kernels import Constant
    >>> k = Constant() + 1
    >>> settled(k, Table(["a"])) is k
    True
    """
    if isinstance(k, tuple):
        parts = tuple(settled(t, *rows) for t in k)
        return k if all(a is b for a, b in zip(parts, k, strict=True)) else parts
    if not isinstance(k, Kernel) or isinstance(k, Warped | Mapped):  # whose rows are numbers
        return k
    if hasattr(k, "settle"):
        return k.settle(*(Table(bare(r.data)) if r.items else r for r in rows))
    if isinstance(k, OnColumns):
        rows = tuple(r.pick(k.columns) for r in rows)
    found = {f.name: settled(getattr(k, f.name), *rows) for f in fields(k)}  # type: ignore[arg-type]
    same = all(value is getattr(k, name) for name, value in found.items())
    return k if same else type(k)(**found)


def settles_to(k: Any, found: Any) -> bool:
    """Whether `found` is the kernel k with what is open of it learnt from some rows.

    >>> from mercer.strings import Spectrum
    >>> k = Spectrum(2) + 1
    >>> settles_to(k, Spectrum(2, alphabet="dna") + 1), settles_to(k, Spectrum(3, alphabet="dna") + 1)
    (True, False)
    """
    if isinstance(k, tuple) and isinstance(found, tuple):
        return len(k) == len(found) and all(map(settles_to, k, found))
    if not isinstance(k, Kernel) or type(k) is not type(found):
        return bool(k == found)
    pairs = [(getattr(k, f.name), getattr(found, f.name)) for f in fields(k)]  # type: ignore[arg-type]
    learns = hasattr(k, "settle")
    return all((learns and a is None) or settles_to(a, b) for a, b in pairs)


def takes_records(k: Kernel) -> bool:
    """Whether a tree reads some columns of strings and others of numbers: every leaf stands below a
    choice of columns or takes any rows, and one of those below reads items."""
    found = list(_leaves(k, below=False))
    return all(below or leaf.items for leaf, below in found) and any(
        below and hasattr(leaf, "reading") for leaf, below in found
    )


def _leaves(k: Kernel, below: bool) -> Iterator[tuple[Kernel, bool]]:
    parts = [getattr(k, f.name) for f in fields(k)]  # type: ignore[arg-type]
    inner = [
        t for p in parts for t in (p if isinstance(p, tuple) else (p,)) if isinstance(t, Kernel)
    ]
    if not inner:
        yield k, below
    for t in inner:
        yield from _leaves(t, below or isinstance(k, OnColumns))
