"""Balls and halfspaces, which the parabolic lift turns into each other; with their complements, the empty set and everything."""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.pairs.side import square_norms
from mercer.store import register


def _vector(v: Any, name: str) -> tuple[float, ...]:
    out = np.ravel(np.asarray(v, np.float64))  # also the (1, D) coefficients of a linear model
    if not len(out) or not np.isfinite(out).all():
        raise ValueError(f"{name} must hold one or more finite numbers, got {v!r}.")
    return tuple(out.tolist())


def _rows(X: Any, d: int) -> Array:
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

    def contains(self, X: Any) -> Array:
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

    def contains(self, X: Any) -> Array:
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

    def contains(self, X: Any) -> Array:
        """Whether each row is inside."""
        r = np.sqrt(square_norms(_rows(X, len(self.centre)) - self.centre))
        within = r < self.radius if self.strict != self.complement else r <= self.radius
        return ~within if self.complement else within

    def lifted(self) -> Halfspace:
        """The halfspace of R^(d+1) that holds phi(x) exactly where the ball holds x.

        Its normal is (2c, -1), its offset |c|^2 - r^2.
        """
        c = np.asarray(self.centre)
        halfspace = Halfspace((*(2 * c), -1.0), float(c @ c) - self.radius**2, strict=self.strict != self.complement)
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

    def contains(self, X: Any) -> Array:
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
