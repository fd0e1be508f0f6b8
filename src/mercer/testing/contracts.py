"""Contracts: what every kernel, lift, statistic and transformer of text must satisfy, ours and a
user's own."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer.inputs import Array, table
from mercer.kernels import Kernel
from mercer.kernels.domain import bounded
from mercer.kernels.params import limits
from mercer.lifts.algebra import reseeded
from mercer.pairs import Side
from mercer.text.contract import check_text_transformer

__all__ = ["check_kernel", "check_lift", "check_statistic", "check_text_transformer"]


def check_kernel(k: Kernel, X: Any = None) -> None:
    """Assert that k behaves as a kernel on X; a failing law is named.

    Parameters
    ----------
    k : Kernel
        The kernel.
    X : array-like of shape (n, d), or list of items, default=None
        The rows to look at; None is 12 rows of 2 columns, >= 0 for kernels of such rows.

    Examples
    --------
    >>> from mercer.kernels import Kernel
    >>> class Bump(Kernel):
    ...     width: float = 1.0
    ...     def on(self, p):
    ...         return 1 / (1 + p.sqdist(self.width)) ** 2
    >>> check_kernel(Bump(width=0.7))
    """
    if not isinstance(k, Kernel):
        raise ValueError(
            f"check_kernel takes a kernel, an object of a class that inherits from mercer.kernels.Kernel, got {k!r:.60}."
        )
    if X is None:
        X = np.random.default_rng(0).normal(size=(12, 2))
        X = np.abs(X) if bounded(k) else X
    for law in (_gram, _value, _kernel_precision, _gradients, _slopes, _source):
        law(k, X)


def _gram(k: Kernel, X: Any) -> None:
    K = k(X)
    half = len(K) // 2
    size = np.abs(K).max() + 1e-300
    _say("k(X) is finite", np.isfinite(K).all())
    whole = k(X, X[:])  # k(X) is one half, and its mirror image
    _say("k(X) equals its transpose", np.allclose(whole, whole.T, rtol=1e-8, atol=1e-10 * size))
    _say(
        "diag(X) is the diagonal of k(X)",
        np.allclose(k.diag(X), np.diag(K), rtol=1e-8, atol=1e-10 * size),
    )
    _say(
        "k(X) is positive semidefinite",
        np.linalg.eigvalsh((K + K.T) / 2)[0] >= -1e-9 * len(K) * size,
    )
    A, B = X[:half], X[half:]
    _say(
        "k(X, Z) equals k(Z, X) transposed",
        np.allclose(k(A, B), k(B, A).T, rtol=1e-7, atol=1e-9 * size),
    )
    _say(
        "k(X, Z) is the block of k(X)",
        np.allclose(k(A, B), K[:half, half:], rtol=1e-6, atol=1e-9 * size),
    )


def _value(k: Kernel, X: Any) -> None:
    twin = k.clone()
    _say(
        "a clone is equal and hashes the same",
        twin == k and hash(twin) == hash(k) and twin is not k,
    )
    _say("a copy is equal", copy.deepcopy(k) == k)
    _say("get_params gives what the constructor takes", type(k)(**k.get_params(deep=False)) == k)
    for name, value in k.parameters().items():
        twin.set_params(**{name: value / 2 if name in limits(k) else value * 2 + 1})
    _say(
        "changing a clone leaves the kernel as it was",
        k == k.clone() and (not k.parameters() or twin != k),
    )
    if (
        type(k).__module__ != "__main__"
        and "<locals>" not in type(k).__qualname__
        and _importable(k)
    ):
        _say("a pickle is equal", pickle.loads(pickle.dumps(k)) == k)


def _importable(k: Kernel) -> bool:
    """Whether pickle can name everything in k: functions written in place cannot be pickled."""
    functions = [v for v in k.get_params().values() if callable(v) and not isinstance(v, Kernel)]
    kinds = [type(v) for v in k.get_params().values() if isinstance(v, Kernel)]
    return not any(
        "<" in getattr(f, "__qualname__", "<") for f in (*functions, *kinds, type(k))
    ) and _found(type(k))


def _found(kind: type) -> bool:
    return getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind


def _kernel_precision(k: Kernel, X: Any) -> None:
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return
    X32 = X.astype(np.float32)
    K32, K = k(X32), k(X32.astype(np.float64))
    _say(
        "float32 in gives float32 out", K32.dtype == np.float32 and k.diag(X32).dtype == np.float32
    )
    _say(
        "float32 agrees with float64 to 1e-4",
        np.abs(K32 - K).max() <= 1e-4 * max(1.0, np.abs(K).max()),
    )


def _gradients(k: Kernel, X: Any) -> None:
    G = np.random.default_rng(1).normal(size=k(X).shape)
    analytic = k.gradient(X, G)
    _say("gradients are finite, also at distance zero", np.isfinite(analytic).all())
    numeric = np.array([_central(k, X, G, name, value) for name, value in k.parameters().items()])
    scale = np.abs(G).sum() * np.abs(k(X)).max() * 1e-7 + 1e-9
    _say(
        "gradients equal finite differences", np.allclose(analytic, numeric, rtol=1e-5, atol=scale)
    )


def _slopes(k: Kernel, X: Any) -> None:
    """By the rows, along one direction; a kernel that runs Python code says that it has none. At
    points between rows, as differences mean little next to a kink."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return
    rng, (A, B) = np.random.default_rng(2), np.array_split(X.astype(np.float64), 2)
    A = A + rng.uniform(0.2, 0.4, (len(A), 1)) * (np.roll(A, 1, axis=0) - A)
    A = np.maximum(A, 1e-3) if bounded(k) else A  # with room to either side
    try:
        G = k.input_gradient(A, B)
    except ValueError as e:
        _say("input_gradient gives slopes or says why not", "no derivative" in str(e))
        return
    v = 1e-5 * rng.uniform(0.5, 1.0, X.shape[1])
    numeric = (k(A + v, B) - k(A - v, B)) / 2
    scale = 1e-5 * max(1e-5, float(np.abs(numeric).max()))
    _say("input_gradient equals finite differences", np.allclose(G @ v, numeric, atol=scale))


def _central(k: Kernel, X: Any, G: Array, name: str, value: float) -> float:
    h = 1e-5 * max(abs(value), 1e-3)
    up, down = (
        float((G * k.clone().set_params(**{name: v})(X)).sum())
        for v in (value + h, max(value - h, 0.0))
    )
    return (up - down) / (value + h - max(value - h, 0.0))


def _source(k: Kernel, X: Any) -> None:
    rows = table(X, items=k.takes_items)
    try:
        source = k.source()
    except NotImplementedError as e:
        _say(
            "where there is no source, one sentence says why",
            len(str(e)) > 10 and "\n" not in str(e),
        )
        return
    K = k(X)
    scale = np.abs(K).max() + 1e-300
    _say(
        "the traced source gives the tile",
        np.allclose(source.evaluate(Side(rows), Side(rows)), K, rtol=1e-6, atol=1e-7 * scale),
    )


def check_lift(
    phi: Any, X: Any = None, *, y: Any = None, exact: bool = True, seeds: int = 60
) -> None:
    """Assert that phi is a feature map of its kernel on X; a failing law is named.

    With `exact=False` the map is random: its mean over seeds must be the kernel, within five
    standard errors.

    Parameters
    ----------
    phi : Lift
        The map, fitted or not.
    X : array-like of shape (n, d), default=None
        The rows to look at; None is 12 rows of 3 columns.
    y : array-like of shape (n,), default=None
        Targets, of maps that learn from them.
    exact : bool, default=True
        Whether phi(x)'phi(z) is its kernel, or is so on average.
    seeds : int, default=60
        How many draws the average is of.

    Examples
    --------
    >>> from mercer.lifts import Parabolic
    >>> check_lift(Parabolic())
    """
    X = np.random.default_rng(0).uniform(-1, 1, size=(12, 3)) if X is None else X
    fitted = clone(phi).fit(X, y)
    _shape(fitted, X)
    _repeatable(phi, fitted, X, y)
    _lift_precision(phi, X, y)
    _exact(fitted, X) if exact else _unbiased(phi, X, y, seeds)


def _dense(F: Any) -> Array:
    return np.asarray(F.toarray() if sp.issparse(F) else F)


def _shape(fitted: Any, X: Any) -> None:
    F = fitted.transform(X)
    _say("phi(X) has n_features_out_ columns", F.shape == (len(X), fitted.n_features_out_))
    _say("phi(X) is finite", np.isfinite(_dense(F)).all())
    names = fitted.get_feature_names_out()
    _say("every feature has a name", len(names) == F.shape[1])
    _say("names differ", len(set(names)) == len(names))


def _repeatable(phi: Any, fitted: Any, X: Any, y: Any) -> None:
    F = _dense(fitted.transform(X))
    _say(
        "rows are mapped alone as together",
        np.allclose(_dense(fitted.transform(X[:1])), F[:1], rtol=1e-6, atol=1e-7),
    )
    _say(
        "a pickle maps the same",
        np.array_equal(_dense(pickle.loads(pickle.dumps(fitted)).transform(X)), F),
    )
    if getattr(phi, "random_state", 0) is not None:
        _say(
            "the same seed gives the same map",
            np.array_equal(_dense(clone(phi).fit(X, y).transform(X)), F),
        )


def _lift_precision(phi: Any, X: Any, y: Any) -> None:
    X32 = np.asarray(X, dtype=np.float32)
    F32, F = (_dense(clone(phi).fit(A, y).transform(A)) for A in (X32, X32.astype(np.float64)))
    _say("float32 in gives float32 out", F32.dtype == np.float32)
    _say("float32 agrees with float64", np.abs(F32 - F).max() <= 1e-3 * max(1.0, np.abs(F).max()))


def _exact(fitted: Any, X: Any) -> None:
    F, K = _dense(fitted.transform(X)), fitted.kernel_(X)
    _say(
        "phi(X) @ phi(X).T is the kernel",
        np.allclose(F @ F.T, K, rtol=1e-8, atol=1e-9 * np.abs(K).max()),
    )


def _unbiased(phi: Any, X: Any, y: Any, seeds: int) -> None:
    fits = [reseeded(clone(phi), seed).fit(X, y) for seed in range(seeds)]
    grams = np.array([F @ F.T for F in (_dense(f.transform(X)) for f in fits)])
    error = grams.mean(0) - fits[0].kernel_(X)
    allowed = 5 * grams.std(0) / np.sqrt(seeds) + 1e-6 * np.abs(fits[0].kernel_(X)).max()
    worst = 5 * float(np.abs(error / allowed).max())
    _say(
        f"the mean over {seeds} seeds is the kernel (it is {worst:.1f} standard errors off)",
        worst <= 5,
    )


def check_statistic(
    of: Callable[[Any], Any],
    zero: Any,
    rows: Any,
    same: Callable[[Any, Any], None],
    *,
    subtracts: bool = False,
) -> None:
    """Assert the laws of merging: parts add up to the whole, and zero adds nothing.

    In any grouping and order.

    Parameters
    ----------
    of : callable
        Makes the statistic of some rows.
    zero : statistic
        That of no rows.
    rows : array-like of shape (n, d)
        The rows, which are cut into parts.
    same : callable
        `same(a, b)` asserts that two statistics are equal (to rounding).
    subtracts : bool, default=False
        Whether whole - part is the rest as well.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.stats import Sample
    >>> def same(a, b): assert np.array_equal(a.rows, b.rows)
    >>> rows = np.arange(40.0).reshape(-1, 2)
    >>> check_statistic(lambda r: Sample.of(r, 5), Sample.of(rows[:0], 5), rows, same)
    """
    n = rows.shape[0]
    a, b, c = (of(rows[s]) for s in (slice(0, n // 3), slice(n // 3, n // 2), slice(n // 2, n)))
    whole = of(rows)
    same(a + b + c, whole)
    same(a + (b + c), whole)
    same(c + a + b, whole)
    same(whole + zero, whole)
    same(zero + whole, whole)
    if subtracts:
        same(whole - b, a + c)


def _say(law: str, ok: Any) -> None:
    if not ok:
        raise AssertionError(f"the law does not hold: {law}")
