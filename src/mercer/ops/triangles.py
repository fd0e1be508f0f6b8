"""Products and solutions with a matrix that is read on one side of its diagonal: for few columns by
BLAS's routines of vectors, as those of matrices prepare it anew, and where memory limits these by
threads that have a part of it each."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.blas import get_blas_funcs

from mercer.inputs import Array
from mercer.ops import symmetric

FEW_COLUMNS = 4


def multiplied(A: Array, V: Array) -> Array:
    """A V of a symmetric A that is read on and above its diagonal.

    >>> multiplied(np.array([[2.0, 1.0], [9.0, 3.0]]), np.array([[1.0], [1.0]]))
    array([[3.],
           [4.]])
    """
    with np.errstate(invalid="ignore"):  # of what is not read, where V is wider
        return _multiplied(A, V)


def _multiplied(A: Array, V: Array) -> Array:
    a, lower = (A, 0) if A.flags.f_contiguous else (A.T, 1)  # as BLAS takes no other order
    if V.shape[1] > FEW_COLUMNS:
        (symm,) = get_blas_funcs(("symm",), (A, V))
        return np.asarray(symm(1.0, a, V, lower=lower))
    out = np.empty(V.shape, np.result_type(A, V), order="F")
    if A.nbytes >= symmetric.LANE_BYTES and A.flags.c_contiguous and A.dtype == V.dtype:
        for j in range(V.shape[1]):
            symmetric.times(A, np.ascontiguousarray(V[:, j]), out[:, j])
        return out
    (symv,) = get_blas_funcs(("symv",), (A, V))
    for j in range(V.shape[1]):
        symv(1.0, a, V[:, j], y=out[:, j], lower=lower, overwrite_y=1)
    return out


def solved(L: Array, B: Array) -> Array:
    """(L L')^-1 B of an L that is read on and below its diagonal.

    >>> solved(np.asfortranarray([[2.0, 9.0], [1.0, 1.0]]), np.array([[4.0], [4.0]]))
    array([[0.],
           [2.]])
    """
    if B.shape[1] > FEW_COLUMNS:
        return np.asarray(cho_solve((L, True), B, check_finite=False))
    (trsv,) = get_blas_funcs(("trsv",), (L, B))
    X = np.array(B, L.dtype, order="F")
    for j in range(X.shape[1]):
        for trans in (0, 1):
            trsv(L, X[:, j], lower=1, trans=trans, overwrite_x=1)
    return X
