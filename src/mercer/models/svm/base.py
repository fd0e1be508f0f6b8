"""What estimators of support vectors share: a fitted machine seen through attributes, and fewer support vectors."""
from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.lifts.base import seed_of
from mercer.models.base import KernelEstimator, bytes_of
from mercer.models.settings import whole
from mercer.models.svm.machine import Compression, DualMachine, Machine, compress
from mercer.models.svm.old_files import upgraded
from mercer.plans import Plan


class SupportVectorEstimator(KernelEstimator):
    """An estimator that holds one machine: `machine_`, over support vectors or over features."""

    memory_limit: Any
    machine_: Machine

    must = dict(machine_=Is("DualMachine"))

    def _laws(self) -> str | None:
        return self.machine_.misfit(self.n_features_in_)

    @staticmethod
    def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
        return upgraded(state)

    # rows
    def _row_weights(self, sample_weight: Any, rows: Table) -> Array:
        """Weights as they are, the bounds of the duals; ones where none are given."""
        found = self._weights(sample_weight, rows)
        return np.ones(len(rows)) if found is None else found

    def _square_rows(self, X: Any) -> Table:
        """The rows of a fit without targets; a kernel matrix must be square."""
        rows = self._rows(X, reset=True)
        if self._precomputed and len(rows) != rows.width:
            raise ValueError(f"X must be a square Gram matrix with kernel='precomputed', got shape {rows.data.shape}.")
        return rows

    def _raw(self, X: Any) -> Array:
        """Scores (n, k) of new rows, without the intercept."""
        check_is_fitted(self)
        return self._dual().queried(self._rows(X, reset=False), bytes_of(self.memory_limit))

    def compress(self, budget: int, X: Any = None, random_state: Any = 0) -> Self:
        """The same model over at most `budget` of its support vectors.

        `compression_` holds what that costs.

        The function is projected, in the RKHS of its kernel, onto the span of vectors chosen by
        randomly pivoted Cholesky.

        Parameters
        ----------
        budget : int
            The most support vectors.
        X : array-like of shape (n, d), default=None
            Rows that the cost is measured on; None takes the support vectors themselves.
        random_state : int, RandomState, Generator or None, default=0
            The seed of the choice.
        """
        check_is_fitted(self)
        rows, small = None if X is None else self._rows(X, reset=False), copy.copy(self)
        small.machine_ = compress(self.machine_, whole(budget, "budget"), rows, seed_of(random_state))
        return small

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "machine_" in vars(self)

    def _dual(self) -> DualMachine:
        """The machine, where it is one over rows."""
        if not isinstance(self.machine_, DualMachine):
            raise AttributeError("support vectors and dual coefficients are there for models over rows; this one is over features.")
        return self.machine_

    @property
    def plan_(self) -> Plan: return self.machine_.summary.plan

    @property
    def kernel_(self) -> Any: return self.machine_.kernel

    @property
    def n_iter_(self) -> int: return self.machine_.summary.rounds

    @property
    def objective_(self) -> float:
        """Of the dual, or over features of the primal problem."""
        return self.machine_.summary.objective

    @property
    def gap_(self) -> float:
        """The duality gap, relative to the objective; AttributeError where there is none."""
        if (gap := self.machine_.summary.gap) is None:
            raise AttributeError("gap_ is that of a dual problem, and the squared hinge over features is solved without one.")
        return gap

    @property
    def intercept_(self) -> Array: return self.machine_.intercept

    @property
    def support_(self) -> Array:
        """The places of the support vectors among the rows; AttributeError over features."""
        return self._dual().support

    @property
    def support_vectors_(self) -> Any:
        """Their rows, or the columns of a given matrix."""
        m = self._dual()
        return m.support if m.vectors is None else m.vectors.data

    @property
    def dual_coef_(self) -> Array:
        """(1, m), (K, m) or of pairs (K - 1, m); AttributeError over features."""
        return self._dual().coef

    @property
    def n_support_(self) -> Array:
        """How many there are, of every class."""
        return self._dual().counts

    @property
    def compression_(self) -> Compression:
        """What `compress` has cost."""
        if (found := self._dual().compression) is None:
            raise AttributeError("compression_ is there for a model that compress returned.")
        return found
