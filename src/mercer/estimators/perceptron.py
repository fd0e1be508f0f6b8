"""Perceptron over explicit features: an ordered scan that updates at every mistake, in a stream or over several passes."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state

from mercer.estimators.base import BATCH_BYTES, OverFeatures, all_or_nothing
from mercer.inputs import Array, Matrix
from mercer.invariants import Counts, Is
from mercer.kernels.base import whole
from mercer.learners.perceptron import Bound, State, best_bound, measure
from mercer.lifts import Identity
from mercer.models.settings import check_same_classes, coded, two_or_more
from mercer.plan import Plan
from mercer.store import register


@register("perceptron.Perceptron")
class Perceptron(ClassifierMixin, OverFeatures):
    """w <- w + y phi(x) at every mistake y f(x) <= 0, row after row; f(x) = phi(x)'w + b, the offset b one added dimension.

    The mistakes are a multiset: a row counts as often as it was one, `counts_`. More than two classes have a weight vector
    each: where a rival scores no less than the label, the label gains phi(x) and the best rival loses it. The order of the
    rows matters, so there is no `merge` and no `forget`: a scan does not merge. `partial_fit` continues it, and a stream in
    batches is exactly one pass over the whole, over the same map.

    Parameters
    ----------
    kernel, via, lift : the features, as in `KernelRidge`; without kernel and lift the columns of X themselves.
    fit_intercept : whether there is an offset.
    average : predict by the mean of the weights over all rows seen, instead of the last ones.
    max_iter : passes of `fit` at most; a pass without a mistake is the last.
    shuffle : a new order of the rows in every pass of `fit`; by default their own.
    comparator : weights u (D,) or (C, D), with the offset last where there is one: `bound_` then tells, at any time, how many
        mistakes there can have been at most for this u, (R |u| / margin)^2 or by its hinge loss.

    Attributes: `coef_`, `intercept_`, `classes_`, `mistakes_`, `counts_` (after `fit`), `n_iter_`, `plan_`, `lift_`.

    Rosenblatt, The perceptron (1958); Freund and Schapire (1999) for the average; Crammer and Singer (2003) for many classes.

    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["low", "low", "high", "high"]
    >>> m = Perceptron().fit(X, y)
    >>> m.predict(X).tolist(), m.mistakes_, bool(m.mistakes_ <= m.mistake_bound(X, y))
    (['low', 'low', 'high', 'high'], 9, True)
    """

    must = dict(state_=Is("perceptron.State"), counts_=Counts(None))

    def _laws(self) -> str | None:
        K = len(self.classes_)
        shape = K if K > 2 else 1, self.n_features_lifted_ + 1
        return None if self.state_.W.shape == shape and K > 1 else f"has weights of shape {self.state_.W.shape}, not {shape}"

    def __init__(
        self, kernel: Any = None, via: Any = "auto", *, lift: Any = None, fit_intercept: bool = True, average: bool = False,
        max_iter: int = 100, shuffle: bool = False, comparator: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.comparator = comparator
        self.random_state = random_state

    state_: State
    classes_: Array
    _bound: Bound | None = None

    # fitting
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Scan the rows in their order, until a pass makes no mistake or `max_iter` passes are made."""
        passes = whole(self.max_iter, "max_iter", least=1)
        X, y = self._checked(X, y, reset=True)
        self.classes_ = two_or_more(np.unique(y))
        labels = self._labels(y)
        self._begin(X)
        self.counts_ = np.zeros(len(labels), np.int64)
        self.n_iter_ = self._passes(X, labels, passes)
        why = "no mistake in the last pass" if self.converged_ else f"mistakes up to the last of {self.n_iter_} passes"
        self.plan_ = self._scan_plan(len(labels), why)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Continue the scan with these rows. A batch that is refused leaves the model as it was."""
        first = not hasattr(self, "state_")
        X, y = self._checked(X, y, reset=first)
        if first:
            self.classes_ = two_or_more(np.unique(y if classes is None else classes))
        else:
            check_same_classes(classes, self.classes_)
        labels = self._labels(y)
        if first:
            self._begin(X, stream=True)
        self._scan(self._pieces(X, labels))
        for name in ("counts_", "converged_"):  # of the rows of one `fit` only
            self.__dict__.pop(name, None)
        self.n_iter_ = max(1, getattr(self, "n_iter_", 1))
        self.plan_ = self._scan_plan(self.state_.seen, "a stream: every row is seen once, in the order of its coming")
        return self

    def _scan_plan(self, n: int, why: str) -> Plan:
        rows, D = self.state_.W.shape
        settings = {"lift": type(self.lift_).__name__, "n_features": D - 1, "rows": n, "mistakes": self.mistakes_}
        return Plan("ordered scan", why, settings, 16.0 * rows * D + BATCH_BYTES, 2.0 * n * D * rows * self.n_iter_, self.n_iter_)

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Matrix, Array]:
        X, y = self._check_Xy(X, y, reset=reset)
        check_classification_targets(y)
        return X, y

    def _labels(self, y: Array) -> Array:
        """-1 and 1, or positions in `classes_`."""
        return coded(y, self.classes_)

    def _begin(self, X: Matrix, *, stream: bool = False) -> None:
        self._fit_lift(X, stream=stream)
        self.state_ = State.zero(len(self.classes_), self.n_features_lifted_)
        self._bound = None
        if self.comparator is not None:
            self._bound = Bound(float(np.linalg.norm(self._as_weights(self.comparator))))

    def _choose_lift(self, X: Matrix, weight: Array | None = None, *, stream: bool = False) -> Any:
        self._method()  # refuses a via that is none, also where nothing is to be lifted
        return Identity() if self.kernel is None and self.lift is None else super()._choose_lift(X, weight, stream=stream)

    def _passes(self, X: Matrix, labels: Array, most: int) -> int:
        """Scan until all is well; the number of passes."""
        rng = check_random_state(self.random_state)
        small = 8 * X.shape[0] * self.n_features_lifted_ <= BATCH_BYTES
        held = list(self._pieces(X, labels)) if small and not self.shuffle else None
        for step in range(1, most + 1):
            order = rng.permutation(len(labels)) if self.shuffle else slice(None)
            wrong = self._scan(self._pieces(X[order], labels[order]) if held is None else held)
            self.counts_[order] += wrong
            self.converged_ = not wrong.any()
            if self.converged_:
                return step
        return most

    def _scan(self, pieces: Iterable[tuple[Matrix, Array]]) -> Array:
        """One pass over the pieces, on a copy of the state that replaces it at the end."""
        state, bound, found = self.state_.copy(), self._bound, []
        for F, labels in pieces:
            if bound is not None:
                bound = bound.add(F, labels, self._as_weights(self.comparator), offset=self.fit_intercept)
            found.append(state.scan(F, labels, offset=self.fit_intercept))
        if not (np.isfinite(state.W).all() and np.isfinite(state.U).all()):
            raise ValueError("the features of X are too large for sums of floating-point numbers; scale the columns first.")
        self.state_, self._bound = state, bound
        return np.concatenate(found)

    def _pieces(self, X: Matrix, labels: Array) -> Iterator[tuple[Matrix, Array]]:
        """Features and labels, batch by batch; sparse features stay sparse."""
        return ((self._transform(X[rows]), labels[rows]) for rows in self._batches(X.shape[0]))

    # asking
    @property
    def mistakes_(self) -> int:
        """Mistakes made so far, in all passes."""
        check_is_fitted(self, "state_")
        return self.state_.mistakes

    @property
    def bound_(self) -> float:
        """No more mistakes than this can have been made, for the comparator given."""
        check_is_fitted(self, "state_")
        if self._bound is None:
            raise AttributeError("bound_ needs a comparator from the start; give comparator=u, or ask mistake_bound(X, y).")
        return self._bound.value

    def mistake_bound(self, X: Any, y: Any, comparator: Any = None, passes: int | None = None) -> float:
        """No more mistakes than this can be made in `passes` passes over these rows, in any order, whatever their number.

        For the comparator u (by default the fitted weights) at the best of many lengths: (R |u| / margin)^2 where u separates
        the rows, else by its hinge loss.
        """
        check_is_fitted(self, "state_")
        X, y = self._checked(X, y, reset=False)
        passes = self.n_iter_ if passes is None else whole(passes, "passes", least=1)
        labels, u = self._labels(y), self._weights_used() if comparator is None else self._as_weights(comparator)
        parts = [measure(F, part, u, offset=self.fit_intercept) for F, part in self._pieces(X, labels)]
        m, radius = np.concatenate([m for m, _ in parts]), max(r for _, r in parts)
        return best_bound(m, radius, float(np.linalg.norm(u)), passes)

    def _as_weights(self, u: Any) -> Array:
        """A comparator as weights (rows, D + 1)."""
        A = np.atleast_2d(np.asarray(u, dtype=np.float64))
        shape = (len(self.state_.W), self.n_features_lifted_ + self.fit_intercept)
        if A.shape != shape or not np.isfinite(A).all():
            offset = ", the offset last" if self.fit_intercept else ""
            raise ValueError(f"comparator must hold {shape[0]} x {shape[1]} numbers{offset}, got shape {A.shape}.")
        return A if self.fit_intercept else np.pad(A, ((0, 0), (0, 1)))

    def _weights_used(self) -> Array:
        return self.state_.mean if self.average else self.state_.W

    @property
    def coef_(self) -> Array:
        """(1, D) for two classes, else (C, D)."""
        check_is_fitted(self, "state_")
        return self._weights_used()[:, :-1]

    @property
    def intercept_(self) -> Array:
        check_is_fitted(self, "state_")
        return self._weights_used()[:, -1]

    def decision_function(self, X: Any) -> Array:
        """f(x), (n,) for two classes, else one score a class, (n, C)."""
        check_is_fitted(self, "state_")
        X = self._check_X(X, reset=False)
        W, b = self.coef_.T.astype(X.dtype), self.intercept_.astype(X.dtype)
        out = np.concatenate([self._transform(X[rows]) @ W + b for rows in self._batches(X.shape[0])])
        return out[:, 0] if out.shape[1] == 1 else out

    def predict(self, X: Any) -> Array:
        """The class of the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
