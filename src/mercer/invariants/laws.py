"""What classes say of their fields, and the look at all fields of an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mercer.invariants.specs import Broken, Sizes, Spec, at, is_whole


@lru_cache(maxsize=1024)
def declared(cls: Any) -> dict[str, Spec]:
    """What a class and those it inherits from say of their fields."""
    said = [
        _elsewhere(c).must if _elsewhere(c) else vars(c).get("must", {})
        for c in reversed(cls.__mro__)
    ]
    return {name: spec for must in said for name, spec in must.items()}


class Elsewhere(NamedTuple):
    """What a class that is not ours must be, and a function for what takes more than a line to
    say."""

    must: Mapping[str, Spec]
    laws: Callable[[Any], str | None]


ELSEWHERE: dict[
    str, Elsewhere
] = {}  # by the package and the name of the class, which is not imported for that


def declare(cls: Any, laws: Callable[[Any], str | None] = lambda obj: None, **must: Spec) -> None:
    """Say it of a class that cannot say it itself: a named tuple, or by "package.Name" one of
    another package."""
    ELSEWHERE[cls if isinstance(cls, str) else _short(cls)] = Elsewhere(must, laws)


def _short(cls: type[Any]) -> str:
    return f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"


def _elsewhere(cls: type[Any]) -> Any:
    return ELSEWHERE.get(_short(cls))


def check(obj: Any) -> None:
    """Look at every field that the class of an object declares: ValueError, with its name, where
    one is not so.

    An object may have a method `_laws` beside, for what takes more than a line to say: it returns
    what is wrong, or None.

    >>> from mercer.invariants import Floats, Ints, Whole
    >>> class Sketch:
    ...     must = dict(bins=Ints("d", below="D"), signs=Floats("d"), D=Whole(1))
    ...     def __init__(self, bins, signs, D):
    ...         self.bins, self.signs, self.D = bins, signs, D
    ...         check(self)
    >>> Sketch(np.array([0, 4]), np.ones(2), 4)
    Traceback (most recent call last):
    mercer.invariants.specs.Broken: Sketch.bins holds 4, which is not from 0 to 3; give what the class asks for, or fit it again.
    """
    cls: Any = type(obj)
    sizes, found = (
        Sizes(obj),
        [(name, spec, at(obj, name)) for name, spec in declared(cls).items() if _has(obj, name)],
    )
    for look in ("shape", "range"):
        for name, spec, v in found:
            try:
                getattr(spec, look)(v, sizes)
            except Broken as e:
                raise Broken(
                    f"{cls.__name__}.{name} {e}; give what the class asks for, or fit it again."
                ) from None
    for law in _laws(cls) if _is_whole_object(obj) else ():
        try:
            wrong = law(obj)
        except AttributeError as e:
            wrong = f"lacks a part of it{f', {e.name}' if e.name else ''}"
        if wrong:
            raise Broken(f"{cls.__name__} {wrong}; fit it again.")


@lru_cache(maxsize=1024)
def _laws(cls: Any) -> tuple[Callable[[Any], str | None], ...]:
    """Those of the class and of all that it inherits from."""
    return tuple(
        _elsewhere(c).laws if _elsewhere(c) else vars(c)["_laws"]
        for c in cls.__mro__
        if _elsewhere(c) or "_laws" in vars(c)
    )


def _is_whole_object(obj: Any) -> bool:
    """Whether it is a value, or an estimator or map that was fitted."""
    return not hasattr(obj, "fit") or any(name.endswith("_") for name in vars(obj))


def _has(obj: Any, name: str) -> bool:
    return name in vars(obj) if hasattr(obj, "__dict__") else hasattr(obj, name)


def lists_places(v: Any) -> bool:
    """Whether a value is an array of whole numbers, or lists some: they may be used as places, so
    they need a range.

    >>> lists_places([np.arange(3)]), lists_places({2: 0.5}), lists_places((1.5, "a")), lists_places(7)
    (True, True, False, False)
    """
    if isinstance(v, np.ndarray):
        return v.dtype.kind in "iu" and v.ndim > 0
    if isinstance(v, list | tuple | set | frozenset):
        return any(is_whole(x) or lists_places(x) for x in v)
    return isinstance(v, dict) and any(is_whole(k) or lists_places(x) for k, x in v.items())
