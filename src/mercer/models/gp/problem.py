"""What a Gaussian process is asked for, checked; how its targets are measured; and the plan that
settings and shapes lead to."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np

from mercer import methods
from mercer.costs.processes import MAX_EXACT_ROWS
from mercer.gpu.devices import device_of, told
from mercer.inputs import Array, Table
from mercer.kernels import Gaussian, Kernel, positioned
from mercer.kernels.defaults import is_precomputed, kernel_of, resolve
from mercer.kernels.translated import Translation
from mercer.models.base import bytes_of
from mercer.models.expansion import Expansion
from mercer.models.gp.hyperparameters import BoundSpec, HyperparameterSpec
from mercer.models.gp.posterior import Outputs
from mercer.models.settings import (
    KernelSetting,
    LiftSetting,
    MemoryLimit,
    Seed,
    checked_flag,
    number,
    way_of,
)
from mercer.plans import Plan, quantity

MAX_GPU_ROWS = 200_000  # that "auto" takes products with there: a step of the search is seconds
PRODUCTS = "to about 1e-6 in the equations (residuals in float64), in float64 in answers"
SIDES = 40  # vectors that probes and targets have there
MAX_SEARCH_ROWS = (
    3000  # that hyper-parameters are learnt from where there are more than can be factored
)


@dataclass(frozen=True, eq=False)
class ProcessSettings:
    """The parameters of `GaussianProcessRegressor`, checked: `way` and `method` are what `via`
    says."""

    kernel: KernelSetting
    lift: LiftSetting
    noise: float | Array | None  # None where it is learnt
    way: str
    method: methods.Method
    prior_mean: float | str
    spec: HyperparameterSpec
    n_restarts: int
    learn_rows: int | str | None
    restore_variance: bool
    memory_limit: MemoryLimit
    random_state: Seed
    device: str = "cpu"  # as given; `gpu` is what it comes to

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        noise, mean, restores = (
            checked_noise(m.noise),
            checked_mean(m.prior_mean),
            checked_flag(m.restore_variance, "restore_variance"),
        )
        given = kernel_of(m)
        kernel, noise = noise_of(given, noise)
        way, method = way_of(m.via, kernel, m.lift)
        fixed = held(kernel) if m.fixed is None else m.fixed
        free, bounds = noise is None or kernel is None, bounded(given, m.bounds)
        spec = spec_of(fixed, m.tied, bounds, m.priors, free=free)
        restarts, rows = (
            check_count(m.n_restarts, "n_restarts", least=0),
            checked_learn_rows(m.learn_rows),
        )
        return cls(
            kernel=kernel,
            lift=m.lift,
            noise=noise,
            way=way,
            method=method,
            prior_mean=mean,
            spec=spec,
            n_restarts=restarts,
            learn_rows=rows,
            restore_variance=restores,
            memory_limit=m.memory_limit,
            random_state=m.random_state,
            device=checked_device(getattr(m, "device", "cpu")),
        )

    @property
    def gpu(self) -> str | None:
        """The torch device of products with K; None: the CPU."""
        return device_of(self.device)

    def no_gpu(self, X: Table) -> str | None:
        """Why rows cannot be learnt from on the GPU; None where they can."""
        if self.gpu is None:
            return "device='cpu'"
        kernel = self.kernel_at(X) or Gaussian()
        if (why := Expansion(kernel, X).no_tile(X)) is not None:
            return why
        solver = import_module("mercer.gpu.solve").GPUSolver()
        found: str | None = solver.no_room(len(X), X.width, SIDES, self.gpu)
        return found

    @property
    def memory(self) -> float:
        """In bytes."""
        return bytes_of(self.memory_limit)

    @property
    def precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    @property
    def learns(self) -> bool:
        """Whether any hyper-parameter is learnt."""
        return self.noise is None or not (
            self.precomputed or isinstance(self.spec.fixed, bool | str)
        )

    @property
    def asks(self) -> bool:
        """Whether something is asked of single parameters."""
        w = self.spec
        return bool(w.told or w.tied or w.kept or w.fixed is True)

    @property
    def over_landmarks(self) -> bool:
        """Whether a kernel's features are to be those of landmarks."""
        return self.lift is None and isinstance(self.method, methods.Landmarks)

    @property
    def prior(self) -> float | str:
        """The prior mean over features, or "y" where it is that of the y seen."""
        if self.prior_mean == "auto":
            return "y" if self.learns and self.over_landmarks else 0.0
        return self.prior_mean

    @property
    def all_rows(self) -> bool:
        """Whether the likelihood of all rows is to be climbed, however many they are."""
        return self.learn_rows == "all"

    def search_rows(self, way: str) -> int | None:
        """The rows whose exact likelihood is climbed; None is all of them."""
        if isinstance(self.learn_rows, int):
            return self.learn_rows
        return None if way == "exact" else MAX_SEARCH_ROWS

    def kernel_at(self, X: Table) -> Kernel | None:
        """The kernel given, None where it is to be chosen."""
        return (
            None
            if self.kernel is None
            else positioned(resolve(self.kernel, Table(X.data), given=True), X)
        )

    # targets
    def outputs(self, Y: Array, kernel: Kernel | None, flat: bool) -> Outputs:
        """What y is measured from and by: its deviation where anything is learnt, else 1."""
        seen, learns = Y.mean(0), self.learns
        prior = "y" if learns and isinstance(self.prior_mean, str) else self.prior
        mean = seen if isinstance(prior, str) else np.full(Y.shape[1], prior)
        unit = deviation(Y, seen) if learns else np.ones(Y.shape[1])
        if learns and self._shares_unit(kernel):
            unit = np.full(len(unit), np.exp(np.log(np.where(unit > 0, unit, 1)).mean()))
        unit = np.where(unit == 0, 1, unit)
        size = max(unit.max(), np.abs(Y - mean).max())
        if not (size < 1e150 and unit.min() > 1e-150):
            raise ValueError(
                f"y varies by {size:.1g}, whose square is no floating-point number; scale y first."
            )
        return Outputs(mean, unit, flat, self.noise)

    def _shares_unit(self, kernel: Kernel | None) -> bool:
        """Whether something was said in the units of y, so that these must be the same for all
        outputs."""
        said = self.noise is not None or bool({"noise", "scale"} & self.spec.named())
        return said or (kernel is not None and BoundSpec(kernel, self.spec).absolute)

    def noises(self, n: int, o: Outputs) -> Array | None:
        """One a row in the units of the process, or None where the noise is to be learnt."""
        if self.noise is None:
            return None
        return np.array(np.broadcast_to(self._one_a_row(n), (n,))) / o.unit[0] ** 2

    def precision(self, n: int) -> Array | None:
        """Weights for one noise a row that was given: the geometric mean of all noises over each,
        which leaves the determinant as it is."""
        if not np.ndim(self.noise):  # type: ignore[arg-type]
            return None
        noise = self._one_a_row(n)
        return np.asarray(np.exp(np.log(noise).mean()) / noise)

    def _one_a_row(self, n: int) -> Array:
        noise = np.asarray(self.noise, np.float64)
        if noise.ndim and noise.shape != (n,):
            raise ValueError(
                f"noise has shape {noise.shape}, but X has {n} rows; give one number, or one a row."
            )
        return noise

    def check_noise_over_features(self) -> None:
        """Features and landmarks interpolate nothing."""
        checked_noise("learn" if self.noise is None else self.noise, zero=False)


def deviation(Y: Array, mean: Array) -> Array:
    """Of every column from its mean; of a constant one its size."""
    with np.errstate(over="ignore", invalid="ignore"):
        unit = np.sqrt(np.square(Y - mean).mean(0))
    return np.where(unit > 1e-12 * np.abs(mean), unit, np.abs(mean))


def choose(n: int, outputs: int, s: ProcessSettings, no_gpu: str | None = "") -> Plan:
    """The way of n rows: "exact", "iterative", "landmarks" or "features", and why; `no_gpu` says
    why products are not taken on a GPU, None where they are."""
    size = 8.0 * n * n
    matrix = f"a {quantity(size, 'B')} matrix"
    if s.precomputed:
        if s.lift is not None or s.way not in ("auto", "exact"):
            raise ValueError(
                "a Gram matrix has no features or landmarks; use via='exact' with kernel='precomputed'."
            )
        return Plan("exact", "a Gram matrix was given", bytes=size, flops=n**3 / 3)
    if s.lift is not None or s.way in ("features", "landmarks"):
        return Plan("landmarks" if s.over_landmarks else "features", "asked for")
    where = f" {told(s.device)}" if no_gpu is None else ""
    if s.way == "iterative":
        why = f"{n:,} rows: asked for{where}, {matrix} is never formed"
        return Plan("iterative", why, bytes=s.memory)
    if s.way == "exact" and (size <= s.memory or s.memory_limit is None):
        return Plan(
            "exact", f"{n:,} rows: asked for, {matrix} is factored", bytes=size, flops=n**3 / 3
        )
    if s.way == "exact":
        raise ValueError(
            f"via='exact' needs {matrix}, beyond memory_limit={s.memory_limit!r}; raise it, or use via='iterative'."
        )
    if n <= MAX_EXACT_ROWS and size <= s.memory:
        return Plan("exact", f"{n:,} rows: {matrix} is factored", bytes=size, flops=n**3 / 3)
    why = (
        f"more than {MAX_EXACT_ROWS:,} rows"
        if n > MAX_EXACT_ROWS
        else f"{matrix} exceeds memory_limit"
    )
    if no_gpu is None and n > MAX_EXACT_ROWS and n <= MAX_GPU_ROWS:
        why = f"{n:,} rows: products{where}, {PRODUCTS}"
        return Plan("iterative", why, rejected=(("exact", f"more than {MAX_EXACT_ROWS:,} rows"),))
    if outputs > 1:
        return Plan(
            "iterative", f"{why}, and {outputs} outputs", bytes=s.memory, rejected=(("exact", why),)
        )
    return Plan("landmarks", why, rejected=(("exact", why),))


# checks, each a sentence where something is wrong
def checked_device(device: str) -> str:
    """A device that is there."""
    device_of(device)
    return device


def spec_of(fixed: Any, tied: Any, bounds: Any, priors: Any, *, free: bool) -> HyperparameterSpec:
    """What was said; a given noise means the kernel as given, unless there is none, or something is
    said of its parameters."""
    tied = () if tied is None else tied
    if fixed is None:
        fixed = () if free or bounds or priors or tied else "all"
    return HyperparameterSpec(fixed, tied, bounds, priors)


def held(kernel: KernelSetting) -> list[str] | None:
    """What a kernel of scikit-learn's processes holds: what it fixes, and the scale, as it has its
    amplitudes in itself; None of others."""
    return [*kernel.fixed, "scale"] if isinstance(kernel, Translation) else None


def bounded(kernel: KernelSetting, bounds: Any) -> Any:
    """The bounds of a kernel of scikit-learn's processes, and what is said here, which comes first."""
    if not isinstance(kernel, Translation) or not (bounds is None or isinstance(bounds, Mapping)):
        return bounds
    return {**kernel.bounds, **(bounds or {})} or None


def noise_of(
    kernel: KernelSetting, noise: float | Array | None
) -> tuple[KernelSetting, float | Array | None]:
    """The kernel without its noise, as WhiteKernel adds it, and the noise; None where it is
    learnt."""
    if not isinstance(kernel, Translation) or kernel.noise is None:
        return kernel, noise
    if noise is not None:
        raise ValueError(
            f"kernel has a WhiteKernel, and noise={reprlib.repr(noise)} is given too; leave one of them out."
        )
    return kernel.without_noise(), kernel.noise if kernel.noise_fixed else None


def checked_noise(noise: object, *, zero: bool = True) -> float | Array | None:
    """A variance, one a row, or None for "learn"; zero only where points are interpolated."""
    if isinstance(noise, str) and noise == "learn":
        return None
    try:
        v = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        v = np.array(-1.0)
    if v.ndim > 1 or not (np.isfinite(v) & ((v >= 0) if zero else (v > 0))).all():
        raise ValueError(
            f"noise must be a variance {'>=' if zero else '>'} 0, one a row, or 'learn', got {reprlib.repr(noise)}."
        )
    return v if v.ndim else float(v)


def checked_learn_rows(rows: object) -> int | str | None:
    """A number of rows, "all", or None for as many as the way takes."""
    if rows is None or (isinstance(rows, str) and rows == "all"):
        return rows
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool) and rows >= 1:
        return int(rows)
    raise ValueError(f"learn_rows must be an integer >= 1, 'all' or None, got {rows!r}.")


def check_count(n: object, name: str, *, least: int = 1) -> int:
    """A whole number."""
    if isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= least:
        return int(n)
    raise ValueError(f"{name} must be an integer >= {least}, got {n!r}.")


def check_shares(values: object, name: str) -> Array:
    """Numbers between 0 and 1."""
    try:
        v = np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        v = np.array([-1.0])
    if isinstance(values, str) or v.ndim != 1 or not ((v > 0) & (v < 1)).all():
        raise ValueError(f"{name} must be between 0 and 1, got {reprlib.repr(values)}.")
    return v


def checked_mean(mean: object) -> float | str:
    """A number, "y" or "auto"."""
    if isinstance(mean, str) and mean in ("y", "auto"):
        return mean
    if (found := number(mean)) is None:
        raise ValueError(f"prior_mean must be a number, 'y' or 'auto', got {mean!r}.")
    return found
