"""Kernel machines of tables: ridge regression or support vectors at the rows themselves, in cells
where there are many rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, cast

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from mercer.automl.learned import LearnedModel
from mercer.automl.predictors import class_codes_law
from mercer.automl.recipes import rounded, spelled, widened
from mercer.automl.rows import TableRows
from mercer.inputs import Array
from mercer.invariants import Each, Is, Number, Whole
from mercer.kernels import Kernel
from mercer.models import KernelRidge, KernelSVC
from mercer.models.cells import CellTree
from mercer.models.svm.multiclass import votes
from mercer.ops.threads import limit, n_threads, parallel_map
from mercer.store import register

TOLERANCE = 1e-3
PARALLEL_CELLS = 4  # cells that share the memory, whatever the number of cores
ITERATED_POWER = 2.0
FACTOR_POWER = 2.7
CELL_MODELS = ("KernelRidge", "KernelSVC", "IndicatorRidge", "LearnedModel", "SingleClass")
FACTOR_BYTES = 16.0  # bytes for each pair of rows in a factorisation


class MachinePlan(Protocol):
    """All that the contest knows of a machine: how it is fitted to the rows of a cell once its
    search is over, and what it is in words.

    A plan holds what was chosen (a kernel, a penalty, the path of a learnt metric) and no row of
    training: so every fold, the validation and the last fit make the same machine of other rows.
    What it makes is a `CellModel`; `scores` reads those of classes. One that has cells of its own
    is fitted to all rows, and told how many a cell may hold.
    """

    def fit(
        self, X: Array, y: Array, w: Array | None, n_classes: int, memory: float
    ) -> CellModel: ...

    @property
    def detail(self) -> str: ...

    def how(self, n_classes: int) -> str: ...

    def power(self, n_classes: int) -> float: ...

    @property
    def own_cells(self) -> bool: ...

    def in_cells(self, most: int) -> MachinePlan: ...


@dataclass(frozen=True)
class MachineSetting:
    """A kernel, its penalty (of squares alpha, of support vectors 1/C), and of classes the loss:
    hinge, or squared on one indicator a class.
    """

    kernel: Kernel
    penalty: float
    loss: str = "hinge"

    own_cells: ClassVar[bool] = False

    def in_cells(self, most: int) -> MachineSetting:
        return self

    def neighbour(self, wider: float, penalty: float) -> MachineSetting:
        """With factors on the bandwidths and the penalty."""
        return replace(
            self, kernel=widened(self.kernel, wider), penalty=rounded(self.penalty * penalty)
        )

    def fit(self, X: Array, y: Array, w: Array | None, n_classes: int, memory: float) -> CellModel:
        """The machine of these rows; y are codes of at least two classes, or numbers."""
        if n_classes and self.loss == "hinge":
            svc = KernelSVC(self.kernel, C=1 / self.penalty, via="exact", memory_limit=memory)
            return svc.fit(X, y, w)
        ridge = KernelRidge(
            self.kernel, alpha=self.penalty, via="exact", tol=TOLERANCE, memory_limit=memory
        )
        if not n_classes:
            return ridge.fit(X, y, w)
        codes = np.unique(y)
        hot = (y[:, None] == codes).astype(np.float64)
        return IndicatorRidge(ridge.fit(X, hot, w), tuple(codes.tolist()))

    @property
    def detail(self) -> str:
        return f"{spelled(self.kernel)} at the rows themselves"

    def power(self, n_classes: int) -> float:
        """Of the rows in the seconds of a fit, before larger fits tell it: many outputs take a
        factorisation."""
        return FACTOR_POWER if n_classes and self.loss == "squared" else ITERATED_POWER

    def how(self, n_classes: int) -> str:
        """The loss and its penalty."""
        if n_classes and self.loss == "hinge":
            return f"support vectors, C {1 / self.penalty:.3g}"
        what = "ridge regression of indicators" if n_classes else "ridge regression"
        return f"{what}, penalty {self.penalty:.3g}"


@register("automl.Machine")
@dataclass(frozen=True, eq=False)
class Machine:
    """A fitted machine for every cell; of classes, P(k | x) in proportion to exp(slope s_k(x) +
    offset_k) with s_k their scores.

    Within a cell a row is given what the machine of its rows, and of some rows beyond its borders,
    says.
    """

    tree: CellTree
    models: tuple[CellModel, ...]
    n_classes: int
    rows: int
    slope: float = 1.0
    offsets: tuple[float, ...] = ()

    must = dict(
        tree=Is("CellTree", d="d"),
        models=Each(
            Is(*CELL_MODELS, n_features_in_="d"),
            size="tree.n_cells",
        ),
        n_classes=Whole(),
        rows=Whole(),
        slope=Number(),
        offsets=Each(Number(), size="n_classes"),
    )

    def _laws(self) -> str | None:
        codes = [
            np.array([m.code]) if isinstance(m, SingleClass) else m.classes_
            for m in self.models
            if self.n_classes
        ]
        return class_codes_law(codes, self.n_classes)

    @property
    def classes_(self) -> Array:
        return np.arange(self.n_classes)

    @property
    def n_cells(self) -> int:
        """Of the tree, or of the machine that has some of its own."""
        return max(len(self.models), getattr(self.models[0], "n_cells", 1))

    @property
    def importances_(self) -> Array:
        """Of a learnt metric, by column; AttributeError where none was learnt."""
        return np.asarray(self.models[0].importances_)  # type: ignore[union-attr]

    @property
    def plan_(self) -> str:
        """The way that the machine of the first cell went."""
        first = str(getattr(self.models[0], "plan_", "constant"))
        return (
            first
            if len(self.models) == 1
            else f"{self.rows:,} rows in {len(self.models):,} cells; the first: {first}"
        )

    def predict(self, X: Array) -> Array:
        """Numbers (n,)."""
        return self._by_cell(
            X,
            np.zeros(len(X)),
            lambda m, rows: np.asarray(cast(KernelRidge, m).predict(rows), np.float64),
        )

    def scores(self, X: Array) -> Array:
        """One score a class, (n, K); the highest is the class."""
        return self._by_cell(
            X, np.zeros((len(X), self.n_classes)), lambda m, rows: scores(m, rows, self.n_classes)
        )

    def predict_proba(self, X: Array) -> Array:
        return np.asarray(softmax(self.slope * self.scores(X) + np.asarray(self.offsets), axis=1))

    def _by_cell(self, X: Array, out: Array, of: Callable[[CellModel, Array], Array]) -> Array:
        cell = self.tree.cell(X)
        for c in np.unique(cell).tolist():
            i = np.flatnonzero(cell == c)
            out[i] = of(self.models[c], X[i])
        return out


@register("automl.IndicatorRidge")
@dataclass(frozen=True, eq=False)
class IndicatorRidge:
    """Ridge regression of one indicator a class, all by one factorisation: the highest is the
    class."""

    ridge: KernelRidge
    codes: tuple[int, ...]

    must = dict(ridge=Is("KernelRidge"), codes=Each(Whole(0, 1 << 31)))

    def _laws(self) -> str | None:
        outputs = int(np.size(self.ridge.intercept_))
        return (
            None
            if outputs == len(set(self.codes)) == len(self.codes)
            else f"has {outputs} outputs for {len(self.codes)} classes"
        )

    @property
    def classes_(self) -> Array:
        return np.asarray(self.codes, np.int64)

    @property
    def n_features_in_(self) -> int:
        return int(self.ridge.n_features_in_)

    @property
    def plan_(self) -> object:
        return self.ridge.plan_

    def decision_function(self, X: Array) -> Array:
        """(n, classes)."""
        return np.asarray(self.ridge.predict(X), np.float64).reshape(len(X), len(self.codes))


@register("automl.SingleClass")
@dataclass(frozen=True)
class SingleClass:
    """A cell whose rows are all of one class."""

    code: int

    must = dict(code=Whole(0, 1 << 31))


CellModel = KernelRidge | KernelSVC | IndicatorRidge | LearnedModel | SingleClass


@contextmanager
def ignore_convergence() -> Iterator[None]:
    """Without a word on rounds that were not enough; outside all threads, which share what is
    said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fit_machine(
    rows: TableRows, y: Array, n_classes: int, plan: MachinePlan, most: int, memory: float
) -> Machine:
    """A machine for every cell of at most so many rows, side by side; y are codes of classes, or
    numbers to be fitted.

    Rows of weight 0 are left out. The memory of a cell, which decides how it is solved, follows
    from the sizes alone.
    """
    n = len(rows)
    rows, y = _with_positive_weight(rows, y)
    tree, parts = CellTree.of(rows.X, len(rows) if plan.own_cells else most)
    plan = plan.in_cells(most)
    each = memory / 2 / min(PARALLEL_CELLS, len(parts))

    def one(i: Array) -> CellModel:
        return _fit_cell(
            rows.X[i],
            y[i],
            None if rows.weight is None else rows.weight[i],
            n_classes,
            plan,
            each,
        )

    with limit(min(n_threads(), parallel_cells(max(map(len, parts)), each, memory))):
        models = parallel_map(one, parts) if len(parts) > 1 else [one(parts[0])]
    return Machine(tree, tuple(models), n_classes, n, offsets=(0.0,) * n_classes)


def parallel_cells(most: int, each: float, memory: float) -> int:
    """How many cells of so many rows half the memory holds.

    >>> parallel_cells(1_000, 1e9, 4e9), parallel_cells(100_000, 1e9, 4e9)
    (125, 2)
    """
    return max(1, int(memory / 2 / min(each, FACTOR_BYTES * most**2)))


def _with_positive_weight(rows: TableRows, y: Array) -> tuple[TableRows, Array]:
    """Without the rows of weight 0, unless all are."""
    if rows.weight is None or not (some := rows.weight > 0).any() or some.all():
        return rows, y
    return rows.take(some), y[some]


def _fit_cell(
    X: Array, y: Array, w: Array | None, n_classes: int, plan: MachinePlan, memory: float
) -> CellModel:
    present = np.unique(y)
    if n_classes and len(present) == 1:
        return SingleClass(int(present[0]))
    return plan.fit(X, y, w, n_classes, memory)


def scores(m: CellModel, X: Array, n_classes: int) -> Array:
    """Of two classes -f/2 and f/2; of more the votes, or what was predicted of indicators, where a
    class that the cell lacks has one less than none."""
    out = np.full((len(X), n_classes), -1.0)
    if isinstance(m, SingleClass):
        out[:, m.code] = 1.0 if n_classes == 2 else n_classes - 1.0
        return out
    assert not isinstance(m, KernelRidge)
    f = np.asarray(m.decision_function(X), np.float64)
    if isinstance(m, IndicatorRidge | LearnedModel):
        out[:, m.classes_] = f
        return out
    if n_classes == 2:
        return np.stack([-f / 2, f / 2], axis=1)
    out[:, np.asarray(m.classes_, np.int64)] = votes(-f[:, None], 2) if f.ndim == 1 else f
    return out


def calibration(
    s: Array, y: Array, w: Array, ridge: float = 1.0
) -> tuple[float, tuple[float, ...]]:
    """(slope, offsets) of the least log loss of softmax(slope s + offset), the offsets drawn to
    zero as if by one row; (1, 0) without rows.

    >>> slope, offsets = calibration(np.array([[-1.0, 1.0], [1.0, -1.0]] * 20), np.array([1, 0] * 19 + [0, 1]), np.ones(40))
    >>> 0 < slope < 2, max(map(abs, offsets)) < 1e-3
    (True, True)
    """
    K = s.shape[1]
    hot, total = np.eye(K)[y], float(w.sum())
    if not total > 0:
        return 1.0, (0.0,) * K

    def loss(v: Array) -> tuple[float, Array]:
        z = np.exp(v[0]) * s + v[1:]
        top = logsumexp(z, axis=1)
        d = w[:, None] * (np.exp(z - top[:, None]) - hot)
        value = w @ (top - z[np.arange(len(y)), y]) + ridge / 2 * float(v @ v)
        slopes = np.concatenate([[np.exp(v[0]) * np.sum(d * s)], d.sum(0)]) + ridge * v
        return float(value) / total, slopes / total

    found = minimize(
        loss,
        np.zeros(K + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-6.0, 6.0)] + [(-10.0, 10.0)] * K,
    )
    return float(np.exp(found.x[0])), tuple(found.x[1:].tolist())


def cross_fitted_probabilities(s: Array, y: Array, w: Array, part: Array) -> Array:
    """Probabilities of scores, each part's by the calibration of the others; one part alone is
    halved."""
    out, part = np.empty_like(s), part if len(np.unique(part)) > 1 else np.arange(len(s)) % 2
    for k in np.unique(part):
        slope, offsets = calibration(s[part != k], y[part != k], w[part != k])
        out[part == k] = softmax(slope * s[part == k] + np.asarray(offsets), axis=1)
    return out
