"""The slips of the notes, each with the numbers that show it."""

from __future__ import annotations

from functools import cache

from mercer.gallery import slip_numbers as numbers
from mercer.gallery.page import Shown, Slip

SLIPS = {
    "ball": Slip(
        "note 000: the ball as a halfspace",
        "u' = (-2c, 1), (u', φ(x)) - r' > 0 with r' = |c|² - r²",
        "u' = (2c, -1), (u', φ(x)) ≥ |c|² - r², as the derivation below it ends",
        numbers.ball,
    ),
    "frequency": Slip(
        "note 000: frequencies of the Gaussian",
        "w ~ N(0, 1/s²) for exp(-r²/s²)",
        "w ~ N(0, 2/s²)",
        numbers.frequency,
    ),
    "cosine": Slip(
        "note 000: cosines with a shift",
        "cos((w, x) + t) / √D",
        "√(2/D) cos((w, x) + t); otherwise the estimate is K/2",
        numbers.cosine,
    ),
    "sinc": Slip(
        "note 000: the sinc kernel",
        "(s/r) sin(-r/s), in any dimension",
        "(s/r) sin(r/s), positive definite for d ≤ 3 only",
        numbers.sinc,
    ),
    "distance": Slip(
        "note 000: relative error of the kernel distance",
        "at most ε for all shift-invariant kernels",
        "for smooth ones, with a finite fourth spectral moment; not for Laplace",
        numbers.distance,
    ),
    "square": Slip(
        "note 001: (1 + x'z)² written out",
        "1 + x1²z1² + x2²z2² + 2 x2z2 + 2 x1x2z1z2",
        "the same with 2 x1z1",
        numbers.square,
    ),
    "set": Slip(
        "notes 001, 002, 004: the perceptron's mistakes",
        "M is a set of misclassified examples",
        "a multiset: a row counts as often as it was mistaken, and y f(x) ≤ 0 is a mistake",
        numbers.mistakes,
    ),
    "finite": Slip(
        "note 001: features of polynomial kernels",
        "each polynomial kernel maps to infinitely many dimensions",
        "to C(d+p, p) of them; only their sum over all p, the Gaussian, has no end",
        numbers.finite,
    ),
    "power": Slip(
        "note 002: powers of 1 + x'z",
        "(1 + x'z)^b is a kernel for b > 0",
        "for whole b; others have negative eigenvalues",
        numbers.power,
    ),
    "noise": Slip(
        "note 002: prediction of a Gaussian process",
        "the inverse of K_n in mean and variance",
        "the inverse of K_n + σ² I, in both, and in the Bayesian linear form too",
        numbers.noise,
    ),
    "dimension": Slip(
        "note 002: Mercer's theorem",
        "every kernel has a map into R^D",
        "into a space that may have no finite dimension (Moore-Aronszajn)",
        numbers.dimension,
    ),
    "taylor": Slip(
        "note 003: Taylor features of the Gaussian",
        "coefficients 1/j!",
        "coefficients 1/√(j!), as the kernel is a product of two features",
        numbers.taylor,
    ),
    "dual": Slip(
        "note 003: the dual of the support vector machine",
        "0 ≤ λ ≤ C alone: no bias",
        "with a bias also Σ y_i λ_i = 0; without one only where that is meant",
        numbers.dual,
    ),
    "sparse": Slip(
        "note 004: the loop of the sparse projection",
        "place (i-1)s + h(i, j), entries ±1",
        "place (i-1)(m/s) + h(i, j), entries ±1/√s",
        numbers.sparse,
    ),
    "theorem": Slip(
        "note 004: Theorem 1 and what leads to it",
        "Z is k × d; |A(x+z)|² ≈ |x+z|",
        "Z is m × d; both sides squared",
        numbers.theorem,
    ),
    "bochner": Slip(
        "note 004: Bochner's example",
        "K divided by (2π)^d is the expectation of cosines",
        "the expectation is 1 at 0, so K is not scaled; the law may have no density",
        numbers.bochner,
    ),
}


@cache
def shown(key: str) -> Shown:
    """The numbers of a slip, computed once."""
    return SLIPS[key].shown()
