"""KernelSVR: the epsilon-insensitive loss by its exact dual."""
from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from mercer.estimators.base import all_or_nothing, bytes_of
from mercer.estimators.svm_base import SupportVectors
from mercer.inputs import Array
from mercer.invariants import Floats
from mercer.learners.smo import solve
from mercer.learners.smo_box import Box
from mercer.models.settings import positive, whole
from mercer.store import register

VIAS = ("auto", "exact")


@register("svm.KernelSVR")
class KernelSVR(RegressorMixin, SupportVectors):
    """argmin |f|^2/2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon), f in the RKHS of a kernel, b free.

    The dual has one variable a row, b_i = alpha_i - alpha*_i in [-C w_i, C w_i], with a kink at zero; it is solved by blocks
    with second-order steps and shrinking. The kernel matrix is never formed beyond 2,048 rows.

    Parameters
    ----------
    kernel : a kernel, "precomputed", None or "rbf": exp(-|x - z|^2/s), s the sum of the variances of the columns, "linear": x'z,
        "poly": (1 + x'z)^3, or "laplacian": exp(-|x - z|_1/d) of d columns.
    C : the weight of the losses, > 0.
    epsilon : the width of the tube without loss, >= 0.
    via : "auto" or "exact": the dual over the rows.
    fit_intercept : whether there is a bias b.
    tol : of the optimality conditions, in the unit of y, or of its standard deviation where that is below 1; they are met more
        closely until the duality gap is at most tol of the objective. A gap of tol/100 ends it in any case; `plan_` says which did.
    max_iter : of rounds, each of which solves one block.
    memory_limit : of the kernel rows and blocks that are kept, as bytes or "4GB". Not counted: X and its support vectors, some vectors
        of n, a tile a thread, blocks of 256 rows, and the whole kernel matrix up to 2,048 rows (34 MB).

    Attributes: `support_`, `support_vectors_`, `dual_coef_` (1, m), `n_support_`, `intercept_`, `gap_` (relative, with what
    rounding may add), `objective_` (of the dual), `n_iter_`, `kernel_`, `plan_`.

    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> m = KernelSVR(C=100.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(m.predict([[1.0]])[0] - np.sin(1.0)) < 0.07), bool(len(m.support_) < 30)
    (True, True)
    """

    must = dict(dual_coef_=Floats(1, "m"), intercept_=Floats(1))

    def __init__(
        self, kernel: Any = None, C: float = 1.0, epsilon: float = 0.1, via: Any = "auto", *, fit_intercept: bool = True,
        tol: float = 1e-3, max_iter: int = 1000, memory_limit: Any = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.via = via
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual."""
        exact_only(self.via)
        C, tol, most, e = positive(self.C, "C"), positive(self.tol, "tol"), whole(self.max_iter, "max_iter"), tube(self.epsilon)
        rows, y = self._checked_pair(X, y, reset=True, y_numeric=True)
        w = self._row_weights(sample_weight, rows)
        rows, t = self._only(rows, w > 0), targets(y)[w > 0]
        self.kernel_ = self._resolved(rows, w[w > 0])
        c = C * w[w > 0]
        unit = min(1.0, float(t.std()) or 1.0)
        source = self._source(rows, float(c.max()), tol * unit, balanced=bool(self.fit_intercept))
        found = solve(source, Box(t, -c, c, e, bias=bool(self.fit_intercept), unit=unit), tol, most, limit=bytes_of(self.memory_limit))
        self._keep_support(rows, np.flatnonzero(w > 0), found.b[None], np.arange(len(rows)))
        self.intercept_ = np.array([source.intercept(found.b, found.intercept)])
        self.n_support_ = np.array([len(self.support_)], np.int32)
        self._settle([found], source, f"{len(rows):,} rows, by blocks of the dual until its gap is {found.relative:.1e}")
        return self

    def predict(self, X: Any) -> Array:
        """sum_j coef_j k(x, z_j) + intercept."""
        f = self._raw(X)[:, 0]
        return f + self.intercept_[0].astype(f.dtype)


def exact_only(via: Any) -> None:
    """Only the dual over rows is there."""
    if not (isinstance(via, str) and via in VIAS):
        raise ValueError(f"via must be one of {', '.join(VIAS)}, got {via!r}.")


def tube(epsilon: Any) -> float:
    if isinstance(epsilon, int | float | np.number) and np.isfinite(epsilon) and epsilon >= 0:
        return float(epsilon)
    raise ValueError(f"epsilon must be a number >= 0, got {epsilon!r}.")


def targets(y: Any) -> Array:
    """y as numbers, of a size whose squares stay finite."""
    t = np.asarray(y, np.float64)
    if len(t) and np.abs(t).max() > 1e100:
        raise ValueError(f"y has values up to {np.abs(t).max():.1e}, which are too large to square; scale y first.")
    return t
