"""The contract of a lift."""
from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer.inputs import Array


def check_lift(phi: Any, X: Any = None, *, exact: bool = True, seeds: int = 60) -> None:
    """Assert that phi is a feature map of its kernel on X; a failing law is named.

    With `exact=False` the map is random: its mean over seeds must be the kernel, within five
    standard errors.

    Parameters
    ----------
    phi : Lift
        The map, fitted or not.
    X : array-like of shape (n, d), default=None
        The rows to look at; None is 12 rows of 3 columns.
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
    fitted = clone(phi).fit(X)
    _shape(fitted, X)
    _repeatable(phi, fitted, X)
    _precision(phi, X)
    _exact(fitted, X) if exact else _unbiased(phi, X, seeds)


def _say(law: str, ok: Any) -> None:
    if not ok:
        raise AssertionError(f"the law does not hold: {law}")


def _dense(F: Any) -> Array:
    return np.asarray(F.toarray() if sp.issparse(F) else F)


def _shape(fitted: Any, X: Any) -> None:
    F = fitted.transform(X)
    _say("phi(X) has n_features_out_ columns", F.shape == (len(X), fitted.n_features_out_))
    _say("phi(X) is finite", np.isfinite(_dense(F)).all())
    names = fitted.get_feature_names_out()
    _say("every feature has a name", len(names) == F.shape[1])
    _say("names differ", len(set(names)) == len(names))


def _repeatable(phi: Any, fitted: Any, X: Any) -> None:
    F = _dense(fitted.transform(X))
    _say("rows are mapped alone as together", np.allclose(_dense(fitted.transform(X[:1])), F[:1], rtol=1e-6, atol=1e-7))
    _say("a pickle maps the same", np.array_equal(_dense(pickle.loads(pickle.dumps(fitted)).transform(X)), F))
    if getattr(phi, "random_state", 0) is not None:
        _say("the same seed gives the same map", np.array_equal(_dense(clone(phi).fit(X).transform(X)), F))


def _precision(phi: Any, X: Any) -> None:
    X32 = np.asarray(X, dtype=np.float32)
    F32, F = (_dense(clone(phi).fit(A).transform(A)) for A in (X32, X32.astype(np.float64)))
    _say("float32 in gives float32 out", F32.dtype == np.float32)
    _say("float32 agrees with float64", np.abs(F32 - F).max() <= 1e-3 * max(1.0, np.abs(F).max()))


def _exact(fitted: Any, X: Any) -> None:
    F, K = _dense(fitted.transform(X)), fitted.kernel_(X)
    _say("phi(X) @ phi(X).T is the kernel", np.allclose(F @ F.T, K, rtol=1e-8, atol=1e-9 * np.abs(K).max()))


def _unbiased(phi: Any, X: Any, seeds: int) -> None:
    from mercer.lifts.algebra import reseeded

    fits = [reseeded(clone(phi), seed).fit(X) for seed in range(seeds)]
    grams = np.array([F @ F.T for F in (_dense(f.transform(X)) for f in fits)])
    error = grams.mean(0) - fits[0].kernel_(X)
    allowed = 5 * grams.std(0) / np.sqrt(seeds) + 1e-6 * np.abs(fits[0].kernel_(X)).max()
    worst = 5 * float(np.abs(error / allowed).max())
    _say(f"the mean over {seeds} seeds is the kernel (it is {worst:.1f} standard errors off)", worst <= 5)
