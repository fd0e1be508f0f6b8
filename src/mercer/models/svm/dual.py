"""Exact classifiers: from checked rows and weights to rules, their support vectors, and scores of classes."""
from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.estimators.base import bytes_of
from mercer.inputs import Array, Table
from mercer.invariants import Counts, Each, Floats, Ints, Is, Said, Text
from mercer.models.settings import class_weights
from mercer.models.svm.base import SupportVectors
from mercer.models.svm.calibration import enough_rows
from mercer.models.svm.multiclass import How, OneVsOne, Rule, by_class, one_vs_rest, votes
from mercer.operators.products import by_pairs
from mercer.operators.tiled import KernelRows

EXACT_ROWS = 20_000  # up to so many rows, "auto" is exact


class ExactClassifier(SupportVectors):
    """One rule for two classes; for more, one for every two of them, or one a class against the rest."""

    via: Any
    loss: str
    fit_intercept: bool
    class_weight: Any
    multiclass: str
    probability: bool
    warm_start: bool
    classes_: Array
    n_support_: Array

    must = dict(
        n_support_=Counts("K"), sigmoid_=Each(Floats("s"), Floats("s")),
        _last=Each(Each(Text(), Said(), Text()), Ints("n", below="K"), Floats("n", low=0), Each(Is("smo_classes.Rule"))),
    )  # fmt: skip

    def _laws(self) -> str | None:
        K, shape = len(self.classes_), (len(self.dual_coef_), len(self.intercept_)) if hasattr(self, "dual_coef_") else None
        if shape not in (None, (1, 1) if K == 2 else (K, K), (K - 1, K * (K - 1) // 2)):
            return f"has {shape[0]} rows of coefficients and {shape[1]} intercepts for {K} classes"
        _, codes, _, rules = getattr(self, "_last", (None, (), None, []))
        return "starts at rows that are not there" if any(r.index.max(initial=0) >= len(codes) for r in rules) else None

    def _fit_exact(self, X: Any, y: Any, sample_weight: Any, C: float, tol: float, most: int) -> tuple[Any, Array]:
        """Rules of checked rows, which are returned with y."""
        every, y = self._checked_pair(X, y, reset=True)
        check_classification_targets(y)
        w = self._row_weights(sample_weight, every)
        rows, kept, w = self._only(every, w > 0), np.flatnonzero(w > 0), w[w > 0]
        self.classes_, codes = np.unique(y[kept], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class among rows of positive weight; give rows of at least two classes.")
        if self.probability:
            enough_rows(codes)
        self.kernel_ = self._resolved(rows, w)
        c = C * w * class_weights(self.class_weight, self.classes_, codes, w)[codes]
        ridge = 0.0 if self.loss == "hinge" else 0.5 / float(c.min())
        source = self._source(rows, float(c.max()), tol, ridge, balanced=bool(self.fit_intercept))
        rules = self._rules(source, codes, c, How(self.loss, bool(self.fit_intercept), tol, most, bytes_of(self.memory_limit)))
        self._keep_rules(rows, kept, rules, codes)
        self.intercept_ = np.array([source.intercept(r.duals.b, r.duals.intercept, r.index) for r in rules])
        beyond = "as asked" if self.via == "exact" or self._pairwise else f"at most {EXACT_ROWS:,}"
        self._settle([rule.duals for rule in rules], source, f"{len(rows):,} rows, {beyond}; blocks of the dual until its gap is closed")
        return every.data, y

    def _rules(self, source: KernelRows, codes: Array, c: Array, how: How) -> list[Rule]:
        K = len(self.classes_)
        self.multiclass_ = "ovr" if K == 2 or self.multiclass == "ovr" else "ovo"
        starts = self._starts(codes, c)
        if self.multiclass_ == "ovo":
            rules = OneVsOne(source, codes, c, how).solve(starts)
        else:
            rules = one_vs_rest(source, [np.where(codes == k, 1.0, -1.0) for k in ([1] if K == 2 else range(K))], c, how, starts)
        if self.warm_start:
            self._last = self._kind(), codes, c, rules
        return rules

    def _starts(self, codes: Array, c: Array) -> list[Array] | None:
        """The duals of the last fit, scaled to the new bounds, where it was of the same problems and only C differs."""
        kind, before, was, rules = getattr(self, "_last", (None, codes[:0], c, []))
        if not self.warm_start or kind != self._kind() or not np.array_equal(before, codes):
            return None
        ratio = c / was
        if self.loss != "hinge" or not np.allclose(ratio, ratio[0], rtol=1e-12, atol=0):
            return None
        return [np.clip(r.duals.b * ratio[0], -c[r.index], c[r.index]) for r in rules]

    def _kind(self) -> tuple[str, bool, str]:
        """What decides where duals may lie, beside the classes and C."""
        return self.loss, bool(self.fit_intercept), self.multiclass_

    def _keep_rules(self, rows: Table, kept: Array, rules: list[Rule], codes: Array) -> None:
        K = len(self.classes_)
        coef = by_class(rules, codes, K) if self.multiclass_ == "ovo" else np.stack([r.duals.b for r in rules])
        self._keep_support(rows, kept, coef, np.argsort(codes, kind="stable"))
        place = np.searchsorted(kept, self.support_)
        self.n_support_ = np.bincount(codes[place], minlength=K).astype(np.int32)

    def _decide(self, X: Any) -> Array:
        return self._combined(self._raw(X))

    def _combined(self, f: Array) -> Array:
        """(n,) for two classes, else (n, K), from the scores of all rules."""
        f = f + self.intercept_.astype(f.dtype)
        return f[:, 0] if len(self.classes_) == 2 else votes(f, len(self.classes_)) if self.multiclass_ == "ovo" else f

    def _of_table(self, rows: Table) -> Array:
        if self._by_class:
            return by_pairs(self.kernel_, rows, self.support_vectors_, self.dual_coef_, self.n_support_, balanced=self._balanced)
        return super()._of_table(rows)

    @property
    def _by_class(self) -> bool:
        """Whether the coefficients are those of pairs, by the class of each vector."""
        return len(self.classes_) > 2 and len(self.dual_coef_) == len(self.classes_) - 1

    def _functions(self) -> Array:
        if not self._by_class:
            return self.dual_coef_
        pairs, of = list(combinations(range(len(self.classes_)), 2)), np.repeat(np.arange(len(self.n_support_)), self.n_support_)
        return np.stack([np.where(of == a, self.dual_coef_[b - 1], np.where(of == b, self.dual_coef_[a], 0.0)) for a, b in pairs])

    def _recount(self, keep: Array) -> None:
        of = np.repeat(np.arange(len(self.n_support_)), self.n_support_)[keep]
        self.n_support_ = np.bincount(of, minlength=len(self.classes_)).astype(np.int32)

    def _changed(self, before: Array, after: Array) -> float:
        """The share of rows whose class changed."""
        was, now = (self._combined(f) for f in (before, after))
        return float(np.mean((was > 0) != (now > 0) if was.ndim == 1 else was.argmax(1) != now.argmax(1)))
