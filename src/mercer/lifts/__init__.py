"""Feature maps: explicit ones, random ones, and the table that turns a kernel into one."""
from mercer.lifts.algebra import Chain, Concatenate, Scaled, Tensor
from mercer.lifts.base import Lift

__all__ = ["Chain", "Concatenate", "Lift", "Scaled", "Tensor"]
