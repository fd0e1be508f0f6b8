"""Kernel tests with permutation p-values: are two samples alike (MMD), do two columns of data
depend on each other (HSIC)?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Table, table
from mercer.invariants import Floats
from mercer.kernels import Kernel
from mercer.kernels.base import whole
from mercer.kernels.defaults import resolve
from mercer.lifts.base import stream_of
from mercer.linalg.precondition import RPCholesky
from mercer.models.settings import KernelSetting, Seed
from mercer.operators.kernel import KernelOperator
from mercer.ops.philox import Stream, permutation
from mercer.store import register

COLUMNS = 256  # permutations that are multiplied with K at once
DENSE = 2000  # rows up to which both kernel matrices of HSIC are held whole
RANK = 500  # of their factors beyond


@register("two_sample.TestResult")
@dataclass(frozen=True, eq=False)
class TestResult:
    """A statistic and p = (1 + how many of permutations are as large) / (1 + their number).

    The p-value is valid for any number of permutations: under the null hypothesis P(p <= a) <=
    a.

    Parameters
    ----------
    statistic : float
        The statistic of the samples.
    pvalue : float
        The p.
    null : ndarray of shape (n_permutations,)
        The statistics under permutations.

    Examples
    --------
    >>> TestResult.of(np.array([3.0, 1.0, 2.0, 0.5])).pvalue
    0.25
    >>> TestResult.of(np.array([3.0, 1.0, 2.0, 0.5]))
    TestResult(statistic=3, pvalue=0.25, of 3 permutations)
    """

    __test__ = False  # not a test of pytest's

    statistic: float
    pvalue: float
    null: Array

    must = dict(null=Floats(None, finite=False))

    def __repr__(self) -> str:
        return f"TestResult(statistic={self.statistic:.6g}, pvalue={self.pvalue:.6g}, of {len(self.null):,} permutations)"

    @classmethod
    def of(cls, values: Array) -> TestResult:
        """From the statistic and those of permutations; equal ones may differ by rounding."""
        _check_finite(values)
        as_large = values[1:] >= values[0] - 1e-10 * np.abs(values).max(initial=0)
        return cls(float(values[0]), (1 + int(as_large.sum())) / len(values), values[1:])


def _check_finite(values: Array) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            "kernel values of X or Y are too large for sums of floating-point numbers; scale the columns first."
        )


def mmd_test(
    X: Any,
    Y: Any,
    kernel: KernelSetting = None,
    *,
    n_permutations: int = 500,
    unbiased: bool = True,
    random_state: Seed = None,
) -> TestResult:
    """Do X and Y come from one distribution? MMD^2 against the rows shuffled between them.

    MMD^2 = |mean phi(x) - mean phi(y)|^2. Columns with names are compared by name. Memory is n
    x 256 numbers: K is seen through products with the indicators of the shuffled samples.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, or list of items
        One sample.
    Y : as X, of shape (m, d)
        The other.
    kernel : Kernel or str, default=None
        A kernel, a name, or None: a Gaussian scaled to all rows. Characteristic kernels
        (Gaussian, Laplace, Matern) see every difference.
    n_permutations : int, default=500
        How often rows are shuffled.
    unbiased : bool, default=True
        Leave the pairs of a row with itself out (then MMD^2 may be below 0), which needs two
        rows on each side.
    random_state : int, Generator or None, default=None
        The seed of the shuffles.

    Returns
    -------
    TestResult

    References
    ----------
    Gretton, Borgwardt, Rasch, Scholkopf and Smola, A kernel two-sample test (2012).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(100, 2)), rng.normal(size=(80, 2))
    >>> mmd_test(X, Y, random_state=0).pvalue > 0.05 > mmd_test(X, Y + 1, random_state=0).pvalue
    True
    """
    rows, n = _joined(X, Y, kernel)
    N = len(rows)
    if unbiased and min(n, N - n) < 2:
        raise ValueError(
            f"the unbiased statistic needs two rows on each side, got {n} and {N - n}; give unbiased=False."
        )
    op = KernelOperator(resolve(kernel, rows), rows)
    with np.errstate(over="ignore", invalid="ignore"):
        ones, diag = (op @ np.ones(N)).astype(np.float64), op.diag().astype(np.float64) * unbiased
        _check_finite(ones)
        parts = [
            _mmd(U, op, ones, diag, unbiased)
            for U in _indicators(n, N, n_permutations, stream_of(random_state))
        ]
    return TestResult.of(np.concatenate(parts))


def _mmd(U: Array, op: KernelOperator, ones: Array, diag: Array, unbiased: bool) -> Array:
    """MMD^2 of the samples that the columns of U (N, b) mark, from sums over their blocks of K."""
    n, m = U[:, 0].sum(), len(U) - U[:, 0].sum()
    inside = np.einsum("ib,ib->b", U, op @ U.astype(op.dtype), dtype=np.float64)
    across = ones @ U - inside
    xx, yy = inside - diag @ U, ones.sum() - inside - 2 * across - diag @ (1 - U)
    return np.asarray(xx / (n * (n - unbiased)) + yy / (m * (m - unbiased)) - 2 * across / (n * m))


def _indicators(n: int, N: int, count: int, stream: Stream) -> Iterator[Array]:
    """The sample as it is, then shuffled ones, some columns at a time."""
    count = whole(count, "n_permutations", least=1)
    for first in range(0, count + 1, COLUMNS):
        U = np.zeros((N, min(COLUMNS, count + 1 - first)))
        for j in range(U.shape[1]):
            U[_shuffle(first + j, N, stream)[:n], j] = 1
        yield U


def _shuffle(i: int, n: int, stream: Stream) -> Array:
    """The i-th order of n rows; the first is theirs."""
    return permutation(stream.child(i), n) if i else np.arange(n)


def _joined(X: Any, Y: Any, kernel: KernelSetting) -> tuple[Table, int]:
    """The rows of both, in float64 (shuffles that tie differ by rounding only), and how many
    are of X.
    """
    items = isinstance(kernel, Kernel) and kernel.takes_items
    a = table(X, "X", items=items)
    b = table(Y, "Y", items=items, width=None if a.items else a.width)
    if a.items or b.items:
        return Table([*a.data, *b.data]), len(a)
    b = _by_name(b, a)
    stack = (
        sp.vstack([sp.csr_array(a.data), sp.csr_array(b.data)], format="csr")
        if a.sparse or b.sparse
        else np.vstack([a.data, b.data])
    )
    return Table(stack, a.columns).astype(np.float64), len(a)


def _by_name(b: Table, a: Table) -> Table:
    """b with the columns of a; refused where both have names, but other ones."""
    if a.columns and b.columns and (other := set(b.columns) ^ set(a.columns)):
        listed = ", ".join(sorted(other)[:5])
        raise ValueError(
            f"X and Y have columns of different names ({listed}); rename or drop those that only one has."
        )
    return b.in_order_of(a)


def hsic_test(
    X: Any,
    Y: Any,
    kernel: KernelSetting = None,
    kernel_y: KernelSetting = None,
    *,
    n_permutations: int = 500,
    unbiased: bool = False,
    random_state: Seed = None,
) -> TestResult:
    """Do the rows of X and Y depend on each other? HSIC against Y's rows shuffled.

    HSIC = |covariance of phi(x) and psi(y)|^2. Up to 2,000 rows both kernel matrices are held;
    beyond, their Cholesky factors at 500 random pivots stand for them, in O(n) memory. The
    pivots of X and of Y are drawn independently of each other, so that the p-value is as valid
    whatever the ranks of the kernels; the test sees as much of a dependence as the factors do,
    and so less where kernels are narrow.

    Parameters
    ----------
    X : array-like of shape (n, d), data frame, or list of items
        One part of the rows.
    Y : as X, of shape (n, d')
        The other.
    kernel : Kernel or str, default=None
        Of X; None is a Gaussian scaled to it.
    kernel_y : Kernel or str, default=None
        Of Y; None is a Gaussian scaled to it.
    n_permutations : int, default=500
        How often the rows of Y are shuffled.
    unbiased : bool, default=False
        Leave the pairs of a row with itself out; needs four rows.
    random_state : int, Generator or None, default=None
        The seed of shuffles and pivots.

    Returns
    -------
    TestResult

    References
    ----------
    Gretton, Fukumizu, Teo, Song, Scholkopf and Smola, A kernel statistical test of independence
    (2007); Song, Smola, Gretton, Bedo and Borgwardt (2012).

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> noise = np.random.default_rng(1).normal(size=(100, 1))
    >>> hsic_test(x, x**2 + 0.1 * noise, random_state=0).pvalue < 0.05
    True
    >>> hsic_test(x, noise, random_state=0).pvalue > 0.05
    True
    """
    a, b = (_rows(V, k, name) for V, k, name in ((X, kernel, "X"), (Y, kernel_y, "Y")))
    if len(a) != len(b):
        raise ValueError(f"X has {len(a)} rows, but Y has {len(b)}; give pairs of rows.")
    if unbiased and len(a) < 4:
        raise ValueError(
            f"the unbiased statistic needs four rows, got {len(a)}; give unbiased=False."
        )
    stream, count = stream_of(random_state), whole(n_permutations, "n_permutations", least=1)
    of = _unbiased if unbiased else _biased
    with np.errstate(over="ignore", invalid="ignore"):
        left, right = (
            _Matrix.of(resolve(kernel, a), a, stream.child(0, 0)),
            _Matrix.of(resolve(kernel_y, b), b, stream.child(0, 1)),
        )
        values = [of(left, right, _shuffle(i, len(a), stream)) for i in range(count + 1)]
    return TestResult.of(np.array(values))


def _rows(V: Any, kernel: KernelSetting, name: str) -> Table:
    return table(V, name, items=isinstance(kernel, Kernel) and kernel.takes_items)


@dataclass(frozen=True, eq=False)
class _Matrix:
    """A kernel matrix K, or a factor F with K = F F'; its row sums and diagonal."""

    K: Array
    whole: bool
    ones: Array
    diag: Array

    @classmethod
    def of(cls, kernel: Kernel, rows: Table, stream: Stream) -> _Matrix:
        """`stream` draws the pivots: pivots that two matrices share would look like a
        dependence.
        """
        rows = rows.astype(np.float64)
        _check_finite(kernel.diag(rows))
        if len(rows) <= DENSE:
            K = np.asarray(kernel(rows), np.float64)
            return cls(K, True, K.sum(1), np.diag(K).copy())
        F = RPCholesky(seed=int(stream.key()[0])).factor(
            KernelOperator(kernel, rows), RANK, np.full(len(rows), 1e-9), np.dtype(np.float64)
        )
        return cls(F, False, F @ F.sum(0), np.einsum("ij,ij->i", F, F))

    def inner(self, other: _Matrix, order: Array) -> float:
        """sum_ij K_ij L_p(i)p(j)"""
        if self.whole:
            return float(np.einsum("ij,ij->", self.K, other.K[np.ix_(order, order)]))
        return float(np.square(self.K.T @ other.K[order]).sum())


def _biased(K: _Matrix, L: _Matrix, order: Array) -> float:
    """tr(K H L H) / n^2"""
    n, s = len(order), L.ones[order]
    return (K.inner(L, order) - 2 * float(K.ones @ s) / n + K.ones.sum() * s.sum() / n**2) / n**2


def _unbiased(K: _Matrix, L: _Matrix, order: Array) -> float:
    n, r, s = len(order), K.ones - K.diag, (L.ones - L.diag)[order]
    inner = K.inner(L, order) - float(K.diag @ L.diag[order])
    return (inner + r.sum() * s.sum() / ((n - 1) * (n - 2)) - 2 * float(r @ s) / (n - 2)) / (
        n * (n - 3)
    )
