"""Kernel: an expression tree whose nodes write one formula, `on(pairs)`; what `pairs` is decides
how it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import numpy as np

from mercer.inputs import Array, Table, is_vector, table
from mercer.kernels.checks import empty as empty
from mercer.kernels.checks import positive as positive
from mercer.kernels.checks import positives as positives
from mercer.kernels.checks import whole as whole
from mercer.kernels.params import Params, substitute
from mercer.ops.tiles import WIDE, broadcast, cuts, fill
from mercer.pairs import (
    Diagonal,
    Dual,
    DualPairs,
    KernelSource,
    Side,
    Sides,
    Symbol,
    Tile,
    Trace,
    Traced,
    centre_of,
    contract,
    squares,
)
from mercer.pairs.gaussian import GaussianPairs
from mercer.pairs.inputs import pair_gradients
from mercer.tensors import common_place

if TYPE_CHECKING:
    from mercer.kernels.proof import Proof


@dataclass_transform(eq_default=True, field_specifiers=(field,))
class Kernel(Params):
    """A positive semidefinite function k(x, z).

    A kernel of your own writes its parameters as fields and its formula as `on`, over what
    pairs of rows offer (`p.dot`, `p.sqdist(bandwidth)`, `p.dist`, `p.absdist`, `p.chisq`,
    `p.xp.exp`, ...):

    Examples
    --------
    >>> class Bump(Kernel):
    ...     width: float = 1.0
    ...     def on(self, p):
    ...         return 1 / (1 + p.sqdist(self.width)) ** 2
    >>> Bump(width=2.0)([[0.0], [2.0]])
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """

    __array_ufunc__ = None  # np.float64(2) * k comes to our __rmul__, never to an array of kernels
    items: ClassVar[bool] = False  # whether rows may be list-like items instead of numbers
    precedence: ClassVar[int] = 9

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=True, unsafe_hash=True, repr=False)(cls)

    def on(self, p: Any) -> Any:
        """The formula, over pairs."""
        raise NotImplementedError(
            f"{type(self).__name__} must define on(self, p), its formula over pairs."
        )

    # sugar: these functions live in the layers above, which are loaded when first asked for
    def operator(self, X: Any, Z: Any = None) -> Any:
        """The matrix k(X, Z) that is never formed; see `mercer.operators.KernelOperator`.

        It has `K @ v`, `K.block(rows, cols)`.
        """
        return import_module("mercer.operators").operator(self, X, Z)

    def lift(
        self,
        n_features: Any = None,
        *,
        eps: float | None = None,
        delta: float = 0.01,
        method: Any = "auto",
        random_state: Any = None,
    ) -> Any:
        """A feature map of this kernel; see `mercer.lifts.KernelLift`."""
        given = import_module("mercer.lifts").KernelLift
        return given(
            self, n_features, eps=eps, delta=delta, method=method, random_state=random_state
        )

    # readings
    def __call__(self, X: Any, Z: Any = None) -> Any:
        """The Gram matrix k(x_i, z_j), shape (n, m), of rows X and Z, which defaults to X.

        Rows are of arrays, sparse matrices or data frames, or listed items; float32 rows give
        float32 values. Two vectors give one number. Tensors on a GPU give a tensor there.
        """
        if is_vector(X) and is_vector(Z):
            return float(self(np.reshape(X, (1, -1)), np.reshape(Z, (1, -1)))[0, 0])
        if common_place(X, Z) is not None:
            return import_module("mercer.gpu.rows").matrix(self, X, Z)
        left, right = self.tables(X, Z)
        kernel, same = self.settled(left, right), right is left
        out = empty((len(left), len(right)), left.dtype)
        if out.size == 0:
            return out
        if (pairs := kernel.fast(left, right)) is not None:
            return pairs.matrix(out)
        on, centre = kernel.on, centre_of(left, right)
        x = Sides(left, centre)
        z = x if same else Sides(right, centre)
        return fill(
            out,
            lambda r, c: on(Tile(x[r], z[c], r.start - c.start if same else None)),
            symmetric=same,
            wide=WIDE if left.items else 1,
            width=left.width,
        )

    def fast(self, X: Table, Z: Table) -> GaussianPairs | None:
        """Values between these rows by loops of their own; None where there are none."""
        return None

    def diag(self, X: Any) -> Array:
        """k(x_i, x_i), shape (n,)."""
        x = self.tables(X)[0]
        return broadcast(self.settled(x).on(Diagonal(Side(x))), (len(x),), x.dtype).copy()

    def paired(self, X: Any, Z: Any) -> Array:
        """k(x_i, z_i), shape (n,): the diagonal of k(X, Z)."""
        left, right = self.tables(X, Z)
        if len(left) != len(right):
            raise ValueError(
                f"paired needs as many rows in X as in Z, got {len(left)} and {len(right)}."
            )
        k, pieces = self.settled(left, right), cuts(len(left), 64)  # no reading is of pairs alone
        return np.concatenate([np.diag(k(left[s], right[s])) for s in pieces])

    def gradient(self, X: Any, G: Any, Z: Any = None) -> Array:
        """d sum_ij G_ij k(x_i, z_j) / d parameter, in the order of `parameters()`, for G of
        shape (n, m).

        No (n, m, p) array is formed.
        """
        left, right = self.tables(X, Z)
        centre = centre_of(left, right)
        tile = Tile(Side(left, centre), Side(right, centre), 0 if right is left else None)
        weights = np.asarray(G)
        if weights.shape != (len(left), len(right)) or weights.dtype.kind not in "fiu":
            raise ValueError(
                f"G must be numbers of shape {(len(left), len(right))}, got {weights.dtype} of shape {weights.shape}."
            )
        return self.settled(left, right).dual(tile, weights)

    def dual(self, tile: Tile, G: Array) -> Array:
        """The gradient of sum(G * tile) by the parameters."""
        index = {path: i for i, path in enumerate(self.parameters())}
        k = substitute(self, lambda path, v: Dual(v, {index[path]: 1.0}))
        return contract(k.on(DualPairs(tile)), G, len(index))

    def input_gradient(self, X: Any, Z: Any = None) -> Array:
        """d k(x_i, z_j) / d x_i, shape (n, m, d), of small sets of rows of numbers.

        0 where a kernel has a kink, which is what central differences give. Sparse rows are made
        dense. Sums of it over many rows: `K.input_gradients(A)` of an operator, without an
        array of this size.

        >>> from mercer.kernels import Gaussian
        >>> Gaussian().input_gradient([[1.0]], [[0.0], [1.0]])
        array([[[-0.60653066],
                [ 0.        ]]])
        """
        return pair_gradients(self.on, *self.tables(X, Z))

    def source(self) -> KernelSource:
        """The formula as source for a fused tile.

        Parameters are arguments, so re-tuning never recompiles.
        """
        trace = Trace()
        names = {path: f"t{i}" for i, path in enumerate(self.parameters())}
        k = substitute(self, lambda path, v: Symbol(trace, names[path]))
        return trace.source(k.on(Traced(trace)), tuple(self.parameters().values()))

    def parameters(self) -> dict[str, float]:
        """The continuous parameters by path: what gradients are taken by.

        >>> from mercer.kernels import Gaussian
        >>> (0.5 * Gaussian(bandwidth=(1.0, 2.0))).parameters()
        {'factor': 0.5, 'kernel__bandwidth__0': 1.0, 'kernel__bandwidth__1': 2.0}
        """
        found: dict[str, float] = {}
        substitute(self, lambda path, v: found.setdefault(path, v))
        return found

    def distance(self, X: Any, Z: Any = None) -> Array:
        """|x - z|_K = sqrt(k(x, x) + k(z, z) - 2 k(x, z)), shape (n, m).

        To relative accuracy, however near x and z are.

        The formula is read by differences, so nothing cancels; a `Callable`'s own function
        gives values alone, and near pairs keep the digits that their difference leaves.

        >>> from mercer.kernels import Gaussian
        >>> Gaussian().distance([[1000.0]], [[1000.0 + 2.0**-30]]) / 2.0**-30
        array([[1.]])
        """
        left, right = self.tables(X, Z)
        dtype, same, on = left.dtype, right is left, self.settled(left, right).on
        left = left.astype(np.float64)
        right = left if same else right.astype(np.float64)
        out, centre = empty((len(left), len(right)), np.float64), centre_of(left, right)
        x = Sides(left, centre)
        z = x if same else Sides(right, centre)
        fill(
            out,
            lambda r, c: squares(on, Tile(x[r], z[c], r.start - c.start if same else None)),
            symmetric=same,
        )
        if same:
            np.fill_diagonal(out, 0)
        return np.sqrt(out, out=out).astype(dtype, copy=False)

    def proof(self, d: int | None = None) -> Proof:
        """Why this is a kernel (in d columns), as a derivation."""
        from mercer.kernels.proof import prove

        return prove(self, d)

    @property
    def inner(self) -> list[Kernel]:
        """The kernels that this one is made of."""
        parts = [getattr(self, f.name) for f in fields(self)]  # type: ignore[arg-type]
        return [
            k for p in parts for k in (p if isinstance(p, tuple) else (p,)) if isinstance(k, Kernel)
        ]

    @property
    def takes_items(self) -> bool:
        """Whether rows may be list-like items: where every leaf says so, or is of some columns."""
        from mercer.kernels.settle import takes_records

        inner = self.inner
        return all(k.takes_items for k in inner) or takes_records(self) if inner else self.items

    def settled(self, *rows: Table) -> Kernel:
        """The kernel with what is open of it, such as an alphabet, learnt from items."""
        if not any(r.items for r in rows):
            return self
        from mercer.kernels.settle import settled

        return settled(self, *rows)

    def tables(self, X: Any, Z: Any = None) -> tuple[Table, Table]:
        """Checked input; the second is the first where Z is None or X itself."""
        from mercer.kernels.domain import check_rows

        left = table(X, "X", items=self.takes_items)
        check_rows(self, left)
        if Z is None or Z is X:
            return left, left
        right = table(
            Z, "Z", items=self.takes_items, width=None if left.items else left.width
        ).in_order_of(left)
        check_rows(self, right, "Z")
        dtype = np.result_type(left.dtype, right.dtype)
        left, right = left.astype(dtype), right.astype(dtype)
        return (left, right) if left.sparse == right.sparse else (_sparse(left), _sparse(right))

    # algebra
    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Sum

        return Sum((self, literal(other))) if _is_operand(other) else NotImplemented

    def __radd__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Sum

        if isinstance(other, Real) and other == 0:
            return self  # as sum([k1, k2]) begins with 0
        return Sum((literal(other), self)) if _is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Product, Scale

        if isinstance(other, Kernel):
            return Product((self, other))
        return Scale(float(other), self) if isinstance(other, Real) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import Scale

        return Scale(float(other), self) if isinstance(other, Real) else NotImplemented

    def __truediv__(self, other: Any) -> Kernel:
        return self * (1 / float(other)) if isinstance(other, Real) else NotImplemented

    def __pow__(self, n: Any) -> Kernel:
        from mercer.kernels.algebra import Power

        return Power(self, n)

    def __sub__(self, other: Any) -> Kernel:
        raise ValueError(
            "kernels cannot be subtracted: the difference need not be positive semidefinite; use sums and products."
        )

    __rsub__ = __sub__

    def __neg__(self) -> Kernel:
        raise ValueError(
            "a kernel cannot be negated, as -k is not positive semidefinite; use a scale >= 0."
        )

    def compose(self, coefficients: Sequence[float]) -> Kernel:
        """a0 + a1 k + a2 k^2 + ..., coefficients >= 0."""
        from mercer.kernels.algebra import Series

        return Series(self, coefficients)  # type: ignore[arg-type]

    def weighted(self, f: Callable[[Any], Any]) -> Kernel:
        """f(x) k(x, z) f(z); f takes rows (n, d) and gives (n,)."""
        from mercer.kernels.algebra import Weighted

        return Weighted(self, f)

    def warped(self, f: Callable[[Any], Any]) -> Kernel:
        """k(f(x), f(z)); f takes rows (n, d) and gives (n, d'), row by row.

        It sees a few rows at a time.
        """
        from mercer.kernels.algebra import Warped

        return Warped(self, f)

    def normalized(self) -> Kernel:
        """k(x, z) / sqrt(k(x, x) k(z, z))."""
        from mercer.kernels.algebra import Normalized

        return Normalized(self)

    def mapped(self, matrix: Any) -> Kernel:
        """k(S x, S z) for a matrix S (d', d), of any rank; a vector (d,) is a diagonal."""
        from mercer.kernels.maps import Mapped

        return Mapped(self, matrix)

    def on_columns(self, columns: Sequence[int | str]) -> Kernel:
        """The kernel of some columns, by position, or by name with a dataframe."""
        from mercer.kernels.algebra import OnColumns

        return OnColumns(self, columns)  # type: ignore[arg-type]

    def over_sets(self, how: str = "mean") -> Any:
        """The mean, or the sum, of k over all pairs of members of two bags of items or rows."""
        return import_module("mercer.kernels.bags").OverSets(self, how)

    # printing
    def __repr__(self) -> str:
        """The expression; only parameters that differ from their defaults are shown."""
        shown = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in sorted(fields(self), key=lambda f: bool(f.kw_only))  # type: ignore[arg-type]
            if getattr(self, f.name) != f.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def inside(self, precedence: int) -> str:
        """The expression as an operand: in parentheses where it binds less tightly."""
        return repr(self) if self.precedence >= precedence else f"({self!r})"


def _is_operand(other: Any) -> bool:
    return isinstance(other, (Kernel, Real))


def literal(other: Any) -> Kernel:
    """A number as a constant kernel."""
    from mercer.kernels.algebra import Scale
    from mercer.kernels.dot import Constant

    return other if isinstance(other, Kernel) else Scale(other, Constant())


def _sparse(t: Table) -> Table:
    from scipy.sparse import csr_array

    return t if t.sparse else Table(csr_array(t.data), t.columns)
