"""KernelSVR: the epsilon-insensitive loss by its exact dual, over rows or over sparse rows as they
are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from mercer import methods
from mercer.gpu.devices import checked_device, device_of
from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.kernels.defaults import kernel_of
from mercer.kernels.ways import value_ways
from mercer.models.base import all_or_nothing, bytes_of
from mercer.models.expansion import scaled_kernel_at
from mercer.models.maps import FittedMap, own_lift
from mercer.models.naming import Named
from mercer.models.settings import (
    FittedKernel,
    Gamma,
    KernelSetting,
    MemoryLimit,
    Via,
    checked_flag,
    number,
    positive,
    whole,
)
from mercer.models.svm.base import SupportVectorEstimator
from mercer.models.svm.dual import intercept_of, operator_of, summary_of, support_of, warn_if_open
from mercer.models.svm.fit import on_cpu
from mercer.models.svm.machine import DualMachine, FeatureMachine
from mercer.models.svm.plan import EXACT_ONLY, PRICES, slack_price, with_positive_weight
from mercer.models.svm.problem import DualProblem
from mercer.models.svm.solver import solve
from mercer.models.svm.tube import TubeSettings, over_sparse_rows
from mercer.store import register

REMEDIES = "lower C", "centre and scale the columns of X, or lower C"


@register("svm.KernelSVR")
class KernelSVR(RegressorMixin, SupportVectorEstimator):
    """argmin |f|^2/2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon), f in an RKHS, b free.

    The dual has one variable a row, b_i = alpha_i - alpha*_i in [-C w_i, C w_i], with a kink at
    zero; it is solved by blocks with second-order steps and shrinking. The kernel matrix is
    never formed beyond 2,048 rows. Of `Linear` over sparse rows the same dual is solved by
    coordinates (Hsieh et al. 2008), and by the method of multipliers where sweeps are slow.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        A kernel, "precomputed", None or "rbf": exp(-|x - z|^2/s), s the sum of the variances of
        the columns, "linear": x'z, "poly": (1 + x'z)^3, or "laplacian": exp(-|x - z|_1/d) of d
        columns; other names, functions and kernels of scikit-learn as in `KernelRidge`.
    C : float, default=1.0
        The weight of the losses, > 0; `np.inf` lets no row lie outside the tube, and refuses
        rows of which the kernel has no such function. All rows of positive weight then count
        alike.
    epsilon : float, default=0.1
        The width of the tube without loss, >= 0.
    via : {"auto", "exact"}, default="auto"
        The dual over the rows. Sparse rows of which at most a quarter is not zero are the
        features of `Linear` themselves under "auto": there is then `coef_` instead of support
        vectors, and no n x n or D x D array is made.
    gamma, degree, coef0 : float, default=None
        Of a kernel given by name, as in `KernelRidge`.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    tol : float, default=1e-3
        Of the optimality conditions, in the unit of y, or of its standard deviation where that
        is below 1; they are met more closely until the duality gap is at most tol of the
        objective. A gap of tol/100 ends it in any case; `plan_` says which did. Of sparse rows
        as they are: a gap of tol/10.
    max_iter : int, default=1000
        Of rounds, each of which solves one block, or of sweeps over sparse rows.
    memory_limit : float or str, default=None
        Of the kernel rows and blocks that are kept, as bytes or "4GB". Not counted: X and its
        support vectors, some vectors of n, a tile a thread, blocks of 256 rows, and the whole
        kernel matrix up to 2,048 rows (34 MB).
    device : str, default="cpu"
        "cuda" (or "cuda:1") keeps the gradients of the exact dual by products on that GPU,
        where there are more than 2,048 rows, and predicts there; it needs torch and triton.
        "auto" takes a GPU where there is one. `plan_` says where it was.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    machine_ : DualMachine or FeatureMachine
        The fitted value.
    support_ : ndarray of shape (m,)
        The places of the support vectors among the rows; not of sparse rows as they are, as
        what follows up to `n_support_`.
    support_vectors_ : ndarray of shape (m, d)
    dual_coef_ : ndarray of shape (1, m)
    n_support_ : ndarray of shape (1,)
    coef_ : ndarray of shape (1, D)
        Of a linear kernel.
    lift_ : Lift
        Of sparse rows as they are.
    intercept_ : ndarray of shape (1,)
    gap_ : float
        Relative to the objective, with what rounding may add.
    objective_ : float
        Of the dual; of sparse rows as they are, of the problem itself.
    n_iter_ : int
    kernel_ : Kernel
    plan_ : Plan

    Examples
    --------
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> m = KernelSVR(C=100.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(m.predict([[1.0]])[0] - np.sin(1.0)) < 0.07), bool(len(m.support_) < 30)
    (True, True)
    """

    must = dict(machine_=Is("DualMachine", "FeatureMachine"))

    def _laws(self) -> str | None:
        m = self.machine_
        if isinstance(m, FeatureMachine) and len(m.coef) != 1:
            return f"has {len(m.coef)} rows of coefficients of one score"
        return m.misfit(self.n_features_in_)

    def __init__(
        self,
        kernel: KernelSetting = None,
        C: float = 1.0,
        epsilon: float = 0.1,
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        degree: int | None = None,
        coef0: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        memory_limit: MemoryLimit = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.epsilon = epsilon
        self.via = via
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.device = device
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual of rows X (n, d) with y (n,) and weights (n,) or none."""
        way, method = methods.resolve(self.via, EXACT_ONLY)
        how = TubeSettings(
            tube(self.epsilon),
            checked_flag(self.fit_intercept, "fit_intercept"),
            positive(self.tol, "tol"),
            whole(self.max_iter, "max_iter"),
        )
        C, device = slack_price(self.C), checked_device(self.device)
        every, y = self._rows_and_targets(X, y, reset=True, y_numeric=True)
        w, memory = self._row_weights(sample_weight, every), bytes_of(self.memory_limit)
        rows, kept = with_positive_weight(every, w, gram=self._precomputed)
        t, hard = targets(y)[kept], np.isinf(C)
        own = own_lift(kernel_of(self), method, rows) if way == "auto" and not hard else None
        if own is not None:
            phi, how = FittedMap.fit(own, rows, memory), replace(how, tol=0.1 * how.tol)
            found = over_sparse_rows(phi, rows, t, C * w[kept], how)
            self.machine_ = found if device_of(device) is None else on_cpu(found)
            return self
        kernel = scaled_kernel_at(kernel_of(self), rows, w[kept])
        if hard:
            self.machine_ = hard_tube(kernel, rows, kept, t, how, memory, device)
        else:
            self.machine_ = over_rows(kernel, rows, kept, t, C * w[kept], how, memory, device)
        return self

    def predict(self, X: Any) -> Array:
        """f(x) + intercept, (n,)."""
        machine, rows = self._machine(), self._rows(X, reset=False)
        if isinstance(machine, FeatureMachine):
            return machine.decide(rows, self._gpu)
        f = machine.queried(rows, self._gpu)[:, 0]
        return f + machine.intercept[0].astype(f.dtype)

    def coef_by_name(self, names: Any = None, top: int | None = None) -> Named:
        """The nonzero coefficients by name, signed, the largest first: those of output 0.

        names : the D names, a transformer that has them (`NGrams`, `HashedFeatures`: of
        hashed columns, by the sign of the most frequent name), a mapping or
        function from places, or None for those of the lift; top : how many, or all
        """
        return self._strongest([0], names, top)


def over_rows(
    kernel: FittedKernel,
    rows: Table,
    kept: Array,
    t: Array,
    c: Array,
    how: TubeSettings,
    memory: float,
    device: str,
) -> DualMachine:
    """By blocks of the dual, a sum over support vectors."""
    tol, bias, unit = how.tol, how.bias, min(1.0, float(t.std()) or 1.0)
    op = operator_of(
        kernel,
        rows,
        largest=float(c.max()),
        tol=tol * unit,
        memory=memory,
        bias=bias,
        balanced=bias,
        device=device,
    )
    problem = DualProblem(t, -c, c, how.epsilon, bias=bias, unit=unit)
    found = solve(op, problem, tol, how.max_iter, memory=memory)
    parts = support_of(kernel, rows, kept, found.b[None])
    counts = np.array([len(parts["support"])], np.int32)
    why = f"{len(rows):,} rows, by blocks of the dual until its gap is {found.relative:.1e}"
    summary = summary_of(
        [found],
        op,
        why,
        vectors=int(counts[0]),
        memory=memory,
        ways=value_ways(kernel, rows),
        device=device,
    )
    warn_if_open("KernelSVR", [found], summary, tol, how.max_iter, REMEDIES)
    intercept = np.array([intercept_of(op, found)])
    return DualMachine(**parts, intercept=intercept, counts=counts, summary=summary, memory=memory)


def hard_tube(
    kernel: FittedKernel,
    rows: Table,
    kept: Array,
    t: Array,
    how: TubeSettings,
    memory: float,
    device: str,
) -> DualMachine:
    """Without slack: the machine of a C that no dual comes near to."""
    bias = how.bias
    op = operator_of(
        kernel, rows, largest=1.0, tol=how.tol, memory=memory, bias=bias, balanced=bias
    )
    unit = (float(t.std()) or 1.0) / (float(np.abs(op.diag()).mean()) or 1.0)
    for price in PRICES:
        c = np.full(len(t), price * unit)
        machine = over_rows(kernel, rows, kept, t, c, how, memory, device)
        outside = np.count_nonzero(2 * np.abs(machine.coef) > price * unit)
        if not outside:
            return machine
    raise ValueError(
        f"C=inf asks for a function that all rows are within epsilon={how.epsilon:g} of, and {outside} of {len(rows)} stay"
        f" outside at C={price * unit:.1e}; give a finite C, or a larger epsilon."
    )


def tube(epsilon: object) -> float:
    if (found := number(epsilon)) is not None and found >= 0:
        return found
    raise ValueError(f"epsilon must be a number >= 0, got {epsilon!r}.")


def targets(y: Any) -> Array:
    """y as numbers, of a size whose squares stay finite."""
    t = np.asarray(y, np.float64)
    if len(t) and np.abs(t).max() > 1e100:
        raise ValueError(
            f"y has values up to {np.abs(t).max():.1e}, which are too large to square; scale y first."
        )
    return t
