"""The contract of a kernel."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

from mercer.inputs import Array, table
from mercer.kernels import Kernel
from mercer.pairs import Side


def check_kernel(k: Kernel, X: Any = None) -> None:
    """Assert that k behaves as a kernel on X; a failing law is named.

    Parameters
    ----------
    k : Kernel
        The kernel.
    X : array-like of shape (n, d), or list of items, default=None
        The rows to look at; None is 12 rows of 2 columns.

    Examples
    --------
    >>> from mercer.kernels import Kernel
    >>> class Bump(Kernel):
    ...     width: float = 1.0
    ...     def on(self, p):
    ...         return 1 / (1 + p.sqdist(self.width)) ** 2
    >>> check_kernel(Bump(width=0.7))
    """
    X = np.random.default_rng(0).normal(size=(12, 2)) if X is None else X
    for law in (_gram, _value, _precision, _gradients, _source):
        law(k, X)


def _say(law: str, ok: Any) -> None:
    if not ok:
        raise AssertionError(f"the law does not hold: {law}")


def _gram(k: Kernel, X: Any) -> None:
    K = k(X)
    half = len(K) // 2
    size = np.abs(K).max() + 1e-300
    _say("k(X) is finite", np.isfinite(K).all())
    _say("k(X) equals its transpose", np.allclose(K, K.T, rtol=1e-8, atol=1e-10 * size))
    _say("diag(X) is the diagonal of k(X)", np.allclose(k.diag(X), np.diag(K), rtol=1e-8, atol=1e-10 * size))
    _say("k(X) is positive semidefinite", np.linalg.eigvalsh((K + K.T) / 2)[0] >= -1e-9 * len(K) * size)
    A, B = X[:half], X[half:]
    _say("k(X, Z) equals k(Z, X) transposed", np.allclose(k(A, B), k(B, A).T, rtol=1e-7, atol=1e-9 * size))
    _say("k(X, Z) is the block of k(X)", np.allclose(k(A, B), K[:half, half:], rtol=1e-6, atol=1e-9 * size))


def _value(k: Kernel, X: Any) -> None:
    twin = k.clone()
    _say("a clone is equal and hashes the same", twin == k and hash(twin) == hash(k) and twin is not k)
    _say("a copy is equal", copy.deepcopy(k) == k)
    _say("get_params gives what the constructor takes", type(k)(**k.get_params(deep=False)) == k)
    for name, value in k.parameters().items():
        twin.set_params(**{name: value * 2 + 1})
    _say("changing a clone leaves the kernel as it was", k == k.clone() and (not k.parameters() or twin != k))
    if type(k).__module__ != "__main__" and "<locals>" not in type(k).__qualname__ and _importable(k):
        _say("a pickle is equal", pickle.loads(pickle.dumps(k)) == k)


def _importable(k: Kernel) -> bool:
    """Whether pickle can name everything in k: functions written in place cannot be pickled."""
    functions = [v for v in k.get_params().values() if callable(v) and not isinstance(v, Kernel)]
    kinds = [type(v) for v in k.get_params().values() if isinstance(v, Kernel)]
    return not any("<" in getattr(f, "__qualname__", "<") for f in (*functions, *kinds, type(k))) and _found(type(k))


def _found(kind: type) -> bool:
    import sys

    return getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind


def _precision(k: Kernel, X: Any) -> None:
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return
    X32 = X.astype(np.float32)
    K32, K = k(X32), k(X32.astype(np.float64))
    _say("float32 in gives float32 out", K32.dtype == np.float32 and k.diag(X32).dtype == np.float32)
    _say("float32 agrees with float64 to 1e-4", np.abs(K32 - K).max() <= 1e-4 * max(1.0, np.abs(K).max()))


def _gradients(k: Kernel, X: Any) -> None:
    G = np.random.default_rng(1).normal(size=k(X).shape)
    analytic = k.gradient(X, G)
    _say("gradients are finite, also at distance zero", np.isfinite(analytic).all())
    numeric = np.array([_central(k, X, G, name, value) for name, value in k.parameters().items()])
    scale = np.abs(G).sum() * np.abs(k(X)).max() * 1e-7 + 1e-9
    _say("gradients equal finite differences", np.allclose(analytic, numeric, rtol=1e-5, atol=scale))


def _central(k: Kernel, X: Any, G: Array, name: str, value: float) -> float:
    h = 1e-5 * max(abs(value), 1e-3)
    up, down = (float((G * k.clone().set_params(**{name: v})(X)).sum()) for v in (value + h, max(value - h, 0.0)))
    return (up - down) / (value + h - max(value - h, 0.0))


def _source(k: Kernel, X: Any) -> None:
    rows = table(X, items=k.takes_items)
    try:
        source = k.source()
    except NotImplementedError as e:
        _say("where there is no source, one sentence says why", len(str(e)) > 10 and "\n" not in str(e))
        return
    K = k(X)
    scale = np.abs(K).max() + 1e-300
    _say("the traced source gives the tile", np.allclose(source.evaluate(Side(rows), Side(rows)), K, rtol=1e-6, atol=1e-7 * scale))
