"""A sparse model as text in the user's units, which evaluates to its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Table
from mercer.models.sparse.fit import SparseModel
from mercer.models.sparse.terms import Term, terms_of

DIGITS = 4


@dataclass(frozen=True, eq=False)
class Formula:
    """b0 + b1 t1 + b2 t2 + ..., terms t of columns of X.

    `str(formula)` is for readers, `formula.text(digits)` the same with more digits,
    `formula.code` Python, in which x[j] is column j, and `formula(X)` what that evaluates to.
    """

    intercept: float
    terms: tuple[tuple[float, Term], ...]
    names: list[str]  # of the columns
    features: Callable[[Table, Array], Array]  # for terms that have no words

    def text(self, digits: int = DIGITS) -> str:
        """With so many significant digits."""
        parts = [f"{self.intercept:.{digits}g}"]
        for b, t in self.terms:
            parts += ["-" if b < 0 else "+", f"{abs(b):.{digits}g} {t.text(self.names, digits)}"]
        return " ".join(parts)

    def __str__(self) -> str:
        return self.text()

    @property
    def code(self) -> str:
        """A Python expression of columns x, functions of NumPy, and features phi."""
        return " + ".join([repr(self.intercept), *(f"{b!r}*{t.code}" for b, t in self.terms)])

    def __call__(self, X: Any) -> Array:
        """The formula at rows X (n, d)."""
        X = X if sp.issparse(X) else np.asarray(X)
        rows = Table(sp.csr_array(X) if sp.issparse(X) else X)
        x = {j: _column(X, j) for _, t in self.terms for j in t.columns}
        functions = {name: f for _, t in self.terms for name, f in t.functions}
        wordless = [int(t.code[4:-1]) for _, t in self.terms if t.code.startswith("phi[")]
        F = self.features(rows, np.array(wordless, np.int64)) if wordless else np.empty((0, 0))
        phi = dict(zip(wordless, F.T, strict=True))
        value = eval(self.code, {"__builtins__": {}, "x": x, "phi": phi, **functions})
        return np.broadcast_to(np.asarray(value, np.float64), (X.shape[0],)).copy()


def _column(X: Any, j: int) -> Array:
    found = X[:, [j]].toarray()[:, 0] if sp.issparse(X) else X[:, j]
    return np.asarray(found, np.float64)


def formulas(m: SparseModel) -> list[Formula]:
    """One of every score."""
    of = terms_of(m.map, m.ids)
    return [
        Formula(
            float(b0),
            tuple((float(b) * t.factor, t) for b, t in zip(row, of, strict=True) if b != 0),
            list(m.map.features.inputs),
            m.map.columns,
        )
        for row, b0 in zip(m.coef, m.intercept, strict=True)
    ]
