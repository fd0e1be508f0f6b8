"""Twins: an estimator of scikit-learn and ours on the same calls, so that a new scikit-learn is
checked by one run."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from mercer.inputs import Array

__all__ = ["Twin", "check_twin"]

ANSWERS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "transform",
    "inverse_transform",
    "score_samples",
)
FAMILIES = (NotFittedError, ValueError, TypeError, AttributeError)
Calls = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True, eq=False)
class Twin:
    """An estimator of scikit-learn, and ours with settings that mean the same.

    Parameters
    ----------
    theirs : estimator
        That of scikit-learn, not fitted.
    ours : estimator
        Ours, not fitted.
    X : array-like of shape (n, d), or list
        The rows of `fit`.
    y : array-like of shape (n,) or None
        Their targets.
    Z : array-like of shape (m, d), or list
        Rows that are new.
    tol : float or None, default=1e-6
        How far answers may lie apart, as a share of the largest; None compares shapes and kinds
        alone, as of maps that are drawn.
    renamed : dict of str by str, default={}
        What ours calls a method or a fitted attribute of theirs.
    without : dict of str by str, default={}
        The methods and fitted attributes of theirs that ours has not, and why; one that it has
        is an error here.
    differs : dict of str by str, default={}
        The answers and fitted attributes whose values mean something else, and why.

    Examples
    --------
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from mercer.lifts import Monomials
    >>> rows = np.arange(12.0).reshape(4, 3)
    >>> names = {"n_output_features_": "n_features_out_"}
    >>> check_twin(Twin(PolynomialFeatures(), Monomials(), rows, None, rows, renamed=names))
    """

    theirs: Any
    ours: Any
    X: Any
    y: Any
    Z: Any
    tol: float | None = 1e-6
    renamed: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)

    def fitted(self, *given: Any, **options: Any) -> tuple[Any, Any]:
        """Both, fitted to the rows, or to those that are given."""
        rows = given or ((self.X,) if self.y is None else (self.X, self.y))
        theirs, ours = clone(self.theirs), clone(self.ours)
        for m in (theirs, ours):
            _say(f"fit of {type(m).__name__} returns itself", m.fit(*rows, **options) is m)
        return theirs, ours

    def call(self, m: Any, method: str) -> Any:
        """What a method of either says of the new rows, or of the features of the new rows."""
        name = self.renamed.get(method, method) if type(m) is type(self.ours) else method
        return getattr(m, name)(m.transform(self.Z) if method == "inverse_transform" else self.Z)


def check_twin(twin: Twin) -> None:
    """Assert that ours answers as its twin does; a law that does not hold is named.

    Parameters
    ----------
    twin : Twin
        Both, and rows.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from mercer import KernelSVR
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> pair = Twin(SVR(gamma=0.5, tol=1e-9), KernelSVR(Gaussian(1.0), tol=1e-9), X, X[:, 0], X)
    >>> theirs, ours = pair.fitted()
    >>> bool(np.allclose(theirs.predict(X), ours.predict(X)))
    True
    """
    for law in (_names, _answers, _attributes, _scores, _weights, _sparse_rows, _refusals, _kinds):
        law(twin)


def methods(m: Any) -> set[str]:
    """The public methods of an estimator, but for those that scikit-learn makes."""
    settings = m.get_params(deep=False)
    return {
        name
        for name in dir(m)
        if not name.startswith(("_", "set_", "get_"))
        and not name.endswith("_")
        and name not in settings
        and callable(getattr(m, name, None))
    }


def attributes(m: Any) -> set[str]:
    """The public fitted attributes of an estimator, but for those that are to go."""
    names = {n for n in dir(m) if n.endswith("_") and not n.startswith("_")}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        return {n for n in names if _lasting(m, n)}


def _lasting(m: Any, name: str) -> bool:
    try:
        return hasattr(m, name)
    except FutureWarning:
        return False


def _names(twin: Twin) -> None:
    theirs, ours = twin.fitted()
    for name in sorted(methods(theirs) | attributes(theirs)):
        has = hasattr(ours, twin.renamed.get(name, name))
        if name in twin.without:
            _say(f"{name} is said to be missing, and is", not has)
        else:
            _say(f"ours has {name}", has)
    stale = set(twin.without) - set(dir(theirs))
    _say(f"what is said to be missing is there in theirs: {sorted(stale)}", not stale)


def _answers(twin: Twin) -> None:
    theirs, ours = twin.fitted()
    for method in sorted(methods(theirs) & {*ANSWERS} - set(twin.without)):
        a, b = (_dense(twin.call(m, method)) for m in (theirs, ours))
        _same(twin, method, a, b)
    if hasattr(theirs, "fit_transform") and "fit_transform" not in twin.without:
        a, b = (_dense(clone(m).fit_transform(twin.X, twin.y)) for m in (theirs, ours))
        _same(twin, "transform", a, b)


def _attributes(twin: Twin) -> None:
    theirs, ours = twin.fitted()
    for name in sorted(attributes(theirs) - set(twin.without)):
        a, b = (getattr(m, n) for m, n in ((theirs, name), (ours, twin.renamed.get(name, name))))
        if isinstance(a, np.ndarray | int | float) or sp.issparse(a):
            _same(twin, name, _dense(a), _dense(b))


def _scores(twin: Twin) -> None:
    theirs, ours = twin.fitted()
    if hasattr(theirs, "score") and "score" not in twin.without:
        a, b = (_dense(m.score(twin.X, twin.y)) for m in (theirs, ours))
        _same(twin, "score", a, b)


def _weights(twin: Twin) -> None:
    """Weights of rows are taken where theirs are, and mean the same."""
    if "sample_weight" not in inspect.signature(twin.theirs.fit).parameters:
        return
    taken = "sample_weight" in inspect.signature(twin.ours.fit).parameters
    if "sample_weight" in twin.differs:
        return
    _say("ours takes sample_weight", taken)
    w = np.random.default_rng(0).uniform(0.5, 1.5, len(twin.X))
    theirs, ours = twin.fitted(sample_weight=w)
    method = next(name for name in ANSWERS if hasattr(theirs, name))
    _same(twin, method, *(_dense(twin.call(m, method)) for m in (theirs, ours)))


def _sparse_rows(twin: Twin) -> None:
    """CSR rows are taken where theirs are, and say the same."""
    if not isinstance(twin.X, np.ndarray) or not get_tags(twin.theirs).input_tags.sparse:
        return
    _say("ours takes CSR rows", get_tags(twin.ours).input_tags.sparse)
    rows, new = sp.csr_array(twin.X), sp.csr_array(twin.Z)
    ours = clone(twin.ours).fit(rows, twin.y)
    method = next(name for name in ANSWERS if hasattr(ours, name))
    whole = twin.fitted()[1]
    dense, sparse = (_dense(getattr(m, method)(A)) for m, A in ((whole, twin.Z), (ours, new)))
    _say(f"{method} of CSR rows is that of dense ones", _near(sparse, dense, twin.tol or 1e-6))


def _refusals(twin: Twin) -> None:
    """What theirs refuses ours refuses, with an error of the same family."""
    for words, call in _wrong_calls(twin).items():
        theirs, ours = (_raised(call, m) for m in (twin.theirs, twin.ours))
        if theirs is None or words in twin.differs:
            continue
        family = next((f for f in FAMILIES if isinstance(theirs, f)), Exception)
        found = "nothing" if ours is None else type(ours).__name__
        _say(f"{words}: theirs raises {family.__name__}, ours {found}", isinstance(ours, family))


def _wrong_calls(twin: Twin) -> Calls:
    method = next(name for name in ANSWERS if hasattr(twin.theirs, name))
    first = (twin.X,) if twin.y is None else (twin.X, twin.y)
    calls: dict[str, Callable[[Any], Any]] = {
        "before fit": lambda m: getattr(m, method)(twin.Z),
        "an unknown setting": lambda m: m.set_params(no_such_setting=1),
    }
    if twin.y is not None:
        calls["too few targets"] = lambda m: m.fit(twin.X, twin.y[:-1])
        calls["no targets"] = lambda m: m.fit(twin.X)
    if isinstance(twin.X, np.ndarray):
        hole, far = twin.X.copy(), twin.X.copy()
        hole[0, 0], far[0, 0] = np.nan, np.inf
        calls |= {
            "a missing value": lambda m: m.fit(hole, *first[1:]),
            "an infinite value": lambda m: m.fit(far, *first[1:]),
            "a vector": lambda m: m.fit(twin.X[:, 0], *first[1:]),
            "three dimensions": lambda m: m.fit(twin.X[None], *first[1:]),
            "no rows": lambda m: m.fit(twin.X[:0], *(v[:0] for v in first[1:])),
            "complex rows": lambda m: m.fit(twin.X + 1j, *first[1:]),
            "words": lambda m: m.fit(np.array([["a"] * twin.X.shape[1]] * len(twin.X)), *first[1:]),
            "another width": lambda m: getattr(m.fit(*first), method)(twin.Z[:, :-1]),
            "a missing value later": lambda m: getattr(m.fit(*first), method)(hole),
        }
    return calls


def _raised(call: Callable[[Any], Any], m: Any) -> Exception | None:
    try:
        call(clone(m))
    except Exception as e:
        return e
    return None


def _kinds(twin: Twin) -> None:
    a, b = get_tags(twin.theirs), get_tags(twin.ours)
    _say("both are estimators of one type", a.estimator_type == b.estimator_type)
    _say(
        "targets are required by both or by none", a.target_tags.required == b.target_tags.required
    )


def _same(twin: Twin, name: str, a: Array, b: Array) -> None:
    if name in twin.differs:
        return
    _say(f"{name} has the shape {a.shape} of theirs, not {b.shape}", a.shape == b.shape)
    _say(f"{name} has values of one kind", a.dtype.kind == b.dtype.kind)
    if twin.tol is not None:
        _say(f"{name} is that of theirs", _near(a, b, twin.tol))


def _near(a: Array, b: Array, tol: float) -> bool:
    """Equal to a share of the largest value; labels and counts exactly."""
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    size = max(1.0, float(np.abs(a).max(initial=0)))
    return bool(np.allclose(a, b, rtol=0, atol=tol * size))


def _dense(A: Any) -> Array:
    return np.asarray(A.toarray() if sp.issparse(A) else A)


def _say(law: str, ok: Any) -> None:
    if not ok:
        raise AssertionError(f"the law does not hold: {law}")
