"""Which of the features that a penalty keeps are terms of a formula: few, and each told from nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from mercer.inputs import Array
from mercer.models.sparse.problem import WeighedRows
from mercer.models.sparse.refit import refits

MAX_TERMS = 10  # more are no longer read
RIDGE = 1e-6  # of terms that are fitted once more; of classes, which may be parted
CLASS_RIDGE = 1e-3
CERTAIN = 3.0  # standard errors from zero of a term that stays
ROUNDING = 1e-14  # of sums of squares


def fitted_again(G: Array, rows: WeighedRows) -> tuple[Array, Array]:
    """Coefficients (C, k) and intercepts of terms G, fitted once more; zero for those that are too
    many, or not told from nothing."""
    return _fit(G, rows, certain_terms(G, rows))


def _fit(G: Array, rows: WeighedRows, some: Array) -> tuple[Array, Array]:
    """Of some terms; zero for the others."""
    if not len(some):
        start = rows.loss().start
        return np.zeros((len(start), G.shape[1])), start
    b, b0 = refits(G[:, some], rows, [CLASS_RIDGE if rows.classes else RIDGE])[0]
    coef = np.zeros((len(b), G.shape[1]))
    coef[:, some] = b
    return coef, b0


def certain_terms(G: Array, rows: WeighedRows) -> Array:
    """The places of terms that are left when the one that is least certain goes, again and again, as
    long as they are many, or it is not told from nothing. Its certainty is the standard errors
    between its coefficient and zero, of the score where these are most; rows count as many as
    their weights make up."""
    A = G - rows.w @ G
    scale = np.sqrt(rows.w @ np.square(A))
    A /= np.where(scale > 0, scale, 1.0)
    fits = class_fits(A, rows) if rows.classes else [number_fit(A, rows)]
    some = _thinned(fits, np.arange(G.shape[1]), rows, 0.0)
    few = _thinned(fits, some, rows, CERTAIN)
    return some if rows.classes and _missed(G, rows, some, few) else few


def _thinned(fits: list[TermFit], some: Array, rows: WeighedRows, least: float) -> Array:
    """Those of some terms that are left when they are few, and all as certain as asked for."""
    n = 1 / float(np.square(rows.w).sum())
    while len(some):
        certain = np.max([f.certain(some, n) for f in fits], axis=0)
        if len(some) <= MAX_TERMS and certain.min() >= least:
            break
        some = np.delete(some, int(certain.argmin()))
    return some


def _missed(G: Array, rows: WeighedRows, some: Array, few: Array) -> bool:
    """Whether terms that went are told from nothing by the loss without them: where classes are
    parted the loss is flat, and no coefficient is certain."""
    if len(few) == len(some):
        return False
    losses = []
    for kept in (few, some):
        b, b0 = _fit(G, rows, kept)
        losses.append(rows.loss().at(G @ b.T + b0)[0])
    n = 1 / float(np.square(rows.w).sum())
    return 2 * n * (losses[0] - losses[1]) > CERTAIN**2 * len(b) * (len(some) - len(few))


@dataclass(frozen=True, eq=False)
class TermFit:
    """b'Hb/2 - c'b: how well coefficients of terms (k,) do for one score. `squares` are those of a
    target whose noise is not known, None where the loss tells it."""

    H: Array
    c: Array
    ridge: float
    squares: float | None = None

    def certain(self, some: Array, n: float) -> Array:
        """Standard errors between the coefficients of some terms, fitted without the others, and
        zero; of n rows."""
        S, c = self.H[some[:, None], some], self.c[some]
        inverse = np.linalg.inv(S + self.ridge * np.eye(len(some)))
        b = inverse @ c
        noise = 1 / n
        if self.squares is not None:
            left = self.squares - 2 * float(b @ c) + float(b @ S @ b)
            noise = max(left, ROUNDING * self.squares) / max(n - len(b) - 1, 1.0)
        errors = np.sqrt(noise * inverse.diagonal())
        return np.abs(b) / np.maximum(errors, 1e-300)


def number_fit(A: Array, rows: WeighedRows) -> TermFit:
    """Of terms A of mean 0 and variance 1."""
    r = rows.y - rows.w @ rows.y
    H, c = A.T @ (rows.w[:, None] * A), A.T @ (rows.w * r)
    return TermFit(H, c, RIDGE, float(rows.w @ np.square(r)))


def class_fits(A: Array, rows: WeighedRows) -> list[TermFit]:
    """The same of every score of classes: the loss near the fit of all terms, other scores kept."""
    B, b0 = refits(A, rows, [CLASS_RIDGE])[0]
    f = A @ B.T + b0
    P = expit(f) if f.shape[1] == 1 else softmax(f, axis=1)
    fits = []
    for b, p in zip(B, P.T, strict=True):
        h = rows.w * p * (1 - p)
        D = A - h @ A / max(float(h.sum()), 1e-300)  # the intercept follows
        H = D.T @ (h[:, None] * D)
        fits.append(TermFit(H, H @ b + CLASS_RIDGE * b, CLASS_RIDGE))
    return fits
