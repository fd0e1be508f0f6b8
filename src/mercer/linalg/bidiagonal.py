"""Penalised least squares for many penalties at once: one bidiagonalisation serves all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.inputs import Array

WINDOW = 8  # steps whose gains together must be small
TINY = float(np.finfo(float).tiny)
NOTHING = 4e-15  # of the first gradient: what is left when A has no more directions is rounding


def damped_images(
    times: Callable[[Array], tuple[Array, Array]],
    back: Callable[[Array], Array],
    b: Array,
    alphas: Array,
    tol: float,
    steps: int,
) -> tuple[Array, int]:
    """G x of x = argmin |b - A x|^2 + alpha |x|^2 for every penalty, (h, a), and how many steps it
    took.

    Golub and Kahan's bidiagonalisation of A does not see the penalty; what does are rotations of
    two numbers a step (Paige and Saunders, LSQR, 1982). Of solutions only images are held: no
    array is as wide as x but the vectors of the bidiagonalisation.

    A penalty is done where the gradient is at most tol of the first one, and the last steps have
    lowered the objective by at most tol^2 of all that was gained: that is the square of what is
    left of A x, whatever the units of the columns.

    `times` gives A v and G v of a vector, `back` A'u; there are at most so many steps.

    >>> A, b = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([1.0, 1.0, 5.0])
    >>> found, _ = damped_images(lambda v: (A @ v, v), lambda u: A.T @ u, b, np.array([1.0, 4.0]), 1e-9, 9)
    >>> found.round(6)
    array([[0.5 , 0.2 ],
           [0.4 , 0.25]])
    """
    u, beta = _unit(b)
    v, alpha = _unit(back(u))
    Av, image = times(v)
    out, W = np.zeros((len(image), len(alphas))), np.zeros((len(image), len(alphas)))
    turned, rest, diagonal = np.zeros(len(alphas)), np.full(len(alphas), beta), alpha
    bar, first, gains = np.full(len(alphas), diagonal), alpha * beta, np.zeros((0, len(alphas)))
    on, k = np.arange(len(alphas)), 0
    while len(on) and k < steps and first > 0:
        k += 1
        W = image[:, None] - turned * W
        u, beta = _unit(Av - alpha * u)
        v, alpha = _unit(back(u) - beta * v)
        damped = np.hypot(bar, np.sqrt(alphas[on]))
        rest = rest * bar / damped
        rho = np.maximum(np.hypot(damped, beta), TINY)
        cosine, sine = damped / rho, beta / rho
        gain, rest = cosine * rest, sine * rest
        out[:, on] += W * (gain / rho)
        turned, bar = sine * alpha / rho, -cosine * alpha
        gains = np.vstack([gains, np.zeros((1, len(alphas)))])
        gains[-1, on] = np.square(gain)
        left = ~_done(gains[:, on], np.abs(sine * alpha * gain), first, tol)
        on, W = on[left], W[:, left]
        turned, rest, bar = turned[left], rest[left], bar[left]
        if len(on):
            Av, image = times(v)
    return out, k


def _unit(v: Array) -> tuple[Array, float]:
    """A vector of length 1, and its length; zero stays as it is."""
    size = float(np.linalg.norm(v))
    return (v / size if size > 0 else v), size


def _done(gains: Array, gradient: Array, first: float, tol: float) -> Array:
    """Which penalties are: a gradient of nothing is the end in any case, as steps beyond it would
    follow rounding, which small penalties do not hold back."""
    late = gains[-WINDOW:].sum(0) <= tol**2 * gains.sum(0)
    return (gradient <= NOTHING * first) | (
        late & (gradient <= tol * first) & (len(gains) > WINDOW)
    )
