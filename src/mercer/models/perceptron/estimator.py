"""Perceptron over explicit features: an ordered scan that updates at every mistake, in a stream or
over several passes: its one way."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_random_state

from mercer import methods
from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.kernels.base import whole
from mercer.kernels.defaults import kernel_of
from mercer.lifts import Identity
from mercer.models.base import all_or_nothing, checked, part, parted
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.naming import Named, scored, strongest
from mercer.models.perceptron.base import ScanEstimator, misfit
from mercer.models.perceptron.scan import FeatureScan, MistakeBound, ScanState, best_bound, measure
from mercer.models.settings import (
    FittedKernel,
    FittedLift,
    Gamma,
    KernelSetting,
    LiftSetting,
    Seed,
    Via,
    check_same_classes,
    checked_flag,
    coded,
    of_largest,
    two_or_more,
)
from mercer.store import register

WAYS = ("auto", "features", "landmarks")


@register("perceptron.Perceptron")
class Perceptron(ScanEstimator[FeatureScan]):
    """w <- w + y phi(x) at every mistake y f(x) <= 0, row after row; f(x) = phi(x)'w + b.

    The offset b is one added dimension. The mistakes are a multiset: a row counts as often as
    it was one, `counts_`. More than two classes have a weight vector each: where a rival scores
    no less than the label, the label gains phi(x) and the best rival loses it. The order of the
    rows matters, so there is no `merge` and no `forget`: a scan does not merge. `partial_fit`
    continues it, and a stream in batches is exactly one pass over the whole with
    shuffle=False, over the same map.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        The features are those of this kernel, as in `KernelRidge`; without kernel and lift the
        columns of X themselves.
    via : str or a value of `mercer.methods`, default="auto"
        How the kernel becomes features.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    lift : Lift or transformer, default=None
        A feature map, instead of a kernel.
    fit_intercept : bool, default=True
        Whether there is an offset.
    average : bool, default=False
        Predict by the mean of the weights over all rows seen, instead of the last ones.
    max_iter : int, default=100
        Passes of `fit` at most; a pass without a mistake is the last.
    shuffle : bool, default=True
        Whether every pass of `fit` takes the rows in a new order, drawn by `random_state`, so
        that rows sorted by class do no harm; otherwise in their own, as `partial_fit` always
        does. Bounds on the number of mistakes hold in any order.
    comparator : array-like of shape (D,) or (n_classes, D), default=None
        Weights u, with the offset last where there is one: `bound_` then tells, at any time,
        how many mistakes there can have been at most for this u, (R |u| / margin)^2 or by its
        hinge loss.
    random_state : int, RandomState or None, default=0
        The seed of orders and features.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    scan_ : FeatureScan
        The fitted value.
    coef_ : ndarray of shape (1, D) or (n_classes, D)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    mistakes_ : int
    counts_ : ndarray of shape (n,)
        After `fit`.
    n_iter_ : int
    plan_ : Plan
    lift_ : Lift

    References
    ----------
    Rosenblatt, The perceptron (1958); Freund and Schapire (1999) for the average; Crammer and
    Singer (2003) for many classes.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["low", "low", "high", "high"]
    >>> m = Perceptron().fit(X, y)
    >>> m.predict(X).tolist(), m.mistakes_, bool(m.mistakes_ <= m.mistake_bound(X, y))
    (['low', 'low', 'high', 'high'], 9, True)
    """

    def __init__(
        self,
        kernel: KernelSetting = None,
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        lift: LiftSetting = None,
        fit_intercept: bool = True,
        average: bool = False,
        max_iter: int = 100,
        shuffle: bool = True,
        comparator: ArrayLike | None = None,
        random_state: Seed = 0,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.comparator = comparator
        self.random_state = random_state
        self.verbose = verbose

    must = dict(scan_=Is("FeatureScan"))

    def _laws(self) -> str | None:
        scan = self.scan_
        return misfit(
            "weights over", scan.reads, self.n_features_in_, len(scan.state.W), len(self.classes_)
        )

    # fitting
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Scan rows X (n, d) with labels y (n,), until a pass makes no mistake.

        Or until `max_iter` passes are made.
        """
        passes = whole(self.max_iter, "max_iter", least=1)
        rows, y = self._checked(X, y, reset=True)
        classes = two_or_more(np.unique(y))
        labels, begun = coded(y, classes), self._begun(rows, len(classes))
        rng = check_random_state(self.random_state)
        scan = begun.repeated(
            rows, labels, self._comparator(begun), passes, rng if self.shuffle else None
        )
        why = (
            "no mistake in the last pass"
            if scan.converged
            else f"mistakes up to the last of {scan.steps} passes"
        )
        self.classes_, self.scan_ = classes, scan.planned(len(labels), why)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Continue the scan with rows X (n, d) and labels y (n,).

        A batch that is refused leaves the model as it was.

        All `classes` (n_classes,) are named at the first call, unless its y has them.
        """
        first = not self.__sklearn_is_fitted__()
        rows, y = self._checked(X, y, reset=first)
        if first:
            known = two_or_more(np.unique(y if classes is None else classes), streamed=True)
        else:
            known = self.classes_
            check_same_classes(classes, known)
        labels = coded(y, known)
        begun = (
            self._begun(rows, len(known), stream=True)
            if first
            else self.scan_.continued(self.fit_intercept)
        )
        scan, _ = begun.over(begun.pieces(rows, labels), self._comparator(begun))
        why = "a stream: every row is seen once, in the order of its coming"
        self.classes_, self.scan_ = known, scan.planned(scan.state.seen, why)
        return self

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Table, Array]:
        for name in ("fit_intercept", "average", "shuffle"):
            checked_flag(getattr(self, name), name)
        rows, y = self._rows_and_targets(X, y, reset=reset)
        check_classification_targets(y)
        return rows, y

    def _begun(self, rows: Table, classes: int, *, stream: bool = False) -> FeatureScan:
        """A scan that has seen no row, over the map of these."""
        phi = self._map_of(rows, stream)
        begun = FeatureScan(phi, ScanState.zero(classes, phi.width), bool(self.fit_intercept))
        if self.comparator is None:
            return begun
        return begun.against(MistakeBound(float(np.linalg.norm(begun.comparator(self.comparator)))))

    def _map_of(self, rows: Table, stream: bool) -> FittedMap:
        _, method = methods.resolve(self.via, WAYS)
        kernel = kernel_of(self)
        if kernel is None and self.lift is None:
            return FittedMap.fit(Identity(), rows)
        if kernel is not None and self.lift is not None:
            raise ValueError("give a kernel or a lift, not both.")
        return fitted_map(
            kernel,
            self.lift,
            method,
            rows,
            seed=self.random_state,
            memory=np.inf,
            stream=stream,
            wide=True,
        )

    def _comparator(self, scan: FeatureScan) -> Array | None:
        return None if scan.bound is None else scan.comparator(self.comparator)

    # what is known
    @property
    def state_(self) -> ScanState:
        """Weights, rows seen and mistakes made."""
        return self._scan().state

    @property
    def lift_(self) -> FittedLift:
        return self._scan().phi.lift

    @property
    def kernel_(self) -> FittedKernel:
        return self._scan().phi.kernel

    @property
    def n_features_lifted_(self) -> int:
        """D"""
        return self._scan().phi.width

    @property
    def bound_(self) -> float:
        """No more mistakes than this can have been made, for the comparator given."""
        return part(
            self._scan(),
            "bound",
            "bound_ needs a comparator from the start; give comparator=u, or ask mistake_bound(X, y).",
        ).value

    @property
    def coef_(self) -> Array:
        """(1, D) for two classes, else (C, D)."""
        return self._scan().weights(self.average)[:, :-1]

    def coef_by_name(self, names: Any = None, top: int | None = None) -> Named:
        """The nonzero coefficients by name, signed, the largest first: those of the second of two classes, or of each.

        names : the D names, a transformer that has them (`NGrams`, `HashedFeatures`: of
        hashed columns, by the sign of the most frequent name), a mapping or
        function from places, or None for those of the lift; top : how many of each, or all
        """
        return strongest(self.coef_, scored(self.classes_), self.lift_, names, top)

    @property
    def intercept_(self) -> Array:
        return self._scan().weights(self.average)[:, -1]

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Of a file in which the parts of the scan were attributes."""
        names = ("n_iter_", "_bound", "counts_", "converged_", "plan_")
        rest, old = parted(state, *names, "state_", "lift_", "kernel_", "n_features_lifted_")
        if old["state_"] is None:
            return rest
        told = (old[name] for name in names)
        scan = FeatureScan(
            FittedMap.of_file(old["lift_"]), old["state_"], bool(rest["fit_intercept"]), *told
        )
        return {**rest, "scan_": checked(scan)}

    # asking
    def mistake_bound(
        self, X: Any, y: Any, comparator: ArrayLike | None = None, passes: int | None = None
    ) -> float:
        """No more mistakes than this can be made in `passes` passes over these rows.

        In any order, whatever their number.

        For the comparator u (by default the fitted weights) at the best of many lengths: (R |u|
        / margin)^2 where u separates the rows, else by its hinge loss.
        """
        scan = self._scan()
        rows, y = self._checked(X, y, reset=False)
        passes = scan.steps if passes is None else whole(passes, "passes", least=1)
        labels, u = (
            coded(y, self.classes_),
            scan.weights(self.average) if comparator is None else scan.comparator(comparator),
        )
        parts = [measure(F, part, u, offset=scan.offset) for F, part in scan.pieces(rows, labels)]
        m, radius = np.concatenate([m for m, _ in parts]), max(r for _, r in parts)
        return best_bound(m, radius, float(np.linalg.norm(u)), passes)

    def decision_function(self, X: Any) -> Array:
        """f(x), (n,) for two classes, else one score a class, (n, C)."""
        scan = self._scan()
        out = scan.decision(self._rows(X, reset=False), self.average)
        return out[:, 0] if out.shape[1] == 1 else out

    def predict(self, X: Any) -> Array:
        """The class of the largest score, (n,)."""
        return of_largest(self.decision_function(X), self.classes_)
