"""Numbers in words: as many digits as mean something, and a dash where nothing was measured."""

from __future__ import annotations

import math
import re
import sys
from typing import Any, TypeGuard

from mercer.automl.evaluate import shown_threshold
from mercer.automl.result import FitResult
from mercer.plans import quantity

NOTHING = "–"
LONGEST = 120  # characters of one value from the data
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,14})\.\d{1,30}", re.ASCII)


def finite(value: object) -> TypeGuard[float]:
    """Whether there is a number to show."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def number(value: Any, digits: int = 4) -> str:
    """A number to some significant digits; thousands apart, powers of ten only where they help.

    >>> number(1234567.8), number(0.000123456), number(2.5), number(None), number(6.02e23)
    ('1,234,568', '0.0001235', '2.5', '–', '6.02e23')
    """
    if not finite(value):
        return NOTHING
    if value == 0:
        return "0"
    power = _power(value)
    if power >= 9 or power < -4:
        front, exponent = f"{value:.{digits - 1}e}".split("e")
        return _minus(f"{_trimmed(front)}e{int(exponent)}")
    return _minus(_trimmed(f"{value:,.{max(0, digits - 1 - power)}f}"))


def fixed(value: Any, decimals: int) -> str:
    """A number to the decimals of the column in which it stands.

    >>> fixed(0.84, 3), fixed(-1234.5, 0), fixed(-0.001, 2), fixed(None, 2)
    ('0.840', '−1,234', '0.00', '–')
    """
    if not finite(value):
        return NOTHING
    shown = number(value) if abs(value) >= 1e9 else f"{value:,.{decimals}f}"
    return _minus(shown if shown.strip("-0.,") else shown.lstrip("-"))  # no minus before a zero


def decimals(values: list[float], spans: list[float]) -> int:
    """Decimals that show three digits of the largest value, and two of the typical interval.

    >>> decimals([0.8512], [0.0013]), decimals([48211.0], [310.0]), decimals([0.8512, 0.0001], [])
    (4, 0, 3)
    """
    widths = sorted(span for span in spans if 0 < span < math.inf)
    powers = [_power(width) - 1 for width in widths[len(widths) // 2 :][:1]] + [
        _power(value) - 2 for value in _largest(values)
    ]
    return min(6, max(0, -min(powers))) if powers else 2


def interval(low: Any, high: Any, places: int) -> str:
    """Two ends of an interval.

    >>> interval(0.8312, 0.86, 3)
    '0.831 to 0.860'
    """
    return (
        f"{fixed(low, places)} to {fixed(high, places)}"
        if finite(low) and finite(high)
        else NOTHING
    )


def count(value: Any) -> str:
    """A whole number.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{int(value):,}" if finite(value) else NOTHING


def many(value: int, one: str, more: str | None = None) -> str:
    """A number of things.

    >>> many(1, "class", "classes"), many(2000, "row")
    ('1 class', '2,000 rows')
    """
    return f"{count(value)} {one if value == 1 else more or one + 's'}"


def percent(share: Any) -> str:
    """A share, whole where that is enough.

    >>> percent(0.9), percent(0.8962), percent(0.004)  # a line never breaks before the sign
    ('90\\xa0%', '89.6\\xa0%', '0.4\\xa0%')
    """
    return f"{_trimmed(f'{100 * share:.1f}')}\u00a0%" if finite(share) else NOTHING


def size(n_bytes: Any) -> str:
    """Bytes.

    >>> size(184_320)
    '184 kB'
    """
    return quantity(n_bytes, "B") if finite(n_bytes) else NOTHING


def duration(seconds: Any) -> str:
    """Seconds, in the unit that reads best.

    >>> duration(0.00042), duration(0.042), duration(4.2), duration(61.4), duration(7260)
    ('0.42 ms', '42 ms', '4.2 s', '1 min 1 s', '2 h 1 min')
    """
    if not finite(seconds):
        return NOTHING
    if seconds < 60:
        return (
            f"{number(seconds, 2)} s"
            if seconds >= 1 or seconds <= 0
            else f"{number(1000 * seconds, 2)} ms"
        )
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def decision(e: FitResult) -> str:
    """Of two classes, how a probability becomes a class; empty for others."""
    if not e.decision or not finite(e.decision.get("threshold")):
        return ""
    return f'"{brief(e.decision.get("class"), 40)}" is predicted from a probability {shown_threshold(e.decision["threshold"])} on'


def weight(e: FitResult) -> str:
    """The name of the column that weighs the rows; empty where none does."""
    found = (column.get("name", "") for column in e.columns if column.get("kind") == "weight")
    return str(next(found, ""))


def without(e: FitResult) -> str:
    """What rows lack that were left out; the warnings tell how many lack what."""
    untold = [c.get("n_missing") for c in e.columns if c.get("kind") == "target"][:1]
    if not weight(e) or untold == [e.rows_dropped]:
        return "without a target"
    return "without a weight" if untold == [0] else "without a target or a weight"


def of_class(e: FitResult) -> str:
    """Whose probabilities are judged: those of the second class of two, else of the likeliest.

    >>> from types import SimpleNamespace as Result
    >>> of_class(Result(classes=("lo", "hi"))), of_class(Result(classes=("a", "b", "c")))
    ('of "hi"', 'of the likeliest class')
    """
    return f'of "{brief(e.classes[1], 40)}"' if len(e.classes) == 2 else "of the likeliest class"


def learnt(e: FitResult, most: int = 5) -> str:
    """Which columns weigh most in a metric that was learnt; empty where none was."""
    first = ", ".join(
        f"{brief(name, 40)} ({share:.0%})" for name, share in e.learnt[:most] if share >= 0.005
    )
    share = dict(e.members).get("machine")
    whose = f" of the kernel machine ({percent(share)} of the mean)" if finite(share) else ""
    return f"Columns that weigh most in the learnt metric{whose}: {first}." if first else ""


def difference(value: tuple[float, float, float] | None, places: int) -> str:
    """A difference with its interval.

    >>> difference((0.0123, 0.004, 0.0206), 3)
    '0.012 (0.004 to 0.021)'
    """
    if value is None or not all(map(finite, value)):
        return NOTHING
    return f"{fixed(value[0], places)} ({interval(value[1], value[2], places)})"


def above_one(e: FitResult) -> str:
    """Why a loss can be more than the score itself was; empty where none is."""
    if e.metric != "r2" or not any(finite(loss) and loss > 1 for _, loss, _ in e.importance):
        return ""
    return " A loss above 1 means that without the column predictions are worse than the mean, whose R² is 0."


def sentence(said: str) -> str:
    """A sentence, whether or not it came as one.

    >>> sentence("regression, since the target has 900 values"), sentence("Done.")
    ('Regression, since the target has 900 values.', 'Done.')
    """
    said = said.strip()
    return said[:1].upper() + said[1:] + ("" if said.endswith((".", "!", "?", "…")) else ".")


def plainer(value: object) -> object:
    """A decimal number given as text, with the digits that it means: six.

    >>> plainer("37.189998626708984"), plainer("32.0"), plainer("007.5"), plainer("a1.5")
    ('37.19', '32', '007.5', 'a1.5')
    """
    return (
        number(float(value), 6) if isinstance(value, str) and _DECIMAL.fullmatch(value) else value
    )


def brief(value: object, longest: int = LONGEST) -> str:
    """A value from the data as a short text.

    >>> brief(0.123456789), brief("a" * 9, 5), brief(None), brief(True)
    ('0.1235', 'aaaa…', '–', 'True')
    """
    shown = (
        number(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else NOTHING
        if value is None
        else str(value)
    )
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _largest(values: list[float]) -> list[float]:
    return sorted(abs(value) for value in values if value)[-1:]


def _power(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def _trimmed(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _minus(digits: str) -> str:
    return digits.replace("-", "−", 1) if digits.startswith("-") else digits
