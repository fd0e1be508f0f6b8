"""Feature maps: explicit ones, random ones, and the table that turns a kernel into one."""
from mercer.lifts.algebra import Chain, Concatenate, Scaled, Tensor
from mercer.lifts.base import Lift
from mercer.lifts.basis import Basis
from mercer.lifts.certificate import Certificate
from mercer.lifts.fourier import RandomFourier
from mercer.lifts.grid import Grid
from mercer.lifts.hermite import Hermite
from mercer.lifts.monomials import Monomials
from mercer.lifts.parabolic import Parabolic, ball_to_halfspace, halfspace_to_ball
from mercer.lifts.regions import Ball, Everything, Halfspace, Nothing
from mercer.lifts.sink import KitchenSink
from mercer.lifts.steps import Jumps, Splines
from mercer.lifts.structure import Identity, NormalizedLift, OnColumnsLift, One, WarpedLift, WeightedLift
from mercer.lifts.subsets import Interactions, Subsets
from mercer.lifts.taylor import Taylor

__all__ = [
    "Ball",
    "Basis",
    "Certificate",
    "Chain",
    "Concatenate",
    "Everything",
    "Grid",
    "Halfspace",
    "Hermite",
    "Identity",
    "Interactions",
    "Jumps",
    "KitchenSink",
    "Lift",
    "Monomials",
    "NormalizedLift",
    "Nothing",
    "OnColumnsLift",
    "One",
    "Parabolic",
    "RandomFourier",
    "Scaled",
    "Splines",
    "Subsets",
    "Taylor",
    "Tensor",
    "WarpedLift",
    "WeightedLift",
    "ball_to_halfspace",
    "halfspace_to_ball",
]
