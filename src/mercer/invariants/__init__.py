"""What the fields of a class must be: declared once beside them, checked whenever an object is
made, whatever made it.

A class says it in `must`, field by field; names in shapes and ranges are other fields (or paths
through them, such as `lift_.n_features_out_`), and where there is no such field they stand for a
size that all who name it share. A frozen value calls `check` from `__post_init__`; of estimators
and maps, whose attributes `fit` sets, the store calls it before it writes and after it has read a
file. So no number reaches a compiled loop, which looks at no bounds, unless its range was looked at
before.
"""

from mercer.invariants.laws import Elsewhere, check, declare, declared, lists_places
from mercer.invariants.samples import Samples
from mercer.invariants.specs import (
    Broken,
    By,
    Bytes,
    Counts,
    Each,
    Either,
    Floats,
    Ints,
    Is,
    Labels,
    Number,
    Said,
    Sizes,
    Spec,
    Text,
    Truths,
    Whole,
)

__all__ = [
    "Broken",
    "By",
    "Bytes",
    "Counts",
    "Each",
    "Either",
    "Elsewhere",
    "Floats",
    "Ints",
    "Is",
    "Labels",
    "Number",
    "Said",
    "Samples",
    "Sizes",
    "Spec",
    "Text",
    "Truths",
    "Whole",
    "check",
    "declare",
    "declared",
    "lists_places",
]
