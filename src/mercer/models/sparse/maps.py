"""From rows to a dictionary of features: columns to [-1, 1], the lift fitted, its features held or
swept; and the map that a fitted model keeps of it."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.inputs import Array, Table
from mercer.invariants import Is, check
from mercer.lifts import KitchenSink
from mercer.lifts.polynomial import Products
from mercer.models.maps import FittedMap
from mercer.models.settings import LiftSetting
from mercer.models.sparse.dictionary import Dictionary, Features
from mercer.models.sparse.frame import UnitFrame
from mercer.models.sparse.implicit import ProductFeatures, implicit, sweepable
from mercer.models.sparse.problem import SparseSettings, WeighedRows
from mercer.models.sparse.stored import MOST_PAIRED, LiftedFeatures, StoredDictionary
from mercer.models.sparse.streamed import StreamedFeatures, finite
from mercer.plans import quantity
from mercer.store import register

FULL = 0.2  # of the entries of sparse rows: from so many on they are swept like dense ones


@register("sparse.SparseMap")
@dataclass(frozen=True, eq=False)
class SparseMap:
    """Features of any rows, a few at a time: those of a lift, of columns in a frame."""

    frame: UnitFrame | None
    features: Features

    must = dict(frame=Is("UnitFrame") | None, features=Is("LiftedFeatures", "ProductFeatures"))

    def __post_init__(self) -> None:
        check(self)

    @property
    def width(self) -> int:
        """D"""
        return self.features.width

    def framed(self, rows: Table) -> Table:
        return rows if self.frame is None else self.frame(rows)

    def columns(self, rows: Table, ids: Array) -> Array:
        """Features `ids` of rows in the user's units, (m, k) in float64."""
        return self.features.columns(self.framed(rows), ids)

    def names(self, ids: Array) -> list[str]:
        return self.features.names(ids)


def framed(lift: LiftSetting) -> bool:
    """Whether a lift multiplies columns, or serves all kinds of functions of them: what it makes
    of units that were not chosen for it would depend on them. Lifts of one's own thresholds,
    knots, functions or bandwidths read the user's units."""
    return isinstance(lift, KitchenSink) or (
        isinstance(lift, Products) and getattr(lift, "weights", None) is None
    )


def dictionary_of(s: SparseSettings, p: WeighedRows) -> tuple[SparseMap, Dictionary]:
    """The features of rows, by a lift that is fitted to them, and what is kept for other rows."""
    lift = s.map_for(p.rows)
    frame = UnitFrame.of(p.rows) if s.scale is not None and framed(lift) else None
    rows = p.rows if frame is None else frame(p.rows)
    if lift is None:
        features: Features = LiftedFeatures(None, rows.width, rows.columns)
    else:
        phi = FittedMap.fit(lift, rows, s.memory, p.y)
        stored = LiftedFeatures(phi, phi.width, rows.columns)
        features = ProductFeatures(phi.lift) if swept(phi, rows) else stored
    return SparseMap(frame, features), held(s, features, rows, p)


def swept(phi: FittedMap, rows: Table) -> bool:
    """Whether features are products of columns, too many for their Gram matrix: sweeps are then
    faster than reading them, but for rows that are mostly zeros."""
    if phi.width <= MOST_PAIRED or not sweepable(phi.lift):
        return False
    return not rows.sparse or rows.data.nnz > FULL * len(rows) * rows.width


def held(s: SparseSettings, features: Features, rows: Table, p: WeighedRows) -> Dictionary:
    """Products of columns as sweeps find them, or all features of rows, which may be in a frame,
    in memory; ValueError, with their size, where time or memory does not hold them."""
    if isinstance(features, ProductFeatures):
        return implicit(features, rows, p.w, s.scale == "unit")
    assert isinstance(features, LiftedFeatures)
    if beyond(s, features, rows):
        check_streamed(s, features, rows, p)
        return StoredDictionary(StreamedFeatures(features, rows), p.w, features, s.scale == "unit")
    F = finite(features.all(rows))
    return StoredDictionary(F, p.w, features, s.scale == "unit", not p.classes)


def beyond(s: SparseSettings, features: LiftedFeatures, rows: Table) -> bool:
    """Whether features are a dense array that the limit of memory does not hold."""
    if features.phi is None or rows.sparse or rows.items:
        return False
    return 8.0 * len(rows) * features.width > s.memory


def check_streamed(
    s: SparseSettings, features: LiftedFeatures, rows: Table, p: WeighedRows
) -> None:
    """Refuse what has no Gram matrix that is summed over the rows: classes, and more features than
    its memory or time allows."""
    if not p.classes and features.width <= MOST_PAIRED and 8.0 * features.width**2 <= s.memory:
        return
    size = quantity(8.0 * len(rows) * features.width, "B")
    told = f"{features.width:,} features of {len(rows):,} rows take {size}"
    raise ValueError(
        f"the lift's {told}, more than memory_limit ({quantity(s.memory, 'B')}); "
        "raise it, or use a smaller lift, such as Monomials of a lower degree."
    )


def again(s: SparseSettings, m: SparseMap, p: WeighedRows) -> Dictionary:
    """The same features of other rows, of which there are some."""
    return held(s, m.features, m.framed(p.rows), p)
