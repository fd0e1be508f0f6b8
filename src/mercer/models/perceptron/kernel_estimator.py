"""KernelPerceptron: an ordered scan that keeps its mistakes as points, all of them or within a
budget: its one way."""

from __future__ import annotations

import math
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_random_state

from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.kernels import Kernel
from mercer.kernels.base import whole
from mercer.kernels.defaults import kernel_of
from mercer.kernels.rkhs import RKHSFunction
from mercer.models.base import all_or_nothing, checked, parted
from mercer.models.expansion import scaled_kernel_at
from mercer.models.perceptron.base import ScanEstimator, misfit
from mercer.models.perceptron.budget import Scanner, UpdateRule, can_merge, finite
from mercer.models.perceptron.kernel_scan import (
    Comparator,
    KernelScan,
    comparators,
    rule_of,
    source_of,
    values_of,
)
from mercer.models.perceptron.scan import MistakeBound, best_bound, margins
from mercer.models.settings import (
    FittedKernel,
    Gamma,
    KernelSetting,
    Seed,
    check_same_classes,
    checked_flag,
    coded,
    of_largest,
    shown,
    two_or_more,
)
from mercer.ops.philox import Stream
from mercer.store import register

NO_STREAM = "kernel='precomputed' names points by their place in one matrix, so it has no stream; give a kernel."


def _streams(self: KernelPerceptron) -> bool:
    """Whether rows may come in batches."""
    if self._precomputed:
        raise AttributeError(NO_STREAM)
    return True


@register("perceptron.KernelPerceptron")
class KernelPerceptron(ScanEstimator[KernelScan]):
    """f <- f + y k(x, .) at every mistake y f(x) <= 0: f = sum_i a_i k(x_i, .) over points.

    The mistakes are a multiset: a row counts as often as it was one, `counts_`. More than two
    classes have a function each: where a rival scores no less than the label, the label's gains
    k(x, .) and the best rival's loses it. There is no offset; `k + 1` has one. Rows are taken
    in blocks whose kernel values are computed at once; the result is that of row after row. A
    stream of any length takes the memory of its points, and with `budget` there are at most so
    many.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel, a name as in scikit-learn, "precomputed", or None: a Gaussian scaled to the
        (first) rows.
    budget : int, default=None
        The most points to keep; None keeps all mistakes, and `policy` then says nothing.
    policy : str, default="projectron"
        What happens to a mistake beyond the budget. "random" and "oldest" drop a point.
        "forgetron" shrinks all weights, as little as its bound allows, and drops the oldest.
        "projectron" adds the projection of k(x, .) on the span of the points, also before the
        budget is full where that is within `eta`; "projectron++" does so for margin errors too.
        "merging" puts one point between two of the same class, where the least is lost; for a
        Gaussian only.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    average : bool or float, default=False
        False: predict by the last hypothesis. True: by its mean over all rows seen. A number p
        >= 0: by the mean with weight t^p at row t, so that late ones count more; the number 0
        is thus True and not False, and 1 counts row t t times. A dropped point leaves the mean
        too; a projected or merged one does not.
    margin : float, default=0.0
        Rows with y f(x) <= margin (in the lead over the best rival for many classes) are taken
        in as well, with a step of min(1, (margin - y f(x)) / k(x, x)); 0 is the perceptron.
        "projectron++" has margin 1 where this is 0.
    eta : float, default=0.1
        See `policy`; a distance in units of sqrt(k(x, x)).
    max_iter : int, default=1
        Passes of `fit` at most; a pass without a mistake is the last.
    shuffle : bool, default=True
        Whether every pass of `fit` takes the rows in a new order, drawn by `random_state`, so
        that rows sorted by class do no harm; otherwise in their own, as `partial_fit` always
        does. Bounds on the number of mistakes hold in any order.
    comparator : RKHSFunction, or list of RKHSFunction, default=None
        A function u, or one a class: `bound_` then tells, at any time, how many mistakes there
        can have been at most for this u. It holds for margin=0, until a policy first acts; for
        the forgetron also after, if u is small enough.
    random_state : int, RandomState or None, default=0
        The seed of orders and dropped points.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    scan_ : KernelScan
        The fitted value.
    points_ : ndarray of shape (n, d), or list of items
    dual_coef_ : ndarray of shape (1, n) or (n_classes, n)
    classes_ : ndarray of shape (n_classes,)
    mistakes_ : int
    counts_ : ndarray of shape (n_rows,)
        After `fit`.
    n_iter_ : int
    kernel_ : Kernel
    plan_ : Plan
    support_ : ndarray of shape (n,)
        The positions of the points, with kernel="precomputed".

    References
    ----------
    Freund and Schapire (1999); Crammer and Singer (2003) for many classes; Cavallanti,
    Cesa-Bianchi and Gentile (2007), random; Dekel, Shalev-Shwartz and Singer (2008), Forgetron;
    Orabona, Keshet and Caputo (2009), Projectron; Wang, Crammer and Vucetic (2012), merging;
    Shamir and Zhang (2013) for means that favour late hypotheses.

    Examples
    --------
    >>> angle = np.linspace(0, 12, 400)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.tile([1.0, 2.0], 200)[:, None]
    >>> m = KernelPerceptron(budget=8, policy="merging").fit(X, np.tile([0, 1], 200))
    >>> m.score(X, np.tile([0, 1], 200)), len(m.points_)
    (1.0, 8)
    """

    def __init__(
        self,
        kernel: KernelSetting = None,
        budget: int | None = None,
        policy: str = "projectron",
        *,
        gamma: Gamma = None,
        average: bool | float = False,
        margin: float = 0.0,
        eta: float = 0.1,
        max_iter: int = 1,
        shuffle: bool = True,
        comparator: Comparator = None,
        random_state: Seed = 0,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.budget = budget
        self.policy = policy
        self.average = average
        self.margin = margin
        self.eta = eta
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.comparator = comparator
        self.random_state = random_state
        self.verbose = verbose

    must = dict(scan_=Is("KernelScan"))

    def _laws(self) -> str | None:
        scan = self.scan_
        return misfit(
            "points of",
            scan.reads,
            self.n_features_in_,
            len(scan.scanner.memory.A),
            len(self.classes_),
        )

    # fitting
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Scan rows X (n, d) with labels y (n,), until a pass makes no mistake.

        Or `max_iter` times. A refusal leaves the model as it was.
        """
        passes, rule = whole(shown(self.max_iter), "max_iter", least=1), rule_of(self)
        rows, y = self._checked(X, y, None)
        classes = two_or_more(np.unique(y))
        labels, begun = coded(y, classes), self._begun(rows, rule, len(classes))
        rng = check_random_state(self.random_state)
        scan = begun.repeated(
            rows,
            labels,
            self._comparators(begun, len(classes)),
            passes,
            rng if self.shuffle else None,
        )
        why = (
            "no mistake in the last pass"
            if scan.converged
            else f"mistakes up to the last of {scan.steps} passes"
        )
        return self._become(scan, classes, why)

    @available_if(_streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Continue the scan with rows X (n, d) and labels y (n,).

        A batch that is refused leaves the model as it was. All `classes` (n_classes,) are named
        at the first call, unless its y has them.
        """
        before = self.scan_ if self.__sklearn_is_fitted__() else None
        if before is not None and before.given:
            raise ValueError(NO_STREAM)
        rule = rule_of(self)
        rows, y = self._checked(X, y, before)
        if before is None:
            known = two_or_more(np.unique(y if classes is None else classes), streamed=True)
        else:
            known = self.classes_
            check_same_classes(classes, known)
            before.check_same(rule, kernel_of(self), rows, compared=self.comparator is not None)
        labels, K = coded(y, known), len(known)
        begun = self._begun(rows, rule, K) if before is None else before.continued()
        scan, _ = begun.over(rows, labels, self._comparators(begun, K))
        why = "a stream: every row is seen once, in the order of its coming"
        return self._become(scan, known, why)

    def _checked(self, X: Any, y: Any, fitted: KernelScan | None) -> tuple[Table, Array]:
        """Rows as the fitted kernel reads them, or of a new fit, and their classes."""
        checked_flag(self.shuffle, "shuffle")
        rows, y = self._rows_and_targets(
            X, y, reset=fitted is None, kernel=None if fitted is None else fitted.kernel
        )
        check_classification_targets(y)
        return rows, y

    def _begun(self, rows: Table, rule: UpdateRule, classes: int) -> KernelScan:
        """A scan that has seen no row."""
        kernel = scaled_kernel_at(kernel_of(self), rows)
        if rule.merges and not can_merge(kernel):
            raise ValueError(
                f"policy='merging' makes points between points, which needs a Gaussian; for {kernel!r} use 'projectron'."
            )
        seed = int(check_random_state(self.random_state).randint(2**31))
        scanner = Scanner.start(rule, classes, source_of(kernel, rows), Stream(seed))
        if self.comparator is None:
            return KernelScan(kernel, scanner)
        us = comparators(self.comparator, kernel, classes)
        return KernelScan(kernel, scanner, bound=MistakeBound(math.hypot(*(u.norm() for u in us))))

    def _comparators(self, scan: KernelScan, classes: int) -> list[RKHSFunction]:
        return [] if scan.bound is None else comparators(self.comparator, scan.kernel, classes)

    def _become(self, scan: KernelScan, classes: Array, why: str) -> Self:
        kept = "all mistakes" if self.budget is None else f"{self.policy}, budget {self.budget}"
        self.classes_, self.scan_ = classes, scan.planned(kept, self.n_features_in_, why)
        return self

    # what is known
    @property
    def kernel_(self) -> FittedKernel:
        return self._scan().kernel

    @property
    def scanner_(self) -> Scanner:
        """The points, their weights and the rule."""
        return self._scan().scanner

    @property
    def bound_(self) -> float:
        """No more mistakes than this can have been made, for the comparator given."""
        return self._scan().mistake_bound()

    @property
    def dual_coef_(self) -> Array:
        """The weights of the points, (1, n) for two classes, else (C, n)."""
        return self._scan().weights(self.average)

    @property
    def points_(self) -> Any:
        """The points: rows of X, or made by merging."""
        if (scan := self._scan()).given:
            raise AttributeError(
                "kernel='precomputed' has no points, only their positions: see support_."
            )
        return scan.scanner.points.data

    @property
    def support_(self) -> Array:
        """Positions of the points among the rows of fit, with kernel="precomputed"."""
        if not (scan := self._scan()).given:
            raise AttributeError("support_ is there with kernel='precomputed' only; see points_.")
        return np.asarray(scan.scanner.points)

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Of a file in which the parts of the scan were attributes."""
        names = ("n_iter_", "_bound", "counts_", "converged_", "plan_")
        rest, old = parted(state, *names, "scanner_", "kernel_")
        if old["scanner_"] is None:
            return rest
        scan = checked(KernelScan(old["kernel_"], old["scanner_"], *(old[name] for name in names)))
        return {**rest, "scan_": scan, "_of_items": not scan.given and scan.scanner.points.items}

    # asking
    @np.errstate(over="ignore", invalid="ignore")
    def mistake_bound(
        self, X: Any, y: Any, comparator: Comparator = None, passes: int | None = None
    ) -> float:
        """No more mistakes than this can be made in `passes` passes over these rows.

        In any order, by a perceptron that keeps all.

        For the comparator u (by default the fitted function) at the best of many lengths: (R
        |u| / margin)^2 where u separates the rows, else by its hinge loss.
        """
        scan = self._scan()
        passes = scan.steps if passes is None else whole(shown(passes), "passes", least=1)
        rows, y = self._checked(X, y, scan)
        us = comparators(
            self.as_functions() if comparator is None else comparator,
            scan.kernel,
            len(self.classes_),
        )
        m = margins(values_of(us, rows), coded(y, self.classes_))
        radius = math.sqrt(
            finite(float(cast(Kernel, scan.kernel).diag(rows).max()) * (2 if len(us) > 1 else 1))
        )
        return best_bound(m, radius, math.hypot(*(u.norm() for u in us)), passes)

    def as_functions(self) -> list[RKHSFunction]:
        """f as functions of the kernel's space, one for two classes, else one a class."""
        if (scan := self._scan()).given:
            raise ValueError("a precomputed kernel cannot be evaluated at points; give a kernel.")
        return [
            RKHSFunction(cast(Kernel, scan.kernel), scan.scanner.points, w) for w in self.dual_coef_
        ]

    def decision_function(self, X: Any) -> Array:
        """f(x), (n,) for two classes, else one score a class, (n, C)."""
        scan = self._scan()
        out = scan.decision(self._rows(X, reset=False, kernel=scan.kernel), self.average)
        return out[:, 0] if out.shape[1] == 1 else out

    def predict(self, X: Any) -> Array:
        """The class of every row, (n,)."""
        return of_largest(self.decision_function(X), self.classes_)
