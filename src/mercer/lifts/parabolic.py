"""The parabolic lift: on the paraboloid, balls are halfspaces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mercer.inputs import Array, Matrix
from mercer.kernels import Constant, Linear
from mercer.lifts.algebra import unique
from mercer.lifts.base import Lift
from mercer.pairs.side import square_norms
from mercer.store import register


def _vector(v: ArrayLike, name: str) -> tuple[float, ...]:
    out = np.ravel(np.asarray(v, np.float64))  # also the (1, D) coefficients of a linear model
    if not len(out) or not np.isfinite(out).all():
        raise ValueError(f"{name} must hold one or more finite numbers, got {v!r}.")
    return tuple(out.tolist())


def _rows(X: ArrayLike, d: int) -> Array:
    rows = np.asarray(X, np.float64)
    if rows.ndim != 2 or rows.shape[1] != d:
        raise ValueError(f"X must hold rows of {d} columns, but its shape is {rows.shape}.")
    return rows


@register("lifts.Everything")
@dataclass(frozen=True)
class Everything:
    """All of R^d.

    Parameters
    ----------
    d : int
        The dimension.

    Examples
    --------
    >>> ~Everything(2)
    Nothing(d=2)
    """

    d: int

    def contains(self, X: ArrayLike) -> Array:
        return np.ones(len(_rows(X, self.d)), bool)

    def lifted(self) -> Halfspace:
        return Halfspace((0.0,) * (self.d + 1), -1.0)

    def __invert__(self) -> Nothing:
        return Nothing(self.d)


@register("lifts.Nothing")
@dataclass(frozen=True)
class Nothing:
    """The empty set of R^d.

    Parameters
    ----------
    d : int
        The dimension.

    Examples
    --------
    >>> Nothing(1).contains([[0.0]])
    array([False])
    """

    d: int

    def contains(self, X: ArrayLike) -> Array:
        return np.zeros(len(_rows(X, self.d)), bool)

    def lifted(self) -> Halfspace:
        return Halfspace((0.0,) * (self.d + 1), 1.0)

    def __invert__(self) -> Everything:
        return Everything(self.d)


@register("lifts.Ball")
@dataclass(frozen=True)
class Ball:
    """{x : |x - centre| <= radius}, or its outside.

    Parameters
    ----------
    centre : tuple of float
        The centre, d numbers.
    radius : float
        The radius, >= 0.
    complement : bool, default=False
        Whether it is {x : |x - centre| >= radius}.
    strict : bool, default=False
        Whether the boundary is left out.

    Examples
    --------
    >>> Ball((1, 0), 2).contains([[3, 0], [3.1, 0]])
    array([ True, False])
    >>> ~Ball((1, 0), 2)
    Ball(centre=(1.0, 0.0), radius=2.0, complement=True, strict=True)
    """

    centre: tuple[float, ...]
    radius: float
    complement: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", _vector(self.centre, "centre"))
        object.__setattr__(self, "radius", float(self.radius))
        if not (math.isfinite(self.radius) and self.radius >= 0):
            raise ValueError(f"radius must be a number >= 0, got {self.radius!r}.")

    def contains(self, X: ArrayLike) -> Array:
        """Whether each row is inside."""
        r = np.sqrt(square_norms(_rows(X, len(self.centre)) - self.centre))
        within = r < self.radius if self.strict != self.complement else r <= self.radius
        return ~within if self.complement else within

    def lifted(self) -> Halfspace:
        """The halfspace of R^(d+1) that holds phi(x) exactly where the ball holds x.

        Its normal is (2c, -1), its offset |c|^2 - r^2.
        """
        c = np.asarray(self.centre)
        halfspace = Halfspace(
            (*(2 * c), -1.0), float(c @ c) - self.radius**2, strict=self.strict != self.complement
        )
        return ~halfspace if self.complement else halfspace

    def __iter__(self) -> Iterator[Any]:
        """`centre, radius = ball`."""
        return iter((np.asarray(self.centre), self.radius))

    def __invert__(self) -> Ball:
        return Ball(self.centre, self.radius, not self.complement, not self.strict)


@register("lifts.Halfspace")
@dataclass(frozen=True)
class Halfspace:
    """{y : (normal, y) >= offset}, or > with `strict`.

    Parameters
    ----------
    normal : tuple of float
        The normal, d numbers.
    offset : float
        The offset.
    strict : bool, default=False
        Whether the boundary is left out.

    Examples
    --------
    >>> Halfspace((1, 1), 1).contains([[0.5, 0.5], [0, 0]])
    array([ True, False])
    """

    normal: tuple[float, ...]
    offset: float
    strict: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", _vector(self.normal, "normal"))
        object.__setattr__(self, "offset", float(np.asarray(self.offset).item()))
        if not math.isfinite(self.offset):
            raise ValueError(f"offset must be a finite number, got {self.offset!r}.")

    def contains(self, X: ArrayLike) -> Array:
        """Whether each row is inside."""
        value = _rows(X, len(self.normal)) @ np.asarray(self.normal)
        return value > self.offset if self.strict else value >= self.offset

    def lifted(self) -> Halfspace:
        """The halfspace of R^(d+1) that holds phi(x) exactly where this one holds x.

        There |x|^2 does not count.
        """
        return Halfspace((*self.normal, 0.0), self.offset, self.strict)

    def __iter__(self) -> Iterator[Any]:
        """`normal, offset = halfspace`."""
        return iter((np.asarray(self.normal), self.offset))

    def __invert__(self) -> Halfspace:
        return Halfspace(tuple(-v for v in self.normal), -self.offset, not self.strict)


Region = Ball | Halfspace | Everything | Nothing


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
        raise ValueError(
            f"normal must have d + 1 >= 2 components, the last that of |x|^2, got {normal!r}."
        )
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
        with np.errstate(
            over="ignore"
        ):  # the square of a huge number is infinite, as elsewhere in NumPy
            square = square_norms(X).astype(X.dtype)[:, None]
        return (
            sp.hstack([X, type(X)(square)], format="csr")
            if sp.issparse(X)
            else np.concatenate([X, square], axis=1)
        )

    def _names(self, inputs: list[str]) -> list[str]:
        return unique([*inputs, "|x|^2"])
