"""Feature maps: explicit ones, random ones, and the table that turns a kernel into one."""
from mercer.lifts.algebra import Chain, Concatenate, Scaled, Tensor
from mercer.lifts.base import Lift
from mercer.lifts.basis import Basis
from mercer.lifts.certificate import Certificate
from mercer.lifts.fourier import RandomFourier
from mercer.lifts.grid import Grid
from mercer.lifts.hashed import HashedFeatures
from mercer.lifts.hermite import Hermite
from mercer.lifts.kernel import KernelLift
from mercer.lifts.maclaurin import Maclaurin
from mercer.lifts.monomials import Interactions, Monomials, Subsets
from mercer.lifts.nystrom import Nystrom
from mercer.lifts.parabolic import Parabolic, ball_to_halfspace, halfspace_to_ball
from mercer.lifts.projections import GaussianProjection, SparseProjection
from mercer.lifts.regions import Ball, Everything, Halfspace, Nothing
from mercer.lifts.sink import KitchenSink
from mercer.lifts.sketches import ArcCosineFeatures, PositiveFeatures, SketchedTensor, TensorSketch
from mercer.lifts.steps import Jumps, Splines
from mercer.lifts.structure import Identity, NormalizedLift, OnColumnsLift, One, WarpedLift, WeightedLift
from mercer.lifts.taylor import Taylor

__all__ = [
    "ArcCosineFeatures",
    "Ball",
    "Basis",
    "Certificate",
    "Chain",
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
    "Lift",
    "Maclaurin",
    "Monomials",
    "NormalizedLift",
    "Nothing",
    "Nystrom",
    "OnColumnsLift",
    "One",
    "Parabolic",
    "PositiveFeatures",
    "RandomFourier",
    "Scaled",
    "SketchedTensor",
    "SparseProjection",
    "Splines",
    "Subsets",
    "Taylor",
    "Tensor",
    "TensorSketch",
    "WarpedLift",
    "WeightedLift",
    "ball_to_halfspace",
    "halfspace_to_ball",
]
