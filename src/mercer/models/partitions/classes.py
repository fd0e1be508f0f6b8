"""The classes of targets in partitions, and what each weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.engines.partitions import Partitions, Place
from mercer.engines.tree import fold
from mercer.inputs import Array
from mercer.models.settings import class_weights


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """Classes in order, and the weight of the rows of each."""

    classes: Array
    totals: Array

    def __add__(self, o: ClassTotals) -> ClassTotals:
        classes, at = np.unique(np.concatenate([self.classes, o.classes]), return_inverse=True)
        return ClassTotals(classes, np.bincount(at, np.concatenate([self.totals, o.totals])))

    def arrays(self) -> dict[str, Array]:
        text = self.classes.dtype == object
        return {
            "classes": self.classes.astype(str) if text else self.classes,
            "totals": self.totals,
        }

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Self:
        text = arrays["classes"].dtype.kind == "U"
        return cls(
            arrays["classes"].astype(object) if text else arrays["classes"], arrays["totals"]
        )

    def factors(self, given: Any) -> Array:
        """Of the classes, by class_weight."""
        return class_weights(given, self.classes, np.arange(len(self.classes)), self.totals)


@dataclass(frozen=True)
class GatherClasses:
    """The classes of a partition, among rows of positive weight."""

    kind = ClassTotals
    identity = "classes"

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> ClassTotals:
        values = np.asarray(y)
        if values.shape != (len(X),):
            raise ValueError(f"y must have one class a row, got shape {values.shape}.")
        w = np.ones(len(values)) if weight is None else np.asarray(weight, np.float64)
        if not (np.isfinite(w).all() and (w >= 0).all()):
            raise ValueError("sample_weight must be numbers >= 0.")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError("y contains NaN or infinity; fill or drop such rows first.")
        values = values.astype(str).astype(object) if _texts(values[w > 0]) else values
        classes, at = np.unique(values[w > 0], return_inverse=True)
        return ClassTotals(classes, np.bincount(at, w[w > 0], minlength=len(classes)))


def _texts(values: Array) -> bool:
    if values.dtype.kind != "O":
        return values.dtype.kind == "U"
    wrong = next((v for v in values if not isinstance(v, str)), None)
    if wrong is not None:
        raise ValueError(f"y holds {type(wrong).__name__} among texts; give classes of one type.")
    return True


def classes_of(data: Partitions) -> ClassTotals:
    """One pass over the targets."""
    found = fold(data, GatherClasses())
    check_classification_targets(found.classes)
    if len(found.classes) < 2:
        raise ValueError(
            f"y has {len(found.classes)} class among rows of positive weight; give rows of at least two classes."
        )
    return found
