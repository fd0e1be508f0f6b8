"""Which way the values of a kernel of items are computed, for the plans of estimators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mercer.inputs import Table
from mercer.kernels.algebra import OnColumns
from mercer.kernels.bags import OverSets
from mercer.kernels.base import Kernel
from mercer.listed import bare


def value_ways(kernel: Any, rows: Table) -> dict[str, str]:
    """What every leaf that has a choice says of it, as settings of a plan; none of rows of numbers.

    A leaf with a choice has a method `plan(X)`.

    >>> from mercer.strings import Spectrum
    >>> k = Spectrum(2, alphabet="dna").normalized() + 1
    >>> value_ways(k, Table(["ACGT", "ACGA"]))
    {'values of Spectrum(k=2)': 'products of counts of all 16 words'}
    """
    if not rows.items or not isinstance(kernel, Kernel):
        return {}
    return {
        f"values of {_shown(leaf)}": _way(leaf.plan(X).why) for leaf, X in _leaves(kernel, rows)
    }


def _leaves(kernel: Kernel, rows: Table) -> Iterator[tuple[Any, list[Any]]]:
    if isinstance(kernel, OnColumns):
        rows = rows.pick(kernel.columns)
    if isinstance(kernel, OverSets) and rows.items:
        members = kernel.read(rows.data).members
        if members is None:
            return
        rows = members
    if hasattr(kernel, "plan") and rows.items:
        yield kernel, bare(rows.data)
    for k in kernel.inner:
        yield from _leaves(k, rows)


def _shown(leaf: Any) -> str:
    """Without its alphabet, which may be long."""
    return repr(leaf.clone().set_params(alphabet=None, strands="one", unknown="skip", case=None))


def _way(why: str) -> str:
    """Without the time, which is of a few hundred rows."""
    return why.split(", about ")[0]
