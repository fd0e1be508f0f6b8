"""Monomials, interactions and subsets: the products of columns, whose inner products are polynomial
kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import accumulate, groupby
from math import comb
from operator import add
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import factorial, poch
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix
from mercer.invariants import Each, Floats, Is, Whole
from mercer.kernels import AllSubsets, Anova, Constant, Kernel, Linear, Polynomial
from mercer.kernels.base import positive, whole
from mercer.kernels.params import plain
from mercer.lifts.algebra import unique
from mercer.lifts.base import Lift
from mercer.lifts.columnwise import position, positions
from mercer.ops.monomials import (
    Program,
    degrees,
    ends,
    expand,
    exponents,
    inverse_factorials,
    plan,
    words_of,
)
from mercer.ops.monomials_csr import expand_csr
from mercer.store import register


@register("lifts.Products")
class Products(Lift):
    """Monomials of a plan from number `start_` on, before them the constant where `constant_` says
    so; dense of dense rows and CSR of CSR rows."""

    sparse: ClassVar[bool] = True
    program_: Program
    start_: int
    weights_: Array | None
    constant_: bool = False  # as files of before have it

    must = dict(
        program_=Is("Program", d="n_features_in_"),
        start_=Whole(0, "program_.D"),
        weights_=Floats("program_.D") | None,
    )

    def _laws(self) -> str | None:
        D = self.program_.D - self.start_ + self.constant_
        if self.n_features_out_ != D:
            return f"has {D} products for {self.n_features_out_} features"
        if self.constant_ and (self.program_.skip or not self.start_):
            return "has a constant of its own beside that of its plan"
        return None

    def _take(
        self,
        program: Program,
        start: int = 0,
        weights: Array | None = None,
        *,
        constant: bool = False,
    ) -> None:
        self.program_, self.start_, self.weights_ = program, start, weights
        self.constant_ = constant
        self.n_features_out_ = program.D - start + constant
        if not self.n_features_out_:
            raise ValueError(
                f"{type(self).__name__} has no feature left; raise the degree or include the bias."
            )

    def _map(self, X: Matrix) -> Matrix:
        F = (expand_csr if sp.issparse(X) else expand)(self.program_, X, self.weights_)
        if self.constant_ and sp.issparse(F):
            return type(F)(sp.hstack([F[:, :1], F[:, self.start_ :]], format="csr"))
        if self.constant_:
            F[:, self.start_ - 1] = F[:, 0]  # in the place of the last that is left out
        first = self.start_ - self.constant_
        return F[:, first:] if first else F

    def _names(self, inputs: list[str]) -> list[str]:
        words = kept_words(self)
        return unique([monomial([inputs[j] for j in word]) for word in words])


def kept_words(phi: Products) -> list[tuple[int, ...]]:
    """The columns of every feature."""
    words = words_of(phi.program_)
    return words[: int(phi.constant_)] + words[phi.program_.skip + phi.start_ :]


def kept_weights(phi: Products) -> Array | None:
    """The weight of every feature."""
    w = phi.weights_
    return None if w is None else np.concatenate([w[: int(phi.constant_)], w[phi.start_ :]])


def monomial(names: Sequence[str]) -> str:
    """The name of a product of columns.

    >>> monomial(["age", "age", "income"]), monomial([])
    ('age^2*income', '1')
    """
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    return "*".join(name if power == 1 else f"{name}^{power}" for name, power in runs) or "1"


MAX_SUBSETS = 1 << 20  # subsets: more are not meant to be written down


@register("lifts.Monomials")
class Monomials(Products):
    """prod_j x_j^a_j for every a with sum_j a_j <= degree.

    In the order of scikit-learn's `PolynomialFeatures`: by degree, then by columns, x0^2 before
    x0*x1 before x1^2; with equal `degree`, `interaction_only` and `include_bias` the same
    columns.

    With `weights="kernel"` they are the features of (bias + x'z)^degree: each of degree k is
    multiplied by sqrt(n! / ((n-k)! prod_j a_j!)) bias^((n-k)/2) for n = degree, or, with
    `ordered`, which keeps x0*x1 and x1*x0 apart, by sqrt(C(n, k)) bias^((n-k)/2). Without
    weights `bias` is not used.

    Parameters
    ----------
    degree : int or tuple of two int, default=2
        The highest total degree, or the lowest and the highest: the constant is there in either
        case where `include_bias` says so. None stands for the sum of `degree_per_column`.
    weights : {None, "kernel"}, default=None
        What each monomial is multiplied by.
    ordered : bool, default=False
        Whether to list every ordered monomial, d^k of each degree k.
    interaction_only : bool, default=False
        Whether no column comes twice in a monomial.
    include_bias : bool, default=True
        Whether the constant is a feature.
    degree_per_column : list of int, or dict of int by name or position, default=None
        The highest exponent of each column, or of some of them.
    bias : float, default=1.0
        That of the kernel, >= 0.

    Examples
    --------
    >>> phi = Monomials(2, weights="kernel").fit([[1.0, 2.0]])
    >>> phi.transform([[1.0, 2.0]]).round(3), phi.kernel_
    (array([[1.   , 1.414, 2.828, 1.   , 2.828, 4.   ]]), Polynomial(degree=2))
    >>> list(Monomials(3, degree_per_column={0: 1}).fit([[1.0, 2.0]]).get_feature_names_out())
    ['1', 'x0', 'x1', 'x0*x1', 'x1^2', 'x0*x1^2', 'x1^3']
    >>> phi = Monomials((2, 2)).fit([[1.0, 2.0]])
    >>> list(phi.get_feature_names_out()), phi.powers_.tolist()
    (['1', 'x0^2', 'x0*x1', 'x1^2'], [[0, 0], [2, 0], [1, 1], [0, 2]])
    """

    def __init__(
        self,
        degree: int | tuple[int, int] | None = 2,
        weights: str | None = None,
        ordered: bool = False,
        interaction_only: bool = False,
        include_bias: bool = True,
        degree_per_column: Any = None,
        bias: float = 1.0,
    ) -> None:
        self.degree = degree
        self.weights = weights
        self.ordered = ordered
        self.interaction_only = interaction_only
        self.include_bias = include_bias
        self.degree_per_column = degree_per_column
        self.bias = bias

    @property
    def powers_(self) -> Array:
        """The exponents (D, d) of every feature, made at every call."""
        check_is_fitted(self)
        at = np.arange(self.start_, self.program_.D)
        return exponents(self.program_, np.r_[0, at] if self.constant_ else at).toarray()

    def _learn(self, X: Matrix) -> None:
        low, n = self._degrees()
        caps = self._caps(n)
        n = int(np.sum(np.asarray(caps))) if n is None else n
        options = {
            "interaction_only": self.interaction_only,
            "include_bias": self.include_bias,
            "ordered": self.ordered,
        }
        program = plan(X.shape[1], n, degree_per_column=caps, **options)
        if self.weights is None:
            self._from(low, program)
        elif self.weights == "kernel":
            b = positive(plain(self.bias), "bias", zero=True)
            # without a bias only the top degree counts
            self._from(low if b else n, program, kernel_weights(program, b), constant=b > 0)
        else:
            raise ValueError(f'weights must be None or "kernel", got {self.weights!r}.')
        self.kernel_ = self._kernel(low, n)

    def _from(
        self, low: int, program: Program, weights: Array | None = None, *, constant: bool = True
    ) -> None:
        """Take the monomials from degree `low` on, and the constant where there is to be one."""
        constant = constant and not program.skip
        start = max(0, ends(program)[low] - program.skip) if low > 1 or not constant else 0
        if constant and start == program.D:  # there is none of such a degree
            first = None if weights is None else weights[:1]
            self._take(plan(program.d, 0), 0, first)
        else:
            self._take(program, start, weights, constant=constant and start > 0)

    def _degrees(self) -> tuple[int, int | None]:
        """The lowest and the highest degree."""
        if not isinstance(self.degree, tuple | list):
            return 0, None if self.degree is None else whole(plain(self.degree), "degree")
        pair = [whole(plain(k), "degree") for k in self.degree]
        if len(pair) != 2 or pair[0] > pair[1]:
            raise ValueError(
                f"degree must be the highest degree or a pair (lowest, highest), got {self.degree!r}."
            )
        return pair[0], pair[1]

    def _caps(self, n: int | None) -> Sequence[int] | None:
        given = self.degree_per_column
        if n is None and (
            given is None or (isinstance(given, Mapping) and len(given) < self.n_features_in_)
        ):
            raise ValueError(
                "degree=None needs degree_per_column with a degree for every column; give one, or a degree."
            )
        if not isinstance(given, Mapping):
            return given
        caps = dict.fromkeys(range(self.n_features_in_), n) | {
            position(self, c): p for c, p in given.items()
        }
        return [whole(plain(caps[j]), "degree_per_column") for j in range(self.n_features_in_)]

    def _kernel(self, low: int, n: int) -> Kernel:
        """The kernel by name where it has one: sum_k c_k (x'z)^k, or the same over interactions
        of k columns.
        """
        top = min(n, 1) if self.interaction_only else n
        if (self.program_.caps < top).any() or not (
            self.weights or self.ordered or self.interaction_only or n < 2
        ):
            return Linear().warped(self._map)
        if self.weights and self.include_bias and not self.interaction_only and low < 2:
            return Polynomial(n, self.bias)
        k = np.arange(n + 1)
        c = poch(n - k + 1, k) * float(self.bias) ** (n - k) if self.weights else np.ones(n + 1)
        c[0] *= self.include_bias
        c[1:low] = 0
        if self.interaction_only and n >= self.program_.d and c.all() and not self.weights:
            return AllSubsets()
        if self.interaction_only:
            return interactions(c[: self.program_.d + 1])
        return Linear().compose(c / factorial(k) if self.weights else c)  # type: ignore[arg-type]


def kernel_weights(program: Program, bias: float) -> Array:
    """sqrt(n! / ((n-k)! prod_j a_j!)) bias^((n-k)/2), or sqrt(C(n, k)) bias^((n-k)/2) where the
    order counts.
    """
    n, k = program.degree, np.arange(program.degree + 1)
    of_degree, at = np.sqrt(poch(n - k + 1, k)) * bias ** ((n - k) / 2), degrees(program)
    inverse = 1 / factorial(at) if program.ordered else inverse_factorials(program)
    return (of_degree[at] * np.sqrt(inverse))[program.skip :]


def interactions(c: Array) -> Kernel:
    """sum_k c_k Anova(k)"""
    terms = {k: Anova(k) if k else Constant() for k in np.flatnonzero(c).tolist()}
    return reduce(add, (term if c[k] == 1 else c[k] * term for k, term in terms.items()))


@register("lifts.Interactions")
class Interactions(Products):
    """x_j1 ... x_jk for all j1 < ... < jk of the chosen columns: the features of `Anova(k)`.

    Of fewer columns than `order` there is no product: the kernel is 0, and so is the one
    feature.

    Parameters
    ----------
    order : int, default=2
        The number of distinct columns in every product.
    columns : list of int or str, default=None
        Names or positions; None is all.

    Examples
    --------
    >>> phi = Interactions().fit([[1.0, 2.0, 3.0]])
    >>> phi.transform([[1.0, 2.0, 3.0]]), list(phi.get_feature_names_out())
    (array([[2., 3., 6.]]), ['x0*x1', 'x0*x2', 'x1*x2'])
    """

    must = dict(columns_=Each(Whole(0, "n_features_in_"), size="m"), program_=Is("Program", d="m"))

    def _laws(self) -> str | None:
        return (
            f"has {self.n_features_out_} features where there are none"
            if self.empty_ and self.n_features_out_ > 1
            else None
        )

    def __init__(self, order: int = 2, columns: Any = None) -> None:
        self.order = order
        self.columns = columns

    def _learn(self, X: Matrix) -> None:
        order, self.columns_ = (
            whole(plain(self.order), "order", least=1),
            positions(self, self.columns),
        )
        program = plan(len(self.columns_), order, interaction_only=True)
        self.empty_ = order > len(self.columns_)
        self._take(program, program.D - 1 if self.empty_ else int(program.first[order, 0]))
        self.kernel_ = (
            Anova(order) if self.columns is None else Anova(order).on_columns(self.columns_)
        )

    def _map(self, X: Matrix) -> Matrix:
        if self.empty_:
            return X[:, :1] * 0
        return super()._map(X if self.columns is None else X[:, self.columns_])

    def _names(self, inputs: list[str]) -> list[str]:
        return ["0"] if self.empty_ else super()._names([inputs[j] for j in self.columns_])


@register("lifts.Subsets")
class Subsets(Products):
    """prod_{j in S} x_j for all subsets S of the columns: 2^d features.

    Their kernel, `AllSubsets`, needs O(d) operations.

    Parameters
    ----------
    max_size : int, default=None
        Subsets of at most so many columns; None is all of them.

    Examples
    --------
    >>> phi = Subsets().fit([[2.0, 3.0]])
    >>> phi.transform([[2.0, 3.0]]), list(phi.get_feature_names_out())
    (array([[1., 2., 3., 6.]]), ['1', 'x0', 'x1', 'x0*x1'])
    """

    def __init__(self, max_size: int | None = None) -> None:
        self.max_size = max_size

    def _learn(self, X: Matrix) -> None:
        d = X.shape[1]
        size = d if self.max_size is None else min(d, whole(plain(self.max_size), "max_size"))
        if too_many(d, size):
            raise ValueError(
                f"X has {d} columns, with more than {MAX_SUBSETS} subsets of at most {size}; "
                "lower max_size, or use the kernel AllSubsets, which lists none of them."
            )
        self._take(plan(d, size, interaction_only=True))
        self.kernel_ = AllSubsets() if size == d else interactions(np.ones(size + 1))


def too_many(d: int, size: int) -> bool:
    """Whether d columns have more than MAX_SUBSETS subsets of at most that size."""
    return any(total > MAX_SUBSETS for total in accumulate(comb(d, k) for k in range(size + 1)))
