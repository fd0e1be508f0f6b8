"""Every monomial of at most a given degree, one multiplication each: which there are, their order,
and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array
from mercer.invariants import Ints, Whole, check
from mercer.ops.monomials_loops import expand_columns, expand_rows
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.store import register

TILE_BYTES = (
    1 << 21
)  # of output for one task; a row's lower degrees are read again at once, hence from the cache
# values, and slices of them, up to which there is less to gain than importing Numba takes
FEW_VALUES, FEW_SLICES = 1 << 16, 32
SHORT_RUN = 8  # monomials, on average, that begin with the same column
MAX_MONOMIALS = 1 << 62  # monomials: two such counts still add up in 64 bits


@register("ops.Program")
@dataclass(frozen=True, eq=False)
class Program:
    """Monomials by degree k, then by their columns in lexicographic order: so those that begin with
    column a, in positions first[k, a] to first[k, a + 1], are that column times all from parent[k,
    a] to the end of degree k - 1.

    Positions count the constant 1, which the output leaves out (`skip`) where it is not wanted.
    """

    caps: Array  # (d,) the highest exponent of each column
    first: Array  # (degree + 1, d + 1)
    parent: Array  # (degree + 1, d)
    skip: int
    ordered: bool

    must = dict(
        caps=Ints("d", below="degree + 1"),
        first=Ints("degree + 1", "d + 1", below=1 << 62),
        parent=Ints("degree + 1", "d", below=1 << 62),
        skip=Whole(0, 2),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        """The tables follow from the caps: what is not just so leads the loops astray."""
        meant, given = _tables(self.caps, self.degree, self.ordered), (self.first, self.parent)
        return (
            None
            if all(map(np.array_equal, meant, given))
            else "has tables that are not those of its caps"
        )

    @property
    def degree(self) -> int:
        return len(self.first) - 1

    @property
    def d(self) -> int:
        return len(self.caps)

    @property
    def D(self) -> int:
        """The number of output columns."""
        return _end(self.first, self.degree) - self.skip


def plan(
    d: int,
    degree: int,
    *,
    interaction_only: bool = False,
    include_bias: bool = True,
    degree_per_column: Sequence[int] | None = None,
    ordered: bool = False,
) -> Program:
    """The monomials of d columns of at most that degree, in the order of scikit-learn's
    `PolynomialFeatures`.

    `degree_per_column` bounds the exponent of each column, `interaction_only` that of every column
    by 1. `ordered` keeps x0 x1 and x1 x0 apart: d^k monomials of each degree k.

    >>> plan(30, 3).D, plan(30, 3, interaction_only=True).D, plan(2, 2, ordered=True).D
    (5456, 4526, 7)
    """
    caps = _caps(d, degree, interaction_only, degree_per_column)
    if ordered and (caps < degree).any():
        raise ValueError(
            "ordered=True lists every ordered monomial: leave out interaction_only and degree_per_column."
        )
    return Program(caps, *_tables(caps, degree, ordered), int(not include_bias), ordered)


def _tables(caps: Array, degree: int, ordered: bool) -> tuple[Array, Array]:
    """`first` and `parent` of a program."""
    first, parent = (
        np.zeros((degree + 1, len(caps) + 1), np.int64),
        np.zeros((degree + 1, len(caps)), np.int64),
    )
    for k in range(1, degree + 1):
        parent[k] = first[k - 1, 0] if ordered else first[k - 1, :-1] + _used_up(first, caps, k - 1)
        _lay_out(first[k], _end(first, k - 1), parent[k])
    return first, parent


def _caps(
    d: int, degree: int, interaction_only: bool, degree_per_column: Sequence[int] | None
) -> Array:
    caps = np.full(d, degree) if degree_per_column is None else np.asarray(degree_per_column)
    if caps.shape != (d,) or caps.dtype.kind not in "iu" or (caps < 0).any():
        raise ValueError(
            f"degree_per_column must hold {d} whole numbers from 0 on, but it is {degree_per_column!r}."
        )
    return np.asarray(np.minimum(caps, min(degree, 1) if interaction_only else degree), np.int64)


def _end(first: Array, k: int) -> int:
    return int(first[k, -1]) if k else 1


def _used_up(first: Array, caps: Array, k: int) -> Array:
    """How many monomials of degree k begin with column a to the power caps[a]: they are the first
    that begin with a."""
    count = np.zeros(len(caps), np.int64)
    for rest in range(k + 1):
        here = np.flatnonzero(caps == k - rest)
        count[here] = _end(first, rest) - first[rest, here + 1]
    return count


def _lay_out(first: Array, start: int, parent: Array) -> None:
    lengths = start - parent
    if start + lengths.sum(dtype=float) > MAX_MONOMIALS:
        raise ValueError(
            "There are more than 2^62 such monomials: lower the degree, or use fewer columns."
        )
    first[0] = start
    np.cumsum(lengths, out=first[1:])
    first[1:] += start


def exponents(program: Program, columns: Array | None = None) -> sp.csr_array:
    """The exponents (D, d) of each monomial, or of those in the given output columns.

    >>> exponents(plan(2, 2)).toarray().tolist()
    [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """
    at = (np.arange(program.D) if columns is None else np.array(columns, np.int64)) + program.skip
    shape, rows, cols = (len(at), program.d), [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for k in range(program.degree, 0, -1):  # split off the leading column, k times
        here = np.flatnonzero(at >= program.first[k, 0])
        a = np.searchsorted(program.first[k, 1:], at[here], side="right")
        at[here] += program.parent[k, a] - program.first[k, a]
        rows.append(here)
        cols.append(a)
    ones = np.ones(sum(map(len, rows)), np.int64)
    out = sp.csr_array((ones, (np.concatenate(rows), np.concatenate(cols))), shape=shape)
    out.sum_duplicates()  # SciPy 1.13 leaves that to the caller
    return out


def ends(program: Program) -> list[int]:
    """Where the monomials of degree 0, 1, ... begin, and where the last of them end."""
    return [
        0,
        *([1] if program.degree else []),
        *program.first[2:, 0].tolist(),
        program.D + program.skip,
    ]


def degrees(program: Program) -> Array:
    """The degree of every monomial, the constant included."""
    return np.repeat(np.arange(program.degree + 1), np.diff(ends(program)))


def inverse_factorials(program: Program) -> Array:
    """prod_j 1 / a_j! of every monomial, the constant included.

    A monomial is its leading column times its parent; where the parent leads with the same column,
    the run grows by one.
    """
    size = program.D + program.skip
    w, run = np.ones(size), np.ones(size)
    for k in range(2, program.degree + 1):
        for start, stop, source, others in zip(
            program.first[k, :-1],
            program.first[k, 1:],
            program.parent[k],
            program.first[k - 1, 1:],
            strict=True,
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
        words += [
            (a, *word) for a in range(program.d) for word in words[program.parent[k, a] : top]
        ]
    return words


def expand(
    program: Program, X: Array, weights: Array | None = None, out: Array | None = None
) -> Array:
    """F (n, D): the monomials of each row of X (n, d), each times its weight.

    >>> expand(plan(2, 2), np.array([[2.0, 3.0]]))
    array([[1., 2., 3., 4., 6., 9.]])
    """
    X, F, w = _prepare(program, X, weights, out)
    if F.size <= FEW_VALUES and program.d * program.degree <= FEW_SLICES:
        _expand_few(program, X, w, F)
        return F
    along_rows = program.D / max(1, program.d * program.degree) >= SHORT_RUN
    loop = expand_rows if along_rows else expand_columns
    rows = cuts(len(X), max(1, TILE_BYTES // max(1, program.D * X.itemsize)))
    parallel_map(
        lambda tile: loop(program.first, program.parent, program.skip, X[tile], w, F[tile]), rows
    )
    return F


def _expand_few(program: Program, X: Array, w: Array, F: Array) -> None:
    """The same bits by NumPy, all monomials of a degree that begin with one column at a time."""
    first, parent, skip = program.first, program.parent, program.skip
    F[:, : 1 - skip] = 1
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for k in range(1, program.degree + 1):
            places = zip(first[k, :-1] - skip, first[k, 1:] - skip, parent[k] - skip, strict=True)
            for x, (start, stop, source) in zip(X.T, places, strict=True):
                if k == 1 and start < stop:
                    F[:, start] = x
                elif start < stop:
                    several = F[:, source : source + stop - start]
                    np.multiply(x[:, None], several, out=F[:, start:stop])
        if len(w):
            F *= w


def reference_expand(
    program: Program, X: Array, weights: Array | None = None, out: Array | None = None
) -> Array:
    """`expand`, a whole output column at a time and by the exponents alone."""
    X, F, w = _prepare(program, X, weights, out)
    for j, powers in enumerate(exponents(program).toarray()):
        F[:, j] = np.prod(X**powers, axis=1) * (w[j] if len(w) else 1)
    return F


def _prepare(
    program: Program, X: Array, weights: Array | None, out: Array | None
) -> tuple[Array, Array, Array]:
    X = np.ascontiguousarray(X)
    F = np.empty((len(X), program.D), X.dtype) if out is None else out
    w = fitting(program, X, weights)
    if F.shape != (len(X), program.D):
        raise ValueError(
            f"out has shape {F.shape}, {(len(X), program.D)} expected; give room for all monomials."
        )
    return X, F, w


def fitting(program: Program, X: Any, weights: Array | None) -> Array:
    """The weights in the precision of the rows, once both are known to be of the program's sizes:
    the loops look at none."""
    w = np.asarray([] if weights is None else weights, X.dtype)
    if X.ndim != 2 or X.shape[1] != program.d or w.shape not in ((0,), (program.D,)):
        raise ValueError(
            f"the rows have shape {X.shape} and the weights {w.shape}, but the program has {program.d} columns and {program.D} monomials; "
            "give rows of the columns it was made for."
        )
    return w
