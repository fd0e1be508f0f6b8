"""Feature maps: explicit ones, random ones, and the table that turns a kernel into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mercer.rooms import entered

if TYPE_CHECKING:
    from mercer.lifts.algebra import Concatenate, Scaled, Tensor
    from mercer.lifts.bags import OverSetsLift
    from mercer.lifts.base import Lift
    from mercer.lifts.certificate import Certificate
    from mercer.lifts.chain import Chain
    from mercer.lifts.columnwise import Basis, Jumps
    from mercer.lifts.fourier import RandomFourier
    from mercer.lifts.gaussian import Hermite, Taylor
    from mercer.lifts.grid import Grid
    from mercer.lifts.hashed import HashedFeatures
    from mercer.lifts.homogeneous import AdditiveChi2Features, Chi2Features
    from mercer.lifts.kernel import KernelLift
    from mercer.lifts.leaves import Leaves
    from mercer.lifts.maclaurin import Maclaurin
    from mercer.lifts.nystrom import Nystrom
    from mercer.lifts.parabolic import (
        Ball,
        Everything,
        Halfspace,
        Nothing,
        Parabolic,
        ball_to_halfspace,
        halfspace_to_ball,
    )
    from mercer.lifts.polynomial import Interactions, Monomials, Subsets
    from mercer.lifts.projections import GaussianProjection, SparseProjection
    from mercer.lifts.sink import KitchenSink
    from mercer.lifts.sketches import (
        ArcCosineFeatures,
        PositiveFeatures,
        SketchedTensor,
        TensorSketch,
    )
    from mercer.lifts.splines import Splines
    from mercer.lifts.strings import StringFeatures
    from mercer.lifts.structure import (
        Identity,
        MappedLift,
        NormalizedLift,
        OnColumnsLift,
        One,
        WarpedLift,
        WeightedLift,
    )
    from mercer.text.ngrams import NGrams

__all__ = [
    "AdditiveChi2Features",
    "ArcCosineFeatures",
    "Ball",
    "Basis",
    "Certificate",
    "Chain",
    "Chi2Features",
    "Concatenate",
    "Everything",
    "GaussianProjection",
    "Grid",
    "Halfspace",
    "HashedFeatures",
    "Hermite",
    "Identity",
    "Interactions",
    "Jumps",
    "KernelLift",
    "KitchenSink",
    "Leaves",
    "Lift",
    "Maclaurin",
    "MappedLift",
    "Monomials",
    "NGrams",
    "NormalizedLift",
    "Nothing",
    "Nystrom",
    "OnColumnsLift",
    "OverSetsLift",
    "One",
    "Parabolic",
    "PositiveFeatures",
    "RandomFourier",
    "Scaled",
    "SketchedTensor",
    "SparseProjection",
    "Splines",
    "StringFeatures",
    "Subsets",
    "Taylor",
    "Tensor",
    "TensorSketch",
    "WarpedLift",
    "WeightedLift",
    "ball_to_halfspace",
    "halfspace_to_ball",
]
ROOMS = {
    ".algebra": ("Concatenate", "Scaled", "Tensor"),
    ".bags": ("OverSetsLift",),
    ".base": ("Lift",),
    ".certificate": ("Certificate",),
    ".chain": ("Chain",),
    ".columnwise": ("Basis", "Jumps"),
    ".fourier": ("RandomFourier",),
    ".gaussian": ("Hermite", "Taylor"),
    ".grid": ("Grid",),
    ".hashed": ("HashedFeatures",),
    ".homogeneous": ("AdditiveChi2Features", "Chi2Features"),
    ".kernel": ("KernelLift",),
    ".leaves": ("Leaves",),
    ".maclaurin": ("Maclaurin",),
    ".nystrom": ("Nystrom",),
    ".parabolic": (
        "Ball",
        "Everything",
        "Halfspace",
        "Nothing",
        "Parabolic",
        "ball_to_halfspace",
        "halfspace_to_ball",
    ),
    ".polynomial": ("Interactions", "Monomials", "Subsets"),
    ".projections": ("GaussianProjection", "SparseProjection"),
    ".sink": ("KitchenSink",),
    ".sketches": ("ArcCosineFeatures", "PositiveFeatures", "SketchedTensor", "TensorSketch"),
    ".splines": ("Splines",),
    ".strings": ("StringFeatures",),
    ".structure": (
        "Identity",
        "MappedLift",
        "NormalizedLift",
        "OnColumnsLift",
        "One",
        "WarpedLift",
        "WeightedLift",
    ),
    "mercer.text.ngrams": ("NGrams",),
}
__getattr__, __dir__ = entered(__name__, ROOMS)
