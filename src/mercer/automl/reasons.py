"""Why a kind of model took no part, or was not fitted to all rows: what it would have needed beside
what there was."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.automl.recipes import NAMES

NO_LAST_FIT = "a fit to all rows would have taken too long"


@dataclass(frozen=True)
class LeftOut:
    """A kind that took no part: why, and what there was too little of, with more of which it would
    have."""

    kind: str
    why: str
    lack: str = ""  # time, memory, or nothing that could be given
    given_up: bool = False  # after it was begun

    @property
    def name(self) -> str:
        return NAMES[self.kind]

    @property
    def sentence(self) -> str:
        """For a reader.

        >>> out_of_time("landmarks", 4.2, 1.3).sentence
        'Landmarks was not tried: it would have taken about 4.2 s, and 1.3 s were left for comparisons.'
        """
        return f"{self.name} was {'given up' if self.given_up else 'not tried'}: {self.why}."


def out_of_time(kind: str, needed: float, left: float) -> LeftOut:
    """For want of time: the seconds that it was guessed to take, and those it could have had."""
    there = f"{in_seconds(left)} were left" if left > 0 else "no time was left"
    why = f"it would have taken about {in_seconds(needed)}, and {there} for comparisons"
    return LeftOut(kind, why, "time")


def took_too_long(kind: str, spent: float) -> LeftOut:
    """Begun and given up after so many seconds."""
    return LeftOut(kind, f"it was not done after {in_seconds(spent)}", "time", given_up=True)


def no_last_fit(needed: float, left: float) -> str:
    """Why a candidate was compared and not fitted to all rows: a guess, which may be off by half,
    against what was left.

    >>> no_last_fit(3.0, 4.0)
    'a fit to all rows would have taken 3 s to 6 s, and 4 s were left'
    """
    there = f"{in_seconds(left)} were left" if left > 0 else "no time was left"
    span = f"{in_seconds(needed)} to {in_seconds(2 * needed)}"
    return f"a fit to all rows would have taken {span}, and {there}"


def in_seconds(value: float) -> str:
    """Two digits; whole ones from ten on.

    >>> in_seconds(0.0314), in_seconds(1.26), in_seconds(31.7), in_seconds(0.0)
    ('0.031 s', '1.3 s', '32 s', '0 s')
    """
    return f"{value:,.0f} s" if value >= 10 or value == 0 else f"{value:.2g} s"
