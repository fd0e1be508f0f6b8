"""What classes of scikit-learn that our maps hold must be: their transforms look at no sizes."""
from __future__ import annotations

from typing import Any

from scipy.interpolate import BSpline

from mercer.invariants import Broken, Each, Floats, Sizes, Spec, Text, Whole, declare

OUTSIDE = {"sklearn.SplineTransformer": "sklearn.preprocessing"}  # what files may hold, and where it is


class Spline(Spec):
    """One of SciPy's, whose coefficients are those of a whole basis: (knots - degree - 1, splines)."""

    def shape(self, v: Any, sizes: Sizes) -> None:
        if type(v) is not BSpline or not sizes.meet("degree", int(v.k)) or v.axis != 0:
            raise Broken(f"should be a spline of its degree, but is {type(v).__name__}")
        Floats(len(v.t) - v.k - 1, "splines").shape(v.c, sizes)

    def range(self, v: Any, sizes: Sizes) -> None:
        for part in (v.t, v.c):
            Floats(*part.shape).range(part, sizes)


def _splines(s: Any) -> str | None:
    size = s.n_features_in_ * (s.bsplines_[0].c.shape[1] - 1 + bool(s.include_bias))
    return None if size == s.n_features_out_ else f"has {size} splines for {s.n_features_out_} features"


declare(
    "sklearn.SplineTransformer", _splines, bsplines_=Each(Spline(), size="n_features_in_"), degree=Whole(0, 1 << 16),
    n_features_in_=Whole(1), n_features_out_=Whole(1),
    order=Text("C", "F"), extrapolation=Text("error", "constant", "linear", "continue", "periodic"),
)  # fmt: skip
