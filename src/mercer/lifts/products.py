"""Products of columns by a plan of monomials: their map, their names, and what the plan tells of each of them."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix
from mercer.invariants import Floats, Is, Whole
from mercer.lifts.algebra import unique
from mercer.lifts.base import Lift
from mercer.ops.monomials import Program, expand
from mercer.ops.monomials_csr import expand_csr
from mercer.store import register


@register("lifts.Products")
class Products(Lift):
    """Monomials of a plan from number `start_` on, dense of dense rows and CSR of CSR rows."""

    sparse: ClassVar[bool] = True
    program_: Program
    start_: int
    weights_: Array | None

    must = dict(
        program_=Is("Program", d="n_features_in_"), start_=Whole(0, "program_.D"), weights_=Floats("program_.D") | None
    )

    def _laws(self) -> str | None:
        D = self.program_.D - self.start_
        return None if self.n_features_out_ == D else f"has {D} products for {self.n_features_out_} features"

    def _take(self, program: Program, start: int = 0, weights: Array | None = None) -> None:
        self.program_, self.start_, self.weights_ = program, start, weights
        self.n_features_out_ = program.D - start
        if not self.n_features_out_:
            raise ValueError(f"{type(self).__name__} has no feature left; raise the degree or include the bias.")

    def _map(self, X: Matrix) -> Matrix:
        F = (expand_csr if sp.issparse(X) else expand)(self.program_, X, self.weights_)
        return F[:, self.start_ :] if self.start_ else F

    def _names(self, inputs: list[str]) -> list[str]:
        words = words_of(self.program_)[self.program_.skip + self.start_ :]
        return unique([monomial([inputs[j] for j in word]) for word in words])


def ends(program: Program) -> list[int]:
    """Where the monomials of degree 0, 1, ... begin, and where the last of them end."""
    return [0, *([1] if program.degree else []), *program.first[2:, 0].tolist(), program.D + program.skip]


def degrees(program: Program) -> Array:
    """The degree of every monomial, the constant included."""
    return np.repeat(np.arange(program.degree + 1), np.diff(ends(program)))


def inverse_factorials(program: Program) -> Array:
    """prod_j 1 / a_j! of every monomial, the constant included.

    A monomial is its leading column times its parent; where the parent leads with the same column, the run grows by one.
    """
    size = program.D + program.skip
    w, run = np.ones(size), np.ones(size)
    for k in range(2, program.degree + 1):
        for start, stop, source, others in zip(
            program.first[k, :-1], program.first[k, 1:], program.parent[k], program.first[k - 1, 1:], strict=True
        ):
            same = max(0, others - source)
            run[start : start + same] += run[source : source + same]
            w[start:stop] = w[source : source + stop - start] / run[start:stop]
    return w


def words_of(program: Program) -> list[tuple[int, ...]]:
    """The columns of every monomial, the constant included."""
    words: list[tuple[int, ...]] = [()]
    for k in range(1, program.degree + 1):
        top = len(words)
        words += [(a, *word) for a in range(program.d) for word in words[program.parent[k, a] : top]]
    return words


def monomial(names: Sequence[str]) -> str:
    """The name of a product of columns.

    >>> monomial(["age", "age", "income"]), monomial([])
    ('age^2*income', '1')
    """
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    return "*".join(name if power == 1 else f"{name}^{power}" for name, power in runs) or "1"
