"""Features as terms of a formula in the user's units: products, functions and jumps of columns are
written out, others by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.lifts import Basis, Identity, Jumps, KitchenSink
from mercer.lifts.polynomial import Interactions, Products, words_of
from mercer.models.sparse.frame import UnitFrame
from mercer.models.sparse.maps import SparseMap
from mercer.models.sparse.stored import LiftedFeatures

LONGEST = 200  # decimal places by which a factor may move a coefficient
POWERS = {"{}": 1, "{}^2": 2, "{}^3": 3}  # patterns of `Basis` that are products


@dataclass(frozen=True)
class Term:
    """factor times what is written: `shown` for readers, `code` for Python, where x[j] is column j
    and phi[i] feature i. In what is shown {0} is the first of `columns`, {n[0]} of `numbers`."""

    factor: float
    shown: str
    code: str
    columns: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()
    functions: tuple[tuple[str, Callable[[Array], Array]], ...] = ()

    def text(self, names: list[str], digits: int = 6) -> str:
        """With names of columns, and so many digits of numbers."""
        told = [f"{v:.{max(digits, 6)}g}" for v in self.numbers]
        return self.shown.format(*(names[j] for j in self.columns), n=told)


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
        for place, (j, a) in enumerate(powers.items()):
            x, c, number = self._shifted(j, place, len(numbers))
            numbers += number
            if size > LONGEST:
                x, c = f"({x}/{{n[{len(numbers)}]}})", f"({c} / {float(self.scale[j])!r})"
                numbers.append(float(self.scale[j]))
            else:
                factor /= float(self.scale[j]) ** a
            shown.append(x if a == 1 else f"{x}^{a}")
            code.append(c if a == 1 else f"{c}**{a}")
        text, python = "*".join(shown) or "1", "*".join(code) or "1.0"
        return Term(factor, text, python, tuple(powers), tuple(numbers))

    def function(self, pattern: str, f: Callable[[Array], Array], j: int) -> Term:
        """f((x_j - shift_j) / scale_j)"""
        scale, name = float(self.scale[j]), pattern.split("(")[0]
        x, c, numbers = self._shifted(j, 0, 0)
        if scale != 1:
            x, numbers = f"{x}/{{n[{len(numbers)}]}}", [*numbers, scale]
        code = f"{name}({c} / {scale!r})"
        return Term(1.0, f"{name}({x})", code, (j,), tuple(numbers), ((name, f),))

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
        return Term(1.0, "1{{{0} < {n[0]}}}", f"(x[{j}] < {t!r})", (j,), (t,))

    def _before(self, j: int, threshold: float) -> float:
        far, scale = float(self.shift[j]), float(self.scale[j])
        t = threshold * scale + far
        while (np.nextafter(t, -np.inf) - far) / scale >= threshold:
            t = float(np.nextafter(t, -np.inf))
        while (t - far) / scale < threshold:
            t = float(np.nextafter(t, np.inf))
        return float(t)


@singledispatch
def terms(lift: Any, units: Units) -> Iterator[Term | None]:
    """One term a feature, in their order; nothing where the lift's features have no words."""
    return iter(())


@terms.register
def _(lift: Products, units: Units) -> Iterator[Term | None]:
    words = words_of(lift.program_)[lift.program_.skip + lift.start_ :]
    weights = np.ones(len(words)) if lift.weights_ is None else lift.weights_[lift.start_ :]
    columns = lift.columns_ if isinstance(lift, Interactions) else range(lift.n_features_in_)
    for word, weight in zip(words, weights.tolist(), strict=True):
        t = units.product(tuple(columns[j] for j in word))
        yield replace(t, factor=t.factor * weight)


@terms.register
def _(lift: Basis, units: Units) -> Iterator[Term | None]:
    for pattern, f in lift.functions_:
        for j in lift.columns_:
            if pattern in POWERS:
                yield units.product((j,) * POWERS[pattern])
            else:
                yield units.function(pattern, f, j)


@terms.register
def _(lift: Jumps, units: Units) -> Iterator[Term | None]:
    for j, thresholds in lift.thresholds_.items():
        for t in thresholds.tolist():
            yield units.jump(j, float(t))


@terms.register
def _(lift: Identity, units: Units) -> Iterator[Term | None]:
    if lift.metric is None:
        yield from (units.product((j,)) for j in range(lift.n_features_in_))


@terms.register
def _(lift: KitchenSink, units: Units) -> Iterator[Term | None]:
    served: list[Term | None] = []
    for part in lift.parts_.values():
        found = list(terms(part, units))
        served += found or [None] * part.n_features_out_
    yield from (served[i] for i in lift.kept_.tolist())


def terms_of(m: SparseMap, ids: Array) -> list[Term]:
    """Those of some features of a map."""
    features = m.features
    units = Units.of(m.frame, len(features.inputs))
    if not isinstance(features, LiftedFeatures):
        return [units.product(word) for word in features.words(ids)]
    if features.phi is None:
        return [units.product((i,)) for i in ids.tolist()]
    lift = features.phi.lift
    found = list(terms(lift, units)) or [None] * features.width
    names = features.names(ids)
    if isinstance(lift, KitchenSink):  # less the name of its part
        names = [name.split("__", 1)[1] for name in names]
    return [found[i] or opaque(i, name) for i, name in zip(ids.tolist(), names, strict=True)]


def worded(m: SparseMap, ids: Array) -> list[str]:
    """Features by what they are in the user's units."""
    inputs = list(m.features.inputs)
    return [t.text(inputs) for t in terms_of(m, ids)]
