"""Linear maps around a kernel, and the rows as a kernel measures them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Matrix, Table
from mercer.kernels.algebra import Normalized, OnColumns, Power, Scale, Warped
from mercer.kernels.base import Kernel
from mercer.kernels.params import FrozenArray
from mercer.kernels.stationary import Periodic, Stationary
from mercer.pairs.linear import mapped_rows
from mercer.pairs.side import per_column
from mercer.store import register


@register("kernels.Mapped")
class Mapped(Kernel):
    """k(S x, S z) for a matrix S

    Parameters
    ----------
    kernel : Kernel
        The k, of rows of d' numbers.
    matrix : array of shape (d', d) or (d,)
        S, of any rank; a vector is the diagonal of a square one.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> k = Gaussian().mapped([[1.0, -1.0]])
    >>> k([[3.0, 1.0]], [[2.0, 0.0]])
    array([[1.]])
    >>> k
    Gaussian().mapped([[1.0, -1.0]])
    """

    kernel: Kernel
    matrix: FrozenArray
    static: ClassVar[tuple[str, ...]] = ("matrix",)

    def check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"Mapped takes a kernel, got {self.kernel!r}.")
        try:
            self.matrix = FrozenArray.of(self.matrix)
        except (TypeError, ValueError) as e:
            raise ValueError(
                f"mapped takes a matrix (d', d) or a vector (d,) of finite numbers, got {self.matrix!r:.60}."
            ) from e
        if 0 in self.matrix.shape:
            raise ValueError(
                f"mapped takes a matrix of at least one row and column, got shape {self.matrix.shape}."
            )

    def on(self, p: Any) -> Any:
        return self.kernel.on(p.map(self.matrix))

    @property
    def takes_items(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{self.kernel.inside(5)}.mapped({self.matrix!r})"


def measured(kernel: Any, rows: Table) -> Matrix:
    """The rows as a kernel measures them: S x over the bandwidths, of a stationary kernel in some
    columns, mapped or scaled; of others the rows as they are.

    Between such rows plain distances are those of the kernel, up to one factor.

    >>> from mercer.inputs import table
    >>> from mercer.kernels import Gaussian
    >>> measured(2.0 * Gaussian((1.0, 2.0)).mapped([1.0, 8.0]), table([[1.0, 1.0]]))
    array([[1., 4.]])
    """
    found = None if rows.items else _measured(kernel, rows)
    return rows.data if found is None else found


def _measured(kernel: Any, rows: Table) -> Matrix | None:
    match kernel:
        case Scale(kernel=k) | Normalized(kernel=k) | Power(kernel=k):
            return _measured(k, rows)
        case OnColumns(kernel=k, columns=c):
            return _measured(k, rows.pick(c))
        case Mapped(kernel=k, matrix=S):
            return _measured(k, mapped_rows(rows, S))
        case Periodic():
            return None
        case Stationary(bandwidth=float()):
            return rows.data
        case Stationary(bandwidth=b):
            return _over(rows.data, 1 / per_column(b, rows.width))
    return None


def _over(X: Matrix, by: Any) -> Matrix:
    with np.errstate(over="ignore"):
        out = (X @ sp.diags_array(by)).tocsr() if sp.issparse(X) else X * by
    return out.astype(X.dtype, copy=False)


def positioned(k: Any, rows: Table) -> Any:
    """The same tree with columns given by position, for rows that then need no names.

    >>> import pandas as pd
    >>> from mercer.inputs import table
    >>> from mercer.kernels import Linear
    >>> rows = table(pd.DataFrame({"height": [1.0], "weight": [2.0]}))
    >>> positioned(Linear().on_columns(["weight"]), rows)
    Linear().on_columns([1])
    """
    if isinstance(k, tuple):
        return tuple(positioned(t, rows) for t in k)
    if rows.items:
        return k  # records have names for good
    if isinstance(k, OnColumns):
        at = tuple(map(rows.position, k.columns))
        return OnColumns(positioned(k.kernel, rows.pick(at)), at)
    if not isinstance(k, Kernel) or isinstance(k, Warped | Mapped):  # whose columns are their own
        return k
    return type(k)(
        **{name: positioned(value, rows) for name, value in k.get_params(deep=False).items()}
    )
