"""Plan: which way an estimator took, why, and what it cost; a value that every fitted estimator
carries as `plan_`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mercer.invariants import Said
from mercer.store import register


@register("plans.Plan")
@dataclass(frozen=True)
class Plan:
    """The way taken, the reason, its settings and its cost.

    Parameters
    ----------
    way : str
        The name of the way, as "features".
    why : str
        The reason, in one sentence.
    settings : mapping of str to any value, default={}
        What was chosen for that way.
    bytes : float, default=None
        The memory it takes; None where that is not known, as below.
    flops : float, default=None
        The floating-point operations.
    passes : int, default=None
        The passes over the rows.
    rejected : tuple of (str, str), default=()
        Other ways, each with the reason against it.

    Examples
    --------
    >>> why = "30,000 rows would need a 7.2 GB Gram matrix"
    >>> print(Plan("features", why, {"n_features": 2048}, bytes=491_520_000))
    features: 30,000 rows would need a 7.2 GB Gram matrix
      n_features = 2048
      memory 492 MB
    """

    way: str
    why: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    bytes: float | None = None
    flops: float | None = None
    passes: int | None = None
    rejected: tuple[tuple[str, str], ...] = ()

    must = dict(settings=Said())

    def __str__(self) -> str:
        lines = [
            f"{self.way}: {self.why}",
            *(f"  {name} = {value}" for name, value in self.settings.items()),
        ]
        cost = [
            f"memory {quantity(self.bytes, 'B')}" if self.bytes is not None else "",
            f"work {quantity(self.flops, 'flop')}" if self.flops is not None else "",
            f"{self.passes} pass{'es' if self.passes != 1 else ''} over the rows"
            if self.passes is not None
            else "",
        ]
        lines += ["  " + ", ".join(filter(None, cost))] if any(cost) else []
        return "\n".join(lines + [f"  not {way}: {why}" for way, why in self.rejected])

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def quantity(value: float, unit: str) -> str:
    """A number with a prefix, to three digits.

    >>> quantity(7.2e9, "B")
    '7.2 GB'
    """
    for power, prefix in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if abs(value) >= 10**power:
            return f"{value / 10**power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
