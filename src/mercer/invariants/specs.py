"""What one field must be: arrays of named sizes and ranges, numbers, texts, objects, and lists of
such."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from numbers import Integral, Real
from operator import attrgetter
from typing import Any

import numpy as np

Size = int | str | None  # of one dimension: a number, a name with or without "+ 1" or "- 1", or any
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)(?:\s*([+-])\s*(\d+))?")


class Broken(ValueError):
    """A field is not what its class says it is."""


class Sizes:
    """The object at hand, and the sizes that its fields have named so far."""

    def __init__(self, of: Any, known: dict[str, int] | None = None) -> None:
        self.of, self.known = of, {} if known is None else known

    def value(self, size: Size) -> int | None:
        """The number that a size stands for; None where nobody has said it yet."""
        if size is None or isinstance(size, int):
            return size
        name, sign, step = _parts(size)
        found = self._named(name)
        return None if found is None else found + (int(f"{sign}{step}") if sign else 0)

    def _named(self, name: str) -> int | None:
        if name not in self.known:
            found = at(self.of, name)
            if found is None:
                return None
            if not is_whole(found):
                raise Broken(f"{name} should be a whole number, but is {found!r:.60}")
            self.known[name] = int(found)
        return self.known[name]

    def meet(self, size: Size, actual: int) -> bool:
        """Whether a dimension has its size; the first who names one decides it."""
        expected = self.value(size)
        if expected is None and isinstance(size, str):
            name, sign, step = _parts(size)
            self.known[name] = actual - (int(f"{sign}{step}") if sign else 0)
        return expected is None or expected == actual


@lru_cache(maxsize=1024)
def _parts(size: str) -> tuple[str, str | None, str | None]:
    match = _NAMED.fullmatch(size)
    assert match is not None, size
    return match.groups()  # type: ignore[return-value]


def at(obj: Any, path: str) -> Any:
    """What lies at a path through attributes; None where there is nothing."""
    try:
        return attrgetter(path)(obj)
    except AttributeError:
        return None


def is_whole(v: Any) -> bool:
    return isinstance(v, Integral) and not isinstance(v, bool)


class Spec:
    """What one field must be: `shape` looks at kinds and sizes, `range` at the numbers once all
    sizes are known."""

    ranged = True  # whether every whole number in it has a range

    def shape(self, v: Any, sizes: Sizes) -> None:
        raise NotImplementedError

    def range(self, v: Any, sizes: Sizes) -> None:
        """Nothing to look at."""

    def __or__(self, other: Spec | None) -> Spec:
        return Either(self, Absent() if other is None else other)


class Absent(Spec):
    """None."""

    def shape(self, v: Any, sizes: Sizes) -> None:
        if v is not None:
            raise Broken(f"should be None, but is {type(v).__name__}")


class Either(Spec):
    """One of several."""

    def __init__(self, *specs: Spec) -> None:
        self.specs = specs
        self.ranged = all(s.ranged for s in specs)

    def __or__(self, other: Spec | None) -> Spec:
        return Either(*self.specs, Absent() if other is None else other)

    def _fitting(self, v: Any, sizes: Sizes) -> Spec:
        said = []
        for spec in self.specs:
            try:
                spec.shape(v, Sizes(sizes.of, dict(sizes.known)))
            except Broken as e:
                said.append(str(e))
            else:
                return spec
        raise Broken(said[0] if v is not None else said[-1])

    def shape(self, v: Any, sizes: Sizes) -> None:
        self._fitting(v, sizes).shape(v, sizes)

    def range(self, v: Any, sizes: Sizes) -> None:
        self._fitting(v, sizes).range(v, sizes)


class _Arrays(Spec):
    """An array of some kinds of numbers, with sizes that may be named."""

    kinds = ""
    what = "an array"

    def __init__(self, *sizes: Size) -> None:
        self.sizes = sizes

    def shape(self, v: Any, sizes: Sizes) -> None:
        if (
            type(v) not in (np.ndarray, np.memmap)
            or v.dtype.kind not in self.kinds
            or not v.dtype.isnative
        ):
            raise Broken(
                f"should be {self.what}, but is {v.dtype if isinstance(v, np.ndarray) else type(v).__name__}"
            )
        if v.ndim != len(self.sizes) or not all(
            sizes.meet(s, n) for s, n in zip(self.sizes, v.shape, strict=True)
        ):
            raise Broken(f"has shape {v.shape}, which is not {shown_sizes(self.sizes, sizes)}")


def shown_sizes(sizes: tuple[Size, ...], known: Sizes) -> str:
    parts = [str(s) if s is None or known.value(s) is None else str(known.value(s)) for s in sizes]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})".replace("None", "any")


class Floats(_Arrays):
    """Floating-point numbers, float32 or float64; finite unless said otherwise, and not below
    `low`.

    >>> Floats("n", "d").shape(np.zeros((2, 3)), Sizes(None))
    """

    kinds, what = "f", "an array of float32 or float64"

    def __init__(self, *sizes: Size, finite: bool = True, low: float | None = None) -> None:
        super().__init__(*sizes)
        self.finite, self.low = finite, low

    def shape(self, v: Any, sizes: Sizes) -> None:
        super().shape(v, sizes)
        if v.dtype.itemsize not in (4, 8):
            raise Broken(f"should be {self.what}, but is {v.dtype}")

    def range(self, v: Any, sizes: Sizes) -> None:
        if self.finite and not np.isfinite(v).all():
            raise Broken("holds numbers that are not finite")
        if self.low is not None and v.size and not v.min() >= self.low:
            raise Broken(f"holds {v.min()}, below {self.low}")


class Ints(_Arrays):
    """Whole numbers from `low` up to, and not including, `below`; `distinct` ones where none may
    come twice.

    >>> Ints("d", below="D").range(np.array([0, 7]), Sizes(None, {"D": 8}))
    >>> Ints("d", below="D").range(np.array([0, 8]), Sizes(None, {"D": 8}))
    Traceback (most recent call last):
    mercer.invariants.specs.Broken: holds 8, which is not from 0 to 7
    """

    kinds, what = "i", "an array of whole numbers, int32 or int64"

    def __init__(self, *sizes: Size, low: int = 0, below: Size, distinct: bool = False) -> None:
        super().__init__(*sizes)
        self.low, self.below, self.distinct = low, below, distinct

    def shape(self, v: Any, sizes: Sizes) -> None:
        super().shape(v, sizes)
        if v.dtype.itemsize < 4:
            raise Broken(f"should be {self.what}, but is {v.dtype}")

    def range(self, v: Any, sizes: Sizes) -> None:
        top = sizes.value(self.below)
        if top is None:
            raise Broken(f"has no range: {self.below} is not known")
        if v.size and not (v.min() >= self.low and v.max() < top):
            wrong = v.min() if v.min() < self.low else v.max()
            raise Broken(f"holds {wrong}, which is not from {self.low} to {top - 1}")
        if self.distinct and len(np.unique(v)) < v.size:
            raise Broken("holds a number twice")


class Counts(Ints):
    """Whole numbers of things: from 0 on, and never used as places."""

    def __init__(self, *sizes: Size) -> None:
        super().__init__(*sizes, below=1 << 62)


class Truths(_Arrays):
    """Truth values."""

    kinds, what = "b", "an array of truth values"


class Bytes(_Arrays):
    """Bytes, as of text in UTF-8; never used as places."""

    kinds, what = "u", "an array of bytes"

    def shape(self, v: Any, sizes: Sizes) -> None:
        super().shape(v, sizes)
        if v.dtype.itemsize != 1:
            raise Broken(f"should be {self.what}, but is {v.dtype}")


class Labels(_Arrays):
    """What the user's own labels or names are: of any kind, and never used as places."""

    kinds, what = "biufUSOMm", "an array of labels"

    def range(self, v: Any, sizes: Sizes) -> None:
        if not v.size:
            raise Broken("is empty")


class Whole(Spec):
    """One whole number from `low` up to, and not including, `below`."""

    def __init__(self, low: int = 0, below: Size = 1 << 63) -> None:
        self.low, self.below = low, below

    def shape(self, v: Any, sizes: Sizes) -> None:
        if not is_whole(v):
            raise Broken(f"should be a whole number, but is {v!r:.60}")

    def range(self, v: Any, sizes: Sizes) -> None:
        top = sizes.value(self.below)
        if top is None or not self.low <= v < top:
            raise Broken(
                f"is {v}, which is not from {self.low} to {'?' if top is None else top - 1}"
            )


class Number(Spec):
    """One finite number, from `low` on: a float, or where `whole` an integer too, of which a float
    tells every digit."""

    def __init__(self, low: float = -math.inf, *, finite: bool = True, whole: bool = True) -> None:
        self.low, self.finite, self.whole = low, finite, whole

    def shape(self, v: Any, sizes: Sizes) -> None:
        if not isinstance(v, Real) or isinstance(v, bool):
            raise Broken(f"should be a number, but is {v!r:.60}")
        if isinstance(v, Integral) and not (self.whole and abs(int(v)) <= 1 << 53):
            raise Broken(f"should be a floating-point number, but is the integer {v!r:.60}")
        x = float(v)
        if not (x >= self.low or (math.isnan(x) and not self.finite)) or (
            self.finite and not math.isfinite(x)
        ):
            raise Broken(f"is {v}, which is not a finite number from {self.low} on")


class Each(Spec):
    """A list or tuple of such, of a size that may be named, or of some at least; several specs
    stand for tuples of just so many.

    >>> Each(Whole(), least=1, fixed=True).shape([], Sizes(None))
    Traceback (most recent call last):
    mercer.invariants.specs.Broken: should be a tuple, but is list
    """

    def __init__(self, *of: Spec, size: Size = None, least: int = 0, fixed: bool = False) -> None:
        self.of, self.size, self.least, self.fixed = of, size, least, fixed
        self.ranged = all(s.ranged for s in of)

    def _pairs(self, v: Any) -> Iterator[tuple[Any, Spec]]:
        return zip(v, self.of * len(v) if len(self.of) == 1 else self.of, strict=True)

    def shape(self, v: Any, sizes: Sizes) -> None:
        if not isinstance(v, tuple if self.fixed else list | tuple):
            raise Broken(
                f"should be a {'tuple' if self.fixed else 'list'}, but is {type(v).__name__}"
            )
        if len(v) < self.least:
            raise Broken(f"has {len(v)} parts, not {self.least} or more")
        if not sizes.meet(self.size, len(v)) or len(self.of) not in (1, len(v)):
            raise Broken(f"has {len(v)} parts, not {sizes.value(self.size)}")
        for part, spec in self._pairs(v):
            spec.shape(part, sizes)

    def range(self, v: Any, sizes: Sizes) -> None:
        for part, spec in self._pairs(v):
            spec.range(part, sizes)


class By(Spec):
    """A dict of such, by keys of such."""

    def __init__(self, key: Spec, of: Spec) -> None:
        self.key, self.of = key, of
        self.ranged = key.ranged and of.ranged

    def shape(self, v: Any, sizes: Sizes) -> None:
        if not isinstance(v, dict):
            raise Broken(f"should be a dict, but is {type(v).__name__}")
        for key, value in v.items():
            self.key.shape(key, sizes)
            self.of.shape(value, sizes)

    def range(self, v: Any, sizes: Sizes) -> None:
        for key, value in v.items():
            self.key.range(key, sizes)
            self.of.range(value, sizes)


class Text(Spec):
    """A string, of some where they are named."""

    def __init__(self, *among: str) -> None:
        self.among = among

    def shape(self, v: Any, sizes: Sizes) -> None:
        if not isinstance(v, str) or (self.among and v not in self.among):
            raise Broken(
                f"should be {' or '.join(map(repr, self.among)) or 'text'}, but is {v!r:.60}"
            )


class Is(Spec):
    """An object of a class, or one that inherits from it, known by its name; some of its sizes must
    be those named here."""

    def __init__(self, *classes: str, **sizes: Size) -> None:
        self.classes, self.sizes = classes, sizes

    def shape(self, v: Any, sizes: Sizes) -> None:
        if not any(is_called(c, name) for c in type(v).__mro__ for name in self.classes):
            raise Broken(f"should be {' or '.join(self.classes)}, but is {type(v).__name__}")

    def range(
        self, v: Any, sizes: Sizes
    ) -> None:  # not before: it may be half made while its holder is
        for name, size in self.sizes.items():
            found = at(v, name)
            if found is not None and (not is_whole(found) or not sizes.meet(size, int(found))):
                raise Broken(f"has {name} = {found!r:.60}, where {sizes.value(size)} is needed")


def is_called(cls: type[Any], name: str) -> bool:
    """Whether a class of Mercer's or scikit-learn's has this name, which may begin with those of
    modules."""
    full = f"{cls.__module__}.{cls.__qualname__}"
    return full.startswith(("mercer.", "sklearn.")) and full.endswith(f".{name}")


class Said(Spec):
    """What a user gave, of whatever kind: nothing but `fit` reads it, and looks at it first."""

    def shape(self, v: Any, sizes: Sizes) -> None:
        """Anything goes."""
