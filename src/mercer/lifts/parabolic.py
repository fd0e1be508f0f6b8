"""The parabolic lift: on the paraboloid, balls are halfspaces."""
from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix
from mercer.kernels import Constant, Linear
from mercer.lifts.algebra import unique
from mercer.lifts.base import Lift
from mercer.lifts.regions import Ball, Everything, Halfspace, Nothing, Region
from mercer.pairs.side import square_norms
from mercer.store import register


def ball_to_halfspace(c: Any, r: float, complement: bool = False) -> Halfspace:
    """The halfspace with normal (2c, -1) and offset |c|^2 - r^2.

    |x - c| <= r exactly where (normal, phi(x)) >= offset.

    Parameters
    ----------
    c : array-like of shape (d,)
        The centre.
    r : float
        The radius.
    complement : bool, default=False
        Take that of |x - c| > r.

    Examples
    --------
    >>> ball_to_halfspace([1.0, 0.0], 2.0)
    Halfspace(normal=(2.0, 0.0, -1.0), offset=-3.0, strict=False)
    """
    ball = Ball(c, r)
    return (~ball if complement else ball).lifted()


def halfspace_to_ball(normal: Any, offset: float, strict: bool = False) -> Region:
    """The rows x with (normal, phi(x)) >= offset (> with `strict`), as a region of R^d.

    A ball where the last component of the normal is negative, the outside of one where it is
    positive, a halfspace where it is zero; nothing or everything where no or every x will do.
    Of a linear model that decides by coef_ and intercept_: `halfspace_to_ball(coef_,
    -intercept_)`.

    Parameters
    ----------
    normal : array-like of shape (d + 1,)
        The normal.
    offset : float
        The offset.
    strict : bool, default=False
        Whether the boundary is left out.

    Examples
    --------
    >>> halfspace_to_ball((2.0, 0.0, -1.0), -3.0)
    Ball(centre=(1.0, 0.0), radius=2.0, complement=False, strict=False)
    >>> halfspace_to_ball((0.0, 0.0, -1.0), 1.0)
    Nothing(d=2)
    """
    lifted = Halfspace(normal, offset, strict)
    *a, last = lifted.normal
    if not a:
        raise ValueError(f"normal must have d + 1 >= 2 components, the last that of |x|^2, got {normal!r}.")
    return _curved(np.asarray(a), last, lifted) if last else _flat(tuple(a), lifted)


def _flat(a: tuple[float, ...], lifted: Halfspace) -> Region:
    if any(a):
        return Halfspace(a, lifted.offset, lifted.strict)
    return Everything(len(a)) if lifted.contains([[0.0] * (len(a) + 1)])[0] else Nothing(len(a))


def _curved(a: Array, last: float, lifted: Halfspace) -> Region:
    """(a, x) + last |x|^2 >= offset, over last: |x - c|^2 <= or >= r^2 with c = -a / (2 last),
    r^2 = |c|^2 + offset / last.
    """
    outside, centre = last > 0, -a / (2 * last)
    square = float(centre @ centre) + lifted.offset / last
    if square < 0:
        return Everything(len(a)) if outside else Nothing(len(a))
    return Ball(tuple(centre.tolist()), math.sqrt(square), outside, lifted.strict)


@register("lifts.Parabolic")
class Parabolic(Lift):
    """phi(x) = (x_1, ..., x_d, |x|^2), of the kernel x'z + |x|^2 |z|^2.

    A linear rule on these features cuts a ball, the outside of one or a halfspace out of R^d,
    and every one of them is such a rule: `ball_to_halfspace(c, r)` and
    `halfspace_to_ball(normal, offset)` are the translation.


    Examples
    --------
    >>> phi = Parabolic().fit([[1.0, 2.0]])
    >>> phi.transform([[1.0, 2.0]]), list(phi.get_feature_names_out())
    (array([[1., 2., 5.]]), ['x0', 'x1', '|x|^2'])
    >>> phi.kernel_
    Linear() + Constant().weighted(square_norms)
    """

    sparse: ClassVar[bool] = True
    ball_to_halfspace = staticmethod(ball_to_halfspace)
    halfspace_to_ball = staticmethod(halfspace_to_ball)

    def _learn(self, X: Matrix) -> None:
        self.n_features_out_ = X.shape[1] + 1
        self.kernel_ = Linear() + Constant().weighted(square_norms)

    def _map(self, X: Matrix) -> Matrix:
        with np.errstate(over="ignore"):  # the square of a huge number is infinite, as elsewhere in NumPy
            square = square_norms(X).astype(X.dtype)[:, None]
        return sp.hstack([X, type(X)(square)], format="csr") if sp.issparse(X) else np.concatenate([X, square], axis=1)

    def _names(self, inputs: list[str]) -> list[str]:
        return unique([*inputs, "|x|^2"])
