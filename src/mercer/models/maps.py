"""A fitted feature map as learners read it: batches of dense features, and the sums over them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer import methods
from mercer.inputs import Array, Items, Matrix, Table
from mercer.invariants import Is, Number, Whole
from mercer.kernels import Cosine, Linear, Scale, positioned
from mercer.kernels.defaults import resolve
from mercer.lifts import (
    Identity,
    KernelLift,
    Lift,
    NormalizedLift,
    Nystrom,
    RandomFourier,
    Scaled,
)
from mercer.lifts.base import fitted as fitted_lift
from mercer.lifts.base import needs_target
from mercer.lifts.duality import NoFeatureMapError
from mercer.lifts.slopes import feature_gradients
from mercer.lifts.widths import MOST_FEATURES, default_features
from mercer.models.base import checked
from mercer.models.settings import (
    FittedKernel,
    FittedLift,
    KernelSetting,
    LiftSetting,
    Seed,
    checked_lift,
    takes_text,
)
from mercer.ops.tiles import cuts
from mercer.plans import Plan
from mercer.stats import Moments
from mercer.store import fingerprint, register

BATCH_BYTES = 64 << 20  # of features held at once
HEAD = 1024  # rows whose mean is the shift
THIN = 4  # so many entries a nonzero, and sparse features are smaller as they are than dense
SPARSE_BATCH = 1 << 14  # rows of sparse features at a time
TOO_LARGE = "the features of X (or y) are too large for sums of floating-point numbers; scale the columns first."


@register("models.FittedMap")
@dataclass(frozen=True, eq=False)
class FittedMap:
    """phi(x) (D,) of a fitted lift, read in batches of at most so many bytes."""

    lift: FittedLift
    batch: float = BATCH_BYTES
    size: int | None = None  # D, of a transformer that does not tell it itself

    must = dict(lift=Is("Lift", "TransformerMixin"), batch=Number(1), size=Whole(1) | None)

    @classmethod
    def fit(
        cls, lift: FittedLift, rows: Table, memory: float = math.inf, y: Array | None = None
    ) -> FittedMap:
        """Fit a map to rows, whose columns it may name, and to targets where it learns from them; an
        eighth of the memory is for batches."""
        if y is None and needs_target(lift):
            raise ValueError(
                f"{type(lift).__name__} learns from y, which no map gets here; give one that does not, or a pipeline."
            )
        of = rows if isinstance(lift, Lift) else rows.data
        fitted = cls(fitted_lift(lift, of, y), min(BATCH_BYTES, memory / 8))
        return (
            fitted
            if hasattr(fitted.lift, "n_features_out_")
            else replace(fitted, size=int(fitted.transform(rows[:1]).shape[1]))
        )

    @property
    def learns(self) -> bool:
        """Whether it was learnt from targets, so that no fold of its rows is unseen."""
        return needs_target(self.lift)

    def anew(self, rows: Table, y: Array) -> FittedMap:
        """The same map, learnt from other rows and their targets."""
        return FittedMap.fit(clone(self.lift), rows, 8 * self.batch, y)

    @classmethod
    def of_file(cls, lift: FittedLift, memory: float = math.inf) -> FittedMap:
        """Of a fitted lift that a file of before held."""
        return checked(cls(lift, min(BATCH_BYTES, memory / 8)))

    @property
    def width(self) -> int:
        """D"""
        return int(self.lift.n_features_out_) if self.size is None else self.size

    @property
    def kernel(self) -> FittedKernel:
        """That of the features, which a transformer does not tell."""
        if isinstance(self.lift, Lift) or hasattr(self.lift, "kernel_"):
            return self.lift.kernel_
        raise AttributeError(
            f"kernel_ is told by kernels and by maps of mercer.lifts, but not by {type(self.lift).__name__}."
        )

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items and texts."""
        points = getattr(self.lift, "landmarks_", None)
        if takes_text(self.lift):
            return None
        return None if isinstance(points, list | Items) else int(self.lift.n_features_in_)

    @property
    def fingerprint(self) -> str:
        """Equal for equal maps only: statistics of different maps do not add."""
        return fingerprint(self.lift)

    def transform(self, rows: Table) -> Matrix:
        """phi of these rows, sparse where the map gives it so."""
        if isinstance(self.lift, Lift):
            return self.lift.transform(Table(rows.data))
        F = self.lift.transform(rows.data)
        F = F if sp.issparse(F) else np.asarray(F)
        return F if F.dtype.kind == "f" else F.astype(rows.dtype)

    def features(self, rows: Table) -> Array:
        """phi of these rows, dense."""
        F = self.transform(rows)
        return np.asarray(F.toarray() if sp.issparse(F) else F)

    def sparse_features(self, rows: Table) -> Matrix | None:
        """phi of these rows as CSR, where the map gives it so and few are not zero; of sparse rows
        that are their own features no entry is copied."""
        if not self._sparse(rows) or not thin(self.transform(rows[:HEAD])):
            return None
        own = rows.sparse and isinstance(self.lift, Identity) and self.lift.root_ is None
        F = rows.data if own else self.transform(rows)
        return F if thin(F) else None

    def _sparse(self, rows: Table) -> bool:
        """Whether features may be sparse: those of landmarks among items are not."""
        return not rows.items or takes_text(self.lift)

    def parts(self, n: int) -> list[slice]:
        """The rows of each batch, few enough that it stays small."""
        return cuts(n, max(16, min(1 << 14, int(self.batch) // (8 * self.width))))

    def sparse_parts(self, rows: Table) -> list[slice]:
        """The same of features that may stay sparse, and are then as small as the rows."""
        stay = self._sparse(rows) and thin(self.transform(rows[:HEAD]))
        return cuts(len(rows), SPARSE_BATCH) if stay else self.parts(len(rows))

    def batches(self, rows: Table) -> Iterator[tuple[slice, Array]]:
        """The features of rows, batch by batch."""
        return ((at, self.features(rows[at])) for at in self.parts(len(rows)))

    def gram(self, X: Table, Z: Table) -> Array:
        """phi(X) phi(Z)', in float64."""
        F, G = self.sparse_features(X), self.sparse_features(Z)
        if F is not None and G is not None:
            return np.asarray((F.astype(np.float64) @ G.T.astype(np.float64)).toarray())
        return np.asarray(
            self.features(X).astype(np.float64) @ self.features(Z).astype(np.float64).T
        )

    def _there(self, shift: Array, gpu: str) -> Any:
        """Random Fourier features on a torch device."""
        phi: Any = getattr(self.lift, "map_", self.lift)
        scale = math.sqrt(phi.spectrum_.amplitude / phi.n_frequencies_)
        made = import_module("mercer.gpu.features").FourierMoments
        if phi.frequencies == "structured":
            there = import_module("mercer.gpu.structured").StructuredFrequencies
            if (W := there(*phi.structured)).in_blocks:
                return made(W, scale, shift, gpu)
        return made(phi.draw(), scale, shift, gpu)

    def linear(
        self, rows: Table, coef: Array, intercept: float | Array, gpu: str | None = None
    ) -> Array:
        """phi(x)'coef + intercept, (n,) or (n, q), in the precision of the rows; of rows in float32
        on a torch device where one is given and has these features."""
        narrow = rows.dtype == np.float32 and len(rows) > 0
        if gpu is not None and narrow and self.no_gpu(rows) is None:
            there = self._there(np.zeros(self.width), gpu)
            out = there.linear(rows.data, coef.reshape(self.width, -1))
            return np.asarray(out.reshape(len(rows), *coef.shape[1:]) + intercept, rows.dtype)
        if (F := self.sparse_features(rows)) is not None:
            return np.asarray(F @ coef.astype(F.dtype) + intercept, rows.dtype)
        out = np.empty((len(rows), *coef.shape[1:]), rows.dtype)
        for at, F in self.batches(rows):
            out[at] = F @ coef.astype(F.dtype) + intercept
        return out

    def gradient(self, rows: Table, coef: Array) -> Array:
        """d phi(x)'coef / dx, (n, q, d), in the precision of the rows; of maps with a formula for
        it."""
        return feature_gradients(self.lift, Table(rows.data), coef)

    # sums
    def shift(self, rows: Table) -> Array:
        """The mean of the first rows, in their own precision: what is subtracted is then exactly
        what is remembered."""
        F = self.features(rows[:HEAD])
        return np.asarray(F.mean(0, dtype=np.float64).astype(F.dtype), np.float64)

    def moments(
        self, rows: Table, shift: Array, Y: Array | None = None, weight: Array | None = None
    ) -> Moments:
        """Of [phi] or [phi, y] over these rows."""
        return self.fold_moments(rows, shift, Y, weight, np.zeros(len(rows), np.uint8), 1)[0]

    def no_gpu(self, rows: Table) -> str | None:
        """Why moments are summed on the CPU; None where a GPU can."""
        phi = getattr(self.lift, "map_", self.lift)
        if not isinstance(phi, RandomFourier) or phi.form != "pairs":
            return "it has random Fourier features in pairs alone"
        if rows.items or rows.sparse:
            return "it takes dense rows"
        return None

    def fold_moments(
        self,
        rows: Table,
        shift: Array,
        Y: Array | None,
        weight: Array | None,
        fold: Array,
        k: int,
        gpu: str | None = None,
    ) -> list[Moments]:
        """Those of the rows of each fold, in one pass; on a torch device where one is given and has
        these features."""
        columns = Y if Y is None or Y.ndim == 2 else Y[:, None]
        if gpu is not None and len(rows) and self.no_gpu(rows) is None:
            made = self._there(shift, gpu)
            found: list[Moments] = made.fold_moments(rows.data, columns, weight, fold, k)
            return found
        new = [Moments.zero(shift) for _ in range(k)]
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # sums too large are refused by a sentence
            for at, F in self.batches(rows):
                for j, m in enumerate(new):
                    here = slice(None) if k == 1 else fold[at] == j
                    w, beside = (None if v is None else v[at][here] for v in (weight, columns))
                    m.add(F[here], w, beside)
        if not all(np.isfinite(m.s).all() and np.isfinite(np.diag(m.S)).all() for m in new):
            raise ValueError(TOO_LARGE)
        return new

    def covariance_product(self, rows: Table, mean: Array, V: Array) -> Array:
        """sum_i (phi_i - mean)(phi_i - mean)' V, in one pass."""
        total = np.zeros_like(V)
        for _, F in self.batches(rows):
            G = F.astype(np.float64) - mean
            total += G.T @ (G @ V)
        return total

    def plan(self, n: int, way: str, why: str, passes: int, held: float | None = None) -> Plan:
        """That of a model over n rows of these features, which holds so many bytes of statistics
        (one D x D matrix where not said)."""
        D = self.width
        settings = {
            "lift": type(getattr(self.lift, "map_", self.lift)).__name__,
            "n_features": D,
            "rows": n,
        }
        return Plan(
            way,
            why,
            settings,
            bytes=(8.0 * D * D if held is None else held) + BATCH_BYTES,
            flops=float(n) * D * D,
            passes=passes,
        )


def fitted_map(
    kernel: KernelSetting,
    lift: LiftSetting,
    method: methods.Method,
    rows: Table,
    weight: Array | None = None,
    *,
    seed: Seed,
    memory: float,
    stream: bool = False,
    y: Array | None = None,
    wide: bool = False,
    count: int | None = None,
) -> FittedMap:
    """The map of a lift, or of a kernel by a method, fitted to these rows, which may be the first
    of a stream; lifts that learn from targets get y, numbers or the places of classes.

    wide : whether the learner takes sparse features of any number as they are
    count : of how many rows these are some
    """
    if lift is not None:
        return FittedMap.fit(clone(checked_lift(lift)), rows, memory, y)
    if wide and (own := own_lift(kernel, method, rows)) is not None:
        return FittedMap.fit(own, rows, memory)
    size = asked(method)
    if size is None:
        size = MOST_FEATURES if stream else default_features(count or len(rows))
    kernel = positioned(resolve(kernel, rows, weight), rows)
    phi = kernel_lift(kernel, size, method, seed, rows)
    try:
        return FittedMap.fit(phi, rows, memory)
    except NoFeatureMapError:  # of a function: where no other is asked for, by landmarks
        if not isinstance(method, methods.Auto) or rows.items:
            raise
    return FittedMap.fit(phi.set_params(method=methods.Landmarks()), rows, memory)


def thin(F: Matrix) -> bool:
    """Whether features are CSR rows that would grow if they were made dense.

    >>> thin(sp.eye_array(8, format="csr")), thin(sp.eye_array(2, format="csr")), thin(np.eye(8))
    (True, False, False)
    """
    return bool(sp.issparse(F) and THIN * F.nnz <= F.shape[0] * F.shape[1])


def nonzero_bytes(F: Matrix) -> int:
    """The size of CSR rows."""
    return int(F.data.nbytes + F.indices.nbytes + F.indptr.nbytes)


def own_lift(kernel: KernelSetting, method: methods.Method, rows: Table) -> Lift | None:
    """The map of a linear kernel over thin sparse rows, which are their own features, where no other
    is asked for.

    >>> X = Table(sp.eye_array(8, format="csr"))
    >>> own_lift(4 * Linear(), methods.Auto(), X), own_lift(Linear(), methods.Sketch(4), X)
    (Scaled(by=2.0, lift=Identity()), None)
    """
    if rows.items or not thin(rows.data) or not isinstance(method, methods.Auto | methods.Exact):
        return None
    match resolve(kernel, rows) if isinstance(kernel, str) else kernel:
        case Linear(metric=None):
            return Identity()
        case Cosine():
            return NormalizedLift(Identity())
        case Scale(factor=c, kernel=Linear(metric=None)):
            return Scaled(Identity(), math.sqrt(c))
    return None


def kernel_lift(
    kernel: KernelSetting, size: int, method: methods.Method, seed: Seed, rows: Table
) -> Lift:
    """The map of a kernel by a method; that of items is the one that they have."""
    if rows.items:
        return landmarks_of_items(kernel, size, method, seed)
    return KernelLift(kernel, size, method=method, random_state=seed)


def landmarks_of_items(
    kernel: KernelSetting, size: int, method: methods.Method, seed: Seed
) -> Nystrom:
    """By landmarks, where no other map is asked for."""
    if not isinstance(method, methods.Landmarks | methods.Auto):
        raise ValueError(
            f"items have no features but those of landmarks, so via={method!r} has none; use via='landmarks'."
        )
    select = method.select if isinstance(method, methods.Landmarks) else methods.Landmarks().select
    return Nystrom(kernel, size, landmarks=select, random_state=seed)


def asked(method: methods.Method) -> int | None:
    """The number of features that a method names itself."""
    named = (getattr(method, name, None) for name in ("n_features", "n_landmarks"))
    return next((n for n in named if n is not None), None)
