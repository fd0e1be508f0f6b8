"""A sparse model as text in the user's units, which evaluates to its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Table, table
from mercer.models.sparse.fit import SparseModel
from mercer.models.sparse.terms import Term, quoted, terms_of

DIGITS = 4
DOUBLE = 15  # that float64 holds


@dataclass(frozen=True, eq=False, repr=False)
class Formula:
    """b0 + b1 t1 + b2 t2 + ..., terms t of columns of X.

    `str(formula)` is for readers, and what a prompt shows; `formula.text(digits)` the same with
    more digits, `formula.code` Python, in which x[j] is column j, and `formula(X)` what that
    evaluates to. Columns of a frame are found by their names.
    """

    intercept: float
    terms: tuple[tuple[float, Term], ...]
    names: list[str]  # of the columns
    features: Callable[[Table, Array], Array]  # for terms that have no words
    spread: float = 0.0  # of the largest term in the rows of the fit; 0: not known

    def text(self, digits: int = DIGITS) -> str:
        """With so many significant digits; the intercept with as many as the largest term has of its
        spread, so that one that is nothing beside it is left out."""
        parts, names = [self._level(digits)], [quoted(name) for name in self.names]
        for b, t in self.terms:
            parts += ["-" if b < 0 else "+", f"{abs(b):.{digits}g} {t.text(names, digits)}"]
        if parts[0] == "0" and len(parts) > 1:
            return " ".join([f"-{parts[2]}" if parts[1] == "-" else parts[2], *parts[3:]])
        return " ".join(parts)

    def _level(self, digits: int) -> str:
        if not self.spread > 0:
            return f"{self.intercept:.{digits}g}"
        places = digits - 1 - int(np.floor(np.log10(self.spread)))
        return f"{round(self.intercept, places) + 0.0:.{DOUBLE}g}"

    def __repr__(self) -> str:
        return self.text()

    @property
    def code(self) -> str:
        """A Python expression of columns x, functions of NumPy, and features phi."""
        return " + ".join([repr(self.intercept), *(f"{b!r}*{t.code}" for b, t in self.terms)])

    def __call__(self, X: Any) -> Array:
        """The formula at rows X (n, d)."""
        rows = self._rows(X)
        x = {j: _column(rows.data, j) for _, t in self.terms for j in t.columns}
        functions = {name: f for _, t in self.terms for name, f in t.functions}
        wordless = [int(t.code[4:-1]) for _, t in self.terms if t.code.startswith("phi[")]
        F = self.features(rows, np.array(wordless, np.int64)) if wordless else np.empty((0, 0))
        phi = dict(zip(wordless, F.T, strict=True))
        value = eval(self.code, {"__builtins__": {}, "x": x, "phi": phi, **functions})
        return np.broadcast_to(np.asarray(value, np.float64), (len(rows),)).copy()

    def _rows(self, X: Any) -> Table:
        """Columns as those of the fit: of a frame by name, else as many."""
        if _texts(X):
            return Table(np.asarray(X))
        found = table(X, finite=False)
        own = [f"x{j}" for j in range(len(self.names))]
        if found.columns is None or (self.names == own and not set(own) <= set(found.columns)):
            return table(found, width=len(self.names))
        if missing := [name for name in self.names if name not in found.columns]:
            raise ValueError(
                f"X has no column {missing[0]!r}, which the formula was fitted with; give the columns of the fit."
            )
        return Table(found.data[:, [found.columns.index(name) for name in self.names]])


def _texts(X: Any) -> bool:
    """Whether rows are texts, as lifts of n-grams take them."""
    return not sp.issparse(X) and np.ndim(X) == 1 and np.asarray(X).dtype.kind in "OUT"


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
            float(np.abs(row * m.deviations).max(initial=0.0)),
        )
        for row, b0 in zip(m.coef, m.intercept, strict=True)
    ]
