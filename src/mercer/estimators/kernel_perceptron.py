"""KernelPerceptron: an ordered scan that keeps its mistakes as points, all of them or within a budget."""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, check_random_state

from mercer.estimators.base import all_or_nothing
from mercer.estimators.rows import shown
from mercer.estimators.scans import Scanning
from mercer.inputs import Array, Table
from mercer.kernels.base import whole
from mercer.kernels.rkhs import RKHSFunction
from mercer.learners.budget import BLOCK, SQUARE, Gram, Rows, Rule, Scanner, Source, can_merge, finite, forgetron_bound
from mercer.learners.perceptron import Bound, best_bound, margins
from mercer.models.settings import two_or_more
from mercer.operators import KernelOperator
from mercer.ops import budget as ops
from mercer.ops.philox import Stream
from mercer.plan import Plan
from mercer.store import register


@register("perceptron.KernelPerceptron")
class KernelPerceptron(ClassifierMixin, Scanning):
    """f = sum_i a_i k(x_i, .): at every mistake y f(x) <= 0 the row becomes a point, f <- f + y k(x, .).

    The mistakes are a multiset: a row counts as often as it was one, `counts_`. More than two classes have a function each:
    where a rival scores no less than the label, the label's gains k(x, .) and the best rival's loses it. There is no offset;
    `k + 1` has one. Rows are taken in their order, in blocks whose kernel values are computed at once; the result is that of
    row after row. A stream of any length takes the memory of its points, and with `budget` there are at most so many.

    Parameters
    ----------
    kernel : a kernel, a name as in scikit-learn, "precomputed", or None: a Gaussian scaled to the (first) rows.
    budget : the most points to keep; None keeps all mistakes, and `policy` then says nothing.
    policy : what happens to a mistake beyond the budget. "random" and "oldest" drop a point. "forgetron" shrinks all weights,
        as little as its bound allows, and drops the oldest. "projectron" adds the projection of k(x, .) on the span of the
        points, also before the budget is full where that is within `eta`; "projectron++" does so for margin errors too.
        "merging" puts one point between two of the same class, where the least is lost; for a Gaussian only.
    average : False: predict by the last hypothesis. True: by its mean over all rows seen. A number p >= 0: by the mean with weight
        t^p at row t, so that late ones count more; the number 0 is thus True and not False, and 1 counts row t t times.
        A dropped point leaves the mean too; a projected or merged one does not.
    margin : rows with y f(x) <= margin (in the lead over the best rival for many classes) are taken in as well, with a step
        of min(1, (margin - y f(x)) / k(x, x)); 0 is the perceptron. "projectron++" has margin 1 where this is 0.
    eta : see `policy`; a distance in units of sqrt(k(x, x)).
    max_iter : passes of `fit` at most; a pass without a mistake is the last.
    shuffle : a new order of the rows in every pass of `fit`; by default their own.
    comparator : an `RKHSFunction` u, or one a class: `bound_` then tells, at any time, how many mistakes there can have been at
        most for this u. It holds for margin=0, until a policy first acts; for the forgetron also after, if u is small enough.

    Attributes: `points_`, `dual_coef_` (C, n), `classes_`, `mistakes_`, `counts_` (after `fit`), `n_iter_`, `kernel_`, `plan_`;
    `support_`, the positions of the points, with kernel="precomputed".

    Freund and Schapire (1999); Crammer and Singer (2003) for many classes; Cavallanti, Cesa-Bianchi and Gentile (2007), random;
    Dekel, Shalev-Shwartz and Singer (2008), Forgetron; Orabona, Keshet and Caputo (2009), Projectron; Wang, Crammer and Vucetic
    (2012), merging; Shamir and Zhang (2013) for means that favour late hypotheses.

    >>> angle = np.linspace(0, 12, 400)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.tile([1.0, 2.0], 200)[:, None]
    >>> m = KernelPerceptron(budget=8, policy="merging").fit(X, np.tile([0, 1], 200))
    >>> m.score(X, np.tile([0, 1], 200)), len(m.points_)
    (1.0, 8)
    """

    def __init__(
        self, kernel: Any = None, budget: int | None = None, policy: str = "projectron", *, average: Any = False, margin: float = 0.0,
        eta: float = 0.1, max_iter: int = 1, shuffle: bool = False, comparator: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.budget = budget
        self.policy = policy
        self.average = average
        self.margin = margin
        self.eta = eta
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.comparator = comparator
        self.random_state = random_state

    # fitting
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Scan the rows in their order, `max_iter` times or until a pass makes no mistake. A refusal leaves the model as it was."""
        passes, rule = whole(shown(self.max_iter), "max_iter", least=1), self._rule()
        self._anew()
        rows, y = self._checked(X, y, reset=True)
        self.classes_ = two_or_more(np.unique(y))
        labels = self._labels(y)
        self._begin(rows, rule)
        self.n_iter_ = self._passes(self._source(rows), labels, passes)
        why = "no mistake in the last pass" if self.converged_ else f"mistakes up to the last of {self.n_iter_} passes"
        self.plan_ = self._scan_plan(why)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Continue the scan with these rows. A batch that is refused leaves the model as it was."""
        if self._pairwise:
            raise ValueError("kernel='precomputed' names points by their place in one matrix, so it has no stream; give a kernel.")
        first, rule = not hasattr(self, "scanner_"), self._rule()
        rows, y = self._checked(X, y, reset=first)
        if first:
            self.classes_ = two_or_more(np.unique(y if classes is None else classes))
        else:
            self._same(rule, rows, classes)
        labels = self._labels(y)
        if first:
            self._begin(rows, rule)
        self._scan(self._source(rows), labels)
        for name in ("counts_", "converged_"):  # of the rows of one `fit` only
            self.__dict__.pop(name, None)
        self.n_iter_ = max(1, getattr(self, "n_iter_", 1))
        self.plan_ = self._scan_plan("a stream: every row is seen once, in the order of its coming")
        return self

    def _begin(self, rows: Table, rule: Rule) -> None:
        kernel = self.kernel_ = self._resolved(rows)
        if rule.merges and not can_merge(kernel):
            raise ValueError(f"policy='merging' makes points between points, which needs a Gaussian; for {kernel!r} use 'projectron'.")
        seed = int(check_random_state(self.random_state).randint(2**31))
        self.scanner_ = Scanner.start(rule, len(self.classes_), self._source(rows), Stream(seed))
        self._bound = None if self.comparator is None else Bound(math.hypot(*(u.norm() for u in self._functions(self.comparator))))

    def _source(self, rows: Table) -> Source:
        return Gram(rows.data) if self._pairwise else Rows(self.kernel_, rows)

    def _passes(self, source: Source, labels: Array, most: int) -> int:
        """Scan until all is well; the number of passes."""
        rng, n = check_random_state(self.random_state), len(labels)
        self.counts_, slots = np.zeros(n, np.int64), np.full(n, -1)
        for step in range(1, most + 1):
            wrong = self._scan(source, labels, rng.permutation(n) if self.shuffle else None, slots)
            self.counts_ += wrong
            self.converged_ = not wrong.any()
            if self.converged_:
                return step
        return most

    def _scan(self, source: Source, labels: Array, order: Array | None = None, slots: Array | None = None) -> Array:
        """One pass, on a copy of the state that replaces it at the end."""
        scanner, bound = self.scanner_.copy(), self._bound
        wrong = scanner.scan(source, labels, order, slots)
        if bound is not None:
            m = margins(self._of(self._functions(self.comparator), source), labels)
            hinge = bound.hinge + float(np.maximum(0, 1 - m).sum())
            radius = math.sqrt(scanner.memory.tally[ops.RADIUS])
            bound = replace(bound, radius=radius, margin=min(bound.margin, float(m.min())), hinge=hinge)
        self.scanner_, self._bound = scanner, bound
        return wrong

    def _scan_plan(self, why: str) -> Plan:
        s = self.scanner_
        n, seen, C = s.count(ops.SIZE), s.count(ops.SEEN), len(s.memory.A)
        kept = "all mistakes" if self.budget is None else f"{self.policy}, budget {self.budget}"
        settings = {"points": n, "kept": kept, "rows": seen, "mistakes": self.mistakes_, "acted": s.count(ops.REDUCED)}
        room = s.memory.A.shape[1]
        size = 8.0 * (room**2 * (s.rule.policy in SQUARE) + room * (2 * C + self.n_features_in_) + BLOCK * (room + 2 * BLOCK))
        return Plan("ordered scan", why, settings, size, 2.0 * seen * n * (C + self.n_features_in_), self.n_iter_)

    # asking
    @property
    def mistakes_(self) -> int:
        """Mistakes made so far, in all passes."""
        check_is_fitted(self, "scanner_")
        return self.scanner_.count(ops.MISTAKES)

    @property
    def bound_(self) -> float:
        """No more mistakes than this can have been made, for the comparator given."""
        check_is_fitted(self, "scanner_")
        rule, b = self.scanner_.rule, self._bound
        if b is None:
            raise AttributeError("bound_ needs a comparator from the start; give comparator=u, or ask mistake_bound(X, y).")
        if rule.margin > 0:
            raise AttributeError("bound_ is that of the perceptron, with margin=0; steps for margin errors have none here.")
        if self.scanner_.count(ops.REDUCED) == 0:
            return b.value
        bound = forgetron_bound(b.radius * b.norm, b.hinge, rule.budget) if rule.policy == ops.FORGETRON else math.inf
        if math.isinf(bound):
            raise AttributeError("no bound holds any more, as the policy has acted; the forgetron has one, for comparators small enough.")
        return bound

    @np.errstate(over="ignore", invalid="ignore")
    def mistake_bound(self, X: Any, y: Any, comparator: Any = None, passes: int | None = None) -> float:
        """No more mistakes than this can be made in `passes` passes over these rows, in any order, by a perceptron that keeps all.

        For the comparator u (by default the fitted function) at the best of many lengths: (R |u| / margin)^2 where u separates
        the rows, else by its hinge loss.
        """
        check_is_fitted(self, "scanner_")
        passes = self.n_iter_ if passes is None else whole(shown(passes), "passes", least=1)
        rows, y = self._checked(X, y, reset=False)
        us = self._functions(self.as_functions() if comparator is None else comparator)
        m = margins(self._of(us, Rows(self.kernel_, rows)), self._labels(y))
        radius = math.sqrt(finite(float(self.kernel_.diag(rows).max()) * (2 if len(us) > 1 else 1)))
        return best_bound(m, radius, math.hypot(*(u.norm() for u in us)), passes)

    def as_functions(self) -> list[RKHSFunction]:
        """f as functions of the kernel's space, one for two classes, else one a class."""
        check_is_fitted(self, "scanner_")
        if self._pairwise:
            raise ValueError("a precomputed kernel cannot be evaluated at points; give a kernel.")
        return [RKHSFunction(self.kernel_, self.scanner_.points, w) for w in self.dual_coef_]

    @property
    def dual_coef_(self) -> Array:
        """The weights of the points, (1, n) for two classes, else (C, n)."""
        check_is_fitted(self, "scanner_")
        last = isinstance(self.average, bool | np.bool_) and not self.average
        return self.scanner_.weights if last else self.scanner_.mean

    @property
    def points_(self) -> Any:
        """The points: rows of X, or made by merging."""
        check_is_fitted(self, "scanner_")
        if self._pairwise:
            raise AttributeError("kernel='precomputed' has no points, only their positions: see support_.")
        return self.scanner_.points.data

    @property
    def support_(self) -> Array:
        """Positions of the points among the rows of fit, with kernel="precomputed"."""
        check_is_fitted(self, "scanner_")
        if not self._pairwise:
            raise AttributeError("support_ is there with kernel='precomputed' only; see points_.")
        return np.asarray(self.scanner_.points)

    @np.errstate(over="ignore", invalid="ignore")
    def decision_function(self, X: Any) -> Array:
        """f(x), (n,) for two classes, else one score a class, (n, C)."""
        check_is_fitted(self, "scanner_")
        rows, W = self._checked_rows(X, reset=False), self.dual_coef_.T
        if not len(W):
            out = np.zeros((len(rows), W.shape[1]), rows.dtype)
        elif self._pairwise:
            out = rows.data[:, self.support_] @ W
        else:
            out = KernelOperator(self.kernel_, rows, self.scanner_.points.astype(rows.dtype)) @ W
        out = out.astype(rows.dtype, copy=False)
        finite(out)
        return out[:, 0] if W.shape[1] == 1 else out

    def predict(self, X: Any) -> Array:
        """The class of every row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
