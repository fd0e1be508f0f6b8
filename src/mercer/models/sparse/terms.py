"""Features as terms of a formula in the user's units: products, functions and jumps of columns are
written out, others by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import Any, TypeAlias

import numpy as np

from mercer.inputs import Array
from mercer.lifts import Basis, Identity, Jumps, KitchenSink
from mercer.lifts.polynomial import Interactions, Products, kept_weights, kept_words
from mercer.models.sparse.frame import UnitFrame
from mercer.models.sparse.implicit import ProductFeatures
from mercer.models.sparse.maps import SparseMap
from mercer.models.sparse.stored import LiftedFeatures

LONGEST = 200  # decimal places by which a factor may move a coefficient
JUMP = "1{{{0} < {n[0]}}}"  # as it is shown
POWERS = {"{}": 1, "{}^2": 2, "{}^3": 3}  # patterns of `Basis` that are products
OPERATORS, NUMERIC = ("*", "^", "+", "/", " - "), "0123456789.-"  # in names: read as arithmetic


@dataclass(frozen=True)
class Term:
    """factor times what is written: `shown` for readers, `code` for Python, where x[j] is column j
    and phi[i] feature i. In what is shown {0} is the first of `columns`, {n[0]} of `numbers`."""

    factor: float
    shown: str
    code: str
    columns: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()
    spans: tuple[float, ...] = ()  # of the columns that the numbers are compared with
    functions: tuple[tuple[str, Callable[[Array], Array]], ...] = ()

    @property
    def jumps(self) -> bool:
        """Whether it is 1{x < t}, t the only of `numbers`."""
        return self.shown == JUMP

    def text(self, names: list[str], digits: int = 6) -> str:
        """With names of columns, and so many digits of numbers."""
        least = max(digits, 6)
        pairs = zip(self.numbers, self.spans, strict=True)
        told = [_told(v, s, least, self.jumps) for v, s in pairs]
        return self.shown.format(*(names[j] for j in self.columns), n=told)


def quoted(name: str) -> str:
    """The name of a column as a formula can hold it: one that reads as arithmetic, or as nothing,
    between quotation marks.

    >>> [quoted(name) for name in ("age", "in come", "capital-gain", "a*b", "2nd", "")]
    ['age', 'in come', 'capital-gain', '"a*b"', '"2nd"', '""']
    """
    odd = not name.strip() or name[0] in NUMERIC or any(sign in name for sign in OPERATORS)
    return f'"{name}"' if odd else name


def _told(value: float, span: float, digits: int, down: bool = False) -> str:
    """So many digits of the span; never more than the value where they go down, as a value that is
    the threshold itself is not below it.

    >>> _told(2 / 3, 2 / 3, 6), _told(2 / 3, 2 / 3, 6, down=True), _told(1000000.123456789, 2.0, 6)
    ('0.666667', '0.666666', '1000000.12346')
    """
    beyond = min(abs(value) / span, 1e17) if span > 0 else 0.0
    digits = min(digits + (int(np.ceil(np.log10(beyond))) if beyond > 1 else 0), 17)
    told = f"{value:.{digits}g}"
    if down and float(told) > value:
        last = int(np.floor(np.log10(abs(value)))) - digits + 1
        told = f"{float(told) - 10.0**last:.{digits}g}"
    return told


def opaque(i: int, name: str) -> Term:
    """A feature that has no other words than its name."""
    return Term(1.0, name.replace("{", "{{").replace("}", "}}"), f"phi[{i}]")


@dataclass(frozen=True, eq=False)
class Units:
    """The columns as a lift saw them, told in the user's units."""

    shift: Array
    scale: Array

    @classmethod
    def of(cls, frame: UnitFrame | None, d: int) -> Units:
        return cls(np.zeros(d), np.ones(d)) if frame is None else cls(frame.shift, frame.scale)

    def product(self, word: tuple[int, ...]) -> Term:
        """prod_j ((x_j - shift_j) / scale_j)^a_j, the scales taken out where numbers reach."""
        powers = Counter(word)
        size = sum(a * abs(np.log10(self.scale[j])) for j, a in powers.items())
        shown, code, factor = [], [], 1.0
        numbers: list[float] = []
        spans: list[float] = []
        for place, (j, a) in enumerate(powers.items()):
            x, c, number = self._shifted(j, place, len(numbers))
            numbers, spans = numbers + number, spans + [float(self.scale[j])] * len(number)
            if size > LONGEST:
                x, c = f"({x}/{{n[{len(numbers)}]}})", f"({c} / {float(self.scale[j])!r})"
                numbers.append(float(self.scale[j]))
                spans.append(float(self.scale[j]))
            else:
                factor /= float(self.scale[j]) ** a
            shown.append(x if a == 1 else f"{x}^{a}")
            code.append(c if a == 1 else f"{c}**{a}")
        text, python = "*".join(shown) or "1", "*".join(code) or "1.0"
        return Term(factor, text, python, tuple(powers), tuple(numbers), tuple(spans))

    def function(self, pattern: str, f: Callable[[Array], Array], j: int) -> Term:
        """f((x_j - shift_j) / scale_j)"""
        scale, name = float(self.scale[j]), pattern.split("(")[0]
        x, c, numbers = self._shifted(j, 0, 0)
        if scale != 1:
            x, numbers = f"{x}/{{n[{len(numbers)}]}}", [*numbers, scale]
        code = f"{name}({c} / {scale!r})"
        spans = (scale,) * len(numbers)
        return Term(1.0, f"{name}({x})", code, (j,), tuple(numbers), spans, ((name, f),))

    def _shifted(self, j: int, place: int, number: int) -> tuple[str, str, list[float]]:
        """x_j - shift_j as it is shown and coded, and the number shown."""
        far = float(self.shift[j])
        if not far:
            return f"{{{place}}}", f"x[{j}]", []
        sign = "-" if far > 0 else "+"
        return f"({{{place}}} {sign} {{n[{number}]}})", f"(x[{j}] - {far!r})", [abs(far)]

    def jump(self, j: int, threshold: float) -> Term:
        """1{x_j < t}, t the least number that the frame takes to the threshold or beyond."""
        t = self._before(j, threshold)
        return Term(1.0, JUMP, f"(x[{j}] < {t!r})", (j,), (t,), (float(self.scale[j]),))

    def _before(self, j: int, threshold: float) -> float:
        far, scale = float(self.shift[j]), float(self.scale[j])
        t = threshold * scale + far
        while (np.nextafter(t, -np.inf) - far) / scale >= threshold:
            t = float(np.nextafter(t, -np.inf))
        while (t - far) / scale < threshold:
            t = float(np.nextafter(t, np.inf))
        return float(t)

    def weighted(self, word: tuple[int, ...], weight: float) -> Term:
        """A product that the lift multiplies by a number."""
        t = self.product(word)
        return replace(t, factor=t.factor * weight)


# one a feature, in their order, written only when it is called: a model keeps few of many
Written: TypeAlias = Callable[[], Term] | None


@singledispatch
def terms(lift: Any, units: Units) -> Iterator[Written]:
    """The terms of a lift's features; nothing where they have no words."""
    return iter(())


@terms.register
def _(lift: Products, units: Units) -> Iterator[Written]:
    words, given = kept_words(lift), kept_weights(lift)
    weights = np.ones(len(words)) if given is None else given
    columns = lift.columns_ if isinstance(lift, Interactions) else range(lift.n_features_in_)
    for word, weight in zip(words, weights.tolist(), strict=True):
        yield partial(units.weighted, tuple(columns[j] for j in word), weight)


@terms.register
def _(lift: Basis, units: Units) -> Iterator[Written]:
    for pattern, f in lift.functions_:
        for j in lift.columns_:
            if pattern in POWERS:
                yield partial(units.product, (j,) * POWERS[pattern])
            else:
                yield partial(units.function, pattern, f, j)


@terms.register
def _(lift: Jumps, units: Units) -> Iterator[Written]:
    for j, thresholds in lift.thresholds_.items():
        for t in thresholds.tolist():
            yield partial(units.jump, j, float(t))


@terms.register
def _(lift: Identity, units: Units) -> Iterator[Written]:
    if lift.metric is None:
        yield from (partial(units.product, (j,)) for j in range(lift.n_features_in_))


@terms.register
def _(lift: KitchenSink, units: Units) -> Iterator[Written]:
    served: list[Written] = []
    for part in lift.parts_.values():
        found = list(terms(part, units))
        served += found or [None] * part.n_features_out_
    yield from (served[i] for i in lift.kept_.tolist())


def terms_of(m: SparseMap, ids: Array) -> list[Term]:
    """Those of some features of a map."""
    features = m.features
    units = Units.of(m.frame, len(features.inputs))
    if isinstance(features, ProductFeatures):
        return [units.product(word) for word in features.words(ids)]
    assert isinstance(features, LiftedFeatures)
    if features.phi is None:
        return [units.product((i,)) for i in ids.tolist()]
    lift = features.phi.lift
    found: list[Written] = list(terms(lift, units)) or [None] * features.width
    names = features.names(ids)
    if isinstance(lift, KitchenSink):  # less the name of its part
        names = [name.split("__", 1)[1] for name in names]
    pairs = zip(ids.tolist(), names, strict=True)
    return [opaque(i, name) if (t := found[i]) is None else t() for i, name in pairs]


def worded(m: SparseMap, ids: Array) -> list[str]:
    """Features by what they are in the user's units."""
    inputs = list(m.features.inputs)
    return [t.text(inputs) for t in terms_of(m, ids)]
